"""Lists, dicts and sets whose length, keys or indices are data-dependent."""
