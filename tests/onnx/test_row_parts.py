"""Parts of rows as rows of parts, in the bodies of loops."""

from __future__ import annotations

import numpy as np
import pytest

from dy2st.onnx.passes.row_parts import take_row_parts
from tests.onnx.graph_text import OPSET, changed

TEXT = """
    g (float[n, 4] boxes, int64 trips) => (float[2] last, float[m, 2] before) {{
        zero = Constant<value_ints = [0]>() one = Constant<value_ints = [1]>() two = Constant<value_ints = [2]>()
        far = Constant<value_ints = [9]>() ended = Constant<value_ints = [-1]>()
        low = Slice(boxes, zero, two, one)
        high = Slice(boxes, two, far, one)
        start = Constant<value = float[2] {{0, 0}}>()
        last = Loop(trips, , start) <body = step (int64 i, bool go, float[2] state) => (bool on, float[2] next) {{
            on = Identity(go)
            row = Gather(boxes, i)
            {body}
        }}>
        before = Add(low, high)
    }}"""
BOTH = """left = Slice(row, zero, two, zero) right = Slice(row, two, far, zero)
    sum = Sub(left, right) next = Max(state, sum)"""


def body(inner: str) -> list[str]:
    boxes = np.random.default_rng(0).standard_normal((3, 4), np.float32)
    boxes[1] = [np.nan, np.inf, -0.0, 0.0]
    calls = [(boxes, np.array(trips)) for trips in (0, 1, 3)]
    lines = changed(TEXT.format(body=inner), lambda model: take_row_parts(model, OPSET), *calls)
    return [line.strip() for line in lines if line.startswith("  ")]


def test_all_parts_are_there() -> None:
    assert body(BOTH) == ["Identity", "Gather", "Gather", "Sub", "Max"]


@pytest.mark.parametrize(
    "inner",
    [
        # the whole row is read, too
        f"{BOTH.replace('next', 'most')} all = ReduceMax<keepdims = 0>(row) next = Add(most, all)",
        # a part that is not there
        """left = Slice(row, zero, two, zero) right = Slice(row, one, far, zero)
            parts = Slice(right, zero, two, zero) next = Add(left, parts)""",
        # counted from the end
        "left = Slice(row, zero, two, ended) next = Add(left, state)",
    ],
)
def test_other_rows_stay(inner: str) -> None:
    lines = body(inner)
    assert lines.count("Gather") == 1
    assert "Slice" in lines
