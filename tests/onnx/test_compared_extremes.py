"""Comparisons of a greatest or least element with a number: the same truth value for any floats, NaN among them."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dy2st.onnx.passes.compared_extremes import compare_extremes
from tests.onnx.graph_text import OPSET, changed, parsed, results, shown

KINDS = ("Less", "LessOrEqual", "Greater", "GreaterOrEqual")
CASES = [(extreme, kind, first) for extreme in ("ReduceMax", "ReduceMin") for kind in KINDS for first in (True, False)]


def comparison(extreme: str, kind: str, *, first: bool, dtype: str = "float", more: str = "") -> str:
    operands = "value, limit" if first else "limit, value"
    return f"""
    g ({dtype}[n, m] x, {dtype} limit) => (bool y{more and f", {dtype} value"}) {{
        nan = Constant<value = {dtype} {{nan}}>()
        plain = {extreme}<keepdims = 0>(x)
        wrong = IsNaN(x)
        some = ReduceMax<keepdims = 0>(wrong)
        {more or "value"} = Where(some, nan, plain)
        {f"value = Identity({more})" if more else ""}
        y = {kind}({operands})
    }}"""


def apply(model: ir.Model) -> None:
    compare_extremes(model, OPSET)


def _of_all(extreme: str, kind: str, *, first: bool) -> bool:
    return (extreme == "ReduceMax") == (kind.startswith("Less") == first)


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, 3.4e38, -3.4e38]
FLOATS = st.one_of(st.sampled_from(SPECIAL), st.floats(width=32, allow_subnormal=False))
TENSORS = arrays.arrays(np.float32, st.tuples(st.integers(1, 3), st.integers(1, 9)), elements=FLOATS)


@pytest.mark.parametrize(("extreme", "kind", "first"), CASES)
def test_the_truth_value_is_the_same(extreme: str, kind: str, first: bool) -> None:
    text = comparison(extreme, kind, first=first)
    before, after = parsed(text), parsed(text)
    apply(after)
    lines = shown(after.graph)
    if _of_all(extreme, kind, first=first):
        assert lines[-1] == "ReduceMin"
        assert "IsNaN" not in lines
    elif extreme == "ReduceMax":
        assert [line for line in lines if line != "Constant"] == [
            "ReduceMax",
            "ReduceL1",
            "Min",
            kind if first else lines[-1],
        ]
    else:
        assert "IsNaN" in lines
    runs = [_session(each) for each in (before, after)]

    @settings(max_examples=150, deadline=None)
    @given(TENSORS, FLOATS)
    def compare(x: np.ndarray, limit: float) -> None:
        one, other = (run(x, np.array(limit, np.float32)) for run in runs)
        assert one == other

    compare()


def _session(model: ir.Model):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        ir.to_proto(model).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return lambda x, limit: bool(session.run(None, {"x": x, "limit": limit})[0])


def test_doubles_and_many_elements() -> None:
    x = np.random.default_rng(0).standard_normal((50, 70))
    calls = [(each, np.array(limit)) for each in (x, np.where(x > 3, np.nan, x)) for limit in (-9.0, 2.5, 9.0)]
    for kind in ("Less", "Greater"):
        assert "IsNaN" not in changed(comparison("ReduceMax", kind, first=True, dtype="double"), apply, *calls)


def test_an_extreme_that_is_read_otherwise_stays() -> None:
    call = (np.ones((2, 2), np.float32), np.array(3, np.float32))
    assert "IsNaN" in changed(comparison("ReduceMax", "Less", first=True, more="greatest"), apply, call)


def test_before_opset_20_truth_values_are_numbers() -> None:
    model = parsed(comparison("ReduceMax", "Less", first=True))
    compare_extremes(model, 18)
    assert shown(model.graph)[-4:] == ["Less", "Cast", "ReduceMin", "Cast"]
    assert results(model, np.ones((2, 2), np.float32), np.array(3, np.float32))[0]
