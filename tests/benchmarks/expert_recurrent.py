"""The recurrent models of ``workloads.py`` as an expert would write them in ONNX.

What needs no earlier step is computed for all steps at once: the products with the inputs, and the masks. Weights are
transposed, and gates put beside each other, when the file is made. States after each step are a ``Scan``'s outputs.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx_text import Weights, array, model
from torch import Tensor
from workload_models import GRUByHand, GRUDecoder, LSTMDecoder

# Whether a step is before the end of its sequence, as numbers and as truth values [time, batch, 1].
_MASKS = """
    time = Shape<start = 0, end = 1>(x)
    steps = Squeeze(time)
    t = Range(zero, steps, one)
    column = Unsqueeze(t, last_two)
    ends = Unsqueeze(lengths, last)
    alive = Less(column, ends)
    kept = Cast<to = 1>(alive)
"""
_COUNTING: Weights = {
    "zero": np.array(0),
    "one": np.array(1),
    "last": np.array([1]),
    "last_two": np.array([1, 2]),
}
_NO_STATE = """
    size = Shape<start = 1, end = 3>(x)
    nothing = Expand(zero_float, size)
"""
GRU_STEP = """
    from_h = Gemm(h, u, b_h)
    h_rz, h_n = Split<axis = 1>(from_h, two_and_one)
    sum_rz = Add(x_rz, h_rz)
    rz = Sigmoid(sum_rz)
    r, z = Split<axis = 1, num_outputs = 2>(rz)
    reset = Mul(r, h_n)
    sum_n = Add(x_n, reset)
    n = Tanh(sum_n)
    difference = Sub(h, n)
    rest = Mul(z, difference)
    next = Add(n, rest)
"""


def _gru_weights(cell: GRUDecoder) -> Weights:
    hidden = cell.cell.hidden_size
    b_x, b_h = array(cell.cell.bias_ih), array(cell.cell.bias_hh)
    # The reset gate's product is with the biased state; of the other gates' biases there is one sum.
    b_x[: 2 * hidden] += b_h[: 2 * hidden]
    b_h[: 2 * hidden] = 0
    return {
        "w": array(cell.cell.weight_ih.T),
        "u": array(cell.cell.weight_hh.T),
        "b_x": b_x,
        "b_h": b_h,
        "two_and_one": np.array([2 * hidden, hidden]),
        "zero_float": np.zeros(1, np.float32),
    }


def gru_cell(given: GRUDecoder) -> onnx.ModelProto:
    """A ``Scan`` over projected inputs and masks."""
    text = f"""
    expert (float[T, B, I] x, int64[B] lengths) => (float[T, B, H] out, float[B, H] final) {{
        {_NO_STATE}
        {_MASKS}
        product = MatMul(x, w)
        from_x = Add(product, b_x)
        xs_rz, xs_n = Split<axis = 2>(from_x, two_and_one)
        final, states = Scan<num_scan_inputs = 3, body = step
            (float[B, H] h, float[B, G] x_rz, float[B, H] x_n, bool[B, K] here)
            => (float[B, H] after, float[B, H] row) {{
            {GRU_STEP}
            after = Where(here, next, h)
            row = Identity(after)
        }}>(nothing, xs_rz, xs_n, alive)
        out = Mul(states, kept)
    }}"""
    return model(text, _COUNTING | _gru_weights(given))


def gru_by_hand(given: GRUByHand) -> onnx.ModelProto:
    """The same without masks, where the reset gate comes before the product."""
    weights: Weights = {
        "w": np.concatenate([array(each) for each in given.w], 1),
        "u_rz": np.concatenate([array(each) for each in list(given.u)[:2]], 1),
        "u_n": array(given.u[2]),
        "b": np.concatenate([array(each) for each in given.b]),
        "two_and_one": np.array([2 * len(given.b[0]), len(given.b[0])]),
        "zero_float": np.zeros(1, np.float32),
    }
    text = f"""
    expert (float[T, B, I] x) => (float[T, B, H] out, float[B, H] final) {{
        {_NO_STATE}
        product = MatMul(x, w)
        from_x = Add(product, b)
        xs_rz, xs_n = Split<axis = 2>(from_x, two_and_one)
        final, out = Scan<num_scan_inputs = 2, body = step
            (float[B, H] h, float[B, G] x_rz, float[B, H] x_n) => (float[B, H] after, float[B, H] row) {{
            sum_rz = Gemm(h, u_rz, x_rz)
            rz = Sigmoid(sum_rz)
            r, z = Split<axis = 1, num_outputs = 2>(rz)
            reset = Mul(r, h)
            sum_n = Gemm(reset, u_n, x_n)
            n = Tanh(sum_n)
            difference = Sub(h, n)
            rest = Mul(z, difference)
            after = Add(n, rest)
            row = Identity(after)
        }}>(nothing, xs_rz, xs_n)
    }}"""
    return model(text, weights)


_LSTM_STEP = """
    gates = Gemm(h, u, from_x)
    ifo, sum_g = Split<axis = 1>(gates, three_and_one)
    opened = Sigmoid(ifo)
    i, f, o = Split<axis = 1, num_outputs = 3>(opened)
    g = Tanh(sum_g)
    remembered = Mul(f, c)
    learned = Mul(i, g)
    next_c = Add(remembered, learned)
    shown = Tanh(next_c)
    next_h = Mul(o, shown)
"""


def _lstm_weights(given: LSTMDecoder) -> Weights:
    def arranged(weight: Tensor) -> np.ndarray:
        i, f, g, o = np.split(array(weight), 4)
        return np.ascontiguousarray(np.concatenate([i, f, o, g]).T)

    hidden = given.cell.hidden_size
    return {
        "w": arranged(given.cell.weight_ih),
        "u": arranged(given.cell.weight_hh),
        "b": arranged(given.cell.bias_ih + given.cell.bias_hh),
        "three_and_one": np.array([3 * hidden, hidden]),
        "zero_float": np.zeros(1, np.float32),
    }


def lstm_cell(given: LSTMDecoder) -> onnx.ModelProto:
    """A ``Scan`` over projected inputs and masks, with two states."""
    text = f"""
    expert (float[T, B, I] x, int64[B] lengths)
        => (float[T, B, H] out, float[B, H] final_h, float[B, H] final_c) {{
        {_NO_STATE}
        {_MASKS}
        product = MatMul(x, w)
        from_xs = Add(product, b)
        final_h, final_c, states = Scan<num_scan_inputs = 2, body = step
            (float[B, H] h, float[B, H] c, float[B, G] from_x, bool[B, K] here)
            => (float[B, H] after_h, float[B, H] after_c, float[B, H] row) {{
            {_LSTM_STEP}
            after_h = Where(here, next_h, h)
            after_c = Where(here, next_c, c)
            row = Identity(after_h)
        }}>(nothing, nothing, from_xs, alive)
        out = Mul(states, kept)
    }}"""
    return model(text, _COUNTING | _lstm_weights(given))


def gru_step(given: GRUDecoder) -> onnx.ModelProto:
    """One step, for a loop of Python around it: the row of the outputs and the next state."""
    text = f"""
    step (float[B, I] x, bool[B, K] here, float[B, H] h) => (float[B, H] row, float[B, H] after) {{
        from_x = Gemm(x, w, b_x)
        x_rz, x_n = Split<axis = 1>(from_x, two_and_one)
        {GRU_STEP}
        after = Where(here, next, h)
        kept = Cast<to = 1>(here)
        row = Mul(after, kept)
    }}"""
    return model(text, _gru_weights(given))


def lstm_step(given: LSTMDecoder) -> onnx.ModelProto:
    """One step, for a loop of Python around it."""
    text = f"""
    step (float[B, I] x, bool[B, K] here, float[B, H] h, float[B, H] c)
        => (float[B, H] row, float[B, H] after_h, float[B, H] after_c) {{
        from_x = Gemm(x, w, b)
        {_LSTM_STEP}
        after_h = Where(here, next_h, h)
        after_c = Where(here, next_c, c)
        kept = Cast<to = 1>(here)
        row = Mul(after_h, kept)
    }}"""
    return model(text, _lstm_weights(given))
