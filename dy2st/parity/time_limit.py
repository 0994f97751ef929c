"""A time limit: what hangs, eagerly, in a capture or on onnxruntime, is stopped and told."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

from dy2st.errors import Location, TimeLimitError, UsageError

_OURS = str(Path(__file__).resolve().parents[1])


class _ExpiredError(BaseException):
    """The time is up: no ``except Exception`` on the way may take it for a failure of its own."""

    def __init__(self, location: Location | None) -> None:
        self.location = location


@contextlib.contextmanager
def limited(
    seconds: float | None, step: Callable[[str], None], *, option: str = "--timeout"
) -> Iterator[Callable[[str], None]]:
    """Stop what runs inside after ``seconds``; gives a function that is told each step, as ``step`` is.

    Only the main thread can be stopped, and only where there are POSIX signals. ``option`` is what the user has said.

    Raises:
        TimeLimitError: the time was up; it names the step, and the line of the user's code that was called, if any.
        UsageError: ``seconds`` is no time, or nothing can be stopped here.
    """
    if seconds is None:
        yield step
        return
    if not (math.isfinite(seconds) and seconds > 0):
        raise UsageError(f"{option} {seconds:g} is no time", hint="seconds, more than 0")
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        raise UsageError(f"{option} is for the main thread, on systems with POSIX signals")
    doing = "starting"

    def told(text: str) -> None:
        nonlocal doing
        doing = text
        step(text)

    def expired(_number: int, frame: FrameType | None) -> NoReturn:
        raise _ExpiredError(_users(frame))

    before = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield told
    except _ExpiredError as error:
        what = f"it was not done in {seconds:g} s, and was {doing}"
        raise TimeLimitError(what, hint=f"{option} with more seconds", location=error.location) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _users(frame: FrameType | None) -> Location | None:
    """The innermost line of the user's own code that runs; who has called us is not meant."""
    found = None
    stack = traceback.extract_stack(frame)
    first = next((n for n, each in enumerate(stack) if each.filename.startswith(_OURS)), len(stack))
    for each in stack[first:]:
        others = each.filename.startswith((_OURS, "<")) or "site-packages" in each.filename
        if not (others or each.filename.startswith(_STDLIB) or each.filename.endswith("dy2st/__main__.py")):
            found = Location(each.filename, each.lineno or 1, text=each.line)
    return found


_STDLIB = str(Path(traceback.__file__).resolve().parent)
