"""Loops over a recurrent cell as one operator: which are, which are not, and that both compute the same.

The graphs are ONNX's text, so that a form of a cell is a few lines; what torch's exporter makes of modules is in
``test_fused_modules``.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import onnx_ir as ir
import onnx_ir.passes.common as passes
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper, parser, shape_inference

from dy2st.onnx.passes.cell_algebra import Reader
from dy2st.onnx.passes.cell_forms import cells
from dy2st.onnx.passes.cell_proof import is_proved
from dy2st.onnx.passes.fused_recurrences import fuse_recurrences
from dy2st.onnx.passes.loop_sizes import name_state_sizes
from tests.onnx.graph_text import OPSET, results, shown

INPUTS, HIDDEN = 2, 3
STATES = {"h": "h", "c": "c"}

# Gates of one product with the input and one with the state.
GATES = """
    row = Gather(x, i)
    from_x = Gemm<transB = 1>(row, w, b)
    from_h = Gemm<transB = 1>(h, u, d)
    xr, xz, xn = Split<axis = 1, num_outputs = 3>(from_x)
    hr, hz, hn = Split<axis = 1, num_outputs = 3>(from_h)
    sum_r = Add(xr, hr) r = Sigmoid(sum_r)
    sum_z = Add(xz, hz) z = Sigmoid(sum_z)
"""
NEW = "reset = Mul(r, hn) sum_n = Add(xn, reset) n = Tanh(sum_n)"
# The ways to write the next state of a GRU from z, n and h.
NEXT = {
    "difference": "p = Sub(h, n) q = Mul(z, p) next_h = Add(q, n)",
    "both": "k = Sub(one, z) p = Mul(k, n) q = Mul(z, h) next_h = Add(p, q)",
    "other": "k = Sub(one, z) p = Mul(k, h) q = Mul(n, z) next_h = Add(q, p)",
    "minus": "p = Mul(z, n) q = Sub(n, p) s = Mul(h, z) next_h = Add(s, q)",
}
# The reset gate before the product.
EARLY = "rh = Mul(r, h) rhv = MatMul(rh, v) sum_n = Add(rhv, xn) n = Tanh(sum_n)"
LSTM = """
    row = Gather(x, i)
    beside = Concat<axis = 1>(row, h)
    gates = MatMul(beside, w4)
    biased = Add(gates, b4)
    sum_i, sum_f, sum_g, sum_o = Split<axis = 1, num_outputs = 4>(biased)
    i_gate = Sigmoid(sum_i) f = Sigmoid(sum_f) g = Tanh(sum_g) o = Sigmoid(sum_o)
    kept = Mul(f, c) learned = Mul(g, i_gate)
    next_c = Add(kept, learned)
    shown_c = Tanh(next_c)
    next_h = Mul(shown_c, o)
"""
RNN = "row = Gather(x, i) p = MatMul(row, wr) q = MatMul(h, v) s = Add(p, q) next_h = Tanh(s)"


def masked(body: str, *states: str) -> str:
    """The body with its new states under a mask by length."""
    for state in states:
        body = body.replace(f"next_{state} =", f"new_{state} =").replace(f"Tanh(next_{state})", f"Tanh(new_{state})")
    kept = " ".join(f"next_{state} = Where(mask, new_{state}, {state})" for state in states)
    return f"{body} alive = Less(i, lengths) axes = Constant<value_ints = [1]>() mask = Unsqueeze(alive, axes) {kept}"


def weights(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    sizes = {
        "w": (3 * HIDDEN, INPUTS),
        "u": (3 * HIDDEN, HIDDEN),
        "b": (3 * HIDDEN,),
        "d": (3 * HIDDEN,),
        "v": (HIDDEN, HIDDEN),
        "wr": (INPUTS, HIDDEN),
        "w4": (INPUTS + HIDDEN, 4 * HIDDEN),
        "b4": (4 * HIDDEN,),
    }
    found = {name: rng.standard_normal(size).astype(np.float32) for name, size in sizes.items()}
    ones = {"one": np.float32(1), "two": np.float32(2), "integer": np.array(1)}
    return found | {name: np.asarray(value) for name, value in ones.items()}


def model(body: str, told: str = "Identity(next_h)", states: tuple[str, ...] = ("h",)) -> ir.Model:
    """A loop over x whose body has these states; beside them it tells a row."""
    inside = ", ".join(f"float[batch, {HIDDEN}] {state}" for state in states)
    after = ", ".join(f"float[batch, {HIDDEN}] next_{state}" for state in states)
    text = f"""<ir_version: 10, opset_import: ["": {OPSET}]>
    g (float[time, batch, {INPUTS}] x, float[batch, {HIDDEN}] h0, float[batch, {HIDDEN}] c0, int64[batch] lengths)
        => ({", ".join(f"float[batch, {HIDDEN}] last_{state}" for state in states)}, float[a, b, {HIDDEN}] told) {{
        size = Shape<start = 0, end = 1>(x)
        steps = Squeeze(size)
        before = Sub(steps, integer)
        {", ".join(f"last_{state}" for state in states)}, stacked = Loop(steps, , {", ".join(f"{s}0" for s in states)})
        <body = step (int64 i, bool go, {inside}) => (bool on, {after}, float[batch, {HIDDEN}] row_told) {{
            {body}
            row_told = {told}
            on = Identity(go)
        }}>
        count = Shape<start = 0, end = 1>(x)
        width = Shape(h0)
        shape = Concat<axis = 0>(count, width)
        told = Reshape<allowzero = 1>(stacked, shape)
    }}"""
    proto = parser.parse_model(text)
    proto.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in weights().items())
    made = ir.from_proto(shape_inference.infer_shapes(proto, data_prop=True))
    passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(made)
    passes.LiftSubgraphInitializersToMainGraphPass()(made)
    name_state_sizes(made)
    return made


def call(time: int, batch: int = 2, scale: float = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(time)
    x, h, c = (rng.standard_normal(size) for size in ((time, batch, INPUTS), (batch, HIDDEN), (batch, HIDDEN)))
    with np.errstate(over="ignore"):
        x = (x * scale).astype(np.float32)
    return [x, *(each.astype(np.float32) for each in (h, c)), np.arange(batch) % (time + 1)]


def unusual() -> list[list[np.ndarray]]:
    """What the operators of onnxruntime don't compute: NaN, infinities, sums that overflow, and nothing."""
    found = [call(0), call(3, 0), call(0, 0), call(3, scale=3e38)]
    for value in (np.nan, np.inf, -np.inf):
        for place in range(3):
            args = call(4, 3)
            args[place][..., 1, 1] = value
            found.append(args)
    lengths = call(3)
    lengths[3] = np.array([-2, 9])
    return [*found, lengths]


def operators(made: ir.Model) -> set[str]:
    return {line.strip() for line in shown(made.graph)}


def require_same(before: ir.Model, after: ir.Model, calls: list[list[np.ndarray]]) -> None:
    for args in calls:
        for one, other in zip(results(before, *args), results(after, *args), strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-5, atol=2e-6)


def fused(body: str, *args: str, **options: tuple[str, ...]) -> set[str]:
    """The operators after the pass, which computes what the loop does."""
    before, after = model(body, *args, **options), model(body, *args, **options)
    fuse_recurrences(after, OPSET, frozenset())
    passes.RemoveUnusedNodesPass()(after)
    require_same(before, after, [call(1), call(5), call(2, 3, 5.0), *unusual()])
    return operators(after)


@pytest.mark.parametrize("next_state", NEXT.values(), ids=NEXT)
@pytest.mark.parametrize("new", [NEW, EARLY], ids=["late", "early"])
def test_gru(next_state, new):
    assert {"If", "GRU"} <= fused(GATES + new + " " + next_state)


def test_lstm_and_rnn():
    assert {"If", "LSTM"} <= fused(LSTM, states=("h", "c"))
    assert {"If", "RNN"} <= fused(RNN)


@pytest.mark.parametrize(
    ("body", "states"),
    [(GATES + NEW + NEXT["both"], ("h",)), (LSTM, ("h", "c")), (RNN, ("h",))],
    ids=["gru", "lstm", "rnn"],
)
def test_masks_by_length(body, states):
    made = fused(masked(body, *states), states=states)
    assert made & {"GRU", "LSTM", "RNN"}
    back = masked(body, *states).replace("Gather(x, i)", "Gather(x, t)").replace("Less(i,", "Less(t,")
    assert fused(f"t = Sub(before, i) {back}", states=states) & {"GRU", "LSTM", "RNN"}


def test_a_mask_that_is_no_length():
    """The operator has no form for it, which is found when the file runs."""
    body = masked(RNN, "h").replace("Less(i, lengths)", "Equal(i, lengths)")
    assert "RNN" in fused(body)


def test_backwards():
    assert "RNN" in fused("t = Sub(before, i) " + RNN.replace("Gather(x, i)", "Gather(x, t)"))


@pytest.mark.parametrize("told", ["Mul(next_h, two)", "Add(h, next_h)", "MatMul(next_h, v)", "Softmax(changed)"])
def test_what_else_the_body_does(told):
    assert "RNN" in fused(RNN + " changed = MatMul(h, v)", told)


def test_the_state_where_a_step_counts():
    body = masked(RNN, "h") + " zero = Sub(h, h)"
    assert "RNN" in fused(body, "Where(mask, new_h, zero)")


def test_other_states_stay_a_loop():
    made = fused(RNN + " half = Div(c, two) next_c = Add(half, next_h)", states=("h", "c"))
    assert {"RNN", "Scan"} <= made


def test_a_second_cell_over_the_first():
    second = " p2 = MatMul(next_h, v) q2 = MatMul(c, v) s2 = Add(p2, q2) next_c = Tanh(s2)"
    before = model(RNN + second, states=("h", "c"))
    fuse_recurrences(before, OPSET, frozenset())
    assert shown(before.graph)
    assert sum(line.strip() == "RNN" for line in shown(before.graph)) == 2
    assert "RNN" in fused(RNN + second, states=("h", "c"))


BOTH = NEXT["both"]
CHANGED_RNN = RNN.replace("next_h", "some")
NO_CELLS = {
    "another gate": GATES + NEW + "k = Sub(one, r) p = Mul(k, n) q = Mul(z, h) next_h = Add(p, q)",
    "no reset": GATES + "sum_n = Add(xn, hn) n = Tanh(sum_n)" + BOTH,
    "some without reset": GATES
    + "reset = Mul(r, hn) some = Add(xn, reset) sum_n = Add(some, hn) n = Tanh(sum_n)"
    + BOTH,
    "reset of the input": GATES + "reset = Mul(r, xn) sum_n = Add(hn, reset) n = Tanh(sum_n)" + BOTH,
    "reset of both": GATES + "some = Add(xn, hn) sum_n = Mul(r, some) n = Tanh(sum_n)" + BOTH,
    "a factor": GATES + "reset = Mul(r, hn) twice = Mul(xn, two) sum_n = Add(twice, reset) n = Tanh(sum_n)" + BOTH,
    "a larger tanh": GATES + NEW.replace("n = Tanh", "m = Tanh") + " n = Mul(m, two)" + BOTH,
    "more of the state": GATES + NEW + BOTH.replace("next_h", "some") + " next_h = Add(some, h)",
    "another function": RNN.replace("Tanh", "Relu"),
    "a residual": CHANGED_RNN + " next_h = Add(some, h)",
    "a scaled result": CHANGED_RNN + " next_h = Mul(some, two)",
    "no input": "q = MatMul(h, v) next_h = Tanh(q)",
    "no state": "row = Gather(x, i) p = MatMul(row, wr) next_h = Tanh(p)",
    "the input twice": RNN.replace("s = Add(p, q)", "q2 = Add(q, p) s = Add(p, q2)"),
    "the state twice": RNN.replace("s = Add(p, q)", "q2 = MatMul(h, v) q3 = Add(q, q2) s = Add(p, q3)"),
}


@pytest.mark.parametrize("body", NO_CELLS.values(), ids=NO_CELLS)
def test_no_cells(body):
    require_loop(model(body))


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (LSTM, "Identity(next_c)"),
        (LSTM, "Add(next_h, c)"),
        (LSTM.replace("learned = Mul(g, i_gate)", "open = Sub(one, f) learned = Mul(g, open)"), "Identity(next_h)"),
        (masked(LSTM, "h"), "Identity(next_h)"),
    ],
    ids=["a state is told", "a state is read", "one gate for both", "a mask of one state"],
)
def test_no_lstm(body, told):
    require_loop(model(body, told, ("h", "c")))


def require_loop(made: ir.Model) -> None:
    fuse_recurrences(made, OPSET, frozenset())
    assert not operators(made) & {"If", "GRU", "LSTM", "RNN"}


def test_a_loop_that_may_end_early():
    made = model(RNN)
    body = next(node for node in made.graph if node.op_type == "Loop").attributes["body"].as_graph()
    going = body.outputs[0].producer()
    assert going is not None
    other = ir.Node("", "Less", [body.inputs[0], made.graph.initializers["integer"]], version=OPSET, name="less")
    body.insert_before(going, other)
    body.outputs[0] = other.outputs[0]
    other.outputs[0].name = "less"
    other.outputs[0].dtype = ir.DataType.BOOL
    require_loop(made)


def test_weights_that_are_not_known_or_too_large():
    for change in (np.nan, np.inf, 1e25):
        made = model(RNN)
        numbers = np.array(weights()["v"])
        numbers[0, 0] = change
        made.graph.initializers["v"].const_value = ir.tensor(numbers, name="v")
        require_loop(made)
    made = model(RNN)
    value = made.graph.initializers.pop("v")
    value.const_value = None
    made.graph.inputs.append(value)
    require_loop(made)


@functools.cache
def _cell(body: str, states: tuple[str, ...]):
    made = model(body, states=states)
    graph = next(node for node in made.graph if node.op_type == "Loop").attributes["body"].as_graph()
    before = {value: place for place, value in enumerate(graph.inputs[2:])}
    (found,) = cells(graph, Reader(graph, before, graph.inputs[2].shape[0]))
    return made, graph, found


@given(
    st.sampled_from([(GATES + NEW + NEXT["other"], ("h",)), (LSTM, ("h", "c")), (RNN, ("h",))]),
    st.sampled_from(["w", "u", "b"]),
    st.integers(0, 2**16),
    st.sampled_from([-1.0, 0.5, 1.001]),
)
@settings(max_examples=30, deadline=None)
def test_the_proof_sees_any_other_weight(form, which, place, factor):
    """One weight that is changed is enough; as they are, all are proved."""
    _, graph, cell = _cell(*form)
    assert is_proved(graph, cell, OPSET)
    numbers = np.array(getattr(cell, which), order="C")
    numbers.reshape(-1)[place % numbers.size] = numbers.reshape(-1)[place % numbers.size] * factor + (factor - 1)
    assert not is_proved(graph, replace(cell, **{which: numbers}), OPSET)
