"""Tensors that grow by as many rows in each trip: stacked, where nothing but their sizes and last row is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st
import dy2st.onnx
from dy2st.onnx.passes.grown_rows import stack_grown_rows
from tests.onnx.graph_text import OPSET, changed

# A loop that adds rows to a tensor along an axis, with what else it reads of it.
LOOP = """
    g (float[{sizes}] rows, int64 trips, int64 limit) => (float[{grown}] last, float end) {{
        zero = Constant<value_float = 0.0>()
        start = Identity({start})
        last, end = Loop(trips, , start, zero)
            <body = step (int64 i, bool go, float[{grown}] before, float sum)
            => (bool on, float[{grown}] after, float more) {{
            one = Constant<value_float = 1.0>()
            number = Cast<to = 1>(i)
            {body}
            total = Add(sum, number)
            more = Add(total, read)
            row = Add({row}, more)
            after = Concat<axis = {axis}>(before, row)
            on = {on}
        }}>
    }}"""
PLAIN = "read = Identity(one)"
SIZE = "s = Shape<start = {0}, end = {1}>(before) n = Squeeze(s) read = Cast<to = 1>(n)"


def grown(body: str, calls: list[tuple[np.ndarray, ...]], **given: Any) -> list[str]:
    parts = {"sizes": "n, batch", "grown": "m, batch", "start": "rows", "axis": 0, "row": "part", "on": "Identity(go)"}
    source = LOOP.format(body=body, **{**parts, **given})
    return changed(source, lambda model: stack_grown_rows(model, OPSET), *calls)


def is_stacked(lines: list[str]) -> bool:
    return "  Concat" not in lines and "Loop" in lines


def calls(*sizes: tuple[int, ...]) -> list[tuple[np.ndarray, ...]]:
    rng = np.random.default_rng(0)
    return [(rng.standard_normal(s).astype(np.float32), np.array(t), np.array(2)) for s in sizes for t in (4, 1, 0)]


FIRST = "places = Constant<value_ints = [0]>() part = Gather(rows, places)"
FIRST_TWO = "places = Constant<value_ints = [0, 0]>() part = Gather(rows, places)"
SOME = calls((3, 2), (1, 2), (2, 1))


@pytest.mark.parametrize(
    "read", [PLAIN, SIZE.format(0, 1), SIZE.format(1, 2), SIZE.format(-1, 2), SIZE.format(-2, -1)], ids=str
)
@pytest.mark.parametrize("part", [FIRST, FIRST_TWO], ids=["one", "two"])
def test_rows_are_stacked(part: str, read: str) -> None:
    """One or more in each trip; sizes that the body asks for are told by the number of the trip."""
    assert is_stacked(grown(f"{part} {read}", SOME))


def test_a_loop_that_ends_early_has_added_fewer() -> None:
    assert is_stacked(grown(f"{FIRST} {SIZE.format(0, 1)}", SOME, on="Less(i, limit)"))


@pytest.mark.parametrize("sizes", ["batch, n", "2, n"])
def test_along_another_axis(sizes: str) -> None:
    body = f"places = Constant<value_ints = [0]>() part = Gather<axis = 1>(rows, places) {SIZE.format(1, 2)}"
    given = {"sizes": sizes, "grown": sizes.replace("n", "m"), "axis": -1}
    assert is_stacked(grown(body, calls((2, 3), (2, 1), *([(0, 2), (1, 1)] if "batch" in sizes else [])), **given))


def test_the_last_row_is_carried() -> None:
    body = """
        place = Constant<value_int = -1>() axes = Constant<value_ints = [0]>()
        here = Gather(before, place) part = Unsqueeze(here, axes)
        read = ReduceSum<keepdims = 0>(here)"""
    some = calls((3, 2), (3, 1))
    assert is_stacked(grown(body, some, sizes="3, batch"))
    assert not is_stacked(grown(body, some))  # there may be none before the loop


ZEROTH = "place = Constant<value_int = 0>() axes = Constant<value_ints = [0]>() here = Gather(before, place)"


@pytest.mark.parametrize(
    "body",
    [
        f"{FIRST} read = ReduceSum<keepdims = 0>(before)",
        f"{FIRST} s = Shape(before) z = ReduceProd<keepdims = 0>(s) read = Cast<to = 1>(z)",
        f"part = Identity(before) {PLAIN}",  # it doubles
        f"{ZEROTH} part = Unsqueeze(here, axes) {PLAIN}",
    ],
)
def test_others_stay(body: str) -> None:
    assert not is_stacked(grown(body, SOME))


class Greedy(torch.nn.Module):
    """Tokens until the end token or a length, of which the last is looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.cell, self.out = torch.nn.Embedding(7, 4), torch.nn.GRUCell(4, 4), torch.nn.Linear(4, 7)

    def forward(self, h: Tensor) -> tuple[Tensor, Tensor]:
        ids, scores = torch.zeros(h.shape[0], 1, dtype=torch.int64), torch.zeros(0, h.shape[0])
        while ids.shape[1] < 9:
            h = self.cell(self.embedding(ids[:, -1]), h)
            best = self.out(h).max(-1)
            ids = torch.cat([ids, best.indices[:, None]], 1)
            scores = torch.cat([scores, best.values[None]])
            if (best.indices == 3).all():
                break
        return ids, scores


class Trace(torch.nn.Module):
    """All states of a recurrence, one behind the other."""

    def forward(self, x: Tensor) -> Tensor:
        h, states = torch.zeros_like(x[0]), x[:0]
        for row in x:
            h = torch.tanh(h + row)
            states = torch.cat([states, h[None]])
        return states


@pytest.mark.slow_but_for("trace")
@pytest.mark.parametrize(
    ("model", "shapes", "sizes"),
    [
        (Greedy(), ({0: Dim("batch")},), [(2, 4), (1, 4), (5, 4)]),
        (Trace(), ({0: Dim("n"), 1: Dim("batch")},), [(4, 2), (1, 3), (3, 1), (2, 0)]),
    ],
    ids=["greedy", "trace"],
)
def test_models(model: Any, shapes: Any, sizes: Any, tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    inputs = [(torch.randn(size) * 3,) for size in sizes]
    program = dy2st.onnx.export(model, inputs[0], file, dynamic_shapes=shapes)
    bodies = [n.attributes["body"].as_graph() for n in program.model.graph.all_nodes() if n.op_type in {"Loop", "Scan"}]
    assert len(bodies) == 1
    assert not [node for node in bodies[0] if node.op_type == "Concat"]
    report = dy2st.check(model, inputs, onnx_file=file, dynamic_shapes=shapes)
    assert report.ok, report
