"""What commands print: progress on a terminal's stderr, results on stdout."""

from __future__ import annotations

import contextlib
import logging
import shutil
import sys
import warnings
from typing import TYPE_CHECKING, Any, Self, TextIO

from dy2st.errors.places import from_here
from dy2st.report.parity_report import graph_line, render_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dy2st.report.parity_report import ParityReport

# Who logs what it skipped or could not optimise: nothing that a user could act on.
_LOGGERS = ("torch.onnx", "torch.export", "torch.fx", "onnxscript", "onnx_ir")

# Whose warnings are about their own insides, not about the user's model.
_LIBRARIES = r"(torch|onnx|onnxscript|onnx_ir|onnxruntime|copyreg)(\..*)?"


@contextlib.contextmanager
def progress(title: str, *, enabled: bool = True) -> Iterator[Callable[[str], None]]:
    """Give a function that shows the step under way: a line if stderr is a terminal, else nothing.

    Meanwhile what the model prints goes to stderr, so that stdout holds results only. It takes the line's place; so
    does the prompt of a debugger.
    """
    with contextlib.ExitStack() as stack:
        line = stack.enter_context(ProgressLine(enabled=enabled))
        if line.enabled:
            stack.enter_context(contextlib.redirect_stderr(_MakingWay(sys.stderr, line)))
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        stack.enter_context(_warnings_from_here())
        if not sys.warnoptions:
            stack.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", module=_LIBRARIES)
        stack.enter_context(_quiet_loggers())
        yield lambda step: line.show(f"{title}: {step}")


class ProgressLine:
    """A line on a terminal's stderr that says how far the work is; nothing elsewhere.

    Unlike a spinner it changes only when it is told to, so that others may write in between.
    """

    def __init__(self, *, enabled: bool = True) -> None:
        self.enabled = enabled and sys.stderr.isatty()
        self._stream = sys.stderr
        self._shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, text: str) -> None:
        """Write the line, as much of it as fits."""
        text = text[: shutil.get_terminal_size().columns - 1]
        if self.enabled and text != self._shown:
            self._write(text)

    def clear(self) -> None:
        """Take it away, before something else is written."""
        if self._shown:
            self._write("")

    def _write(self, text: str) -> None:
        self._stream.write(f"\r\x1b[2K{text}")  # ECMA-48: to the left, erase the line
        self._stream.flush()
        self._shown = text


class _MakingWay:
    """A terminal's stream; what is written to it takes the place of a line."""

    def __init__(self, stream: TextIO, line: ProgressLine) -> None:
        self._stream, self._line = stream, line

    def write(self, text: str) -> int:
        """Take the line away, and write."""
        if text:
            self._line.clear()
        return self._stream.write(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """The same for several."""
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def _warnings_from_here() -> Iterator[None]:
    """Warnings name their file as all that is printed does."""
    native = warnings.formatwarning

    def formatted(message: Any, category: Any, filename: str, lineno: int, line: str | None = None) -> str:
        return from_here(native(message, category, filename, lineno, line))

    warnings.formatwarning = formatted
    try:
        yield
    finally:
        warnings.formatwarning = native


@contextlib.contextmanager
def _quiet_loggers() -> Iterator[None]:
    """Nothing from the libraries' loggers: what they call errors reaches us as exceptions."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def print_report(report: ParityReport) -> None:
    """The table: rich on a terminal, plain text elsewhere."""
    if not sys.stdout.isatty():
        sys.stdout.write(render_text(report) + "\n")
        return
    from rich.console import Console

    from dy2st.report.table import print_table

    print_table(report, Console())


def graph_facts(report: ParityReport) -> str:
    """`` (opset 18, 14 nodes, with 1 If and 1 Loop)``, or nothing."""
    line = graph_line(report)
    return f" ({line})" if line else ""
