"""Loops over rows as ``Scan``: what is moved before them, what stays a ``Loop``, and that neither changes a result."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnx_ir.passes.common as passes
import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import dy2st
import dy2st.onnx
from dy2st.onnx.passes.loop_sizes import Length, length_of_dimension, length_of_number, name_state_sizes
from dy2st.onnx.passes.loops_to_scans import scan_rows
from tests.onnx.graph_text import OPSET, changed, parsed, results, shown

# A loop over the rows of x; what its body does with a row, and what it makes of the state.
LOOP = """
    g (float[time, batch, 4] x, float[batch, 4] h, int64[batch] lengths, float[k, batch, 4] other, int64 trips)
        => (float[batch, 4] last, float[rows, batch, 4] states) {{
        one = Constant<value_int = 1>()
        zero = Constant<value_ints = [0]>()
        size = Shape<start = 0, end = 1>(x)
        steps = Squeeze(size)
        less = Sub(steps, one)
        last, stacked = Loop({trips}, , h) <body = step (int64 i, bool go, float[batch, 4] state)
            => (bool on, float[batch, 4] next, float[batch, 4] told) {{
            later = Add(i, one)
            on = {on}
            {body}
            told = Identity(next)
        }}>
        count = Shape<start = 0, end = 1>(stacked)
        width = Shape(h)
        shape = Concat<axis = 0>(count, width)
        states = Reshape<allowzero = 1>(stacked, shape)
    }}"""
ROW = "row = Gather(x, i) next = Add(state, row)"


def _scanned(model, filled=frozenset()):
    name_state_sizes(model)
    scan_rows(model, OPSET, filled)
    passes.RemoveUnusedNodesPass()(model)


def call(time: int, batch: int = 2, trips: int = 2) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(time)
    x, h = (rng.standard_normal(size, np.float32) for size in ((time, batch, 4), (batch, 4)))
    return x, h, rng.integers(0, time + 1, batch), np.concatenate([x, x, x[:1], x[:1]]), np.array(trips)


def body_of(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines if line.startswith("  ")]


def scanned(body: str, *calls: tuple[np.ndarray, ...], trips: str = "steps", on: str = "Identity(go)", **filled: Any):
    text = LOOP.format(trips=trips, on=on, body=body)
    return changed(text, lambda model: _scanned(model, **filled), *(calls or (call(5), call(1))))


def test_rows_are_scanned():
    lines = scanned(ROW, call(5), call(1), call(3, 0), filled=frozenset(["time"]))
    assert [line for line in lines if not line.startswith(" ")] == ["Scan", "Shape", "Shape", "Concat", "Reshape"]
    assert body_of(lines) == ["Add", "Identity"]


def test_there_may_be_no_row():
    """One of zeros is in its place; nothing of it is left."""
    lines = scanned(ROW, call(0), call(0, 0), call(1), call(4))
    assert "Scan" in lines
    assert "Pad" in lines
    assert body_of(lines) == ["Add", "Identity"]


# The same with the batch before the steps.
BATCH_FIRST = """
    g (float[batch, time, 4] x, float[batch, 4] h) => (float[batch, 4] last, float[time, batch, 4] states) {
        size = Shape<start = 1, end = 2>(x)
        steps = Squeeze(size)
        w = Constant<value = float[4, 4] {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7}>()
        last, stacked = Loop(steps, , h) <body = step (int64 i, bool go, float[batch, 4] state)
            => (bool on, float[batch, 4] next, float[batch, 4] told) {
            on = Identity(go)
            row = Gather<axis = AXIS>(x, i)
            product = Gemm(row, w)
            next = Add(state, product)
            told = Identity(next)
        }>
        width = Shape(h)
        shape = Concat<axis = 0>(size, width)
        states = Reshape<allowzero = 1>(stacked, shape)
    }"""


@pytest.mark.parametrize("axis", [1, -2])
@pytest.mark.parametrize("filled", [frozenset(), frozenset(["time"])], ids=["maybe none", "some"])
def test_rows_along_another_axis_are_scanned(axis: int, filled: frozenset[str]) -> None:
    rng = np.random.default_rng(0)
    sizes = [(2, 5), (2, 1), (0, 3), *([] if filled else [(2, 0)])]
    calls = [tuple(rng.standard_normal(s, np.float32) for s in ((b, t, 4), (b, 4))) for b, t in sizes]
    lines = changed(BATCH_FIRST.replace("AXIS", str(axis)), lambda model: _scanned(model, filled=filled), *calls)
    assert lines.count("Transpose") == 1
    assert body_of(lines) == ["Add", "Identity"]


def test_rows_along_an_axis_of_another_length_are_taken_one_by_one():
    """As many steps as one dimension has, and rows along the other one."""
    text = (
        BATCH_FIRST.replace("AXIS", "0").replace("float[batch, 4]", "float[time, 4]").replace("batch, 4]", "time, 4]")
    )
    x, h = np.ones((5, 3, 4), np.float32), np.ones((3, 4), np.float32)
    lines = changed(text, _scanned, (x, h))
    assert "Transpose" not in lines
    assert "Gather" in body_of(lines)


def test_what_needs_no_state_is_computed_before():
    body = """
        second = Constant<value_ints = [1]>()
        row = Gather(x, i) alive = Less(i, lengths) column = Unsqueeze(alive, second)
        w = Constant<value = float[4, 4] {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7}>()
        b = Constant<value = float[4] {1, 2, 3, 4}>()
        linear = Gemm<transB = 1, alpha = 0.5>(row, w, b) bent = Tanh(linear) turned = Neg(bent)
        left, right = Split<axis = -1, num_outputs = 2>(turned) both = Concat<axis = 1>(right, left)
        sum = Add(state, both) next = Where(column, sum, state)"""
    lines = scanned(body, call(5), call(1), call(0), call(5, 0))
    assert body_of(lines) == ["Add", "Where", "Identity"]


def test_rows_from_the_second_on():
    lines = scanned("row = Gather(x, later) next = Mul(state, row)", call(5), call(2), call(1), trips="less")
    assert "Scan" in lines
    assert body_of(lines) == ["Mul", "Identity"]


# The steps from the second one on, of a sequence whose first row is read before.
FROM_SECOND = """
    g ({kind}[time, batch] x, float[7, batch] table) => (float[batch] last, float[less, batch] states) {{
        one = Constant<value_int = 1>()
        nothing = Constant<value_int = 0>()
        size = Shape<start = 0, end = 1>(x)
        steps = Squeeze(size)
        less = Sub(steps, one)
        first = Gather(x, nothing)
        begin = Cast<to = 1>(first)
        last, stacked = Loop(less, , begin) <body = step (int64 i, bool go, float[batch] state)
            => (bool on, float[batch] next, float[batch] told) {{
            later = Add(i, one)
            on = Identity(go)
            row = Gather(x, later)
            {body}
            told = Neg(next)
        }}>
        count = Sub(size, one)
        width = Shape(first)
        shape = Concat<axis = 0>(count, width)
        sized = Reshape<allowzero = 1>(stacked, shape)
        states = Neg(sized)
    }}"""


def test_the_row_before_the_loop_stands_for_none():
    """Such a row needs no padding, and what is stacked has its sizes."""
    text = FROM_SECOND.format(kind="float", body="next = Sub(state, row)")
    rng = np.random.default_rng(0)
    sizes = ((4, 2), (2, 3), (1, 2), (3, 0), (1, 0))
    calls = [(rng.standard_normal(size, np.float32), np.zeros((7, size[1]), np.float32)) for size in sizes]

    def apply(model):
        sized = next(node.outputs[0] for node in model.graph if node.op_type == "Reshape")
        sized.shape = ir.Shape(["time - 1", "batch"])
        _scanned(model)

    lines = changed(text, apply, *calls)
    assert "Scan" in lines
    assert not {"Pad", "If", "Concat"} & set(lines)
    model = parsed(text)
    _scanned(model)
    for made in (parsed(text), model):
        with pytest.raises(Exception, match=r"Gather|Scan"):
            results(made, np.zeros((0, 2), np.float32), np.zeros((7, 2), np.float32))


def test_places_in_a_table_are_padded_with_zeros():
    """The row before the loop may be no place in it, of which eager never asks."""
    body = """some = Constant<value_int = 0>() place = Gather(row, some) read = Gather(table, place)
        next = Add(state, read)"""
    text = FROM_SECOND.format(kind="int64", body=body)
    calls = [(np.array([[900, 0], *[[5, 2]] * n]), np.ones((7, 2), np.float32)) for n in (0, 1, 3)]
    lines = changed(text, _scanned, *calls)
    assert "Scan" in {line.strip() for line in lines}


def test_a_place_computed_from_a_row_of_zeros_is_none_of_zeros():
    """The row that stands for none would be looked up at 7, behind the end of the table."""
    body = """seven = Constant<value = int32 {7}>() far = Add(row, seven) place = Cast<to = 7>(far)
        read = Gather(table, place) sum = ReduceSum<keepdims = 0>(read) next = Add(state, sum)"""
    calls = [(np.full((n, 2), -5, np.int32), np.ones((7, 2), np.float32)) for n in (1, 2, 4)]
    changed(FROM_SECOND.format(kind="int32", body=body), _scanned, *calls)


def test_the_number_of_the_trip_is_a_row():
    body = "row = Gather(x, i) number = Cast<to = 1>(i) sum = Add(row, number) next = Sub(state, sum)"
    lines = scanned(body, call(5), call(0))
    assert body_of(lines) == ["Sub", "Identity"]
    body = "row = Gather(x, i) rest = Gather(other, i) sum = Add(row, rest) next = Sub(state, sum)"
    assert "Scan" in scanned(body, call(3), call(1), filled=frozenset(["time"]))


@pytest.mark.parametrize(
    "sums",
    [
        "a = Add(row, bent) next = Add(a, b)",
        "a = Add(bent, row) next = Add(b, a)",
    ],
)
def test_sums_are_begun_before_the_loop(sums):
    """On integers, where no order makes a difference."""
    body = f"""row = Gather(x, i) b = Constant<value = int64[4] {{1, 2, 3, 4}}>() bent = Neg(state)
        {sums}"""
    text = LOOP.format(trips="steps", on="Identity(go)", body=body)
    text = text.replace("float[", "int64[")
    calls = []
    for time in (4, 1, 0):
        x, h, lengths, other, trips = call(time)
        calls.append(((x * 9).astype(int), (h * 9).astype(int), lengths, (other * 9).astype(int), trips))
    lines = changed(text, _scanned, *calls)
    assert body_of(lines) == ["Neg", "Add", "Identity"]


@pytest.mark.parametrize("last", ["magic", "later_row"])
def test_what_may_be_there_for_its_rounding_keeps_its_order(last):
    body = f"""row = Gather(x, i) magic = Constant<value = float {{8388608.0}}>() later_row = Neg(row)
        a = Add(row, state) b = Add(a, {last}) next = Sub(b, magic)"""
    assert body_of(scanned(body, call(4))) == ["Add", "Add", "Sub", "Identity"]


def test_sums_of_a_state_used_twice_keep_their_order():
    body = """row = Gather(x, i) b = Constant<value = float[4] {1, 2, 3, 4}>()
        a = Add(row, state) c = Add(a, b) next = Mul(a, c)"""
    assert body_of(scanned(body, call(4))) == ["Add", "Add", "Mul", "Identity"]


@pytest.mark.parametrize(
    ("body", "trips", "on"),
    [
        (ROW, "trips", "Identity(go)"),  # as many as an input says
        (ROW, "steps", "Not(go)"),  # ends after one
        ("row = Gather(x, later) next = Add(state, row)", "less", "Less(later, steps)"),
        ("next = Neg(state)", "steps", "Identity(go)"),  # of none
    ],
)
def test_other_loops_stay(body, trips, on):
    lines = scanned(body, call(4), call(2), trips=trips, on=on)
    assert "Loop" in lines
    assert "Scan" not in lines


FAILING = """row = Gather(x, i) whole = Cast<to = 7>(state) place = Gather(whole, zero)
    seven = Constant<value_ints = [7]>() hundred = Constant<value = int64[1, 4] {100, 100, 100, 100}>()
    part = Div(hundred, place) parts = Cast<to = 1>(part) next = Add(row, parts)"""


def test_what_may_fail_at_a_row_of_zeros_is_in_a_branch():
    """Here a division by zero, which onnxruntime does not survive."""
    nines = np.full((2, 4), 9, np.float32)
    calls = [(x, h if not time else h * 0 + nines, *rest) for time in (0, 1) for x, h, *rest in [call(time)]]
    lines = scanned(FAILING, *calls)
    assert [line for line in lines if not line.startswith("   ")].count("  Scan") == 1
    assert "If" in lines
    assert "Pad" not in lines
    lines = scanned(FAILING, calls[1], filled={"time"})
    assert "If" not in lines
    assert "Scan" in lines


def test_rows_that_there_may_not_be_are_taken_in_a_branch():
    """As many as another tensor has: there may be fewer, and the file fails as before."""
    body = "row = Gather(other, i) next = Add(state, row)"
    lines = scanned(body, call(3), call(1), call(0), call(0, 0))
    assert "  Scan" in lines
    model = parsed(LOOP.format(trips="steps", on="Identity(go)", body=body))
    _scanned(model)
    x, h, lengths, other, trips = call(4)
    with pytest.raises(Exception, match="out of data bounds"):
        results(model, x, h, lengths, other[:2], trips)


def test_a_loop_in_a_loop_scans_rows_of_outside():
    text = """
    g (float[time, 4] x, float[4] h, int64 outer) => (float[4] last) {
        last = Loop(outer, , h) <body = around (int64 i, bool go, float[4] state) => (bool on, float[4] next) {
            on = Identity(go)
            size = Shape<start = 0, end = 1>(x)
            steps = Squeeze(size)
            next = Loop(steps, , state) <body = inner (int64 j, bool go_on, float[4] deep)
                => (bool on_2, float[4] deeper) {
                on_2 = Identity(go_on)
                row = Gather(x, j)
                bent = Tanh(row)
                deeper = Sub(bent, deep)
            }>
        }>
    }"""
    calls = [(call(time, 1)[0][:, 0], np.ones(4, np.float32), np.array(outer)) for time in (3, 0) for outer in (0, 2)]
    lines = changed(text, _scanned, *calls)
    assert "  Scan" in lines
    assert [line.strip() for line in lines if line.startswith("    ")] == ["Sub"]


def test_lengths():
    model = parsed(LOOP.format(trips="less", on="Identity(go)", body=ROW))
    found = {value.name: length_of_number(value) for node in model.graph for value in node.outputs}
    assert found["steps"] == Length("time", 0)
    assert found["less"] == Length("time", -1)
    assert not Length("time", 3).is_some
    assert Length(None, 3).is_some


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Max(zero, less)", Length("time", -1)),
        ("Max(less, zero)", Length("time", -1)),
        ("Max(less, one)", None),
        ("Add(bounded, one)", None),  # one, not zero, if there is none
        ("Max(zero, bounded)", None),
    ],
)
def test_lengths_that_are_zero_at_least(text, found):
    model = parsed(f"""
    g (float[time, 4] x) => (int64 trips) {{
        zero = Constant<value_int = 0>()
        one = Constant<value_int = 1>()
        size = Shape<start = 0, end = 1>(x)
        steps = Squeeze(size)
        less = Sub(steps, one)
        bounded = Max(less, zero)
        trips = {text}
    }}""")
    assert length_of_number(model.graph.outputs[0]) == found


@pytest.mark.parametrize(
    ("size", "found"),
    [
        ("time", Length("time", 1)),
        ("time - 1", Length("time", 0)),
        ("Max(0, time - 1)", Length("Max(0, time - 1)", 1)),
        ("Max(0, time)", Length("Max(0, time)", 1)),
    ],
)
def test_sizes_that_are_zero_at_least(size, found):
    model = parsed("""
    g (float[n, 4] x) => (int64 trips) {
        one = Constant<value_int = 1>()
        size = Shape<start = 0, end = 1>(x)
        steps = Squeeze(size)
        trips = Add(steps, one)
    }""")
    x = model.graph.inputs[0]
    x.shape = ir.Shape([size, 4])
    assert length_of_number(model.graph.outputs[0]) == found
    assert length_of_dimension(x, 0) == Length("time", -1 if "-" in size else 0)
    steps = next(node.outputs[0] for node in model.graph if node.op_type == "Squeeze")
    assert length_of_number(steps) == length_of_dimension(x, 0)


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.lookup = nn.GRUCell(3, 5), nn.Embedding(7, 3)

    def forward(self, tokens: Tensor, lengths: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        out = []
        for t in range(tokens.shape[0]):
            alive = (t < lengths)[:, None]
            h = torch.where(alive, self.cell(self.lookup(tokens[t]), h), h)
            out.append(h * alive)
        return torch.stack(out) if out else h.new_zeros(0, *h.shape), h


def sets() -> list[tuple[Tensor, Tensor, Tensor]]:
    torch.manual_seed(0)
    sizes = ((4, 2), (1, 1), (0, 2), (7, 3))
    return [
        (torch.randint(0, 7, (time, batch)), torch.randint(0, time + 1, (batch,)), torch.randn(batch, 5))
        for time, batch in sizes
    ]


SHAPES = ({0: Dim("time"), 1: Dim("batch")}, {0: Dim("batch")}, {0: Dim("batch")})


def test_a_cell_over_time_is_checked_with_no_step(tmp_path):
    """The row that stands for none is no trip of the file's loop."""
    torch.manual_seed(0)
    model = Masked().eval()
    file = tmp_path / "masked.onnx"
    dy2st.onnx.export(model, sets()[0], file, dynamic_shapes=SHAPES, without_passes=["recurrences"])
    (scan,) = (node for node in onnx.load(file).graph.node if node.op_type == "Scan")
    kinds = [node.op_type for node in scan.attribute[0].g.node]
    assert kinds.count("Gemm") == 1
    assert "Gather" not in kinds
    construct = next(each.value for each in scan.metadata_props if each.key == "dy2st.construct")
    assert json.loads(construct)["kind"] == "loop"
    report = dy2st.check(model, sets(), dynamic_shapes=SHAPES, onnx_file=file)
    assert report.ok, report
    assert report.covered, report


def test_a_size_that_is_some_needs_no_row_of_zeros(tmp_path):
    file = tmp_path / "some.onnx"
    shapes = ({0: Dim("time", min=1), 1: Dim("batch")}, *SHAPES[1:])
    dy2st.onnx.export(Masked().eval(), sets()[0], file, dynamic_shapes=shapes, without_passes=["recurrences"])
    kinds = [node.op_type for node in onnx.load(file).graph.node]
    assert "Scan" in kinds
    assert "Pad" not in kinds


class Tagger(nn.Module):
    """A tag for each word, of which the next one is told; two loops, the second one from behind."""

    def __init__(self) -> None:
        super().__init__()
        self.tags, self.out = nn.Embedding(5, 3), nn.Linear(3, 5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        tag = torch.zeros(x.shape[1], dtype=torch.int64)
        scores, pointers = [], []
        for t in range(1, x.shape[0]):
            score = self.out(x[t] + self.tags(tag))
            pointers.append(score.topk(5).indices)
            tag = score.argmax(-1)
            scores.append(score)
        path = [tag]
        for pointer in pointers[::-1]:
            tag = pointer.gather(1, tag[:, None])[:, 0]
            if tag[0] > 2:
                tag = 4 - tag
            path.append(tag)
        total = torch.stack(scores) if scores else x.new_zeros(0, x.shape[1], 5)
        return total, torch.stack(path), tag


def test_what_is_looked_up_in_a_loop_is_checked_with_no_step(tmp_path):
    """Both ``Scan`` stand in branches, which are none of the user's."""
    torch.manual_seed(3)
    model = Tagger().eval()
    given = [(torch.randn(time, batch, 3),) for time, batch in ((5, 2), (2, 1), (1, 3), (9, 4), (1, 1))]
    shapes = ({0: Dim("time"), 1: Dim("batch")},)
    file = tmp_path / "tagger.onnx"
    dy2st.onnx.export(model, given[0], file, dynamic_shapes=shapes)
    lines = shown(ir.from_proto(onnx.load(file)).graph)
    assert lines.count("  Scan") == 2
    assert not any("Loop" in line for line in lines)
    report = dy2st.check(model, given, dynamic_shapes=shapes, onnx_file=file)
    assert report.ok, report
    assert report.covered, report
    report = dy2st.check(model, given[:1], dynamic_shapes=shapes, onnx_file=file)
    assert report.ok, report
    assert not report.covered, report


def in_pieces(x: Tensor) -> tuple[Tensor, Tensor]:
    """Pieces of one row each, from the second on."""
    first = torch.tensor([1])
    h, pieces = torch.zeros(1, 3), []
    for t in range(x.shape[0] - 1):
        h = h * 0.5 + x[first + t]
        pieces.append(x.index_select(0, first + t) * 2)
    return h, torch.stack(pieces) if len(pieces) > 0 else torch.zeros(0, 1, 3)


def test_a_vector_of_one_place_takes_no_row(tmp_path):
    file = tmp_path / "pieces.onnx"
    shapes = ({0: Dim("n")},)
    dy2st.onnx.export(in_pieces, (torch.randn(5, 3),), file, dynamic_shapes=shapes)
    given = [(torch.randn(n, 3),) for n in (5, 3, 2, 1, 0)]
    report = dy2st.check(in_pieces, given, dynamic_shapes=shapes, onnx_file=file)
    assert report.ok, report
