"""A number that is not negative is divided by a positive one without the way around the remainder.

torch rounds down, and ONNX towards zero. So a ``//`` is written with the remainder, which ``Mod`` gives rounded down.

Before::

    rest = Mod(place, 200)
    whole = Sub(place, rest)
    row = Div(whole, 200)

After, for places that ``TopK`` or ``ArgMax`` has found, sizes, and the number of a trip::

    row = Div(place, 200)
"""

from __future__ import annotations

from collections.abc import Container

import onnx_ir as ir

from dy2st.onnx.building import op, put_in_place, recording
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx

# They give numbers that the first operand has.
_PICKING = frozenset(
    """Compress Expand Gather GatherElements GatherND Identity Reshape Slice Split Squeeze Tile Transpose
    Unsqueeze""".split()
)
_BOUNDED = _PICKING | {"Concat", "If", "Max", "Min", "Where"}


def divide_downwards(model: ir.Model, opset: int) -> None:
    """Write such divisions so; in place, subgraphs included."""
    nodes = list(ir.traversal.RecursiveGraphIterator(model.graph))
    loops = [node for node in nodes if node.op_type == "Loop" and is_onnx(node)]
    counters = {node.attributes["body"].as_graph().inputs[0] for node in loops}
    for node in nodes:
        whole = _made_by(node.inputs[0], "Sub") if node.op_type == "Div" and is_onnx(node) else None
        rest = _made_by(whole.inputs[1], "Mod") if whole is not None else None
        if whole is None or rest is None or rest.inputs[0] is not whole.inputs[0]:
            continue
        divisor = constant_integers(node.inputs[1])
        if not divisor or min(divisor) <= 0 or constant_integers(rest.inputs[1]) != divisor:
            continue
        if "fmod" in rest.attributes and rest.attributes["fmod"].as_int():
            continue
        if never_negative(whole.inputs[0], counters):
            with recording(opset) as made:
                value = op("Div", whole.inputs[0], node.inputs[1])
            value.shape = node.outputs[0].shape
            put_in_place(node, made.nodes, [value])


def never_negative(value: ir.Value | None, counters: Container[ir.Value] = ()) -> bool:
    """Whether no integer of a value is negative; ``counters`` are the numbers of the trips of loops."""
    if value is None or value in counters:
        return value is not None
    constants = constant_integers(value)
    if constants is not None:
        return all(each >= 0 for each in constants)
    node = value.producer()
    if node is None or not is_onnx(node) or value.dtype not in {ir.DataType.INT32, ir.DataType.INT64}:
        return False
    kind = node.op_type
    if kind in {"ArgMax", "ArgMin", "NonZero", "Shape", "Size"} or (kind == "TopK" and value is node.outputs[1]):
        return True
    if kind in {"Mod", "Div"}:
        divisor = constant_integers(node.inputs[1])
        return bool(divisor) and min(divisor or [0]) > 0 and never_negative(node.inputs[0], counters)
    some = any if kind == "Max" else all
    return kind in _BOUNDED and some(never_negative(each, counters) for each in _chosen(node, value))


def _chosen(node: ir.Node, value: ir.Value) -> list[ir.Value | None]:
    """The values of which a node gives one for each element."""
    if node.op_type == "If":
        place = list(node.outputs).index(value)
        arms = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
        return [arm.outputs[place] for arm in arms]
    if node.op_type == "Where":
        return list(node.inputs[1:])
    return list(node.inputs if node.op_type in {"Concat", "Max", "Min"} else node.inputs[:1])


def _made_by(value: ir.Value | None, kind: str) -> ir.Node | None:
    node = value.producer() if value is not None else None
    return node if node is not None and node.op_type == kind and is_onnx(node) else None
