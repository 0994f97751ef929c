"""Loops whose states tell at the end whether there was NaN in a trip: equal to eager, wherever it comes in."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st.onnx
from dy2st.onnx.passes.lasting_nan import lasting_state
from dy2st.onnx.passes.node_constructs import RERUN
from dy2st.parity.stages import OnnxSession
from tests.onnx.graph_text import parsed, results

LOOP = """
    g (float[t, n] xs, float[n] first) => (float[n] last) {{
        last = Scan<num_scan_inputs = 1, body = step (float[n] state, float[n] x) => (float[n] next) {{
            axis = Constant<value_ints = [0]>()
            {body}
        }}>(first, xs)
    }}"""


def place_of(body: str) -> int | None:
    model = parsed(LOOP.format(body=body))
    (loop,) = list(model.graph)
    for node in loop.attributes["body"].as_graph():
        out = node.outputs[0]
        out.shape = ir.Shape([] if out.name in {"sum", "number"} else ["n"])
        out.dtype = ir.DataType.FLOAT
    return lasting_state(loop.attributes["body"].as_graph().inputs[1], loop)


@pytest.mark.parametrize(
    ("body", "lasts"),
    [
        ("next = Add(state, x)", True),
        ("part = Exp(x) next = Mul(part, state)", True),
        ("part = Sub(x, state) more = Neg(part) next = Div(more, state)", True),
        ("next = Identity(x)", False),  # a later trip forgets it
        ("next = Max(state, x)", False),
        ("test = Less(x, state) next = Where(test, x, state)", False),
        ("sum = ReduceSum<keepdims = 0>(x) next = Add(state, sum)", False),  # stretched, maybe to nothing
    ],
)
def test_states(body: str, lasts: bool) -> None:
    assert (place_of(body) is not None) == lasts


@pytest.mark.parametrize("kind", ["Exp", "Log", "Neg", "Sqrt"])
@pytest.mark.parametrize("n", [1, 3, 8, 17, 64])
def test_operators_keep_nan(kind: str, n: int) -> None:
    """What the rule takes for granted of onnxruntime: in vector registers, too, and in what is left of them."""
    model = parsed(f"g (float[n] x) => (float y) {{ z = {kind}(x) y = ReduceSum<keepdims = 0>(z) }}")
    for place in range(n):
        x = np.linspace(-3, 9, n, dtype=np.float32) ** 2
        x[place] = np.nan
        assert np.isnan(results(model, x)[0])


def attention(q: Tensor, ks: Tensor, vs: Tensor) -> tuple[Tensor, Tensor]:
    """Softmax over blocks, with a running maximum."""
    most = torch.full((q.shape[0],), -float("inf"))
    total, out = torch.zeros(q.shape[0]), torch.zeros_like(q)
    for b in range(ks.shape[0]):
        scores = q @ ks[b].T
        new = torch.maximum(most, scores.amax(-1))
        weights = torch.exp(scores - new[:, None])
        scale = torch.exp(most - new)
        total = total * scale + weights.sum(-1)
        out = out * scale[:, None] + weights @ vs[b]
        most = new
    return out / total[:, None], most


def test_attention_over_blocks(tmp_path: object) -> None:
    path, n, blocks = f"{tmp_path}/m.onnx", Dim("n"), Dim("blocks")
    args = (torch.randn(4, 8), torch.randn(3, 6, 8), torch.randn(3, 6, 8))
    dy2st.onnx.export(attention, args, path, dynamic_shapes=({0: n}, {0: blocks}, {0: blocks}))
    graph = ir.load(path).graph
    assert any(RERUN in node.metadata_props for node in graph.all_nodes())
    first = next(node for node in graph.all_nodes() if node.op_type == "Scan")
    assert len(first.outputs) == 3  # no sum of each trip
    session = OnnxSession(path)
    for size, count in ((4, 3), (1, 1), (0, 2), (3, 0)):
        for wrong in (None, np.nan, np.inf, -np.inf):
            for place in range(max(count, 1)):
                q, ks, vs = torch.randn(size, 8), torch.randn(count, 6, 8), torch.randn(count, 6, 8)
                if wrong is not None and count:
                    ks[place, place % 6, 1] = wrong
                found = session.values({"q": q, "ks": ks, "vs": vs})
                for one, other in zip(found, attention(q, ks, vs), strict=True):
                    torch.testing.assert_close(one, other, equal_nan=True)
