"""Where a target's code begins: the place to point at where no better one is known."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dy2st.cli.failures import RefusalsError, report_error
from dy2st.cli.target import split_target
from dy2st.errors import Dy2stError, Location
from dy2st.report.run import Failure, TargetResult

if TYPE_CHECKING:
    import argparse

    from dy2st.cli.target import Target


def definition_of(target: Target) -> Location | None:
    """The first line of the function that a call of the model runs; else where the target's name is defined."""
    from dy2st.conversion import entry_function

    try:
        code = entry_function(target.model).__code__
    except Dy2stError:
        return definition_in_file(target.text)
    return Location(code.co_filename, code.co_firstlineno)


def definition_in_file(text: str) -> Location | None:
    """Where a target's file defines its name, without importing it; the file's first line if it is not found there."""
    try:
        where, name = split_target(text)
    except Dy2stError:
        return None
    path = Path(getattr(sys.modules.get(where), "__file__", None) or where)
    if path.suffix != ".py" or not path.is_file():
        return None
    try:
        statements = ast.parse(path.read_bytes()).body
    except (SyntaxError, ValueError):
        statements = []
    for statement in statements:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            names = {statement.name}
        else:
            names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        if name.partition(".")[0] in names:
            return Location(str(path), statement.lineno)
    return Location(str(path), 1)


def failed(error: Exception, text: str, options: argparse.Namespace, *, about: str = "") -> TargetResult:
    """Say on stderr what has stopped a target, and make its result of that."""
    import argparse

    code = report_error(error, argparse.Namespace(json=False, traceback=options.traceback), about)
    found = error.errors if isinstance(error, RefusalsError) else [error]
    return TargetResult(text, code, failures=tuple(map(Failure.of, found)), definition=definition_in_file(text))
