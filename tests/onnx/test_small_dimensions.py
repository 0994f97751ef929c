"""Points and corners by coordinate: no bit changes, and nothing is turned in each trip of a loop."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st.onnx
from dy2st.onnx.passes.loop_invariants import LOOPS
from dy2st.onnx.passes.small_dimensions import put_in_front
from dy2st.parity.stages import OnnxSession
from tests.onnx.graph_text import OPSET, changed
from tests.onnx.test_nan_tests import numbers

GRAPH = """
    g ({dtype}[n, 2] x, {dtype}[m, 3] y, {dtype}[n, 4] b, {dtype}[2] c) => ({dtype}{result} found) {{
        zero = Constant<value_ints = [0]>()
        one = Constant<value_ints = [1]>()
        two = Constant<value_ints = [2]>()
        last = Constant<value_ints = [-1]>()
        many = Constant<value_ints = [99]>()
        first = Constant<value_int = 0>()
        second = Constant<value_int = 1>()
        {body}
    }}"""


def calls(dtype: str) -> list[tuple[np.ndarray, ...]]:
    rng = np.random.default_rng(0)
    sizes = [((n, 2), (m, 3), (n, 4), (2,)) for n in (0, 1, 2, 7, 40) for m in (1, 5, 33)]
    kind = np.float32 if dtype == "float" else np.float64
    special = [tuple(numbers(rng, *size, dtype=kind) for size in each) for each in sizes]
    return special + [tuple(rng.standard_normal(size).astype(kind) for size in each) for each in sizes]


def turned(body: str, result: str = "[n]", dtype: str = "float") -> list[str]:
    text = GRAPH.format(body=body, result=result, dtype=dtype)
    return changed(text, lambda model: put_in_front(model, OPSET), *calls(dtype))


PAIRS = {
    "d = Sub(x, c) e = Mul(d, d) found = ReduceSum<keepdims = 0>(e, one)": "[n]",
    "d = Sub(c, x) found = ReduceProd<keepdims = 0>(d, one)": "[n]",
    "d = Max(x, c) found = ReduceL1<keepdims = 0>(d, one)": "[n]",
    "d = Min(x, c) found = ReduceSumSquare<keepdims = 0>(d, one)": "[n]",
    "d = Div(x, c) p = Gather<axis = 1>(d, first) q = Gather<axis = 1>(d, second) found = Mul(p, q)": "[n]",
    "u = Unsqueeze(x, one) v = Unsqueeze(x, zero) d = Sub(u, v) e = Abs(d) "
    "found = ReduceSum<keepdims = 0>(e, two)": "[n, N]",
    "u = Unsqueeze(y, one) v = Unsqueeze(y, zero) d = Sub(u, v) e = Mul(d, d) "
    "found = ReduceSum<keepdims = 0>(e, two)": "[m, M]",
    "s = Slice(b, zero, two, one) t = Slice(b, two, many, last) u = Unsqueeze(s, one) v = Unsqueeze(t, zero) "
    "d = Max(u, v) e = Relu(d) f = Neg(e) found = ReduceProd<keepdims = 0>(f, two)": "[n, N]",
    "s = Slice(b, zero, two, one) d = Add(s, c) e = Mul(d, s) found = ReduceSum<keepdims = 0>(e, one)": "[n]",
}


@pytest.mark.parametrize("body", PAIRS)
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_coordinates_are_in_front(body: str, dtype: str) -> None:
    lines = turned(body, PAIRS[body], dtype)
    # Three doubles are added in another order.
    assert ("Transpose" in lines) == (dtype == "float" or "(y, " not in body)


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("d = Mul(x, x) found = ReduceSum<keepdims = 0>(d, one)", "[n]"),  # nothing is stretched
        ("d = Sub(x, c) found = ReduceSum<keepdims = 1>(d, one)", "[n, K]"),
        ("d = Sub(x, c) found = ReduceSum<keepdims = 0>(d, zero)", "[K]"),
        ("d = Sub(x, c) e = ReduceSum<keepdims = 0>(d, one) f = ReduceSum<keepdims = 0>(d) found = Add(e, f)", "[n]"),
        ("q = Concat<axis = 0>(c, c) d = Sub(b, q) found = ReduceSum<keepdims = 0>(d, one)", "[n]"),  # four parts
        ("found = Sub(x, c)", "[n, K]"),
        ("d = Sub(x, c) e = Mul(d, d) f = Add(d, e) found = ReduceSum<keepdims = 0>(f, one)", "[n]"),  # d is read twice
    ],
)
def test_what_else_stays(body: str, result: str) -> None:
    assert "Transpose" not in turned(body, result)


def nearest(points: Tensor, starts: Tensor) -> Tensor:
    """From each start on to the nearest point, three times."""
    here = starts
    for _ in range(3):
        distance = ((here[:, None] - points[None]) ** 2).sum(-1)
        here = points[distance.argmin(1)] * 0.5
    return here


def suppressed(boxes: Tensor, scores: Tensor) -> Tensor:
    order, kept = scores.argsort(descending=True), []
    while order.shape[0] > 0:
        best, order = order[0], order[1:]
        kept.append(best)
        low = torch.maximum(boxes[best, :2], boxes[order, :2])
        size = (torch.minimum(boxes[best, 2:], boxes[order, 2:]) - low).clamp(min=0)
        order = order[size[:, 0] * size[:, 1] < 0.2]
    return torch.stack(kept)


@pytest.mark.slow
def test_models_compute_what_they_did(tmp_path) -> None:
    torch.manual_seed(0)
    n, m = Dim("n", min=1), Dim("m", min=1)
    corner = torch.rand(30, 2)
    boxes = torch.cat([corner, corner + torch.rand(30, 2)], 1)
    cases = [
        (nearest, (torch.randn(9, 2), torch.randn(4, 2)), ({0: n}, {0: m})),
        (suppressed, (boxes, torch.rand(30)), ({0: n}, {0: n})),
    ]
    for model, args, shapes in cases:
        file = tmp_path / f"{model.__name__}.onnx"
        dy2st.onnx.export(model, args, file, dynamic_shapes=shapes)
        session = OnnxSession(file)
        (found,) = session.values(dict(zip(session.input_names, args, strict=True)))
        torch.testing.assert_close(found, model(*args))
    bodies = [
        node.attributes["body"].as_graph()
        for node in ir.from_proto(onnx.load(tmp_path / "suppressed.onnx")).graph.all_nodes()
        if node.op_type in LOOPS
    ]
    assert not any(node.op_type == "Transpose" for body in bodies for node in body.all_nodes())
    assert any(node.op_type == "Unsqueeze" for body in bodies for node in body.all_nodes())
