"""Whether onnxruntime's optimiser, and not the file, is what differs from eager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dy2st.parity.stages import OnnxSession
from dy2st.report.model import StageResult

# From the most that is left on to nothing at all.
LEVELS = ("ORT_ENABLE_BASIC", "ORT_DISABLE_ALL")


class UnoptimisedRuns:
    """Runs of a file with less optimisation, whose sessions are made when they are first asked for."""

    def __init__(self, file: str | Path, make: Callable[..., OnnxSession] = OnnxSession) -> None:
        self._file, self._make = file, make
        self._sessions: dict[str, OnnxSession] = {}

    def blame(self, result: StageResult, run: Callable[[OnnxSession], StageResult]) -> str:
        """What to say of a stage that is not equal: the level at which it is, or nothing.

        ``run`` compares a session's outputs with eager's, on the input that differed.
        """
        for level in LEVELS:
            try:
                if level not in self._sessions:
                    self._sessions[level] = self._make(self._file, level=level)
                found = run(self._sessions[level])
            except Exception:  # noqa: BLE001, S112 - a level that fails as well explains nothing
                continue
            if found.status == "equal":
                failed = f" ({result.message})" if result.message else ""
                return f"onnxruntime's optimiser is at fault: equal at {level}, not at the default level{failed}"
        return ""
