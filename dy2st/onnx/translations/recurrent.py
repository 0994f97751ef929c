"""``nn.LSTM``, ``nn.GRU`` and ``nn.RNN`` as ONNX's operators of these names, a node for each layer.

Source: ONNX operators LSTM-14, GRU-14 and RNN-14, https://onnx.ai/onnx/operators/; the order of the gates is that of
``torch.nn.LSTM`` and ``torch.nn.GRU``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
import torch

from dy2st.errors import OnnxError
from dy2st.onnx.building import constant, op, ops, shape_of, size

# For each operator, where its gates are among torch's: LSTM input, output, forget, cell; GRU update, reset, new.
GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


def _arranged(kind: str, weights: Sequence[ir.Value], hidden: int) -> ir.Value:
    """The weights of each direction [gates * hidden, ...] as [directions, gates * hidden, ...], in ONNX's order."""
    gates = GATES[kind]
    found = []
    for weight in weights:
        rest = list(shape_of(weight)[1:])
        if len(gates) > 1:
            apart = op("Gather", op("Reshape", weight, [len(gates), hidden, *rest]), list(gates), axis=0)
            weight = op("Reshape", apart, [len(gates) * hidden, *rest])  # noqa: PLW2901
        found.append(op("Unsqueeze", weight, [0]))
    return found[0] if len(found) == 1 else op("Concat", *found, axis=0)


def _recurrent(
    kind: str,
    x: ir.Value,
    states: Sequence[ir.Value],
    params: Sequence[ir.Value],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    *,
    activation: str | None = None,
    **attributes: Any,
) -> list[ir.Value]:
    """The outputs [T, B, directions * hidden] (or with the batch first), and the states after the last step."""
    directions = 2 if bidirectional else 1
    hidden = size(states[-1], 2)
    if activation is not None:
        attributes["activations"] = [activation] * directions
    if size(states[0], 2) != hidden or hidden is None:
        raise OnnxError(
            "there is no ONNX operator for an LSTM with projections",
            hint="leave out proj_size, or write the projection as a layer of its own in a loop over nn.LSTMCell",
        )
    if train and dropout > 0 and num_layers > 1:
        raise OnnxError("dropout between the layers of a recurrent module in training mode", hint="call eval() on it")
    each = 4 if has_biases else 2
    if batch_first:
        x = op("Transpose", x, perm=[1, 0, 2])
    last: list[list[ir.Value]] = [[] for _ in states]
    for layer in range(num_layers):
        first = layer * directions
        own = [params[(first + d) * each : (first + d + 1) * each] for d in range(directions)]
        bias: ir.Value | None = None
        if has_biases:
            both = [_arranged(kind, [weights[n] for weights in own], hidden) for n in (2, 3)]
            bias = op("Concat", *both, axis=1)
        before = [op("Slice", state, [first], [first + directions], [0]) for state in states]
        rows, *after = ops(
            kind,
            x,
            _arranged(kind, [weights[0] for weights in own], hidden),
            _arranged(kind, [weights[1] for weights in own], hidden),
            bias,
            None,
            *before,
            dtypes=(x.dtype,) * (1 + len(states)),
            hidden_size=hidden,
            direction="bidirectional" if bidirectional else "forward",
            **attributes,
        )
        x = op("Reshape", op("Transpose", rows, perm=[0, 2, 1, 3]), constant([0, 0, directions * hidden]))
        for kept, state in zip(last, after, strict=True):
            kept.append(state)
    if batch_first:
        x = op("Transpose", x, perm=[1, 0, 2])
    return [x, *(kept[0] if len(kept) == 1 else op("Concat", *kept, axis=0) for kept in last)]


def onnx_lstm(x: ir.Value, states: Sequence[ir.Value], params: Sequence[ir.Value], *options: Any) -> list[ir.Value]:
    """``lstm``: outputs, hidden states, cell states."""
    return _recurrent("LSTM", x, states, params, *options)


def onnx_gru(x: ir.Value, state: ir.Value, params: Sequence[ir.Value], *options: Any) -> list[ir.Value]:
    """``gru``, which applies the reset gate to what has been multiplied: outputs and hidden states."""
    return _recurrent("GRU", x, [state], params, *options, linear_before_reset=1)


def _rnn(activation: str) -> Callable[..., list[ir.Value]]:
    def onnx_rnn(x: ir.Value, state: ir.Value, params: Sequence[ir.Value], *options: Any) -> list[ir.Value]:
        return _recurrent("RNN", x, [state], params, *options, activation=activation)

    return onnx_rnn


aten = torch.ops.aten
TRANSLATIONS: dict[Any, Any] = {
    aten.lstm.input: onnx_lstm,
    aten.gru.input: onnx_gru,
    aten.rnn_tanh.input: _rnn("Tanh"),
    aten.rnn_relu.input: _rnn("Relu"),
}
