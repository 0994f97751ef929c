"""Rows that a loop writes and reads again: carried as states where all places are known, else left as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st
import dy2st.onnx
from dy2st.onnx.passes.forwarded_rows import FARTHEST, forward_rows
from dy2st.onnx.passes.loop_sizes import name_state_sizes
from tests.onnx.graph_text import OPSET, changed

# A loop over the rows of x, which writes rows of y; ``rows`` are those of y.
LOOP = """
    g (float[n, batch, 2] x, {kind}[{rows}, batch, 2] y, int64 other) => ({kind}[{rows}, batch, 2] last, float end) {{
        one = Constant<value_int = 1>()
        two = Constant<value_int = 2>()
        far = Constant<value_int = {far}>()
        zero = Constant<value_float = 0.0>()
        half_float = Constant<value_float = 0.5>()
        half = Cast<to = {number}>(half_float)
        shape = Shape(x)
        size = Shape<start = 0, end = 1>(x)
        count = Squeeze(size)
        last_one = Sub(count, one)
        trips = {trips}
        last, end = Loop(trips, , y, zero)
            <body = step (int64 i, bool go, {kind}[{rows}, batch, 2] before, float sum)
            => (bool on, {kind}[{rows}, batch, 2] after, float more) {{
            axes = Constant<value_ints = [0]>()
            on = {on}
            {place}
            {read}
            wide = Gather(x, i)
            row = Cast<to = {number}>(wide)
            halved = Mul(read, half)
            next = Add(halved, row)
            updates = Unsqueeze(next, axes)
            like = Shape(updates)
            index = Expand(place, like)
            after = ScatterElements<axis = 0>(before, index, updates)
            total = ReduceSum<keepdims = 0>(next)
            number = Cast<to = 1>(total)
            more = Add(sum, number)
        }}>
    }}"""
FORWARD = "place = Add(i, one)"
BACK = "place = Sub(last_one, i)"
TYPES = {"float": 1, "float16": 10}


def text(place: str, read: str, rows: str = "n", kind: str = "float", **given: str) -> str:
    parts = {"trips": "Sub(count, one)", "on": "Identity(go)", "far": str(FARTHEST + 1), **given}
    return LOOP.format(place=place, read=read, rows=rows, kind=kind, number=TYPES[kind], **parts)


def call(n: int, batch: int = 2, more: int = 0, kind: str = "float32") -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(n)
    x, y = (rng.standard_normal((rows, batch, 2)).astype(np.float32) for rows in (n, n + more))
    return x, y.astype(kind), np.array(min(n, 2))


def forwarded(source: str, *calls: tuple[np.ndarray, ...]) -> list[str]:
    def apply(model: ir.Model) -> None:
        graphs = [model.graph, *model.graph.subgraphs()]
        for value in (each for graph in graphs for each in (*graph.inputs, *(o for n in graph for o in n.outputs))):
            if value.shape is not None:  # ONNX's text has no sums
                value.shape = ir.Shape([_size(size) for size in value.shape])
        name_state_sizes(model)
        forward_rows(model, OPSET)

    return changed(source, apply, *calls)


def _size(size: int | ir.SymbolicDim) -> int | str | None:
    return size if isinstance(size, int) or size.value is None else size.value.replace("_plus_", " + ")


def is_carried(lines: list[str]) -> bool:
    return "  ScatterElements" not in lines and "Loop" in lines


LAST = "read = Gather(before, i)"


EARLY = {"on": "Less(i, other)"}
WHOLE = {"trips": "Identity(count)"}


@pytest.mark.parametrize(
    ("place", "read", "given", "more"),
    [
        (FORWARD, LAST, {}, 0),
        (FORWARD, LAST, WHOLE, 1),
        (FORWARD, LAST, WHOLE, 3),
        (
            "place = Add(i, two)",
            "a = Add(i, one) b = Gather(before, a) c = Gather(before, i) read = Sub(b, c)",
            WHOLE,
            2,
        ),
        ("place = Add(i, two)", LAST, {"trips": "Sub(count, two)"}, 0),
        ("place = Identity(i)", "a = Add(i, one) read = Gather(before, a)", {}, 0),
        ("place = Identity(i)", LAST, WHOLE, 0),
        (FORWARD, f"{LAST} again = Gather(before, i)", {}, 0),
        (BACK, "a = Add(place, one) read = Gather(before, a)", WHOLE, 1),
        (BACK, "a = Add(place, two) read = Gather(before, a)", WHOLE, 2),
        ("a = Add(i, one) place = Sub(last_one, a)", "b = Add(place, one) read = Gather(before, b)", {}, 0),
        (BACK, "read = Gather(before, place)", {}, 0),
        (BACK, "a = Sub(place, one) read = Gather(before, a)", {}, 0),
    ],
)
def test_rows_are_carried(place: str, read: str, given: dict[str, str], more: int) -> None:
    """From the row before, from one further back or not written yet, forward and back; of no row, too."""
    calls = [call(n, more=more) for n in (6, 3, 2, 1, 0)] + [call(4, batch=0, more=more)]
    lines = forwarded(text(place, read, f"n_plus_{more}" if more else "n", **given), *calls)
    assert is_carried(lines)


def test_a_loop_that_ends_early_has_written_fewer_rows() -> None:
    lines = forwarded(text(FORWARD, LAST, on="Less(i, other)"), *(call(n) for n in (7, 3, 2, 1, 0)))
    assert is_carried(lines)


def test_what_is_read_after_the_write_is_the_row() -> None:
    source = text(FORWARD, LAST).replace(
        "total = ReduceSum<keepdims = 0>(next)",
        """
            mine = Gather(after, place)
            old = Gather(after, i)
            apart = Sub(mine, old)
            total = ReduceSum<keepdims = 0>(apart)""",
    )
    assert is_carried(forwarded(source, call(5), call(2), call(1)))


def test_rows_along_another_axis() -> None:
    source = """
    g (float[batch, n, 2] x, float[batch, n, 2] y) => (float[batch, n, 2] last) {
        one = Constant<value_int = 1>()
        size = Shape<start = 1, end = 2>(x)
        count = Squeeze(size)
        trips = Sub(count, one)
        last = Loop(trips, , y) <body = step (int64 i, bool go, float[batch, n, 2] before)
            => (bool on, float[batch, n, 2] after) {
            axes = Constant<value_ints = [1]>()
            on = Identity(go)
            place = Add(i, one)
            read = Gather<axis = 1>(before, i)
            row = Gather<axis = 1>(x, place)
            next = Add(read, row)
            updates = Unsqueeze(next, axes)
            like = Shape(updates)
            index = Expand(place, like)
            after = ScatterElements<axis = -2>(before, index, updates)
        }>
    }"""
    rng = np.random.default_rng(0)
    sizes = [(2, 5, 2), (1, 1, 2), (0, 3, 2), (3, 0, 2)]
    calls = [tuple(rng.standard_normal(size, np.float32) for _ in range(2)) for size in sizes]
    assert is_carried(forwarded(source, *calls))


@pytest.mark.parametrize(
    ("place", "read", "given"),
    [
        (FORWARD, LAST, WHOLE),  # the last one is behind the end
        (FORWARD, LAST, {"trips": "Identity(other)"}),
        ("place = Identity(other)", LAST, {}),
        (FORWARD, "read = Gather(before, other)", {}),
        (FORWARD, "a = Sub(i, i) read = Gather(before, a)", {}),
        ("place = Identity(one)", LAST, {}),
        (FORWARD, f"{LAST} whole = Identity(before)", {}),
        ("place = Add(i, far)", LAST, {"trips": "Sub(count, far)"}),  # carried for too many trips
        (BACK, "a = Add(place, one) read = Gather(before, a)", WHOLE),  # the first one is behind the end
        (BACK, LAST, WHOLE),
        (
            "a = Add(i, one) place = Sub(last_one, a)",
            "b = Add(place, one) read = Gather(before, b)",
            {"on": "Less(i, other)"},
        ),
    ],
)
def test_others_stay(place: str, read: str, given: dict[str, str]) -> None:
    calls = [] if given == WHOLE else [call(6), call(9)]
    if "other" in place + read + str(given):
        calls = [(x, y, np.array(1)) for x, y, _ in calls]
    assert not is_carried(forwarded(text(place, read, **given), *calls))


def test_a_row_that_may_not_be_there_needs_a_kernel_that_pads() -> None:
    assert not is_carried(forwarded(text(FORWARD, LAST, kind="float16"), call(4, kind="float16")))
    lines = forwarded(text(FORWARD, LAST, rows="n_plus_1", kind="float16", **WHOLE), call(4, more=1, kind="float16"))
    assert is_carried(lines)


class Filter(torch.nn.Module):
    """A linear filter in place, forward and back, over a batch."""

    def forward(self, x: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
        y = x.clone()
        for t in range(1, x.shape[0]):
            y[t] = a * y[t - 1] + x[t]
        z = torch.zeros(x.shape[0] + 1, x.shape[1])
        for t in range(x.shape[0] - 1, -1, -1):
            z[t] = y[t] + a * z[t + 1]
        return y, z


class Warping(torch.nn.Module):
    """The cost of aligning two sequences: dynamic programming over two rows."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        cost = (x[:, None] - y[None]).abs()
        before = torch.cat([torch.zeros(1), torch.full((y.shape[0],), float("inf"))])
        for i in range(x.shape[0]):
            after = torch.full_like(before, float("inf"))
            for j in range(y.shape[0]):
                after[j + 1] = cost[i, j] + torch.minimum(torch.minimum(before[j], before[j + 1]), after[j])
            before = after
        return before


SIZES = ((5, 2), (1, 3), (2, 1), (0, 2), (3, 0))


@pytest.mark.parametrize(
    ("model", "shapes", "calls"),
    [
        (Filter(), ({0: Dim("n"), 1: Dim("batch")}, None), [(torch.randn(s), torch.tensor(0.5)) for s in SIZES]),
        (Warping(), ({0: Dim("n")}, {0: Dim("m")}), [(torch.randn(n), torch.randn(m)) for n, m in SIZES]),
    ],
    ids=["filter", "warping"],
)
def test_models(model: torch.nn.Module, shapes: Any, calls: Any, tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    program = dy2st.onnx.export(model, calls[0], file, dynamic_shapes=shapes)
    bodies = [node.attributes["body"].as_graph() for node in program.model.graph.all_nodes() if node.op_type == "Scan"]
    assert len(bodies) == 2
    assert not [node for body in bodies for node in body if node.op_type == "ScatterElements"]
    report = dy2st.check(model, calls, onnx_file=file, dynamic_shapes=shapes)
    assert report.ok, report
