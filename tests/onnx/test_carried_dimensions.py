"""States carried with the dimension that each trip adds to them: nothing changes, and where it can't be they stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st
import dy2st.onnx
from dy2st.onnx.passes.carried_dimensions import carry_dimensions
from tests.onnx.graph_text import OPSET, changed, shown

HEAD = """
    g (int64[batch] start, int64[time, batch, 5] pointers) => (int64[batch] last, int64[time, batch] told) {{
        one = Constant<value_ints = [1]>()
        zero = Constant<value_int = 0>()
        size = Shape<start = 0, end = 1>(pointers)
        steps = Squeeze(size)"""
SCAN = (
    HEAD
    + """
        last, told = Scan<num_scan_inputs = 1, {more} body = step (int64[batch] state, int64[batch, 5] row)
            => (int64[batch] next, int64[batch] result) {{ {body} }}>(start, pointers)
    }}"""
)
LOOP = (
    HEAD
    + """
        last, told = Loop<body = step (int64 i, bool go, int64[batch] state)
            => (bool on, int64[batch] next, int64[batch] result) {{
                on = Identity(go) row = Gather(pointers, i) {body} }}>(steps, , start)
    }}"""
)
POINT = "column = Unsqueeze(state, one) found = GatherElements<axis = 1>(row, column)"
TAKES = ["next = Squeeze(found, one)", "next = Gather<axis = 1>(found, zero)"]


def apply(model: ir.Model) -> None:
    """The pass, where the shapes are known that onnx's inference does not tell of a body."""
    for node in model.graph.all_nodes():
        for value in node.outputs:
            if value.name in {"column", "found"} and value.shape is None:
                value.shape = ir.Shape(["batch", 1])
    carry_dimensions(model, OPSET)


def carried(text: str, body: str, *sizes: tuple[int, int], more: str = "") -> list[str]:
    rng = np.random.default_rng(0)
    calls = [(rng.integers(0, 5, batch), rng.integers(0, 5, (time, batch, 5))) for time, batch in sizes]
    lines = changed(text.format(body=body, more=more), apply, *calls)
    return [line.strip() for line in lines if line.startswith("  ")]


@pytest.mark.parametrize("take", TAKES)
@pytest.mark.parametrize("more", ["", "scan_input_directions = [1],"])
def test_a_pointer_is_followed(take: str, more: str) -> None:
    lines = carried(SCAN, f"{POINT} {take} result = Identity(next)", (4, 3), (1, 1), (2, 0), more=more)
    assert lines == ["GatherElements", "Identity"]


@pytest.mark.parametrize("take", TAKES)
def test_a_loop_stacks_what_it_did(take: str) -> None:
    """Without a trip, too."""
    lines = carried(LOOP, f"{POINT} {take} result = Identity(next)", (4, 3), (1, 1), (0, 2), (2, 0))
    assert "Unsqueeze" not in lines
    assert lines.count("Identity") == 2


def test_other_results_keep_their_shape() -> None:
    lines = carried(SCAN, f"{POINT} {TAKES[0]} result = Neg(next)", (4, 3), (1, 1))
    assert lines == ["GatherElements", "Squeeze", "Neg"]


@pytest.mark.parametrize(
    "body",
    [
        # read without the dimension, too
        f"{POINT} {TAKES[0]} result = Neg(state)",
        # what takes the dimension away stands for several
        """column = Unsqueeze(state, one) several = Add(column, row) next = Gather<axis = 1>(several, zero)
            result = Neg(next)""",
        # nothing adds one
        "found = Gather<axis = 1>(row, zero) next = Add(found, state) result = Identity(next)",
    ],
)
def test_other_states_stay(body: str) -> None:
    before = [line.strip() for line in shown(ir.from_proto(onnx.parser.parse_model(_model(body))).graph)]
    lines = carried(SCAN, body, (4, 3), (1, 1))
    assert sorted(lines) == sorted(line for line in before[before.index("Scan") + 1 :] if line != "Constant")


def _model(body: str) -> str:
    return f'<ir_version: 10, opset_import: ["": {OPSET}]>\n{SCAN.format(body=body, more="")}'


def test_a_state_that_is_a_column_before_the_loop() -> None:
    text = SCAN.replace("(start, pointers)", "(plain, pointers)").replace(
        "steps = Squeeze(size)", "steps = Squeeze(size) wide = Unsqueeze(start, one) plain = Squeeze(wide, one)"
    )
    rng = np.random.default_rng(0)
    body = f"{POINT} {TAKES[0]} result = Identity(next)"
    call = rng.integers(0, 5, 3), rng.integers(0, 5, (4, 3, 5))
    lines = changed(text.format(body=body, more=""), apply, call)
    assert lines.count("Unsqueeze") == 1


def followed(x: Tensor) -> tuple[Tensor, Tensor]:
    """Back pointers, from the last row to the first one, as in Viterbi's algorithm."""
    tag = x[0].argmax(-1)
    pointers = [x[t].argsort(dim=-1, stable=True) for t in range(1, x.shape[0])]
    path = [tag]
    for pointer in pointers[::-1]:
        tag = pointer.gather(1, tag[:, None])[:, 0]
        path.append(tag)
    return torch.stack(path).flip(0), tag


def test_pointers_are_checked(tmp_path: Path) -> None:
    sizes = ((5, 2), (2, 1), (1, 3), (9, 4), (3, 2))
    inputs = [(torch.randn(time, batch, 4),) for time, batch in sizes]
    shapes = ({0: Dim("time"), 1: Dim("batch")},)
    file = tmp_path / "followed.onnx"
    dy2st.onnx.export(followed, inputs[0], file, dynamic_shapes=shapes)
    report = dy2st.check(followed, inputs, dynamic_shapes=shapes, onnx_file=file)
    assert report.ok, report
    assert report.covered, report
