"""An ONNX file on onnxruntime in a child process, which may crash."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import torch

from dy2st.errors import OnnxError
from dy2st.parity.outputs import Output
from dy2st.parity.stages import CPU, OnnxSession, load_error

# By its path: importing the package would import torch in the child.
_CHILD = Path(__file__).resolve().parents[1] / "onnx" / "child.py"
_BFLOAT16 = 16


class CrashError(Exception):
    """The child process has died; the text says how."""


class IsolatedSession(OnnxSession):
    """As :class:`OnnxSession`, in a process of its own, which ends with this.

    Raises:
        OnnxError: onnxruntime can't load the file, or crashes on it.
    """

    def __init__(self, path: str | Path, *, level: str | None = None, provider: str = CPU) -> None:
        self._file = str(path), level, provider
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own file
            [sys.executable, str(_CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        weakref.finalize(self, _end, self._process)
        try:
            self.input_names, self.output_names = self._asked("load", *self._file)
        except CrashError as error:
            raise OnnxError(f"{error} while it loaded the file") from error
        except _Failed as error:
            raise load_error(str(error)) from error

    def outputs(self, feed: dict[str, torch.Tensor]) -> list[Output]:
        """Run on tensors by graph input name. The outputs are named by the graph.

        Raises:
            CrashError: the process has died.
        """
        if self._process.poll() is not None:  # it has crashed on an earlier set
            self._start()
        found = self._asked("run", {name: _sent(tensor) for name, tensor in feed.items()})
        return [Output(name, _received(*each)) for name, each in zip(self.output_names, found, strict=True)]

    def _asked(self, *request: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            pickle.dump(request, self._process.stdin)
            self._process.stdin.flush()
            kind, *answer = pickle.load(self._process.stdout)  # noqa: S301 - from the process that was started here
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            raise CrashError(_death(self._process.wait())) from None
        if kind == "failed":
            raise _Failed(": ".join(part for part in answer if part))
        return answer[0]


class _Failed(Exception):  # noqa: N818 - what onnxruntime has raised in the child, with its type's name
    """An exception of the child."""


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


def _received(array: Any, kind: int | None) -> torch.Tensor:
    tensor = torch.from_numpy(array.copy())
    return tensor if kind is None else tensor.view(torch.bfloat16)
