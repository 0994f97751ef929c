"""Passes that write fewer and cheaper nodes: each on a graph before and after, with the same results on onnxruntime."""

from __future__ import annotations

import functools

import numpy as np
import onnx_ir.passes.common as passes
import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st.onnx
from dy2st.onnx.passes.dead_results import drop_dead_results
from dy2st.onnx.passes.expansions import stretch_in_operators
from dy2st.onnx.passes.loop_invariants import hoist_invariants
from dy2st.onnx.passes.repeated_nodes import compute_once
from dy2st.onnx.passes.row_indexing import index_plainly
from dy2st.onnx.passes.truth_values import keep_truth_values
from tests.onnx.graph_text import OPSET, changed, parsed, results

MASKED = """
    g (float[{rows}, 2] x, bool[n] mask) => (float[m, 2] y) {{
        minus = Constant<value_ints = [-1]>()
        one = Constant<value_ints = [1]>()
        places = NonZero(mask)
        columns = Transpose<perm = [1, 0]>(places)
        alone = Squeeze(columns, one)
        same = Max(alone)
        shape = Shape(same)
        i = Expand(alone, shape)
        index = Unsqueeze(i, minus)
        y = GatherND(x, index)
    }}"""


def x_and(*flags: bool) -> tuple[np.ndarray, np.ndarray]:
    return np.random.default_rng(0).standard_normal((len(flags), 2), np.float32), np.array(flags, bool)


def _indexed(model):
    index_plainly(model, OPSET)
    passes.RemoveUnusedNodesPass()(model)


def test_a_mask_is_compressed():
    calls = [x_and(True, False, True), x_and(False), x_and()]
    assert changed(MASKED.format(rows="n"), _indexed, *calls) == ["Compress"]


def test_a_mask_that_may_be_longer_fails_as_before():
    text = MASKED.format(rows="k")
    found = changed(text, _indexed, x_and(True, False))
    assert found[-1] == "Gather"
    assert "Compress" not in found
    model = parsed(text)
    _indexed(model)
    x, _ = x_and(True)
    with pytest.raises(Exception, match="out of data bounds"):
        results(model, x, np.array([False, True]))


@pytest.mark.parametrize(("axis", "kinds"), [(-1, ["Gather"]), (1, ["Gather"]), (0, ["Unsqueeze", "GatherND"])])
def test_rows_are_gathered(axis, kinds):
    text = f"""
    g (int64[n, 3] x, int64[2] i) => (int64[p, q] y) {{
        axis = Constant<value_ints = [{axis}]>()
        index = Unsqueeze(i, axis)
        y = GatherND(x, index)
    }}"""
    if axis == 0:
        text = text.replace("int64[p, q]", "int64[1]")
    x = np.arange(12).reshape(4, 3)
    assert changed(text, _indexed, (x, np.array([2, 1])), (x, np.array([0, -1]))) == kinds


def test_rows_of_batches_stay():
    text = """
    g (int64[2, 3] x, int64[2] i) => (int64[2] y) {
        axis = Constant<value_ints = [-1]>()
        index = Unsqueeze(i, axis)
        y = GatherND<batch_dims = 1>(x, index)
    }"""
    assert "GatherND" in changed(text, _indexed, (np.arange(6).reshape(2, 3), np.array([2, 0])))


@pytest.mark.parametrize(
    ("yes", "no", "number", "kinds"),
    [
        (1, 0, 0, ["Identity"]),
        (1, 0, 1, ["Not"]),
        (5, 7, 5, ["Not"]),
        (0, 1, 0, ["Not"]),
        (1, 1, 1, ["Where", "Equal", "Not"]),
        (1, 0, 2, ["Where", "Equal", "Not"]),
    ],
)
def test_a_test_of_a_number_of_a_test(yes, no, number, kinds):
    text = f"""
    g (bool test) => (bool y) {{
        yes = Constant<value_int = {yes}>()
        no = Constant<value_int = {no}>()
        number = Constant<value_int = {number}>()
        chosen = Where(test, yes, no)
        is = Equal(chosen, number)
        y = Not(is)
    }}"""

    def apply(model):
        keep_truth_values(model, OPSET)
        passes.RemoveUnusedNodesPass()(model)

    assert changed(text, apply, (np.array(True),), (np.array(False),)) == kinds


def test_zeros_are_stretched_by_the_sum():
    text = """
    g (float[n, 3] x, float[n, 3] y) => (float[n, 3] sum) {
        zero = Constant<value_float = 0.0>()
        size = Shape(y)
        zeros = Expand(zero, size)
        sum = Add(zeros, x)
    }"""

    def apply(model):
        zeros = next(node for node in model.graph if node.op_type == "Expand").outputs[0]
        zeros.shape = model.graph.inputs[1].shape
        stretch_in_operators(model)
        passes.RemoveUnusedNodesPass()(model)

    x = np.array([[-0.0, 1, np.nan]], np.float32)
    assert changed(text, apply, (x, x), (x[:0], x[:0])) == ["Add"]


def test_what_stretches_the_other_operand_stays():
    text = """
    g (float[3] x, float[n, 3] y) => (float[n, 3] sum) {
        zero = Constant<value_float = 0.0>()
        size = Shape(y)
        zeros = Expand(zero, size)
        sum = Add(zeros, x)
    }"""
    ones = np.ones((2, 3), np.float32)
    assert changed(text, stretch_in_operators, (ones[0], ones)) == ["Shape", "Expand", "Add"]


NEST = """
    g (float[n, 4] table, float[n, 2] x, int64 outer, int64 inner, bool flag) => (float[n, 2] y) {
        y = Loop(outer, , x) <body = first (int64 i, bool go, float[n, 2] state) => (bool on, float[n, 2] next) {
            on = Identity(go)
            next = Loop(inner, , state) <body = second (int64 j, bool go_on, float[n, 2] deep)
                => (bool on_2, float[n, 2] deeper) {
                on_2 = Identity(go_on)
                start = Constant<value_ints = [0]>()
                end = Constant<value_ints = [2]>()
                axis = Constant<value_ints = [1]>()
                part = Slice(table, start, end, axis)
                part_again = Slice(table, start, end, axis)
                both = Add(part, part_again)
                shift = If(flag) <
                    then_branch = yes () => (float[n, 2] a) { b = Exp(table) a = Slice(b, start, end, axis) },
                    else_branch = no () => (float[n, 2] c) { c = Slice(table, start, end, axis) }
                >
                sum = Add(deep, both)
                deeper = Add(sum, shift)
            }>
        }>
    }"""


def nested(outer: int, inner: int, flag: bool) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((3, 4), np.float32)
    return x, x[:, :2].copy(), np.array(outer), np.array(inner), np.array(flag)


def _simplified(model):
    compute_once(model)
    hoist_invariants(model)
    compute_once(model)


def test_invariants_leave_all_loops_around_them():
    calls = [nested(*sizes) for sizes in ((2, 3, True), (2, 3, False), (0, 3, True), (2, 0, True))]
    assert changed(NEST, _simplified, *calls) == [
        "Slice",
        "Add",
        "Loop",
        "  Identity",
        "  Loop",
        "    Identity",
        "    If",
        "      Exp",
        "      Slice",
        "      Slice",
        "    Add",
        "    Add",
    ]


@pytest.mark.parametrize(
    ("node", "moves"),
    [
        ("k = Add(a, b)", False),  # the sizes may differ
        ("k = Add(a, a)", True),
        ("k = Exp(a)", True),
        ("five = Constant<value_int = 5>() k = Gather(a, five)", False),  # of how many rows?
        ("k = Gather(a, place)", False),
        ("k = GatherElements(a, row)", False),
        ("k = RandomNormalLike(a)", False),
        ("k = Dropout(a)", False),
        ("two = Constant<value_int = 2>() q = Div(place, two) k = Cast<to = 1>(q)", True),
        ("q = Div(two_places, place) k = Cast<to = 1>(q)", False),  # by zero
        ("last = Constant<value_ints = [-1]>() k = Squeeze(a, last)", False),
        ("k = ReduceMax<keepdims = 1>(a)", False),  # of nothing
    ],
)
def test_only_what_never_fails_is_moved(node, moves):
    text = f"""
    g (float[n] a, float[m] b, int64 place, int64 two_places, int64[1] row, int64 trips) => (float y) {{
        start = Constant<value_float = 0.0>()
        y = Loop(trips, , start) <body = step (int64 i, bool go, float state) => (bool on, float next) {{
            on = Identity(go)
            {node}
            sum = ReduceSum<keepdims = 0>(k)
            next = Max(state, sum)
        }}>
    }}"""
    a, trips = np.arange(3, dtype=np.float32), np.array(0)
    # With no trip there is nothing that could fail.
    call = a, a[:2].copy(), np.array(0), np.array(4), np.array([7]), trips
    kind = node.split("k = ")[1].split("(")[0].split("<")[0]
    found = changed(text, hoist_invariants, call)
    assert (f"  {kind}" not in found) == moves


def test_results_of_a_body_stay_nodes_of_it():
    text = """
    g (float x, int64 trips) => (float[t] rows, float[t] again) {
        yes = Constant<value = bool {1}>()
        rows, again = Loop(trips, yes) <body = step (int64 i, bool go) => (bool on, float row, float same) {
            on = Identity(go)
            row = Exp(x)
            same = Exp(x)
        }>
    }"""
    calls = [(np.array(2, np.float32), np.array(trips)) for trips in (0, 1, 3)]
    assert changed(text, _simplified, *calls) == ["Loop", "  Identity", "  Exp", "  Exp"]


ARMS = """
    g (float[n] x, bool test, bool other) => (float[n] y) {
        y, unread = If(test) <
            then_branch = yes () => (float[n] a, float[n] a_2) { a = Neg(x) a_2 = Exp(x) },
            else_branch = no () => (float[n] b, float[n] b_2) {
                b, c, b_2 = If(other) <
                    then_branch = inner_yes () => (float[n] d, float[n] d_2, float[n] d_3) {
                        d = Abs(x) d_2 = Sin(x) d_3 = Cos(d_2)
                    },
                    else_branch = inner_no () => (float[n] e, float[n] e_2, float[n] e_3) {
                        e_2 = Sqrt(x) e = Add(e_2, x) e_3 = Tan(x)
                    }
                >
            }
        >
    }"""


def test_dead_results_of_arms_in_arms():
    x = np.array([1, 4], np.float32)
    calls = [(x, np.array(test), np.array(other)) for test in (True, False) for other in (True, False)]
    assert changed(ARMS, drop_dead_results, *calls) == ["If", "  Neg", "  If", "    Abs", "    Sqrt", "    Add"]


STATES = """
    g (float x, int64 trips) => (float last, float[n] rows) {{
        zero = Constant<value_int = 0>()
        one = Constant<value_int = 1>()
        last, count, deep, rows, more_rows = Loop(trips, , x, zero, x)
            <body = step (int64 i, bool go, float state, int64 counted, float hidden)
            => (bool on, float next, int64 next_count, float next_hidden, float row, float dead) {{
            on = Identity(go)
            next_count = Add(counted, one)
            {hidden}
            row = Identity(next)
            dead = Exp(state)
            spare = Neg(hidden)
        }}>
    }}"""


@pytest.mark.parametrize(
    ("hidden", "kinds"),
    [
        ("next = Neg(state) next_hidden = Sin(hidden)", ["Identity", "Neg", "Identity"]),
        ("next = Add(state, hidden) next_hidden = Sin(hidden)", ["Identity", "Add", "Sin", "Identity"]),
        (
            (
                "flag = Cast<to = 9>(hidden) next_hidden = Sin(hidden) next = If(flag) <"
                "then_branch = t () => (float a) { a = Neg(state) }, "
                "else_branch = e () => (float b) { b = Abs(state) }>"
            ),
            ["Identity", "Cast", "Sin", "If", "  Neg", "  Abs", "Identity"],
        ),
    ],
)
def test_dead_states(hidden, kinds):
    calls = [(np.array(2, np.float32), np.array(trips)) for trips in (0, 1, 3)]
    lines = changed(STATES.format(hidden=hidden), drop_dead_results, *calls)
    assert lines == ["Loop", *(f"  {kind}" for kind in kinds)]


def test_a_state_that_stays_for_the_sake_of_the_loop_keeps_what_it_depends_on():
    text = """
    g (float x, int64 trips) => (float[t] rows) {
        first, second, third, rows = Loop(trips, , x, x, x) <body = step
            (int64 i, bool go, float a, float b, float c) => (bool on, float d, float e, float f, float row) {
            on = Identity(go)
            d = Neg(b)
            e = Abs(b)
            f = Sin(c)
            row = Cast<to = 1>(i)
        }>
    }"""
    calls = [(np.array(2, np.float32), np.array(trips)) for trips in (1, 3)]
    lines = changed(text, drop_dead_results, *calls)
    assert lines == ["Loop", "  Identity", "  Neg", "  Abs", "  Cast"]


@pytest.mark.parametrize(
    "reader",
    [
        "f = If(small) <then_branch = t () => (float u) {u = Neg(c)}, else_branch = e () => (float w) {w = Abs(c)}>",
        "f = Loop(trips, , c) <body = inner (int64 j, bool o, float u) => (bool p, float w) { p = Not(o) w = Neg(u) }>",
    ],
    ids=["If", "Loop"],
)
def test_what_only_a_dead_state_reads_goes_with_it(reader):
    text = f"""
    g (float x, int64 trips, bool small) => (float first) {{
        first, second = Loop(trips, , x, x) <body = step
            (int64 i, bool go, float a, float c) => (bool on, float d, float f) {{
            on = Identity(go)
            d = Sin(a)
            {reader}
        }}>
    }}"""
    calls = [(np.array(2, np.float32), np.array(trips), np.array(True)) for trips in (0, 3)]
    assert changed(text, drop_dead_results, *calls) == ["Loop", "  Identity", "  Sin"]


def guarded(x: Tensor, test: Tensor) -> Tensor:
    if test > 0:
        y = x + 1
        checked = x.sum()
        assert checked > 0, "positive"
    else:
        y = x
    return y


def test_what_is_there_to_fail_stays(tmp_path):
    file = tmp_path / "guarded.onnx"
    dy2st.onnx.export(guarded, (torch.ones(3), torch.tensor(1)), file)
    run = dy2st.onnx.Runner(file)
    run(torch.ones(3).numpy(), np.array(1))
    run(-torch.ones(3).numpy(), np.array(0))
    with pytest.raises(Exception, match="positive"):
        run(-torch.ones(3).numpy(), np.array(1))


def flags(x: Tensor) -> tuple[Tensor, ...]:
    positive = x > 0
    over = positive.any(1), positive.all(1), positive.any(0), positive.all(0)
    return (*over, positive.any(), positive.all(), x.to(torch.uint8).any(), positive.all(1, keepdim=True))


@pytest.mark.parametrize("opset", [18, 20])
@pytest.mark.parametrize("width", [None, 3])
def test_flags_of_nothing(opset, width, tmp_path):
    """Any of nothing is false, and all of nothing is true, whether sizes are fixed or not."""
    file = tmp_path / "flags.onnx"
    shapes = ({0: Dim("n"), 1: Dim("m")} if width is None else {0: Dim("n")},)
    dy2st.onnx.export(flags, (torch.ones(2, 3),), file, dynamic_shapes=shapes, opset_version=opset)
    run = dy2st.onnx.Runner(file)
    sizes = [(2, 3), (0, 3), (1, 3), *([(2, 0), (0, 0)] if width is None else [])]
    for rows, columns in sizes:
        for value in (-1.0, 1.0, torch.randn(rows, columns)):
            x = torch.zeros(rows, columns) + value
            for found, wanted in zip(run(x.numpy()), flags(x), strict=True):
                np.testing.assert_array_equal(found, wanted.numpy())
                assert found.dtype == wanted.numpy().dtype


def suppressed(boxes: Tensor, scores: Tensor) -> Tensor:
    order, kept = scores.argsort(descending=True), []
    while order.numel() > 0:
        best, rest = order[0], order[1:]
        kept.append(best)
        order = rest[(boxes[rest] - boxes[best]).abs().sum(1) > 1]
    return torch.stack(kept)


def test_a_worklist_is_compressed(tmp_path):
    file = tmp_path / "worklist.onnx"
    n = Dim("n")
    program = dy2st.onnx.export(suppressed, (torch.rand(5, 4), torch.rand(5)), file, dynamic_shapes=({0: n}, {0: n}))
    kinds = [node.op_type for node in program.model.graph.all_nodes()]
    assert "Compress" in kinds
    assert not {"NonZero", "GatherND"} & set(kinds)
    run = dy2st.onnx.Runner(file)
    generator = functools.partial(torch.rand, generator=torch.Generator().manual_seed(0))
    for count in (1, 2, 30):
        args = generator(count, 4), generator(count)
        np.testing.assert_array_equal(run(*(each.numpy() for each in args))[0], suppressed(*args).numpy())


@pytest.mark.parametrize(
    "form",
    [
        lambda x: torch.cat([x, x, x]).index_add(0, torch.arange(3), x.expand(3)),
        lambda x: x.index_put((torch.tensor([0]),), x, accumulate=True),
        lambda x: torch.index_put(x.expand(3), (torch.arange(3),), x.expand(3) * 2),
    ],
)
def test_rows_that_are_added_to_all_rows(form):
    """onnxscript takes them for rows that are written."""
    assert dy2st.check(form, [(torch.full((1,), 2.0),), (torch.full((1,), 3.0),)]).ok
