"""Products with vectors, which onnxruntime gets wrong where there is no term or a matrix is transposed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st
import dy2st.onnx
from dy2st.onnx.passes.workarounds import vectors_as_matrices
from tests.onnx.graph_text import changed, parsed, results, shown

PRODUCT = """
    g (float[2, {inner}] a, float[{inner}] v, float[{inner}, 4] b) => ({result} y) {{
        {body}
    }}"""


def written(body: str, inner: object = 3, result: str = "float[2]", **filled: frozenset[str]) -> list[str]:
    model = parsed(PRODUCT.format(inner=inner, result=result, body=body))
    vectors_as_matrices(model, **filled)
    return [line for line in shown(model.graph) if line != "Constant"]


def test_a_vector_that_has_elements_stays() -> None:
    assert written("y = MatMul(a, v)") == ["MatMul"]
    assert written("y = MatMul(v, v)", result="float") == ["MatMul"]
    assert written("y = MatMul(v, b)", inner="n", result="float[4]", filled=frozenset(["n"])) == ["MatMul"]
    assert written("y = MatMul(v, v)", inner="n", result="float", filled=frozenset(["n"])) == ["MatMul"]


@pytest.mark.parametrize("inner", ["n", 64])
def test_a_long_vector_on_the_right_of_a_matrix_is_a_column(inner: object) -> None:
    lines = written("y = MatMul(a, v)", inner=inner, filled=frozenset(["n"]))
    assert lines == ["Unsqueeze", "MatMul", "Squeeze"]


def test_a_vector_that_may_have_none_is_a_matrix() -> None:
    assert written("y = MatMul(a, v)", inner="n") == ["Unsqueeze", "MatMul", "Squeeze"]
    assert written("y = MatMul(a, v)", inner=0) == ["Unsqueeze", "MatMul", "Squeeze"]


def test_it_is_one_where_something_is_transposed() -> None:
    lines = written("t = Transpose(a) u = MatMul(a, v) y = MatMul(t, u)", result="float[3]")
    assert lines.count("Unsqueeze") == 2


def test_a_transposed_matrix_outside_of_the_body_is_none_of_it() -> None:
    text = """
    g (float[3, 3] a, float[3] v, int64 trips) => (float[3] y) {
        t = Transpose(a)
        y = Loop(trips, , v) <body = step (int64 i, bool go, float[3] state) => (bool on, float[3] next) {
            on = Identity(go)
            next = MatMul(t, state)
        }>
    }"""
    rng = torch.Generator().manual_seed(0)
    a, v = (torch.randint(-3, 4, size, generator=rng).float().numpy() for size in ((3, 3), (3,)))
    lines = changed(text, vectors_as_matrices, (a, v, torch.tensor(3).numpy()))
    assert "  MatMul" in lines
    assert "  Unsqueeze" not in lines
    (found,) = results(parsed(text), a, v, torch.tensor(3).numpy())
    np.testing.assert_array_equal(found, a.T @ a.T @ a.T @ v)


class Filter(torch.nn.Module):
    """Products of matrices and vectors over time, of fixed sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.f, self.h = torch.nn.Parameter(torch.randn(4, 4) / 3), torch.nn.Parameter(torch.randn(2, 4))

    def forward(self, z: Tensor) -> Tensor:
        x = torch.zeros(4)
        for row in z:
            x = self.f @ x
            x = x + self.h.T @ (row - self.h @ x)
        return x


class Walk(torch.nn.Module):
    """The same with a matrix whose size may be anything."""

    def forward(self, a: Tensor, v: Tensor, end: Tensor) -> Tensor:
        while (v @ v) < end:
            v = a.T @ (a @ v) + 1
        return v


WALKS = ({0: Dim("n"), 1: Dim("m")}, {0: Dim("m")}, None)
END = torch.tensor(50.0)
STARTS = [(torch.eye(3, 2), torch.ones(2)), (torch.ones(2, 3), torch.ones(3)), (torch.ones(0, 3), torch.ones(3) * 9)]


@pytest.mark.parametrize(
    ("model", "shapes", "calls"),
    [
        (Filter(), ({0: Dim("time")},), [(torch.randn(n, 2),) for n in (4, 1, 0)]),
        (Walk(), WALKS, [(*start, END) for start in STARTS]),
    ],
    ids=["fixed", "dynamic"],
)
def test_loops_over_products(
    model: torch.nn.Module, shapes: object, calls: list[tuple[Tensor]], tmp_path: Path
) -> None:
    file = tmp_path / "m.onnx"
    dy2st.onnx.export(model, calls[0], file, dynamic_shapes=shapes)
    report = dy2st.check(model, calls, onnx_file=file, dynamic_shapes=shapes)
    assert report.ok, report


def test_no_constant_is_left_in_a_body() -> None:
    program = dy2st.onnx.export(Walk(), (*STARTS[0], END), dynamic_shapes=WALKS)
    assert not [node for node in program.model.graph.all_nodes() if node.op_type == "Constant"]
