"""The recurrent models of ``workloads.py`` as one operator of ONNX, for who knows that it fits.

onnxruntime 1.31 gives numbers where NaN comes into these operators, and has none of them for no step or no row.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx_text import Weights, array, model
from torch import Tensor
from workload_models import GRUByHand, GRUDecoder, LSTMDecoder


def _arranged(weight: Tensor, order: list[int]) -> np.ndarray:
    gates = np.split(array(weight), len(order))
    return np.concatenate([gates[place] for place in order])[None]


def _cell_weights(cell: GRUDecoder | LSTMDecoder, order: list[int]) -> Weights:
    given = cell.cell
    biases = [_arranged(each, order) for each in (given.bias_ih, given.bias_hh)]
    return {
        "w": _arranged(given.weight_ih, order),
        "u": _arranged(given.weight_hh, order),
        "b": np.concatenate(biases, 1),
        "second": np.array([1]),
        "first": np.array([0]),
    }


def gru_cell(given: GRUDecoder) -> onnx.ModelProto:
    """The operator ``GRU`` with the lengths."""
    text = f"""
    fused (float[T, B, I] x, int64[B] lengths) => (float[T, B, H] out, float[B, H] final) {{
        ends = Cast<to = 6>(lengths)
        y, y_h = GRU<hidden_size = {given.cell.hidden_size}, linear_before_reset = 1>(x, w, u, b, ends)
        out = Squeeze(y, second)
        final = Squeeze(y_h, first)
    }}"""
    return model(text, _cell_weights(given, [1, 0, 2]))


def lstm_cell(given: LSTMDecoder) -> onnx.ModelProto:
    """The operator ``LSTM`` with the lengths."""
    text = f"""
    fused (float[T, B, I] x, int64[B] lengths)
        => (float[T, B, H] out, float[B, H] final_h, float[B, H] final_c) {{
        ends = Cast<to = 6>(lengths)
        y, y_h, y_c = LSTM<hidden_size = {given.cell.hidden_size}>(x, w, u, b, ends)
        out = Squeeze(y, second)
        final_h = Squeeze(y_h, first)
        final_c = Squeeze(y_c, first)
    }}"""
    return model(text, _cell_weights(given, [0, 3, 1, 2]))


def gru_by_hand(given: GRUByHand) -> onnx.ModelProto:
    """The operator ``GRU`` of the first form, where the reset gate comes before the product."""
    order = [1, 0, 2]
    biases = np.concatenate([array(given.b[place]) for place in order])
    weights: Weights = {
        "w": np.concatenate([array(given.w[place]).T for place in order])[None],
        "u": np.concatenate([array(given.u[place]).T for place in order])[None],
        "b": np.concatenate([biases, np.zeros_like(biases)])[None],
        "second": np.array([1]),
        "first": np.array([0]),
    }
    text = f"""
    fused (float[T, B, I] x) => (float[T, B, H] out, float[B, H] final) {{
        y, y_h = GRU<hidden_size = {len(given.b[0])}>(x, w, u, b)
        out = Squeeze(y, second)
        final = Squeeze(y_h, first)
    }}"""
    return model(text, weights)
