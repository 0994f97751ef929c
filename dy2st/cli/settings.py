"""Settings: the table ``[tool.dy2st]`` of the nearest pyproject.toml, from the working folder upward.

Beside the settings of a whole run it has any option of ``dy2st check`` that can differ by target, with the same name
(an underscore for a dash): at the top for all targets, in a ``[[tool.dy2st.target]]`` for one, or for a folder of them.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dy2st.cli.names import require_name
from dy2st.cli.options import OPTIONS, Option
from dy2st.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

# The options of a target that name a file or a folder; settings name them from their own folder.
_PATHS = ("inputs", "save_inputs", "onnx")


@dataclass(frozen=True)
class TargetTable:
    """One ``[[tool.dy2st.target]]``: the target as from the working folder, and its options."""

    target: str
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Settings:
    """What the file says; options on the command line win.

    ``folder`` is the file's; None without a file. ``options`` are those of all targets, ``tables`` those of some;
    ``targets`` are what is checked without arguments, before those of the tables.
    """

    folder: Path | None = None
    targets: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    tables: tuple[TargetTable, ...] = ()
    jobs: int | None = None
    baseline: Path | None = None
    cache: bool = True


def load_settings(start: Path) -> Settings:
    """The settings that hold in a folder; the defaults if there is no file or no table.

    Paths are relative to the file's folder.

    Raises:
        SettingsError: the file does not parse, or a key is unknown or of the wrong type.
    """
    file = settings_file(start)
    if file is None:
        return Settings()
    try:
        tool = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{file} can't be read: {error}") from error
    if not isinstance(tool, dict):
        raise SettingsError(f"{file}: tool is {tool!r}, not a table")
    table = tool.get("dy2st", {})
    if not isinstance(table, dict):
        raise SettingsError(f"{file}: tool.dy2st is {table!r}, not a table")
    where = f"{file}: [tool.dy2st]"
    found = _checked(table, _of_runs() | _SHARED, where)
    tables = tuple(_table(each, file) for each in found.pop("target", ()))
    named = [named_alike(each.target) for each in tables]
    twice = next((each.target for each in tables if named.count(named_alike(each.target)) > 1), None)
    if twice is not None:
        raise SettingsError(f"{file}: two [[tool.dy2st.target]] are for {twice}", hint="one table for each target")
    baseline = found.pop("baseline", None)
    return Settings(
        folder=file.parent,
        targets=tuple(_target_from_here(each, file.parent) for each in found.pop("targets", ())),
        tables=tables,
        jobs=found.pop("jobs", None),
        cache=found.pop("cache", True),
        baseline=None if baseline is None else file.parent / baseline,
        options=found,
    )


def settings_file(start: Path) -> Path | None:
    """The nearest pyproject.toml."""
    files = (folder / "pyproject.toml" for folder in (start, *start.parents))
    return next((file for file in files if file.is_file()), None)


def named_alike(target: str) -> str:
    """A target's text such that two texts of one target are the same."""
    where, _, name = target.rpartition(":")
    if not where or os.sep in name:
        where, name = target, ""
    if os.sep in where or where.endswith(".py") or Path(where).exists():
        where = os.path.normpath(Path.cwd() / where)
    return f"{where}:{'' if name == 'model' else name}"


def _table(given: Any, file: Path) -> TargetTable:
    where = f"{file}: [[tool.dy2st.target]]"
    if not isinstance(given, dict):
        raise SettingsError(f"{where} is {given!r}, not a table")
    target = given.get("target")
    if not isinstance(target, str) or not target:
        what = f"{where}: target is {_shown(target)}, not a text" if target else f"{where} has no target"
        raise SettingsError(what, hint='target = "models/net.py:model"')
    options = _checked({key: value for key, value in given.items() if key != "target"}, OPTIONS, where, target)
    for key in _PATHS:
        if key in options:
            options[key] = _from_here(options[key], file.parent)
    return TargetTable(_target_from_here(target, file.parent), options)


def _target_from_here(text: str, folder: Path) -> str:
    """A target of the file as one that the working folder's would be: a file's path changes, a module's name not."""
    require_name(text)
    where = text.rpartition(":")[0] or text
    is_module = os.sep not in text and "/" not in text and not where.endswith(".py") and not (folder / text).exists()
    return text if is_module else _from_here(text, folder)


def _from_here(text: str, folder: Path) -> str:
    if folder == Path.cwd() or Path(text).is_absolute():
        return text
    return os.path.relpath(folder / text)


def _checked(table: Mapping[str, Any], known: Mapping[str, Option], where: str, target: str = "") -> dict[str, Any]:
    """The values of a table, as they are used."""
    import msgspec  # where there is a table: pytest loads the plugin in any environment

    where += f" of {target}" if target else ""
    found = {}
    for key, value in table.items():
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"{close[0]!r}, perhaps" if close else f"one of {', '.join(known)}"
            raise SettingsError(f"{where} has an unknown key {key!r}", hint=hint)
        option = known[key]
        try:
            given = msgspec.convert(value, option.kind)
            fits = option.fits(given)
        except msgspec.ValidationError:
            fits = False
        if not fits:
            raise SettingsError(f"{where}: {key} is {_shown(value)}, not {option.words}") from None
        found[key] = option.used(given)
    return found


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


@cache
def _of_runs() -> dict[str, Option]:
    """The settings of a whole run."""
    import msgspec

    whole = Annotated[int, msgspec.Meta(ge=1)]
    options = (
        Option("targets", {}, str | list[str], "a text or a list of texts", used=_listed),
        Option("target", {}, list[Any], "a list of tables: [[tool.dy2st.target]]"),
        Option("jobs", {}, whole, "a whole number from 1 up"),
        Option("baseline", {}, str, "a file's name"),
        Option("cache", {}, bool, "true or false"),
    )
    return {each.name: each for each in options}


_SHARED = {name: each for name, each in OPTIONS.items() if each.shared}
