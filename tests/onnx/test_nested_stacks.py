"""Matrices that are stacked of stacked rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st
import dy2st.onnx
from dy2st.onnx.passes.nested_stacks import stack_at_once
from tests.onnx.graph_text import OPSET, changed

GRAPH = """
    g (float[1] a, float[1] b, float[n] c) => (float[p, q] y) {{
        front = Constant<value_ints = [0]>()
        {body}
    }}"""
ROWS = "r = Concat<axis = 0>(a, b) s = Concat<axis = 0>(b, a) u = Unsqueeze(r, front) v = Unsqueeze(s, front)"


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        (f"{ROWS} y = Concat<axis = 0>(u, v)", ["Concat", "Reshape"]),
        (f"{ROWS} y = Concat<axis = 1>(u, v)", ["Concat", "Concat", "Unsqueeze", "Unsqueeze", "Concat"]),
        (f"{ROWS} y = Concat<axis = 0>(u, v, u)", ["Concat", "Concat", "Unsqueeze", "Unsqueeze", "Concat"]),
        (
            f"{ROWS.replace('(a, b)', '(a, c)').replace('(b, a)', '(c, b)')} y = Concat<axis = 0>(u, v)",
            ["Concat", "Concat", "Unsqueeze", "Unsqueeze", "Concat"],
        ),
    ],
)
def test_rows_of_numbers(body: str, kinds: list[str]) -> None:
    call = tuple(np.array(each, np.float32) for each in ([1], [-0.0], [3, np.nan]))
    lines = changed(GRAPH.format(body=body), lambda model: stack_at_once(model, OPSET), call)
    assert [line for line in lines if line != "Constant"] == kinds


def turned(points: Tensor, angles: Tensor) -> Tensor:
    point = points[0]
    for angle in angles:
        c, s = torch.cos(angle), torch.sin(angle)
        point = torch.stack([torch.stack([c, -s]), torch.stack([s, c])]) @ point
    return point


def test_a_matrix_in_a_loop(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    shapes = ({0: Dim("n")}, {0: Dim("m", min=0, max=50)})
    call = (torch.randn(2, 2), torch.randn(3))
    program = dy2st.onnx.export(turned, call, file, dynamic_shapes=shapes)
    assert [node.op_type for node in program.model.graph.all_nodes()].count("Concat") == 1
    calls = [(torch.randn(2, 2), torch.randn(m)) for m in (3, 1, 0)]
    report = dy2st.check(turned, calls, onnx_file=file, dynamic_shapes=shapes)
    assert report.ok, report
