"""Whether an operator computes what a loop's body does: both run on drawn inputs, and give the same but for rounding.

The body runs once for each step, as the loop would run it, from its inputs, states and mask; the operator on all
steps. What they may differ by is what sums of the cell's size, added in another order, may be rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from dy2st.onnx.building import BOOL, FLOAT, ops, recording
from dy2st.onnx.passes.cell_forms import Cell
from dy2st.onnx.passes.node_copies import copies, needed_for

# Steps, rows, and the size of the numbers that are drawn.
_DRAWS = ((1, 1, 1.0), (2, 3, 1.0), (6, 2, 4.0))
_IR_VERSION = 10
# More bytes of weights are not proved: a model of them might be more than a message of protobuf holds.
_LARGEST = 2**29

Run = Callable[[Sequence[np.ndarray]], list[np.ndarray]]


def cell_node(
    cell: Cell, x: ir.Value, lengths: ir.Value | None, states: Sequence[ir.Value], **attributes: str
) -> Sequence[ir.Value]:
    """Record the operator of a cell: the states ``h`` after all steps, and each state after the last one.

    Args:
        cell: its weights become initializers.
        x: inputs ``[time, batch, inputs]``.
        lengths: int32 ``[batch]``, or None.
        states: ``[1, batch, hidden]``.
        attributes: further ones of the operator.
    """
    weights = [_weight(each[None]) for each in (cell.w, cell.u, cell.b)]
    return ops(
        cell.kind,
        x,
        *weights,
        lengths,
        *states,
        dtypes=[FLOAT] * (1 + len(states)),
        hidden_size=cell.hidden,
        **cell.attributes,
        **attributes,
    )


def _weight(numbers: np.ndarray) -> ir.Value:
    value = ops("Constant", dtypes=[FLOAT], value=ir.tensor(np.ascontiguousarray(numbers, np.float32)))[0]
    value.shape = ir.Shape(numbers.shape)
    return value


def is_proved(body: ir.Graph, cell: Cell, opset: int) -> bool:
    """Whether the operator gives the states that the body gives."""
    step = _step(body, cell, opset)
    if step is None or sum(each.nbytes for each in (cell.w, cell.u, cell.b)) > _LARGEST:
        return False
    try:
        runs = _run(step), _run(_fused(cell, opset))
        return all(_agree(cell, *runs, time, batch, scale) for time, batch, scale in _DRAWS)
    except Exception:  # noqa: BLE001 - onnxruntime's exceptions have no common base: what can't run proves nothing
        return False


def _run(model: ir.Model) -> Run:
    """A model as a function of arrays, in the order of its inputs."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    content = ir.to_proto(model).SerializeToString()
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    names = [str(value.name) for value in model.graph.inputs]
    return lambda arrays: list(session.run(None, dict(zip(names, arrays, strict=True))))


def _agree(cell: Cell, step: Run, fused: Run, time: int, batch: int, scale: float) -> bool:
    rng = np.random.default_rng(time)
    widths = [int(row.shape[1]) for row in cell.rows if row.shape is not None and isinstance(row.shape[1], int)]
    rows = [(rng.standard_normal((time, batch, width)) * scale).astype(np.float32) for width in widths]
    states = [rng.standard_normal((batch, cell.hidden)).astype(np.float32) for _ in cell.places]
    whole = np.concatenate(rows, 2)
    y, *last = fused([whole, *(state[None] for state in states)])
    # A mask that is true, and one that is not: then the states stay as they are.
    masks = [] if cell.mask is None else [np.ones((batch, 1), bool if cell.mask.dtype == BOOL else np.float32)]
    found, largest = states, 0.0
    for t in range(time):
        inputs = [row[t] for row in rows]
        kept = step([*inputs, *found, *map(np.zeros_like, masks)]) if masks else found
        if any(not np.array_equal(one, other) for one, other in zip(kept, found, strict=True)):
            return False
        largest = max(largest, _largest_sum(cell, whole[t], found[0]))
        found = step([*inputs, *found, *masks])
        if not _close(y[t, 0], found[0], time * largest):
            return False
    return all(_close(one[0], other, time * largest) for one, other in zip(last, found, strict=True))


def _largest_sum(cell: Cell, x: np.ndarray, h: np.ndarray) -> float:
    """The largest sum of the absolute values of what a gate adds."""
    biases = np.abs(cell.b).reshape(2, -1).sum(0)
    total = np.abs(x) @ np.abs(cell.w).T + (1 + np.abs(h)) @ np.abs(cell.u).T + biases
    return float(total.max(initial=0))


def _close(one: np.ndarray, other: np.ndarray, size: float) -> bool:
    """Whether numbers are equal but for the rounding of sums of such a size."""
    eps = float(np.finfo(np.float32).eps)
    return bool(np.isfinite(one).all()) and np.allclose(one, other, rtol=16 * eps, atol=4 * eps * (4 + size))


def _input(name: str, dtype: ir.DataType | None) -> ir.Value:
    assert dtype is not None
    return ir.Value(name=name, type=ir.TensorType(dtype))


def _fused(cell: Cell, opset: int) -> ir.Model:
    x, *states = [_input(f"given_{place}", FLOAT) for place in range(1 + len(cell.places))]
    with recording(opset) as made:
        outputs = cell_node(cell, x, None, states)
    return _model([x, *states], outputs, made.nodes, [], opset)


def _step(body: ir.Graph, cell: Cell, opset: int) -> ir.Model | None:
    """The body from its inputs to its states; None if it reads what is not known."""
    given = [*cell.rows, *(body.inputs[2 + place] for place in cell.places)]
    given += [] if cell.mask is None else [cell.mask]
    known = {value: _input(f"given_{place}", value.dtype) for place, value in enumerate(given)}
    inputs = list(known.values())
    ends = [body.outputs[1 + place] for place in cell.places]
    nodes = needed_for(body, ends, known)
    inside = {out for node in nodes for out in node.outputs}
    constants: list[ir.Value] = []
    for value in {value for node in nodes for value in node.inputs if value is not None}:
        if value in known or value in inside:
            continue
        tensor = ir.convenience.get_const_tensor(value)
        if tensor is None:
            return None
        known[value] = ir.Value(
            name=f"constant_{len(constants)}", type=value.type, shape=value.shape, const_value=tensor
        )
        constants.append(known[value])
    made = list(copies(nodes, known))
    for node in made:
        for out in node.outputs:
            out.shape = None
    return _model(inputs, [known[end] for end in ends], made, constants, opset)


def _model(
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    nodes: Sequence[ir.Node],
    constants: Sequence[ir.Value],
    opset: int,
) -> ir.Model:
    graph = ir.Graph(inputs, outputs, nodes=nodes, initializers=constants, opset_imports={"": opset}, name="proof")
    return ir.Model(graph, ir_version=_IR_VERSION)
