"""What is known of the places that rows are taken from: that none is negative, and below which number all are.

``ArgMax`` along a dimension of 16 gives places below 16, wherever they go from there::

    place = ArgMax<axis = 1, keepdims = 1>(x)        # x: [batch, 16]
    kept = Where(here, place, [[3]])                 # below 16
    token = Mod(kept, 5)                             # below 5
"""

from __future__ import annotations

import onnx_ir as ir

from dy2st.onnx.passes.graph_facts import PICKING, constant_integers, is_onnx


def places_below(value: ir.Value | None) -> int | None:
    """A number that all elements are below, of which none is negative; None if there is none that is known."""
    node = value.producer() if value is not None else None
    constants = constant_integers(value)
    if constants is not None:
        return max(constants, default=0) + 1 if min(constants, default=0) >= 0 else None
    if node is None or not is_onnx(node):
        return None
    first = node.inputs[0] if node.inputs else None
    if node.op_type in {"ArgMax", "ArgMin"}:
        return _size(first, node)
    if node.op_type == "Where":
        found = [places_below(each) for each in node.inputs[1:]]
        return max(each for each in found if each is not None) if None not in found else None
    if node.op_type in PICKING:
        return places_below(first)
    if node.op_type == "Add":
        most = sum(below - 1 if (below := places_below(each)) else 2**31 for each in node.inputs)
        return most + 1 if most < 2**31 else None  # no integer overflows
    if node.op_type == "Cast":
        is_wide = value is not None and value.dtype in {ir.DataType.INT32, ir.DataType.INT64}
        return places_below(first) if is_wide else None
    if node.op_type == "Mod" and not ("fmod" in node.attributes and node.attributes["fmod"].as_int()):
        divisors = constant_integers(node.inputs[1])
        return max(divisors) if divisors and min(divisors) > 0 else None
    return None


def are_places_in(places: ir.Value | None, data: ir.Value | None, axis: int) -> bool:
    """Whether places are known to be some along a dimension of a fixed size."""
    below = places_below(places)
    if below is None or data is None or data.shape is None or not -len(data.shape) <= axis < len(data.shape):
        return False
    size = data.shape[axis]
    return isinstance(size, int) and below <= size


def _size(data: ir.Value | None, node: ir.Node) -> int | None:
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    if data is None or data.shape is None or not -len(data.shape) <= axis < len(data.shape):
        return None
    size = data.shape[axis]
    return size if isinstance(size, int) else None
