"""What holds of every format."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dy2st.report.formats import FORMATS, render

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_run_gives_the_same_text(any_run, name):
    text = render(any_run, name)
    assert text == render(any_run, name)
    assert text.endswith("\n")
    assert not text.endswith("\n\n\n")


@pytest.mark.parametrize("name", FORMATS)
def test_verdicts_and_failures_are_told_in_each(runs, name):
    text = render(runs["full"], name)
    for part in ("models/net.py", "an int is used as a key", "RuntimeError"):
        assert part in text


def test_no_renderer_needs_torch():
    code = (
        "import sys; from dy2st.report.formats import FORMATS, render; from dy2st.report.run import Run, TargetResult;"
        "from dy2st.report import InputResult, ParityReport;"
        "run = Run('check', '1', (TargetResult('a.py', 0, ParityReport('f', (InputResult('0', ''),))),));"
        "[render(run, name) for name in FORMATS];"
        "print(sorted({'torch', 'numpy', 'onnx', 'onnxruntime', 'libcst', 'rich'} & set(sys.modules)))"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "[]\n"
