"""Products and sums as one Gemm, products of embeddings in a table, and divisions of what is not negative."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import onnx_ir.passes.common as passes
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.export import Dim

import dy2st
import dy2st.onnx
from dy2st.onnx.passes.floor_divisions import divide_downwards
from dy2st.onnx.passes.looked_up_products import look_up_products
from dy2st.onnx.passes.product_sums import multiply_and_add
from tests.onnx.graph_text import OPSET, changed

RNG = np.random.default_rng(0)
X, H = (RNG.integers(-3, 4, (4, size)).astype(np.float32) for size in (2, 3))
GRAPH = """
    g (float[n, 2] x, float[n, 3] h) => (float[n, 3] y) {{
        w = Constant<value = float[2, 3] {{1, 2, 3, 4, 5, 6}}>()
        u = Constant<value = float[3, 3] {{1, 0, 3, 4, 0, 6, 2, 2, 2}}>()
        b = Constant<value = float[3] {{1, -2, 3}}>()
        c = Constant<value = float[3] {{7, 8, 9}}>()
        one = Constant<value = float[1] {{7}}>()
        {body}
    }}"""


def written(body: str) -> list[str]:
    calls = [(X, H), (X[:1], H[:1]), (X[:0], H[:0])]
    lines = changed(GRAPH.format(body=body), lambda model: multiply_and_add(model, OPSET), *calls)
    return [line for line in lines if line != "Constant"]


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ("p = MatMul(x, w) y = Add(p, b)", ["Gemm"]),
        ("p = MatMul(x, w) y = Add(b, p)", ["Gemm"]),
        ("p = MatMul(x, w) y = Add(h, p)", ["Gemm"]),
        ("p = MatMul(x, w) q = MatMul(h, u) y = Add(p, q)", ["MatMul", "Gemm"]),
        ("p = Gemm(x, w, b) q = Gemm(h, u, c) y = Add(p, q)", ["Gemm", "Gemm"]),
        ("p = Gemm(x, w, b) q = Gemm<transB = 1>(h, u) y = Add(p, q)", ["Gemm", "Gemm"]),
        ("p = MatMul(x, w) q = Add(p, b) r = MatMul(h, u) s = Add(r, c) y = Add(q, s)", ["Gemm", "Gemm"]),
        ("p = MatMul(x, w) y = Add(p, one)", ["MatMul", "Add"]),
        ("p = MatMul(x, w) q = Add(p, b) y = Mul(p, q)", ["MatMul", "Add", "Mul"]),
        ("p = Gemm<alpha = 2.0>(x, w, b) q = Gemm(h, u, c) y = Add(p, q)", ["Gemm", "Gemm", "Add"]),
        ("p = Gemm(x, w, h) q = Gemm(h, u, c) y = Add(p, q)", ["Gemm", "Gemm", "Add"]),
    ],
)
def test_products_and_sums(body: str, kinds: list[str]) -> None:
    assert written(body) == kinds


def test_products_of_integers_and_of_batches_stay() -> None:
    text = "g ({0} x, {0} w) => ({0} y) {{ p = MatMul(x, w) y = Add(p, w) }}"
    for kind, value in (("int64[2, 2]", np.ones((2, 2), np.int64)), ("float[2, 2, 2]", np.ones((2, 2, 2), np.float32))):
        lines = changed(text.format(kind), lambda model: multiply_and_add(model, OPSET), (value, value))
        assert lines == ["MatMul", "Add"]


LOOP = """
    g (int64[m] token, int64 trips) => (float[t, m, 3] all) {{
        e = Constant<value = float[4, 2] {{1, 2, 3, 4, 5, 6, 7, 8}}>()
        w = Constant<value = float[2, 3] {{1, 2, 3, 4, 5, 6}}>()
        v = Constant<value = float[3, 2] {{1, 2, 3, 4, 5, 6}}>()
        b = Constant<value = float[3] {{1, -2, 3}}>()
        four = Constant<value_int = 4>()
        end, all = Loop(trips, , token) <body = step (int64 i, bool go, int64[m] at) => (bool on, int64[m] next,
            float[m, 3] row) {{
            on = Identity(go)
            later = Add(at, i)
            next = Mod(later, four)
            {body}
        }}>
    }}"""


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ("x = Gather(e, at) p = MatMul(x, w) row = Add(p, b)", ["Gather"]),
        ("x = Gather(e, at) row = MatMul(x, w)", ["Gather"]),
        ("x = Gather(e, at) row = Gemm<transB = 1>(x, v, b)", ["Gather"]),
        ("x = Gather(e, at) y = Neg(x) row = MatMul(y, w)", ["Gather", "Neg", "MatMul"]),
        ("x = Gather(e, at) row = Gemm<alpha = 3.0>(x, w, b)", ["Gather", "Gemm"]),
    ],
)
def test_products_of_an_embedding(body: str, kinds: list[str]) -> None:
    calls = [(np.array([3, 0]), np.array(trips)) for trips in (1, 5)] + [(np.array([-1]), np.array(1))]
    lines = changed(LOOP.format(body=body), _looked_up, *calls)
    assert [line.strip() for line in lines if line.startswith("  ") and "Constant" not in line][3:] == kinds


def _looked_up(model: ir.Model) -> None:
    look_up_products(model, OPSET)
    passes.RemoveUnusedNodesPass()(model)


def _divided(model: ir.Model) -> None:
    divide_downwards(model, OPSET)
    passes.RemoveUnusedNodesPass()(model)


def test_outside_of_loops_and_for_many_numbers_nothing_is_looked_up() -> None:
    text = """
    g (int64[m] token) => (float[m, 2] y) {
        e = Constant<value = float[2, 2] {1, 2, 3, 4}>()
        x = Gather(e, token)
        y = MatMul(x, e)
    }"""
    assert changed(text, lambda model: look_up_products(model, OPSET), (np.array([1, 0]),)) == ["Gather", "MatMul"]


class Decoder(nn.Module):
    """Keys, values and queries of a token, for a vocabulary of any size."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 8)
        self.key, self.out = nn.Linear(8, 16), nn.Linear(16, vocabulary)

    def forward(self, token: Tensor) -> Tensor:
        found = []
        for _ in range(5):
            token = self.out(torch.tanh(self.key(self.embed(token)))).argmax(-1)
            found.append(token)
            if bool((token == 0).all()):
                break
        return torch.stack(found)


@pytest.mark.parametrize(("vocabulary", "products"), [(20, 1), (5000, 2)])
def test_a_decoder_looks_its_products_up(vocabulary: int, products: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    file = tmp_path / "m.onnx"
    model, shapes = Decoder(vocabulary), ({0: Dim("batch")},)
    program = dy2st.onnx.export(model, (torch.tensor([1, 2]),), file, dynamic_shapes=shapes)
    found = [node.op_type for node in program.model.graph.all_nodes()]
    assert found.count("Gemm") + found.count("MatMul") == products
    calls = [(torch.tensor(each),) for each in ([1, 2], [3], [4, 0, 2])]
    report = dy2st.check(model, calls, onnx_file=file, dynamic_shapes=shapes)
    assert report.ok, report


DIVISION = """
    g (int64[m] given, float[m] x) => (int64[m] y) {{
        five = Constant<value_int = {divisor}>()
        {source}
        rest = Mod(place, five)
        whole = Sub(place, rest)
        y = Div(whole, five)
    }}"""
SOURCES = {
    "ignored = Size(given) count = Shape(x) scores, place = TopK(x, count)": True,
    "size = Shape(x) place = Expand(five, size)": True,
    "limit = Constant<value_int = 0>() place = Max(given, limit)": True,
    "low = Constant<value_int = 0>() some = Max(low, given) place = Min(some, five)": True,
    "limit = Constant<value_int = 9>() place = Min(given, limit)": False,
    "place = Identity(given)": False,
    "place = Neg(given)": False,
}


@pytest.mark.parametrize(("source", "shorter"), SOURCES.items())
@pytest.mark.parametrize("divisor", [1, 3, 7])
def test_divisions(source: str, shorter: bool, divisor: int) -> None:
    text = DIVISION.format(source=source, divisor=divisor)
    given = np.array([-9, -1, 0, 1, 8, 2**62])
    lines = changed(text, _divided, (given, np.arange(6, dtype=np.float32)))
    assert ("Mod" not in lines) == shorter
    assert lines[-1] == "Div"


def test_by_a_negative_number_or_what_is_not_known_it_stays() -> None:
    text = DIVISION.format(source="place = Identity(given)", divisor=-3)
    given = np.array([-9, -1, 0, 1, 8])
    lines = changed(text, _divided, (given, np.zeros(5, np.float32)))
    assert "Sub" in lines


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-5, 40), min_size=1, max_size=8), st.integers(2, 9))
def test_a_place_found_is_divided_as_torch_does(numbers: list[int], divisor: int) -> None:
    values = torch.tensor(numbers, dtype=torch.float32)
    place = values.topk(len(numbers))[1]
    text = DIVISION.format(source="count = Shape(x) scores, place = TopK(x, count)", divisor=divisor)
    changed(text, _divided, (np.zeros(len(numbers), np.int64), values.numpy()))
    assert torch.equal(place // divisor, torch.div(place, divisor, rounding_mode="trunc"))
