"""An ONNX file on onnxruntime in a child process, which may crash."""

from __future__ import annotations

import itertools
import os
import pickle
import selectors
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import IO, Any, ClassVar

import torch

from dy2st.embedded.file_outputs import told_outputs
from dy2st.embedded.session_kernels import in_this_process, registered_kernels
from dy2st.errors import OnnxError
from dy2st.parity.stages import CPU, EndlessRunError, OnnxSession, as_value, load_error, state_names, state_outputs

# By its path: importing the package would import torch in the child.
_CHILD = Path(__file__).resolve().parents[1] / "onnx" / "runtime" / "child.py"
_BFLOAT16 = 16


class CrashError(Exception):
    """The child process has died; the text says how."""


def isolated_session(path: str | Path, *, level: str | None = None, provider: str = CPU) -> OnnxSession:
    """An :class:`IsolatedSession`; where kernels are written in Python, one in this process, which has them.

    Raises:
        OnnxError: onnxruntime can't load the file, or crashes on it.
    """
    make = OnnxSession if in_this_process() else IsolatedSession
    return make(path, level=level, provider=provider)


class IsolatedSession(OnnxSession):
    """As :class:`OnnxSession`, in a process of its own, which all such sessions share.

    Where it has died, or was ended for its time, it is started again, and the file loaded into it once more.

    Raises:
        OnnxError: onnxruntime can't load the file, or crashes on it.
    """

    def __init__(self, path: str | Path, *, level: str | None = None, provider: str = CPU) -> None:
        self._file = str(Path(path).absolute()), level, provider  # its working folder may be another
        self._load()

    def _load(self) -> None:
        self._process = _Process.running()
        others = self._process.requests
        self._key = next(_KEYS)
        weakref.finalize(self, self._process.unused.append, self._key)
        try:
            self.input_names, self.output_names, told = self._process.asked(
                "load", self._key, *self._file, torch.get_num_threads(), registered_kernels()
            )
            self.state_names, self.following = state_names(told), state_outputs(told)
            self.told = told_outputs(told)
        except CrashError as error:
            if others:  # what an earlier file has broken is not this one's fault
                self._load()
                return
            raise OnnxError(f"{error} while it loaded the file") from error
        except _Failed as error:
            raise load_error(str(error)) from error

    def values(self, feed: dict[str, torch.Tensor]) -> list[Any]:
        """Run on tensors by graph input name: for each output a tensor, a list of tensors, a text, or None.

        Raises:
            CrashError: the process has died.
            EndlessRunError: it took longer than ``limit``.
        """
        if not self._process.is_alive():  # it has crashed on an earlier set, or on another file
            self._load()
        sent = {name: _sent(tensor) for name, tensor in feed.items()}
        found = self._process.asked("run", self._key, sent, limit=self.limit)
        return [_received(*each) for each in found]


_KEYS = itertools.count()


class _Process:
    """The child. ``unused`` are the keys of sessions that nobody has any more: the child is told with the next request.

    They are only noted where a session goes, since that may be in the middle of another's request. ``requests`` counts
    what it was asked.
    """

    _shared: ClassVar[_Process | None] = None

    def __init__(self) -> None:
        self.unused: list[int] = []
        self.requests = 0
        self._lock = threading.Lock()
        self._process = subprocess.Popen(  # noqa: S603 - our own file
            [sys.executable, str(_CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.kill = weakref.finalize(self, _end, self._process)

    @classmethod
    def running(cls) -> _Process:
        """The one that there is, or a new one."""
        if cls._shared is None or not cls._shared.is_alive():
            cls._shared = cls()
        return cls._shared

    def is_alive(self) -> bool:
        return self.kill.alive and self._process.poll() is None

    def asked(self, *request: Any, limit: float | None = None) -> Any:
        """The answer to a request; it is waited for ``limit`` seconds, where the system can tell when it comes.

        Raises:
            CrashError: the process has died.
            EndlessRunError: there was no answer in time; the process is ended.
            _Failed: onnxruntime has raised an exception.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            unused, self.unused[:] = list(self.unused), []
            self.requests += 1
            try:
                pickle.dump((unused, *request), self._process.stdin)
                self._process.stdin.flush()
                # an answer is written when it is whole, and nothing of the one before it is left to read
                if limit is not None and os.name == "posix" and not _comes(self._process.stdout, limit):
                    raise EndlessRunError(f"onnxruntime was not done in {limit:g} s")  # noqa: TRY301 - ended below
                kind, *answer = pickle.load(self._process.stdout)  # noqa: S301 - from the process that was started here
            except (EOFError, BrokenPipeError, pickle.UnpicklingError):
                death = _death(self._process.wait())
                self.kill()
                raise CrashError(death) from None
            except BaseException:  # an interrupt, or the time is up: the answer would be taken for the next one's
                self.kill()
                raise
        if kind == "failed":
            raise _Failed(": ".join(part for part in answer if part))
        return answer[0]


class _Failed(Exception):  # noqa: N818 - what onnxruntime has raised in the child, with its type's name
    """An exception of the child."""


def _comes(stream: IO[bytes], seconds: float) -> bool:
    """Whether there is something to read in time."""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        return bool(selector.select(seconds))


def _death(code: int) -> str:
    if code >= 0:
        return f"onnxruntime's process ended with exit code {code}"
    return f"onnxruntime crashed ({signal.Signals(-code).name})"


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            try:
                stream.close()
            except BrokenPipeError:  # something was still to be written
                continue


def _sent(given: torch.Tensor) -> tuple[Any, int | None]:
    tensor = torch.view_as_real(given) if given.is_complex() else given
    if tensor.dtype is torch.bfloat16:
        return tensor.contiguous().view(torch.uint16).numpy(), _BFLOAT16
    return tensor.contiguous().numpy(), None


def _received(value: Any, kind: int | None) -> Any:
    return as_value(value) if kind is None else torch.from_numpy(value.copy()).view(torch.bfloat16)
