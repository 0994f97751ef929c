"""``nn.LSTM``, ``nn.GRU`` and ``nn.RNN`` as ONNX's operators of these names, a node for each layer.

Before::

    y, h = gru(x, h_0, weights)

After::

    y, h = If(usual) <
        then_branch = { y, h = GRU<linear_before_reset = 1>(x, w, u, b, "", h_0) },
        else_branch = { h, y = Loop(steps, "", h_0) <body = one step in arithmetic> }
    >

The kernels of onnxruntime 1.31 for LSTM and GRU end the process where the batch is empty, give numbers where NaN comes
in, and take no doubles. So the file asks whether there are numbers, none of them large, and has loops for all else.

Source: ONNX operators LSTM-14, GRU-14 and RNN-14, https://onnx.ai/onnx/operators/; the order of the gates is that of
``torch.nn.LSTM`` and ``torch.nn.GRU``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
import torch

from dy2st.errors import OnnxError
from dy2st.onnx.building import (
    BOOL,
    DOUBLE,
    FLOAT16,
    INT64,
    constant,
    loop,
    op,
    ops,
    recording,
    scalar_like,
    shape_of,
    size,
    version,
)

# For each operator, where its gates are among torch's: LSTM input, output, forget, cell; GRU update, reset, new.
GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}

# The number of a direction's weights.
_WITHOUT_BIASES = 2
# The L1 norm of inputs and states up to which nothing overflows, whatever the weights of a network; of half precision.
_LARGE = {False: 1e15, True: 1e3}


def turned_round(x: ir.Value) -> ir.Value:
    """The rows of a value, the last one first."""
    return op("Slice", x, [-1], [torch.iinfo(torch.int64).min], [0], [-1])


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
    layers = [
        [params[(layer * directions + d) * each :][:each] for d in range(directions)] for layer in range(num_layers)
    ]
    if batch_first:
        x = op("Transpose", x, perm=[1, 0, 2])

    def by_operators() -> list[ir.Value]:
        return _stacked(
            x, states, layers, lambda x, before, own: _by_operator(kind, x, before, own, hidden, attributes)
        )

    def by_steps() -> list[ir.Value]:
        step = activation or kind
        return _stacked(x, states, layers, lambda x, before, own: _by_steps(step, x, before, own, hidden))

    if x.dtype == DOUBLE:
        found = by_steps()
    elif kind == "RNN":
        found = by_operators()
    else:
        arms = {"then_branch": _arm(by_operators, "usual"), "else_branch": _arm(by_steps, "unusual")}
        found = list(ops("If", _usual([x, *states]), dtypes=(x.dtype,) * (1 + len(states)), **arms))
    if batch_first:
        found[0] = op("Transpose", found[0], perm=[1, 0, 2])
    return found


def _usual(values: Sequence[ir.Value]) -> ir.Value:
    """Whether there are numbers, so few and small that no sum of a step overflows; NaN and infinity are none."""
    total = op("ReduceL1", values[0], keepdims=0)
    for value in values[1:]:
        total = op("Add", total, op("ReduceL1", value, keepdims=0))
    small = op("LessOrEqual", total, scalar_like(_LARGE[total.dtype == FLOAT16], total), dtype=BOOL)
    return op("And", small, op("Greater", op("Size", values[0], dtype=INT64), constant(0), dtype=BOOL))


def _arm(results: Callable[[], list[ir.Value]], name: str) -> ir.Graph:
    with recording(version()) as made:
        found = [op("Identity", value) for value in results()]
    return ir.Graph([], found, nodes=made.nodes, name=name)


Weights = Sequence[Sequence[ir.Value]]
"""Those of a layer, by direction."""


def _stacked(
    x: ir.Value,
    states: Sequence[ir.Value],
    layers: Sequence[Weights],
    apply: Callable[[ir.Value, Sequence[ir.Value], Weights], Sequence[ir.Value]],
) -> list[ir.Value]:
    """The outputs and the last states of layers, each fed with the rows of the one before.

    ``apply`` gives a layer's rows [T, B, directions * hidden] and its last states [directions, B, hidden].
    """
    last: list[list[ir.Value]] = [[] for _ in states]
    first = 0
    for own in layers:
        before = states
        if len(layers) > 1:
            before = [op("Slice", state, [first], [first + len(own)], [0]) for state in states]
        first += len(own)
        x, *after = apply(x, before, own)
        for kept, state in zip(last, after, strict=True):
            kept.append(state)
    return [x, *(_joined(kept, axis=0) for kept in last)]


def _joined(values: Sequence[ir.Value], axis: int) -> ir.Value:
    return values[0] if len(values) == 1 else op("Concat", *values, axis=axis)


def _by_operator(
    kind: str, x: ir.Value, states: Sequence[ir.Value], own: Weights, hidden: int, attributes: dict[str, Any]
) -> list[ir.Value]:
    """A layer as a node."""
    bias: ir.Value | None = None
    if len(own[0]) > _WITHOUT_BIASES:
        both = [_arranged(kind, [weights[n] for weights in own], hidden) for n in (2, 3)]
        bias = op("Concat", *both, axis=1)
    rows, *after = ops(
        kind,
        x,
        _arranged(kind, [weights[0] for weights in own], hidden),
        _arranged(kind, [weights[1] for weights in own], hidden),
        bias,
        None,
        *states,
        dtypes=(x.dtype,) * (1 + len(states)),
        hidden_size=hidden,
        direction="bidirectional" if len(own) > 1 else "forward",
        **attributes,
    )
    rows = op("Reshape", op("Transpose", rows, perm=[0, 2, 1, 3]), constant([0, 0, len(own) * hidden]))
    return [rows, *after]


def _by_steps(kind: str, x: ir.Value, states: Sequence[ir.Value], own: Weights, hidden: int) -> list[ir.Value]:
    """A layer as a loop for each direction, in the arithmetic of a step; a plain cell's ``kind`` is its activation."""
    told: list[ir.Value] = []
    last: list[list[ir.Value]] = [[] for _ in states]
    trips = op("Squeeze", op("Shape", x, start=0, end=1, dtype=INT64), [0])
    for d, weights in enumerate(own):
        start = [op("Gather", state, constant(d), axis=0) for state in states]
        from_x = op("MatMul", turned_round(x) if d else x, op("Transpose", weights[0], perm=[1, 0]))
        from_x = op("Add", from_x, weights[2]) if len(weights) > _WITHOUT_BIASES else from_x
        *after, rows = loop(trips, start, _step(kind, from_x, weights, hidden))
        told.append(turned_round(rows) if d else rows)
        for kept, state in zip(last, after, strict=True):
            kept.append(op("Unsqueeze", state, [0]))
    return [_joined(told, axis=2), *(_joined(kept, axis=0) for kept in last)]


def _step(kind: str, from_x: ir.Value, weights: Sequence[ir.Value], hidden: int) -> Callable[..., Any]:
    """The body of a loop; ``from_x`` [T, B, gates * hidden] is what the inputs add to the gates."""
    count = len(GATES.get(kind, GATES["RNN"]))

    def gates(values: ir.Value) -> list[ir.Value]:
        return [op("Slice", values, [n * hidden], [(n + 1) * hidden], [1]) for n in range(count)]

    def step(i: ir.Value, state: Sequence[ir.Value]) -> Any:
        h = state[0]
        own = gates(op("Gather", from_x, i, axis=0))
        product = op("MatMul", h, op("Transpose", weights[1], perm=[1, 0]))
        product = op("Add", product, weights[3]) if len(weights) > _WITHOUT_BIASES else product
        others = gates(product)
        sums = [op("Add", one, other) for one, other in zip(own, others, strict=True)]
        if kind == "GRU":
            reset, update = op("Sigmoid", sums[0]), op("Sigmoid", sums[1])
            new = op("Tanh", op("Add", own[2], op("Mul", reset, others[2])))
            after = [op("Add", op("Mul", op("Sub", h, new), update), new)]
        elif kind != "LSTM":
            after = [op(kind, sums[0])]
        else:
            kept = op("Mul", op("Sigmoid", sums[1]), state[1])
            cell = op("Add", kept, op("Mul", op("Sigmoid", sums[0]), op("Tanh", sums[2])))
            after = [op("Mul", op("Sigmoid", sums[3]), op("Tanh", cell)), cell]
        return None, after, [after[0]]

    return step


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
