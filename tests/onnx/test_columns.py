"""Vectors that matrices are multiplied by are columns in the bodies of loops."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.export import Dim

import dy2st
import dy2st.onnx
from dy2st.onnx.passes.columns import carry_columns
from tests.onnx.graph_text import OPSET, changed

LOOP = """
    g (float[n, n] a, float[n] v, int64 trips) => (float[n] last{results}) {{
        two = Constant<value_float = 2.0>()
        last{outputs} = Loop(trips, , v) <body = step (int64 i, bool go, float[n] state)
            => (bool on, float[n] next{rows}) {{
            on = Identity(go)
            {body}
        }}>
    }}"""


def written(body: str, *, rows: str = "", results: str = "", outputs: str = "") -> list[str]:
    text = LOOP.format(body=body, rows=rows, results=results, outputs=outputs)
    calls = [
        (rng.integers(-2, 3, (n, n)).astype(np.float32), rng.integers(-2, 3, n).astype(np.float32), np.array(trips))
        for rng in [np.random.default_rng(0)]
        for n in (1, 4)
        for trips in (0, 1, 3)
    ]
    return changed(text, lambda model: carry_columns(model, OPSET), *calls)


def inside(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines if line.startswith("  ")]


def test_a_state_is_carried_as_a_column() -> None:
    lines = written("product = MatMul(a, state) next = Mul(product, two)")
    assert inside(lines) == ["Identity", "MatMul", "Mul"]
    assert lines.count("Unsqueeze") == lines.count("Squeeze") == 1


def test_reductions_and_vectors_from_outside() -> None:
    body = """
        product = MatMul(a, state)
        sum = Add(product, v)
        zero = Constant<value_ints = [0]>()
        most = ReduceMax<keepdims = 0>(sum, zero)
        next = Sub(sum, most)"""
    lines = written(body)
    assert [line for line in inside(lines) if line != "Constant"] == ["Identity", "MatMul", "Add", "ReduceMax", "Sub"]


def test_what_needs_a_vector_gets_one() -> None:
    body = "product = MatMul(a, state) next = MatMul(a, product) row = Identity(next)"
    lines = written(body, rows=", float[n] row", results=", float[t, n] all", outputs=", all")
    assert inside(lines).count("Squeeze") == 1
    assert "Unsqueeze" not in inside(lines)


def test_nothing_is_written_without_a_gain() -> None:
    assert "Unsqueeze" not in written("next = Mul(state, two)")
    body = "at = Constant<value_int = 0>() product = MatMul(a, state) next = CumSum(product, at)"
    assert "Unsqueeze" not in written(body)


SEVERAL = """
    g (float[3, n, n] p, float[3, n] r, float[n] v, int64 trips) => (float[n] last) {{
        last = Loop(trips, , v) <body = step (int64 i, bool go, float[n] state) => (bool on, float[n] next) {{
            on = Identity(go)
            front = Constant<value_ints = [0]>()
            product = MatMul(p, state)
            sum = Add(r, product)
            {body}
            next = Sub(most, state)
        }}>
    }}"""
EXTREMES = {
    "most = ReduceMax<keepdims = 0>(sum, front)": ["ReduceMax"],
    "wide = ReduceMin<keepdims = 1>(sum, front) most = Squeeze(wide, front)": ["ReduceMin", "Squeeze"],
    "place = ArgMax<axis = 0, keepdims = 0>(sum) most = Cast<to = 1>(place)": ["ArgMax", "Cast"],
    "both = Mul(sum, r) most = ReduceSum<keepdims = 0>(both, front)": ["Mul", "ReduceSum"],
}


@pytest.mark.parametrize("body", EXTREMES)
def test_several_matrices_have_columns_as_products(body: str) -> None:
    rng = np.random.default_rng(1)
    calls = [
        (*(rng.integers(-2, 3, sizes).astype(np.float32) for sizes in ((3, n, n), (3, n), (n,))), np.array(trips))
        for n in (1, 4)
        for trips in (0, 1, 3)
    ]
    lines = changed(SEVERAL.format(body=body), lambda model: carry_columns(model, OPSET), *calls)
    kinds = [kind for kind in inside(lines) if kind != "Constant"]
    assert kinds == ["Identity", "MatMul", "Add", *EXTREMES[body], "Sub"]


SCAN = """
    g (float[n, n] a, float[t, n] xs, float[n] v) => (float[n] last, float[t, n] all) {{
        last, all = Scan<num_scan_inputs = 1, body = step (float[n] state, float[n] x)
            => (float[n] next, float[n] row) {{
            {body}
        }}>(v, xs)
    }}"""


def scanned(body: str) -> list[str]:
    rng = np.random.default_rng(2)
    calls = [
        tuple(rng.integers(-2, 3, sizes).astype(np.float32) for sizes in ((n, n), (t, n), (n,)))
        for n in (1, 4)
        for t in (1, 5)
    ]
    return changed(SCAN.format(body=body), lambda model: carry_columns(model, OPSET), *calls)


def test_rows_of_a_scan_are_columns() -> None:
    lines = scanned("part = Mul(x, state) next = MatMul(a, part) row = Identity(next)")
    assert inside(lines) == ["Mul", "MatMul", "Identity"]
    assert lines.count("Unsqueeze") == lines.count("Squeeze") == 2


def test_a_row_that_is_read_as_a_vector_stays_one() -> None:
    lines = scanned("part = Mul(x, state) next = MatMul(a, part) both = MatMul(x, a) row = Add(both, x)")
    assert inside(lines).count("Unsqueeze") == 1


class Descent(torch.nn.Module):
    """Conjugate directions, with everything that reads vectors: products, sums, a norm, rows that are kept."""

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, r = torch.zeros_like(b), b
        p, square, steps = b, b @ b, 0
        norms = []
        while square > 1e-6 and steps < 2 * b.shape[0]:
            image = a @ p
            step = square / (p @ image)
            x = x + step * p
            r = r - step * image
            new = r @ r
            p, square = r + (new / square) * p, new
            norms.append(r.norm())
            steps += 1
        return x, r, torch.stack(norms) if len(norms) > 0 else torch.zeros(0)


def system(n: int, seed: int) -> tuple[Tensor, Tensor]:
    made = torch.Generator().manual_seed(seed)
    a = torch.randn(n, n, generator=made)
    return a @ a.T / max(n, 1) + torch.eye(n), torch.randn(n, generator=made)


def test_a_solver_is_equal_to_eager(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    n = Dim("n")
    shapes = ({0: n, 1: n}, {0: n})
    program = dy2st.onnx.export(Descent(), system(5, 0), file, dynamic_shapes=shapes)
    (loop,) = [node for node in program.model.graph if node.op_type == "Loop"]
    kinds = [node.op_type for node in loop.attributes["body"].as_graph()]
    assert "Unsqueeze" not in kinds
    assert "Squeeze" not in kinds
    calls = [system(size, seed) for seed, size in enumerate((5, 1, 0, 9, 64))]
    report = dy2st.check(Descent(), calls, onnx_file=file, dynamic_shapes=shapes)
    assert report.ok, report


STEPS = {
    "product = MatMul(a, {0})": 1,
    "product = Neg({0})": 1,
    "product = Add({0}, {1})": 2,
    "product = Mul({0}, v)": 1,
    "most = ReduceMax<keepdims = 0>({0}) product = Sub({0}, most)": 1,
    "lot = ReduceSum<keepdims = 0>({0}) small = Less({0}, lot) product = Where(small, {0}, {1})": 2,
    "turned = Concat<axis = 0>({0}, {1}) product = ReduceMax<keepdims = 0>(turned)": 2,
}


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6)
)
def test_any_body_computes_the_same(steps: list[tuple[str, int, int]]) -> None:
    values, numbers, lines = ["state", "v"], [], []
    for count, (step, one, other) in enumerate(steps):
        named = re.sub("product|most|lot|small|turned", lambda found, count=count: f"{found[0]}_{count}", step)
        lines.append(named.format(values[one % len(values)], values[other % len(values)]))
        (numbers if "turned" in step else values).append(f"product_{count}")
    scale = "" if not numbers else f"shifted = Max({values[-1]}, {numbers[-1]})"
    body = "\n".join([*lines, scale, f"next = Identity({'shifted' if scale else values[-1]})"])
    body += f"\nrow = Identity({values[len(values) // 2]})"
    written(body, rows=", float[n] row", results=", float[t, n] all", outputs=", all")


@pytest.mark.parametrize("n", [1, 3])
def test_the_batch_of_a_matrix_stays(n: int) -> None:
    text = f"""
    g (float[{n}, 2, 2] a, float[2] v) => (float[{n}, 2] y) {{ y = MatMul(a, v) }}"""
    call = (np.ones((n, 2, 2), np.float32), np.ones(2, np.float32))
    assert changed(text, lambda model: carry_columns(model, OPSET), call) == ["MatMul"]
