"""The Python files of a folder, a file or an installed package, parsed. Nothing is imported or run."""

from __future__ import annotations

import ast
import importlib.machinery
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dy2st.errors import UsageError

# Folders that hold other people's code, or none.
_SKIPPED = frozenset("__pycache__ node_modules site-packages dist-packages build dist venv env".split())


@dataclass(frozen=True)
class Source:
    """A file with its syntax tree; without one, what is wrong with it. ``name`` is its path as it is shown."""

    path: Path
    name: str
    tree: ast.Module | None
    text: str = ""
    problem: str = ""


def find(place: str) -> list[Path]:
    """The Python files of a folder, a file, or a package by its name, sorted.

    Raises:
        UsageError: there is no such thing, or no Python file in it.
    """
    root = Path(place)
    if not root.exists():
        root = _package(place)
    found = [root] if root.is_file() else sorted(_below(root))
    if not found or found[0].suffix != ".py":
        raise UsageError(f"{place} has no Python files", hint="give a folder, a file.py, or the name of a package")
    return found


def _package(name: str) -> Path:
    """Where an installed package lies; a name with dots is looked for below it."""
    first, *inner = name.split(".")
    spec = importlib.machinery.PathFinder.find_spec(first) if first.isidentifier() else None
    if spec is None or (spec.origin is None and not spec.submodule_search_locations):
        raise UsageError(
            f"{name} is no file, no folder and no installed package", hint="dy2st survey src/, or dy2st survey package"
        )
    places = list(spec.submodule_search_locations or [])
    root = Path(places[0]) if places else Path(str(spec.origin))
    for part in inner:
        root /= part
    if not root.exists() and root.with_suffix(".py").exists():
        root = root.with_suffix(".py")
    if not root.exists():
        raise UsageError(f"there is no {name}", hint=f"{first} lies in {root.parents[len(inner) - 1]}")
    return root


def _below(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir() and path.name not in _SKIPPED and not path.name.startswith("."):
            yield from _below(path)
        elif path.suffix == ".py" and path.is_file():
            yield path


def read(path: Path, name: str) -> Source:
    """One file; what can't be read or parsed is told, not raised."""
    try:
        with tokenize.open(path) as file:
            text = file.read()
        return Source(path, name, ast.parse(text), text)
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        return Source(path, name, None, problem=f"{type(error).__name__}: {str(error).splitlines()[0]}")
