"""A model whose weights are larger than the memory that an export may take: they are mapped, and streamed to disk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
LAYERS, WIDTH = 17, 4096  # more than 1 GiB, from which on weights lie beside the file
PROGRAM = """
import mmap
import resource
import sys

import torch
from torch import nn

import dy2st


class Deep(nn.Module):
    def __init__(self, layers, width):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            if x.abs().max() > 1:
                x = x / 2
        return x


weights, file, layers, width, copied = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:]
# Pages that are shared with the file are no memory of this process; the limit is on all other.
torch.serialization.set_default_mmap_options(mmap.MAP_SHARED)
with torch.device("meta"):
    model = Deep(layers, width)
model.load_state_dict(torch.load(weights, mmap=True), assign=True)
size = sum(each.nbytes for each in model.parameters())
resource.setrlimit(resource.RLIMIT_DATA, (int(0.7 * size), int(0.7 * size)))
if copied:
    kept = [each.detach().clone() for each in model.parameters()]
dy2st.onnx.export(model.eval(), (torch.ones(1, width),), file)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have no such limit")
def test_weights_that_do_not_fit_into_memory(tmp_path: Path) -> None:
    torch.manual_seed(0)
    weights = {f"layers.{place}.weight": torch.randn(WIDTH, WIDTH) / 60 for place in range(LAYERS)}
    torch.save(weights, tmp_path / "weights.pt")
    (tmp_path / "program.py").write_text(PROGRAM)

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "program.py", "weights.pt", "deep.onnx", str(LAYERS), str(WIDTH), *more]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert run("copied").returncode != 0  # the limit is one: a copy of the weights breaks it
    done = run()
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "deep.onnx.data").stat().st_size >= sum(each.nbytes for each in weights.values())
    assert (tmp_path / "deep.onnx").stat().st_size < 1_000_000
    session = onnxruntime.InferenceSession(str(tmp_path / "deep.onnx"))
    for scale in (1.0, 0.001):
        x = torch.full((1, WIDTH), scale)
        (found,) = session.run(None, {"x": x.numpy()})
        for weight in weights.values():
            x = x @ weight.T
            if x.abs().max() > 1:
                x = x / 2
        np.testing.assert_allclose(found, x, rtol=1e-3, atol=1e-4)
