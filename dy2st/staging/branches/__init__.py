"""``if``, the ternary, ``and``/``or``, early returns and ``try``, on conditions that are data-dependent."""
