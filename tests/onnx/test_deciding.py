"""Conditions that depend on no input: no ``If`` is left of them; onnxruntime 1.31 dies of nested ones."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import dy2st

# What onnxruntime reads of memory that was given back is then no longer what it was.
FREED = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.perturb=165"}
LOAD = "import onnxruntime, sys; onnxruntime.InferenceSession(sys.argv[1], providers=['CPUExecutionProvider'])"


def arms(v: Tensor, s: Tensor) -> Tensor:
    """Two branches that are decided, around one that is not."""
    shifted = (torch.tensor(1) << 1) % 3
    if shifted == 1:
        y = v
    else:
        if shifted == 2:
            m = -v if s > 0 else v.abs()
            y = m + v
        else:
            y = v * 2
        y = -y
    return y


def loops(v: Tensor, s: Tensor) -> Tensor:
    """A loop in the inner branch, which is used twice behind it."""
    level = torch.tensor([0.25, 1.0]).tanh()
    if level.sum() > 0.5:
        if level.max() < 0.9:
            while s < 4:
                s = s + 2
                v = v + s
        v = v.abs() + v
    return v


class Weighed(nn.Module):
    """A parameter decides; what it decides is asked again."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.arange(-3000.0, 3000.0))

    def forward(self, v: Tensor, s: Tensor) -> Tensor:
        scale = self.weight.sigmoid().sum()
        factor = scale if scale > 100 else torch.ones(())
        if factor > 2000:
            if factor < 4000 and s > 0:
                v = v + 1
            v = v - 0.5
        return v


def drawn(v: Tensor, s: Tensor) -> Tensor:
    """What a draw decides is no constant."""
    return v if torch.rand(2).sum() < 3 else s * v


def branches(graph: onnx.GraphProto) -> int:
    """The number of ``If`` nodes, at any depth."""
    inner = [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    return sum(node.op_type == "If" for node in graph.node) + sum(branches(each) for each in inner)


@pytest.mark.parametrize(("model", "left"), [(arms, 1), (loops, 0), (Weighed(), 1), (drawn, 1)])
def test_only_what_an_input_decides_is_a_branch(model: Callable[..., Any], left: int, tmp_path: Path) -> None:
    """Such a file loads, and computes what eager does."""
    file = tmp_path / "model.onnx"
    given = torch.tensor([1.0, -2.0]), torch.tensor(1.0)
    program = dy2st.onnx.export(model, given, file)
    assert branches(program.model_proto.graph) == left
    subprocess.run([sys.executable, "-c", LOAD, str(file)], check=True, env={**os.environ, **FREED})
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    for s in (1.0, -1.0, 8.0):
        args = given[0], torch.tensor(s)
        (found,) = session.run(None, {"v": args[0].numpy(), "s": args[1].numpy()})
        with torch.no_grad():
            np.testing.assert_allclose(found, model(*args).numpy())
