"""The timed workloads: each variant computes what eager does, and the figures are written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(__file__).resolve().parents[1] / "benchmarks" / "workloads.py"


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        pytest.param(["--only", "newton", "--only", "gru_cell"], {"newton", "gru_cell"}, marks=pytest.mark.slow),
        pytest.param(["--growth", "--only", "gru_by_hand"], {"gru_by_hand"}, marks=pytest.mark.slow),
        pytest.param([], None, marks=pytest.mark.slow),
    ],
)
def test_workloads(arguments, found, tmp_path):
    file = tmp_path / "figures.json"
    command = [sys.executable, str(COMMAND), "--seconds", "0.01", "--json", str(file), *arguments]
    subprocess.run(command, check=False, capture_output=True, timeout=600)
    figures = json.loads(file.read_text())
    assert figures["machine"]["onnxruntime"]
    rows = figures["growth" if "--growth" in arguments else "workloads"]
    assert set(rows) == found if found is not None else len(rows) == 13
    for name, row in rows.items():
        if "slopes" in row:
            assert row["slopes"]
        else:
            assert row["nodes"]["ours"] < 2 * row["nodes"]["expert"] + 20, name


def test_an_unknown_workload():
    done = subprocess.run(
        [sys.executable, str(COMMAND), "--only", "nothing"], check=False, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2
    assert "no workload nothing" in done.stderr
