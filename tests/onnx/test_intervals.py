"""Intervals: every number that onnxruntime computes is in them, and NaN only where they say so."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from dy2st.onnx.passes.interval_analysis import Intervals
from dy2st.onnx.passes.intervals import ANY, Interval, added, multiplied, union
from tests.onnx.graph_text import parsed, results
from tests.onnx.test_nan_tests import numbers

# Of floats [4, 4] a and b, a truth value for each place, and places.
STEPS = """Abs({a})|Add({a}, {b})|Sub({a}, {b})|Mul({a}, {b})|Mul({a}, {a})|Div({a}, {b})|Max({a}, {b})|Min({a}, {b})
|Neg({a})|Relu({a})|Exp({a})|Log({a})|Sqrt({a})|Sigmoid({a})|Tanh({a})|Erf({a})|Softplus({a})|Reciprocal({a})|Sin({a})
|Cos({a})|Floor({a})|Ceil({a})|Round({a})|Sign({a})|Pow({a}, two)|Clip({a}, low, high)|Softmax<axis = -1>({a})
|Softmax<axis = 0>({a})|LogSoftmax<axis = -1>({a})|MatMul({a}, {b})|Gemm({a}, {b}, {a})|Gemm<transB = 1>({a}, {b})
|ReduceSum<keepdims = 1>({a}, ends)|ReduceL1<keepdims = 1>({a}, ends)|ReduceL2<keepdims = 1>({a}, ends)
|ReduceSumSquare<keepdims = 1>({a}, ends)|ReduceMean<keepdims = 1>({a}, ends)|ReduceMax<keepdims = 1>({a}, ends)
|ReduceMin<keepdims = 1>({a}, ends)|LayerNormalization<axis = -1>({a}, row, row)|Where(b, {a}, {b})
|Transpose<perm = [1, 0]>({a})|Gather<axis = 0>({a}, i)|Cast<to = 1>(j)""".replace("\n", "").split("|")
CONSTANTS = """
            two = Constant<value = float {2}>()
            low = Constant<value = float {-1.5}>()
            high = Constant<value = float {3}>()
            ends = Constant<value = int64[1] {1}>()
            row = Constant<value = float[4] {1, -2, 0.5, 3}>()
            c0 = Constant<value = float[4, 4] {1, 2, -3, 0.5, 0, 1, 1, 1, 5, 2, 2, 2, 1, 1, -7, 0.25}>()
            c1 = Constant<value = float[1, 4] {0.5, 0, 2, 1}>()
            c2 = Constant<value = float[1, 4] {-inf, 0, 2, 1}>()
            c3 = Constant<value = float[1, 4] {nan, 3, 2, 1e30}>()
"""


def within(found: np.ndarray, interval: Interval) -> bool:
    kept = found[~np.isnan(found)] if found.dtype.kind == "f" else found
    bounds = not kept.size or (interval.low <= kept.min() and kept.max() <= interval.high)
    return bool(bounds and (interval.nan or kept.size == found.size))


def random_graph(rng: np.random.Generator) -> tuple[ir.Model, list[str]]:
    """A graph that tells of each of its values."""
    known = list(rng.permutation(["c0", "c1", "x", "c2", "c3"]))[: rng.integers(1, 4)]
    lines, made = [], []
    for count in range(12):
        a, b = (str(known[rng.integers(len(known))]) for _ in range(2))
        step = STEPS[rng.integers(len(STEPS))].format(a=f"a{count}", b=f"b{count}")
        lines += [f"a{count} = Expand({a}, square)", f"b{count} = Expand({b}, square)", f"w{count} = {step}"]
        lines.append(f"v{count} = Expand(w{count}, square)")
        known.append(f"v{count}")
        made.append(f"w{count}")
    declared = ", ".join(f"float[R, S] {name}" for name in made)
    return parsed(
        f"""
    g (float[4, 4] x, bool[4, 4] b, int64[4] i, int64[1, 4] j) => ({declared}) {{{CONSTANTS}
            square = Constant<value = int64[2] {{4, 4}}>()
            {" ".join(lines)}
    }}""".replace("i)|", "i)")
    ), made


@pytest.mark.parametrize("seed", range(40))
def test_all_numbers_are_in_their_intervals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    model, _ = random_graph(rng)
    intervals = Intervals(model.graph)
    for _ in range(6):
        args = numbers(rng, 4, 4), rng.random((4, 4)) < 0.5, rng.integers(0, 4, 4), rng.integers(-9, 9, (1, 4))
        for value, found in zip(model.graph.outputs, results(model, *args), strict=True):
            node = value.producer()
            assert node is not None
            assert within(found, intervals.of(value)), (node.op_type, intervals.of(value), found)


def test_the_analysis_says_something() -> None:
    """Of numbers that are known, most that is computed of them is known not to be NaN."""
    proved = total = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        model, _ = random_graph(rng)
        args = numbers(rng, 4, 4), rng.random((4, 4)) < 0.5, rng.integers(0, 4, 4), rng.integers(-9, 9, (1, 4))
        intervals = Intervals(model.graph)
        for value, found in zip(model.graph.outputs, results(model, *args), strict=True):
            total += not np.isnan(found).any()
            proved += not intervals.of(value).nan
    assert proved > total / 3


LOOPS = {
    # a state, and what a trip makes of it: whether it is known not to be NaN
    "Add(h, step)": True,
    "Mul(h, half)": True,
    "Mul(h, h)": True,
    "Div(h, h)": False,
    "Exp(h)": True,
    "Sub(zero, h)": True,
    "Div(step, h)": True,
    "Log(h)": False,
    "Sqrt(h)": True,
    "Tanh(h)": True,
    "Add(h, x)": False,
    "Min(h, step)": True,
}


@pytest.mark.parametrize("text", LOOPS)
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_states_of_loops(text: str, dtype: str) -> None:
    model = parsed(f"""
    g (int64 n, {dtype} x) => ({dtype} end, {dtype}[T] rows) {{
        zero = Constant<value = {dtype} {{0}}>()
        half = Constant<value = {dtype} {{0.5}}>()
        step = Constant<value = {dtype} {{3}}>()
        on = Constant<value = bool {{1}}>()
        end, rows = Loop(n, on, zero) <body = step (int64 i, bool go, {dtype} h)
            => (bool more, {dtype} next, {dtype} told) {{
            more = Identity(go)
            next = {text}
            told = Sub(next, half)
        }}>
    }}""")
    intervals = Intervals(model.graph)
    found = [intervals.of(value) for value in model.graph.outputs]
    assert found[0].nan == (not LOOPS[text])
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 50, 3000):
        x = numbers(rng, dtype=np.float32 if dtype == "float" else np.float64)
        for value, interval in zip(results(model, np.array(n), x), found, strict=True):
            assert within(value, interval)


def test_states_that_change_places_and_inner_loops() -> None:
    model = parsed("""
    g (int64 n, float x) => (float a_end, float b_end, float c_end) {
        zero = Constant<value = float {0}>()
        one = Constant<value = float {1}>()
        on = Constant<value = bool {1}>()
        a_end, b_end, c_end = Loop(n, on, zero, one, zero) <body = step (int64 i, bool go, float a, float b, float c)
            => (bool more, float a_next, float b_next, float c_next) {
            more = Identity(go)
            a_next = Identity(b)
            b_next = Neg(a)
            c_next = Loop(n, on, c) <body = inner (int64 j, bool on_2, float d) => (bool more_2, float d_next) {
                more_2 = Identity(on_2)
                e = Add(d, b)
                d_next = Min(e, one)
            }>
        }>
    }""")
    intervals = Intervals(model.graph)
    found = [intervals.of(value) for value in model.graph.outputs]
    assert [(each.low, each.high, each.nan) for each in found[:2]] == [(-1.0, 1.0, False)] * 2
    assert not found[2].nan
    assert found[2].high == 1
    for n in range(9):
        assert all(map(within, results(model, np.array(n), np.zeros((), np.float32)), found))


def test_a_union_holds_for_both() -> None:
    one, other = Interval(-1.0, 2.0, nan=False), Interval(0.0, 5.0, nan=True)
    assert union(one, other) == Interval(-1.0, 5.0, nan=True)
    assert union(one, ANY) == ANY


def test_ends_are_ints_of_any_size() -> None:
    huge = Interval(-(2**70), 2**80, nan=False)
    assert huge.is_finite
    assert not huge.is_infinite
    assert added(huge, huge) == Interval(-(2**71), 2**81, nan=False)
    assert multiplied(huge, huge) == Interval(-(2**150), 2**160, nan=False)
    assert Interval(-float("inf"), 2**80, nan=False).is_infinite


def test_integers_that_grow_in_a_loop_without_an_end() -> None:
    """Their intervals grow, too, beyond what numpy has a number for."""
    text = """graph (int64[4] x, bool c) => (int64[4] y) {
        one = Constant<value = int64 {1}>()
        y, z = Loop(, c, x, x)<
            body = step (int64 i, bool go, int64[4] a, int64[4] b) => (bool go, int64[4] p, int64[4] q) {
            ab = Mul(a, b)
            p = Mul(ab, ab)
            q = Add(ab, one)
        }>
    }"""
    model = parsed(text)
    Intervals(model.graph).of(model.graph.outputs[0])
