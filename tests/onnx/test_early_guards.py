"""Sizes and guards that are the same in each trip: before the loop, which fails as before, or does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st.onnx
from dy2st.onnx.passes.early_guards import guard_early
from dy2st.onnx.passes.loop_invariants import hoist_invariants
from dy2st.onnx.passes.size_formulas import compute_sizes
from dy2st.onnx.translations.guard_nodes import GUARD
from dy2st.parity.stages import OnnxSession
from tests.onnx.graph_text import OPSET, changed, parsed, results, shown

LOOP = """
    g (float[n] x, int64 trips, bool start) => (float[m] y) {
        zero = Constant<value_int = 0>()
        one = Constant<value_int = 1>()
        zeros = Constant<value_ints = [0]>()
        none = Constant<value_ints = [0]>()
        last = Constant<value_ints = [-1]>()
        y0, told_end = Loop(trips, start, x, zero) <body = step (int64 i, bool go, float[n] state, int64 told)
                => (bool on, float[n] next, int64 told_next) {
            on = Identity(go)
            cut = Slice(state, none, last, none)
            sizes = Shape<start = 0, end = 1>(cut)
            size = Squeeze(sizes, none)
            ok = Greater(size, zero)
            place = Where(ok, zero, one)
            guard = Gather(zeros, place)
            told_next = Add(told, guard)
            tied_x = Unsqueeze(x, none)
            tied = Gather(tied_x, told_next)
            next = Add(state, tied)
        }>
        rows = Unsqueeze(y0, none)
        y = Gather(rows, told_end)
    }"""


def guarded(model: ir.Model) -> None:
    """Say which node is a guard, and the shapes of what it is made of."""
    for node in model.graph.all_nodes():
        if node.op_type == "Gather" and "zeros" in {value.name for value in node.inputs if value is not None}:
            node.metadata_props[GUARD] = "exported for two numbers at least"
        if node.op_type == "Slice":
            node.outputs[0].shape = ir.Shape(["Max(0, n - 1)"])
        if node.op_type in {"Squeeze", "Greater", "Where"}:
            node.outputs[0].shape = ir.Shape([])


def moved(model: ir.Model) -> None:
    guarded(model)
    compute_sizes(model, OPSET)
    hoist_invariants(model)
    guard_early(model, OPSET)


def test_a_guard_of_sizes_is_asked_once() -> None:
    calls = [
        (np.arange(n, dtype=np.float32), np.array(trips), np.array(start))
        for n, trips, start in ((3, 2, True), (2, 0, True), (1, 0, True), (0, 0, True), (1, 3, False), (0, 4, False))
    ]
    lines = changed(LOOP, moved, *calls)
    loop = lines.index("Loop")
    assert lines.index("Shape") < lines.index("Gather") < loop
    assert [line.strip() for line in lines[loop + 1 : -2]] == ["Identity", "Gather", "Add"]


@pytest.mark.parametrize("n", [0, 1])
def test_a_run_that_has_to_fail_fails(n: int) -> None:
    model = parsed(LOOP)
    moved(model)
    with pytest.raises(Exception, match="indices element out of data bounds"):
        results(model, np.zeros(n, np.float32), np.array(1), np.array(True))


def test_a_guard_of_the_state_stays() -> None:
    text = LOOP.replace(
        "size = Squeeze(sizes, none)", "total = ReduceSum<keepdims = 0>(state) size = Cast<to = 7>(total)"
    )
    lines = changed(text, moved, (np.ones(2, np.float32), np.array(3), np.array(True)))
    assert "  Gather" in lines
    assert lines.index("Loop") < lines.index("  Where")


def test_what_is_no_guard_adds_up() -> None:
    text = LOOP.replace("guard = Gather(zeros, place)", "guard = Gather(zeros, place) told_more = Add(told, one)")
    text = text.replace("told_next = Add(told, guard)", "told_next = Add(told_more, guard)")
    text = text.replace("tied = Gather(tied_x, told_next)", "tied = Gather(tied_x, guard)")
    text = text.replace("y = Gather(rows, told_end)", "many = Cast<to = 1>(told_end) y = Add(y0, many)")
    calls = [(np.ones(2, np.float32), np.array(trips), np.array(True)) for trips in (0, 1, 4)]
    assert "  Add" in changed(text, moved, *calls)


@pytest.mark.parametrize(
    ("size", "count"),
    [
        ("n", 4),
        ("2*n + 1", 9),
        ("Max(1, n - 7, 3 - n)", 1),
        ("Min(n, 3) - -2", 5),
        ("-n + 9", 5),
        ("Max(0, n - 2) + 2", 4),
    ],
)
def test_formulas_of_sizes(size: str, count: int) -> None:
    text = """
    g (float[n] x, float[k] other, int64 trips) => (int64[1] y) {
        start = Constant<value_ints = [0]>()
        y = Loop(trips, , start) <body = step (int64 i, bool go, int64[1] state) => (bool on, int64[1] next) {
            on = Identity(go)
            longer = Neg(other)
            size = Shape(longer)
            next = Add(state, size)
        }>
    }"""

    def told(model: ir.Model) -> None:
        for node in model.graph.all_nodes():
            if node.op_type == "Neg":
                node.outputs[0].shape = ir.Shape([size])
        compute_sizes(model, OPSET)

    calls = [(np.zeros(4, np.float32), np.zeros(count, np.float32), np.array(3))]
    assert "  Shape" not in changed(text, told, *calls)


@pytest.mark.parametrize("size", ["u0", "n // 2", "n**2", "Mod(n, 2)", "floor(n/2)", "n +"])
def test_other_sizes_are_asked_for(size: str) -> None:
    model = parsed(LOOP)
    guarded(model)
    for node in model.graph.all_nodes():
        if node.op_type == "Slice":
            node.outputs[0].shape = ir.Shape([size])
    before = shown(model.graph)
    compute_sizes(model, OPSET)
    assert shown(model.graph) == before


def forward_algorithm(x: Tensor, start: Tensor) -> Tensor:
    state = start
    for row in x:
        state = torch.logaddexp(state, torch.cat([state[:1], state[:1], state[:-2]])) + row.sum()
    return state


def test_a_model_whose_sizes_fit_for_two_numbers_on(tmp_path: Path) -> None:
    shapes = {"x": {0: Dim("time")}, "start": {0: Dim("n")}}
    path = tmp_path / "m.onnx"
    dy2st.onnx.export(forward_algorithm, (torch.randn(4, 2), torch.randn(5)), path, dynamic_shapes=shapes)
    session = OnnxSession(path)
    for rows, n in ((0, 0), (0, 1), (0, 3), (1, 2), (3, 2), (6, 9)):
        x, start = torch.randn(rows, 2), torch.randn(n)
        torch.testing.assert_close(session.values({"x": x, "start": start})[0], forward_algorithm(x, start))
    (scan,) = [node for node in ir.load(path).graph.all_nodes() if node.op_type == "Scan"]
    assert not {"Shape", "Gather", "Equal"} & {node.op_type for node in scan.attributes["body"].as_graph()}
