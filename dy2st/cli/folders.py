"""Folders as targets: the models in them, and the files that are left out, without importing any."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dy2st.cli.names import is_text
from dy2st.cli.target import DEFAULT_NAME
from dy2st.errors import TargetError
from dy2st.errors.places import from_here

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# What gives a model's inputs, beside it.
INPUTS = frozenset(("example_inputs", "input_strategies"))
# Folders that hold other people's files.
_OTHERS = {"site-packages", "node_modules", "build", "dist"}
NO_MODEL, NO_INPUTS = f"no {DEFAULT_NAME}", "no example_inputs"


@dataclass(frozen=True)
class Folder:
    """A folder's targets in order, and the other files with the reason why they are none.

    Hidden and private files (``_helpers.py``, ``__init__.py``) are neither.
    """

    path: str
    targets: tuple[str, ...]
    left_out: Mapping[str, str]

    def lines(self) -> list[str]:
        """What is left out, a line for each reason."""
        by_reason: dict[str, list[str]] = {}
        for file, reason in self.left_out.items():
            by_reason.setdefault(reason, []).append(str(Path(file).relative_to(self.path)))
        return [f"{self.path}: left out ({reason}): {', '.join(files)}" for reason, files in by_reason.items()]

    def require_targets(self, *, strict: bool) -> None:
        """Accept a folder with models; with ``strict`` no file may be left out.

        Raises:
            TargetError: it is another one.
        """
        lines = [from_here(line) for line in self.lines()]
        if self.targets and not (strict and lines):
            return
        if not lines:
            raise TargetError(f"{self.path}: there is no Python file in this folder")
        if self.targets:
            raise TargetError("; ".join(lines), hint="without --strict they are left out")
        raise TargetError(
            f"{'; '.join(lines)}; nothing is left",
            hint=f"{DEFAULT_NAME} and example_inputs in one file",
        )


def read_folder(path: str, has_inputs: Callable[[str], bool] = lambda _: False) -> Folder:
    """What is in a folder and below it. ``has_inputs`` says of a target whether its inputs come from elsewhere."""
    targets: list[str] = []
    left_out: dict[str, str] = {}
    for file in sorted(Path(path).rglob("*.py")):
        if any(part.startswith((".", "_")) for part in file.relative_to(path).parts) or not file.is_file():
            continue
        reason = _reason(file, has_inputs)
        if reason:
            left_out[str(file)] = reason
        else:
            targets.append(str(file))
    return Folder(path, tuple(targets), left_out)


def _reason(file: Path, has_inputs: Callable[[str], bool]) -> str:
    """Why a file is no target; empty for one."""
    if not is_text(str(file)):
        return "the name is no text in this locale"
    try:
        names = _top_level_names(ast.parse(file.read_bytes()))
    except SyntaxError as error:
        return f"does not parse: {error.msg}"
    except OSError as error:
        return f"can't be read: {error.strerror}"
    except (UnicodeDecodeError, ValueError):
        return "does not parse"
    if DEFAULT_NAME not in names:
        return NO_MODEL
    return "" if names & INPUTS or has_inputs(str(file)) else NO_INPUTS


def targets_in(folder: Path) -> Sequence[str]:
    """The files below a folder that define both ``model`` and its inputs."""
    return read_folder(str(folder)).targets


def is_others(folder: Path, file: Path) -> bool:
    """Whether a file below a folder is other people's: it lies in an environment, or was built."""
    parts = file.relative_to(folder).parts
    above = [folder.joinpath(*parts[:depth]) for depth in range(1, len(parts))]
    return any(each.name in _OTHERS or (each / "pyvenv.cfg").exists() for each in above)


def _top_level_names(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            names.add(statement.name)
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name for alias in statement.names)
        else:
            names.update(n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return names
