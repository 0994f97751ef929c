"""One target in a process forked from this one, which has loaded nothing yet: its crash is not ours.

The process has our terminal, so that a debugger may be used in it, and costs nothing: what is heavy is imported there
alone.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import selectors
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import IO, Any, NoReturn

from dy2st.sweep.job import GRACE, STARTING, Answer, Death, how_ended

INTERRUPTED = 130
# How often it is asked whether the process is still there: what it has started may keep its pipe open.
_EVERY = 0.2
_SOON = 0.01


def can_fork() -> bool:
    """Whether there is a point in it, and no harm: on Linux, without threads, libraries or a debugger here."""
    alone = threading.active_count() == 1 and "torch" not in sys.modules and "numpy" not in sys.modules
    return sys.platform == "linux" and alone and sys.gettrace() is None


def forked(work: Callable[[Callable[[str], None]], Answer], *, limit: float | None = None) -> Answer | Death:
    """What ``work`` gives, which is told a function for its steps; or how the process has ended without an answer.

    ``limit`` are the seconds that it has from its first step on; it should know itself, and is ended a little later.

    Raises:
        KeyboardInterrupt: it was interrupted.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with tempfile.TemporaryFile() as trace:
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            _child(work, writing, trace)
        os.close(writing)
        parent = _Parent(pid, reading, limit)
        try:
            with _interrupts_left_to(pid) as interrupted:
                code = parent.wait()
        except BaseException:
            parent.end()
            raise
        finally:
            os.close(reading)
        if parent.answer is not None:
            return parent.answer
        if code in (INTERRUPTED, -signal.SIGINT) or (interrupted and code >= 0):
            raise KeyboardInterrupt
        _restore_terminal()
        trace.seek(0)
        said = trace.read().decode(errors="replace")
        return Death(how_ended(code), parent.step, said, parent.timed_out, time.monotonic() - parent.begun)


def _child(work: Callable[[Callable[[str], None]], Answer], writing: int, trace: IO[bytes]) -> NoReturn:
    """Do the work and end, whatever happens: what is on this process's stack is the other's."""
    faulthandler.enable(trace)

    def send(message: dict[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(writing, data) :]

    code = 1
    try:
        answer = work(lambda step: send({"step": step}))
        _flush()
        send({"answer": answer.to_plain()})
        code = 0
    except KeyboardInterrupt:
        code = INTERRUPTED
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:  # noqa: BLE001 - the other process says that this one has ended
        traceback.print_exc()
    finally:
        _flush()
        os._exit(code & 0xFF)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


class _Parent:
    """Hears what the process tells until it ends."""

    def __init__(self, pid: int, stream: int, limit: float | None) -> None:
        self.answer: Answer | None = None
        self.step, self.timed_out, self.begun = STARTING, False, time.monotonic()
        self._pid, self._stream, self._limit = pid, stream, limit
        self._ends: float | None = None
        self._rest = b""
        self._code: int | None = None

    def wait(self) -> int:
        """Its exit code, negative for a signal."""
        closed = False
        while True:
            if closed:  # it is about to end
                time.sleep(_SOON)
            elif self._is_readable(_EVERY):
                closed = not self._read()
            code = self._ended()
            if code is not None:
                break
            if self._ends is not None and time.monotonic() > self._ends:
                self.timed_out, self._ends = True, None
                os.kill(self._pid, signal.SIGKILL)
        while not closed and self._is_readable(0):
            closed = not self._read()
        return code

    def end(self) -> None:
        """End it: in good order if it does so soon."""
        if self._ended() is not None:
            return
        os.kill(self._pid, signal.SIGTERM)
        until = time.monotonic() + GRACE
        while self._ended() is None:
            if time.monotonic() > until:
                os.kill(self._pid, signal.SIGKILL)
            time.sleep(_SOON)

    def _ended(self) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def _is_readable(self, seconds: float) -> bool:
        """Whether there is something to read in time, or nothing any more."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._stream, selectors.EVENT_READ)
            return bool(selector.select(seconds))

    def _read(self) -> bool:
        """Take what there is to read; False at the end."""
        data = os.read(self._stream, 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "answer" in message:
                self.answer = Answer.from_plain(message["answer"])
            elif self._limit is not None and self.step == STARTING:
                self._ends = time.monotonic() + self._limit + GRACE
            self.step = message.get("step", self.step)
        return bool(data)


@contextlib.contextmanager
def _interrupts_left_to(pid: int) -> Iterator[list[int]]:
    """Interrupts are the other process's business, and its debugger's; those that there were are noted.

    A terminal sends them to both.
    """
    noted: list[int] = []

    def note(number: int, _: object) -> None:
        noted.append(number)
        if not sys.stdin.isatty():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield noted
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)


def _restore_terminal() -> None:
    """Take away what a progress line has left."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[2K")
        sys.stderr.flush()
