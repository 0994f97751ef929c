"""Settings: the table ``[tool.dy2st]`` of the nearest pyproject.toml, from the working folder upward."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dy2st.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

_KINDS: dict[str, tuple[type, ...]] = {"targets": (list,), "opset": (int,), "rtol": (float, int), "atol": (float, int)}


@dataclass(frozen=True)
class Settings:
    """What the file says; options on the command line win."""

    targets: tuple[str, ...] = ()
    opset: int | None = None
    rtol: float | None = None
    atol: float | None = None


def load_settings(start: Path) -> Settings:
    """The settings that hold in a folder; the defaults if there is no file or no table.

    Targets are relative to the file's folder.

    Raises:
        SettingsError: the file does not parse, or a key is unknown or of the wrong type.
    """
    file = next(
        (folder / "pyproject.toml" for folder in (start, *start.parents) if (folder / "pyproject.toml").is_file()), None
    )
    if file is None:
        return Settings()
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}).get("dy2st", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{file} can't be read: {error}") from error
    values: dict[str, Any] = {}
    for key, value in table.items():
        kinds = _KINDS.get(key)
        if kinds is None:
            raise SettingsError(f"{file}: [tool.dy2st] has an unknown key {key!r}", hint=f"one of {', '.join(_KINDS)}")
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise SettingsError(f"{file}: [tool.dy2st] {key} is {value!r}, which is no {kinds[0].__name__}")
        values[key] = _targets(value, file.parent) if key == "targets" else value
    return Settings(**values)


def _targets(given: Any, folder: Path) -> tuple[str, ...]:
    return tuple(str(folder / str(target)) for target in given)
