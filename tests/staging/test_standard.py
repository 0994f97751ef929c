"""Programs in torch's own operators, and back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import onnxruntime
import torch
from torch import Tensor, fx

import dy2st


def operators(module: fx.GraphModule) -> Counter[str]:
    """How many control-flow operators of each kind a program has, subgraphs included."""
    found: Counter[str] = Counter()
    for node in module.graph.nodes:
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            found[node.target.name()] += 1
    for _, inner in module.named_children():
        if isinstance(inner, fx.GraphModule):
            found += operators(inner)
    return found


def halve(x: Tensor) -> tuple[Tensor, int]:
    """An if in a while: all that torch's own operators can say."""
    steps = 0
    while x.abs().max() > 1:
        x = x / 2 if x.sum() > 0 else x / 4
        steps += 1
    return x, steps


def grow(x: Tensor) -> Tensor:
    """Sizes that change, and stacked rows, are ours."""
    rows = []
    for row in x:
        x = torch.cat([x, x[:1]])
        rows.append(row * x.shape[0])
    return torch.stack(rows)


def test_torch_operators_where_they_can_express_it() -> None:
    program = dy2st.export(halve, (torch.ones(3),))
    # One of the conds holds the loop: torch's gradient of a loop that does not run is wrong.
    assert operators(program.graph_module) == {"while_loop": 1, "cond": 2}


def test_our_operators_where_they_can_not() -> None:
    program = dy2st.export(grow, (torch.ones(3, 2),), dynamic_shapes=({0: torch.export.Dim("n")},))
    assert operators(program.graph_module) == {"dy2st_loop": 1}


def test_a_program_in_torch_operators_becomes_onnx(tmp_path: Path) -> None:
    program = dy2st.export(halve, (torch.ones(3),))
    dy2st.onnx.export(program, f=tmp_path / "halve.onnx")
    assert operators(program.graph_module) == {"while_loop": 1, "cond": 2}, "the program itself is left as it was"
    session = onnxruntime.InferenceSession(str(tmp_path / "halve.onnx"))
    for scale in (0.5, 9.0, -30.0):
        x = scale * torch.tensor([1.0, 2.0, -0.5])
        want: Any = halve(x)
        got = session.run(None, {"x": x.numpy()})
        torch.testing.assert_close(torch.as_tensor(got[0]), want[0])
        assert got[1] == want[1]


def test_gradients_flow_through_a_program() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.tensor([2.0, -1.0]))

        def forward(self, x: Tensor) -> Tensor:
            y = x * self.w
            if y.sum() > 0:
                return (y * y).sum()
            return (y * self.w).sum()

    model = Model()
    module = dy2st.export(model, (torch.tensor([1.0, 1.0]),)).module()
    for x in (torch.tensor([1.0, 1.0]), torch.tensor([-1.0, 3.0])):
        (want,) = torch.autograd.grad(model(x), [model.w])
        (got,) = torch.autograd.grad(module(x), [module.w])
        torch.testing.assert_close(got, want)
