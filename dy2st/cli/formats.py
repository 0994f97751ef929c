"""``--format``: where a command's results go, and in which formats."""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dy2st import __version__
from dy2st.cli.output import ReportOutput, repository_root
from dy2st.errors import UsageError
from dy2st.report.formats import FORMATS, render
from dy2st.report.run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dy2st.report.run import TargetResult


@dataclass(frozen=True)
class Request:
    """One ``--format``: its name, and the file; None for stdout."""

    name: str
    file: str | None = None


def request(text: str) -> Request:
    """``FORMAT`` or ``FORMAT=FILE``, as a type for argparse."""
    name, equals, file = text.partition("=")
    if name not in FORMATS:
        raise argparse.ArgumentTypeError(f"there is no format {name!r}: one of {', '.join(FORMATS)}")
    if equals and not file:
        raise argparse.ArgumentTypeError(f"{text!r} names no file: {name}=FILE, or {name} for stdout")
    return Request(name, file or None)


class Formats:
    """What one command was asked for. It is made before any work is done, so that wrong use is said at once.

    Raises:
        UsageError: two formats would go to stdout, or to the same file.
        SaveError: a file can't be written.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        asked: list[Request] = [*([Request("json")] if options.json else []), *options.format]
        self._requests = list(dict.fromkeys(asked))
        self.started = datetime.now(tz=UTC).replace(tzinfo=None).isoformat(timespec="seconds")
        on_stdout = [each.name for each in self._requests if each.file is None]
        if len(on_stdout) > 1:
            names = " and ".join(on_stdout)
            raise UsageError(f"{names} can't both go to stdout", hint=f"a file for one: --format {on_stdout[1]}=FILE")
        files = [Path(each.file).resolve() for each in self._requests if each.file is not None]
        if len(set(files)) < len(files):
            twice = next(
                each.file for each in self._requests if each.file and files.count(Path(each.file).resolve()) > 1
            )
            raise UsageError(f"two formats can't go to the same file {twice}")
        self.takes_stdout = bool(on_stdout)
        for each in self._requests:
            if each.file is not None:
                ReportOutput(each.file).probe()

    def __bool__(self) -> bool:
        return bool(self._requests)

    def has(self, name: str) -> bool:
        """Whether a format was asked for."""
        return any(each.name == name for each in self._requests)

    def write(self, command: str, targets: Sequence[TargetResult], *, left: int = 0) -> Run:
        """Write every format: the files, all of them or none, and what goes to stdout. Returns what it wrote of.

        ``left`` is the number of targets that an interrupt has kept from being checked.

        Raises:
            SaveError: a file can't be written.
        """
        folder = Path.cwd()
        run = Run(command, __version__, tuple(targets), str(repository_root(folder)), str(folder), self.started, left)
        texts = [(each, render(run, each.name)) for each in self._requests]
        with ExitStack() as stack:
            staged = []
            for each, text in texts:
                if each.file is not None:
                    output = stack.enter_context(ReportOutput(each.file))
                    output.path.write_text(text, encoding="utf-8", errors="replace", newline="\n")
                    staged.append(output)
            for output in staged:
                output.commit()
        for each, text in texts:
            if each.file is None:
                _print(text)
        return run


def _print(text: str) -> None:
    """On stdout, in the encoding that the formats declare, whatever the terminal's is."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(encoding="utf-8", errors="replace")
    sys.stdout.write(text)
    sys.stdout.flush()
