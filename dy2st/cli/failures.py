"""What a failure prints, and its exit code.

A failure on purpose is a :class:`Dy2stError`: one line on stderr (errors in the user's source add
that line and a hint). Anything else is a defect of dy2st.
"""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING

from dy2st.errors import Dy2stError, Dy2stWarning, ParityError, SaveError, UnusableInputError, UsageError
from dy2st.errors.places import from_here
from dy2st.report.as_json import as_text, failures
from dy2st.report.run import INTERRUPTED as INTERRUPTED  # noqa: PLC0414 - with the others
from dy2st.report.run import Failure

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

OK, DIFFERS, USAGE, INTERNAL = 0, 1, 2, 3

# A report's outcome as an exit code.
EXIT_CODES = {"equal": OK, "differs": DIFFERS, "unusable": USAGE}


class RefusalsError(Exception):
    """Everything that is refused of a model."""

    def __init__(self, errors: Sequence[Dy2stError]) -> None:
        super().__init__("\n".join(map(str, errors)))
        self.errors = errors


def report_error(error: Exception, options: argparse.Namespace, about: str = "") -> int:
    """Say what went wrong on stderr (and as JSON on stdout with ``--json``); return the exit code for it.

    ``about`` names the target where there are several.
    """
    if isinstance(error, RefusalsError):
        return _report_refusals(error, options, about)
    if isinstance(error, Dy2stError):
        text = _message(error)
        code = DIFFERS if isinstance(error, ParityError) and not isinstance(error, UnusableInputError) else USAGE
    elif isinstance(error, Dy2stWarning):  # as `python -W error` has it
        text, code = f"{type(error).__name__}: {error}", USAGE
    else:
        first = next(iter(str(error).splitlines()), "")
        text = f"internal error: {type(error).__name__}: {first}\n  this is a defect of dy2st; --traceback shows where"
        code = INTERNAL
    if options.traceback:
        traceback.print_exception(error, file=sys.stderr)
    sys.stderr.write(f"dy2st: {f'{about}: ' if about else ''}{from_here(text)}\n")
    if options.json:
        _print_json((Failure.of(error),), code)
    return code


def _report_refusals(error: RefusalsError, options: argparse.Namespace, about: str) -> int:
    prefix = f"dy2st: {f'{about}: ' if about else ''}"
    for each in error.errors:
        if options.traceback:
            traceback.print_exception(each, file=sys.stderr)
        sys.stderr.write(f"{prefix}{from_here(_message(each))}\n")
    count = len(error.errors)
    sys.stderr.write(f"{prefix}{count} error{'' if count == 1 else 's'}\n")
    if options.json:
        _print_json(tuple(map(Failure.of, error.errors)), USAGE)
    return USAGE


def _message(error: Dy2stError) -> str:
    """Errors in the user's source show the line, and below it what to write instead; all others take one line."""
    if error.location is not None and not isinstance(error, (UsageError, SaveError)):
        return str(error)
    where = f"{error.location}: " if error.location else ""
    return f"{where}{error.code}: {error.what}" + (f" (instead: {error.hint})" if error.hint else "")


def _print_json(found: tuple[Failure, ...], code: int) -> None:
    sys.stdout.write(as_text({**failures(found), "exit_code": code}))
