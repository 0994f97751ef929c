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

import onnx_ir as ir

from dy2st.onnx.building import op, put_in_place, recording
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx
from dy2st.onnx.passes.natural_numbers import NaturalNumbers


def divide_downwards(model: ir.Model, opset: int) -> None:
    """Write such divisions so; in place, subgraphs included."""
    numbers = NaturalNumbers(model)
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        whole = _made_by(node.inputs[0], "Sub") if node.op_type == "Div" and is_onnx(node) else None
        rest = _made_by(whole.inputs[1], "Mod") if whole is not None else None
        if whole is None or rest is None or rest.inputs[0] is not whole.inputs[0]:
            continue
        divisor = constant_integers(node.inputs[1])
        if not divisor or min(divisor) <= 0 or constant_integers(rest.inputs[1]) != divisor:
            continue
        if "fmod" in rest.attributes and rest.attributes["fmod"].as_int():
            continue
        if numbers.has(whole.inputs[0]):
            with recording(opset) as made:
                value = op("Div", whole.inputs[0], node.inputs[1])
            value.shape = node.outputs[0].shape
            put_in_place(node, made.nodes, [value])


def _made_by(value: ir.Value | None, kind: str) -> ir.Node | None:
    node = value.producer() if value is not None else None
    return node if node is not None and node.op_type == kind and is_onnx(node) else None
