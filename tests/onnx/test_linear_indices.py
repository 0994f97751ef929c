"""Indices that go on with the trips of a loop: what is known of them, and rows that inner loops need not take again."""

from __future__ import annotations

import numpy as np
import pytest

from dy2st.onnx.passes.linear_indices import LinearIndex, is_row_of, linear_index
from dy2st.onnx.passes.loop_invariants import hoist_invariants
from dy2st.onnx.passes.loop_sizes import Length, length_of_number
from tests.onnx.graph_text import changed, parsed

# A loop whose body has one index of a tensor with as many rows as it makes trips, with so many more.
INDEX = """
    g (float[n] x, float[{rows}] y, int64 other) => (float last) {{
        one = Constant<value_int = 1>()
        two = Constant<value_int = 2>()
        minus = Constant<value_int = -1>()
        threes = Constant<value_ints = [3]>()
        start = Constant<value_float = 0.0>()
        size = Shape(x)
        count = Squeeze(size)
        trips = {trips}
        last = Loop(trips, , start) <body = step (int64 i, bool go, float state) => (bool on, float next) {{
            on = Identity(go)
            {index}
            row = Gather(y, index)
            total = ReduceSum<keepdims = 0>(row)
            next = Add(state, total)
        }}>
    }}"""
BACK = "last_one = Sub(count, one) index = Sub(last_one, i)"


@pytest.mark.parametrize(
    ("index", "sign", "base"),
    [
        ("index = Identity(i)", 1, (None, 0)),
        ("index = Add(i, two)", 1, (None, 2)),
        ("more = Add(two, i) index = Sub(more, one)", 1, (None, 1)),
        (BACK, -1, ("n", -1)),
        ("back = Mul(i, minus) last_one = Sub(count, one) index = Add(last_one, back)", -1, ("n", -1)),
        ("back = Neg(i) index = Add(count, back)", -1, ("n", 0)),
        ("from_end = Sub(count, i) again = Sub(count, from_end) index = Add(again, one)", 1, (None, 1)),
        ("zero = Constant<value_ints = [0]>() wide = Unsqueeze(i, zero) index = Expand(wide, threes)", 1, (None, 0)),
        ("index = Identity(two)", 0, (None, 2)),
    ],
)
def test_indices(index: str, sign: int, base: tuple[str | None, int]) -> None:
    found = _index(index)
    assert found == LinearIndex(sign, Length(*base))


@pytest.mark.parametrize(
    "index", ["index = Add(i, i)", "index = Mul(i, two)", "index = Add(i, other)", "index = Neg(other)"]
)
def test_others(index: str) -> None:
    assert _index(index) is None


@pytest.mark.parametrize(
    ("index", "trips", "rows", "known"),
    [
        ("index = Identity(i)", "Identity(count)", "n", True),
        ("index = Identity(i)", "Identity(count)", "m", False),
        ("index = Identity(i)", "Identity(other)", "n", False),
        ("index = Add(i, one)", "Identity(count)", "n", False),
        ("index = Add(i, one)", "Sub(count, one)", "n", True),
        ("index = Sub(i, one)", "Sub(count, one)", "n", False),
        ("index = Identity(two)", "Identity(count)", "n", False),
        (BACK, "Identity(count)", "n", True),
        (BACK, "Sub(count, one)", "n", True),
        (BACK, "Add(count, one)", "n", False),
        ("index = Sub(count, i)", "Identity(count)", "n", False),
        ("index = Identity(i)", "Identity(two)", "2", True),
        ("index = Add(i, two)", "Identity(two)", "4", True),
        ("index = Add(i, two)", "Identity(two)", "3", False),
    ],
)
def test_rows_that_there_are(index: str, trips: str, rows: str, known: bool) -> None:
    model = parsed(INDEX.format(index=index, trips=trips, rows=rows))
    loop = next(node for node in model.graph if node.op_type == "Loop")
    body = loop.attributes["body"].as_graph()
    gather = next(node for node in body if node.op_type == "Gather")
    length = length_of_number(loop.inputs[0])
    counters = {} if length is None else {body.inputs[0]: length}
    assert is_row_of(gather.inputs[0], 0, gather.inputs[1], counters) == known


def _index(index: str) -> LinearIndex | None:
    model = parsed(
        INDEX.format(index=index, trips="Identity(count)", rows="n").replace("float state) =>", "float state) =>")
    )
    body = next(node for node in model.graph if node.op_type == "Loop").attributes["body"].as_graph()
    gather = next(node for node in body if node.op_type == "Gather")
    return linear_index(gather.inputs[1], body.inputs[0])


@pytest.mark.parametrize(("trips", "moves"), [("rows", True), ("other", False)])
def test_a_row_of_an_outer_loop_is_taken_once(trips: str, moves: bool) -> None:
    """Where it is known to be there: else it may be that the inner loop, which needs it, makes no trip."""
    text = f"""
    g (float[n, m] x, float start, int64 other) => (float last) {{
        size = Shape<start = 0, end = 1>(x)
        rows = Squeeze(size)
        last = Loop({trips}, , start) <body = around (int64 i, bool go, float outer) => (bool on, float after) {{
            on = Identity(go)
            width = Shape<start = 1, end = 2>(x)
            columns = Squeeze(width)
            after = Loop(columns, , outer) <body = within (int64 j, bool go_2, float state)
                => (bool on_2, float next) {{
                on_2 = Identity(go_2)
                row = Gather(x, i)
                one = Gather(row, j)
                next = Sub(one, state)
            }}>
        }}>
    }}"""
    rng = np.random.default_rng(0)
    calls = [
        (rng.standard_normal(size, np.float32), np.array(0.5, np.float32), np.array(size[0] if size[1] else 5))
        for size in ((3, 4), (1, 1), (0, 2), (2, 0))
    ]
    lines = changed(text, hoist_invariants, *calls)
    assert ("  Gather" in lines) == moves
