"""A time limit: what hangs, eagerly, in a capture or on onnxruntime, is stopped and told."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FrameType
from typing import NoReturn

from dy2st.errors import Location, TimeLimitError, UsageError
from dy2st.source.user_frames import frames, is_ours, is_own, location_of


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
    running = [*frames(frame)]
    outermost_of_ours = max((n for n, each in enumerate(running) if is_ours(each.f_code.co_filename)), default=0)
    called = (each for each in running[:outermost_of_ours] if is_own(each.f_code.co_filename))
    found = next(called, None)
    return None if found is None else replace(location_of(found), column=None, end_column=None)
