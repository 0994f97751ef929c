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
    """A comparison in a graph and one in an arm."""
    return f"""
    g ({dtype}[n, m] x, {dtype} limit, bool within) => (bool y, bool z{more and f", {dtype} value"}) {{
        nan = Constant<value = {dtype} {{nan}}>()
        {_lines(extreme, kind, first, more, "value", "y")}
        z = If(within) <
            then_branch = t () => (bool z_1) {{ {_lines(extreme, kind, first, "", "inner", "z_1")} }},
            else_branch = e () => (bool z_2) {{ z_2 = Identity(within) }}
        >
    }}"""


def _lines(extreme: str, kind: str, first: bool, more: str, value: str, result: str) -> str:
    operands = f"{value}, limit" if first else f"limit, {value}"
    return f"""
        {value}_plain = {extreme}<keepdims = 0>(x)
        {value}_wrong = IsNaN(x)
        {value}_some = ReduceMax<keepdims = 0>({value}_wrong)
        {more or value} = Where({value}_some, nan, {value}_plain)
        {f"{value} = Identity({more})" if more else ""}
        {result} = {kind}({operands})"""


def apply(model: ir.Model) -> None:
    compare_extremes(model, OPSET, frozenset())


def _of_all(extreme: str, kind: str, *, first: bool) -> bool:
    return (extreme == "ReduceMax") == (kind.startswith("Less") == first)


YES = np.array(True)
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, 3.4e38, -3.4e38]
FLOATS = st.one_of(st.sampled_from(SPECIAL), st.floats(width=32, allow_subnormal=False))
TENSORS = arrays.arrays(np.float32, st.tuples(st.integers(1, 3), st.integers(1, 9)), elements=FLOATS)


@pytest.mark.parametrize(("extreme", "kind", "first"), CASES)
def test_the_truth_value_is_the_same(extreme: str, kind: str, first: bool) -> None:
    text = comparison(extreme, kind, first=first)
    before, after = parsed(text), parsed(text)
    apply(after)
    lines = shown(after.graph)
    inside = [line.strip() for line in lines if line.startswith("  ")][:-1]
    outside = [line for line in lines if not line.startswith("  ")][:-1]
    if _of_all(extreme, kind, first=first):
        assert outside[-1] == inside[-1] == "ReduceMin"
        assert "IsNaN" not in outside + inside
    else:
        assert "IsNaN" in outside
        assert ("ReduceL1" in inside) == ("IsNaN" not in inside) == (extreme == "ReduceMax")
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
    return lambda x, limit: [bool(each) for each in session.run(None, {"x": x, "limit": limit, "within": YES})]


def test_doubles_and_many_elements() -> None:
    x = np.random.default_rng(0).standard_normal((50, 70))
    calls = [(each, np.array(limit), YES) for each in (x, np.where(x > 3, np.nan, x)) for limit in (-9.0, 2.5, 9.0)]
    for kind in ("Less", "Greater"):
        lines = changed(comparison("ReduceMax", kind, first=True, dtype="double"), apply, *calls)
        assert "  IsNaN" not in lines


def test_an_extreme_that_is_read_otherwise_stays() -> None:
    call = (np.ones((2, 2), np.float32), np.array(3, np.float32), YES)
    assert "IsNaN" in changed(comparison("ReduceMax", "Less", first=True, more="greatest"), apply, call)


def test_before_opset_20_truth_values_are_numbers() -> None:
    model = parsed(comparison("ReduceMax", "Less", first=True))
    compare_extremes(model, 18, frozenset())
    lines = [line for line in shown(model.graph) if not line.startswith("  ")]
    assert lines[-5:-1] == ["Less", "Cast", "ReduceMin", "Cast"]
    assert results(model, np.ones((2, 2), np.float32), np.array(3, np.float32), YES)[0]


def test_what_may_have_no_element_fails_as_before() -> None:
    for kind in ("Less", "Greater"):
        model = parsed(comparison("ReduceMax", kind, first=True))
        apply(model)
        with pytest.raises(Exception, match="not defined for empty set"):
            results(model, np.ones((0, 2), np.float32), np.array(3, np.float32), YES)


def test_an_arm_that_may_not_run_tells_nothing_of_sizes() -> None:
    text = """
    g (float[n] x, float limit, bool within) => (bool z) {
        nan = Constant<value = float {nan}>()
        z = If(within) <
            then_branch = t () => (bool z_1) { BODY },
            else_branch = e () => (bool z_2) { z_2 = Identity(within) }
        >
    }""".replace("BODY", _lines("ReduceMax", "Greater", True, "", "inner", "z_1"))
    model = parsed(text)
    apply(model)
    assert "  IsNaN" in shown(model.graph)
    compare_extremes(model, OPSET, frozenset("n"))
    assert "  IsNaN" not in shown(model.graph)
