"""``check`` in Python: with a time limit, and with onnxruntime in a process of its own."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import dy2st
from dy2st.errors import TimeLimitError, UsageError
from dy2st.parity import isolated
from dy2st.parity.time_limit import limited

SETS = [(torch.ones(2),), (-torch.ones(2),)]


def model(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x


def hangs(x: Tensor) -> Tensor:
    time.sleep(60)  # this line
    return x


def test_the_time_is_up() -> None:
    begun = time.monotonic()
    with pytest.raises(TimeLimitError, match=r"it was not done in 0.5 s, and was running eagerly") as caught:
        dy2st.check(hangs, SETS, timeout=0.5)
    assert time.monotonic() - begun < 30
    location = caught.value.location
    assert location is not None
    assert location.filename == __file__
    assert (location.text or "").strip() == "time.sleep(60)  # this line"


def test_who_has_called_is_not_the_line() -> None:
    with pytest.raises(TimeLimitError) as caught, limited(0.2, lambda _: None) as step:
        step("capturing")
        time.sleep(60)
    assert caught.value.location is None
    assert caught.value.what == "it was not done in 0.2 s, and was capturing"


def test_there_is_time_enough() -> None:
    report = dy2st.check(model, SETS, timeout=300)
    assert report.ok
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_no_time(seconds: float) -> None:
    with pytest.raises(UsageError, match="is no time"):
        dy2st.check(model, SETS, timeout=seconds)


def test_other_threads_have_no_limit() -> None:
    told: list[str] = []

    def run() -> None:
        try:
            dy2st.check(model, SETS, timeout=5)
        except UsageError as error:
            told.append(error.what)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert told == ["timeout is for the main thread, on systems with POSIX signals"]


def test_a_crash_is_a_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = isolated.IsolatedSession.outputs

    def outputs(self: Any, feed: Any) -> Any:
        os.kill(self._process._process.pid, signal.SIGSEGV)
        self._process._process.wait()
        monkeypatch.setattr(self._process, "is_alive", lambda: True)
        return run(self, feed)

    monkeypatch.setattr(isolated.IsolatedSession, "outputs", outputs)
    report = dy2st.check(model, SETS[:1], isolated=True)
    assert report.first_to_differ == "onnxruntime"
    assert "onnxruntime failed: onnxruntime crashed (SIGSEGV)" in report.problems()[0]
