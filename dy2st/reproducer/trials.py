"""One trial: a script's model is built and compared with eager, and does the same thing go wrong as before?"""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import signal
import sys
import tempfile
import threading
import time
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from dy2st.parity.checking import eager_references, export_for
from dy2st.parity.isolated import isolated_session
from dy2st.parity.stage_runs import StageRuns
from dy2st.parity.stages import SEED
from dy2st.parity.stateful_calls import continued

if TYPE_CHECKING:
    from dy2st.report.model import StageResult
    from dy2st.reproducer.script import Script

_NUMBER = itertools.count()


@dataclass(frozen=True)
class Mismatch:
    """What goes wrong, told so that another script's can be the same: the stage, and how and why it differs."""

    stage: str
    status: str
    kind: str
    cause: str

    @classmethod
    def of(cls, stage: StageResult) -> Mismatch:
        """That of a stage that differs from eager or has failed."""
        kind = stage.differences[0].kind if stage.differences else ""
        cause = re.sub(r"['\"].*?['\"]|\d+|/\S+", "…", stage.message)
        return cls(stage.stage, stage.status, kind, cause if stage.status == "error" else cause.partition(":")[0])

    def is_same(self, sought: Mismatch | None) -> bool:
        """Whether this is what is sought; a difference may have lost its excuse, but have no other."""
        if sought is None or (self.stage, self.status) != (sought.stage, sought.status):
            return False
        values = {"nan", "value"}
        same_kind = self.kind == sought.kind or {self.kind, sought.kind} <= values
        return same_kind and (self.cause == sought.cause or (self.status == "differs" and not self.cause))


class _TooLongError(BaseException):
    """A trial does not end; no ``except Exception`` may take it for a failure of its own."""


class Trials:
    """Tries scripts, as many as ``most`` and for at most ``seconds``; ``sought`` is the mismatch that has to stay."""

    def __init__(self, *, most: int = 400, seconds: float = 60.0) -> None:
        self.most, self.left = most, most
        self.deadline = time.monotonic() + seconds
        self.sought: Mismatch | None = None
        self._known: dict[str, bool] = {}
        self._longest = 30.0

    @property
    def made(self) -> int:
        """How many there have been."""
        return self.most - self.left

    def go_on(self) -> bool:
        """Whether there may be more."""
        return self.left > 0 and time.monotonic() < self.deadline

    def first(self, script: Script) -> Mismatch | None:
        """What goes wrong with a script; from now on it is what is sought."""
        begun = time.monotonic()
        self.sought = self._mismatch(script)
        self._longest = max(2.0, 5 * (time.monotonic() - begun))  # a loop that has lost its step does not end
        return self.sought

    def fails(self, script: Script, key: str) -> bool:
        """Whether a script still goes wrong in the same way; no, if no trial is left. ``key`` tells it from others."""
        if key not in self._known:
            if not self.go_on():
                return False
            self.left -= 1
            found = self._mismatch(script)
            self._known[key] = found is not None and found.is_same(self.sought)
        return self._known[key]

    def _mismatch(self, script: Script) -> Mismatch | None:
        try:
            with tempfile.TemporaryDirectory(prefix="dy2st-") as folder, _bounded(self._longest), _silent():
                return _mismatch(script, Path(folder))
        except (Exception, SystemExit, _TooLongError):  # noqa: BLE001 - a script that fails otherwise is no reproducer
            return None


# Of a script's options, those of the export.
_EXPORTING = ("opset_version", "drop_guards", "state")


def _mismatch(script: Script, folder: Path) -> Mismatch | None:
    with built(script, folder) as made:
        references = eager_references(made, list(script.sets))
        if any(reference.problem for reference in references):
            return None
        file = folder / "model.onnx"
        options = {key: value for key, value in script.options.items() if key in _EXPORTING}
        program = export_for(made, references, file, dynamic_shapes=script.dynamic_shapes, **options)
        model, references = continued(made, references, program)
        runs = StageRuns(
            model,
            program=program,
            onnx_file=file,
            rtol=script.options.get("rtol"),
            atol=script.options.get("atol"),
            make=isolated_session,
            localise=False,
        )
        for reference in references:
            for stage in runs.results(reference, lambda _: None):
                if stage.status != "equal":
                    return Mismatch.of(stage)
    return None


@contextlib.contextmanager
def built(script: Script, folder: Path) -> Iterator[Any]:
    """The model of a script, made of its source in a module of its own."""
    name = f"dy2st_reproducer_{next(_NUMBER)}"
    file = folder / f"{name}.py"
    code = script.code()
    file.write_text(code, encoding="utf-8")
    module = types.ModuleType(name)
    module.__file__ = str(file)
    sys.modules[name] = module
    try:
        torch.manual_seed(SEED)
        exec(compile(code, str(file), "exec"), vars(module))  # noqa: S102 - the user's own code
        model = eval(script.build, vars(module))  # noqa: S307 - the same
        if script.state:
            model.load_state_dict(dict(script.state))
        if script.training is not None:
            model.train(script.training)
        yield model
    finally:
        del sys.modules[name]


@contextlib.contextmanager
def _bounded(seconds: float) -> Iterator[None]:
    """Stop what takes longer, where that is possible: in the main thread, with POSIX signals."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGALRM"):
        yield
        return

    def expired(*_: Any) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """What the user's code prints once is of no interest a hundred times."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield
