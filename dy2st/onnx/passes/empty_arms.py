"""A branch that gives a tensor if it has rows, and else nothing, gives that tensor.

Before, for ``torch.stack(kept) if len(kept) > 0 else torch.zeros(0)``::

    size = Shape<start = 0, end = 1>(kept)
    some = Greater(Squeeze(size), 0)
    y = If(some) <
        then_branch = rows () => (y_1) { y_1 = Identity(kept) },
        else_branch = none () => (y_2) { y_2 = Constant<value = []>() }
    >

After, if all other sizes of both are fixed and the same::

    y = Identity(kept)

A tensor of which one size is zero has no element, so that two of these differ in their sizes alone.
Source: conditional constant propagation, Wegman, Zadeck, "Constant Propagation with Conditional Branches", 1991.
"""

from __future__ import annotations

import onnx_ir as ir

from dy2st.onnx.building import BOOL, op, put_in_place, recording
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx
from dy2st.onnx.passes.plain_conditions import forget_arms
from dy2st.onnx.passes.repeated_nodes import is_pure

# For a size on the left: the number on the right, and the outcome, that say it is zero.
_SAYS_NONE = {
    "Greater": (0, False),
    "GreaterOrEqual": (1, False),
    "Less": (1, True),
    "LessOrEqual": (0, True),
    "Equal": (0, True),
}
_FLIPPED = {"Less": "Greater", "LessOrEqual": "GreaterOrEqual", "Greater": "Less", "GreaterOrEqual": "LessOrEqual"}


def drop_empty_arms(model: ir.Model, opset: int) -> None:
    """Take such branches out; in place, inner ones first."""
    for graph in [model.graph, *model.graph.subgraphs()][::-1]:
        for node in list(graph):
            if node.op_type == "If" and is_onnx(node):
                _drop(node, opset)


def _drop(node: ir.Node, opset: int) -> None:
    arms = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
    if not all(is_pure(inner) for arm in arms for inner in arm):
        return
    for taken, (given, other) in ((False, arms), (True, arms[::-1])):
        values = [_from_outside(each, given) for each in given.outputs]
        kept = [
            value
            for value, none in zip(values, other.outputs, strict=True)
            if value is not None and _is_nothing(none, value, node.inputs[0], outcome=taken)
        ]
        if len(kept) == len(node.outputs):
            with recording(opset) as made:
                copies = [op("Identity", value) for value in kept]
            for copy, old in zip(copies, node.outputs, strict=True):
                copy.type, copy.shape = old.type, old.shape
            forget_arms(node, arms)
            put_in_place(node, made.nodes, copies)
            return


def _from_outside(value: ir.Value, arm: ir.Graph) -> ir.Value | None:
    """What a result of an arm is a copy of, if that is there outside of the arm."""
    found: ir.Value | None = value
    while found is not None:
        node = found.producer()
        if node is None or node.graph is not arm:
            return None if node is None and found.name in arm.initializers else found
        found = node.inputs[0] if node.op_type == "Identity" and is_onnx(node) else None
    return None


def _is_nothing(none: ir.Value, value: ir.Value, test: ir.Value | None, *, outcome: bool) -> bool:
    """Whether a value is a constant without elements, and another one is the same where a test comes out so."""
    constant = ir.convenience.get_const_tensor(none)
    if constant is None or constant.size or value.shape is None or value.dtype != none.dtype:
        return False
    sizes = list(constant.numpy().shape)
    if len(sizes) != len(value.shape):
        return False
    open_axes = [axis for axis, size in enumerate(value.shape) if size != sizes[axis]]
    return len(open_axes) == 1 and not sizes[open_axes[0]] and _says_zero(test, outcome, value, open_axes[0])


def _says_zero(test: ir.Value | None, outcome: bool, value: ir.Value, axis: int) -> bool:
    """Whether a test that comes out so says that a size of a value is zero."""
    node = test.producer() if test is not None else None
    if node is None or not is_onnx(node):
        return False
    if node.op_type in {"Not", "Identity"}:
        return _says_zero(node.inputs[0], outcome != (node.op_type == "Not"), value, axis)
    if node.op_type == "Cast":
        return not outcome and node.outputs[0].dtype == BOOL and _is_size(node.inputs[0], value, axis)
    if node.op_type not in _SAYS_NONE:
        return False
    flipped = _FLIPPED.get(node.op_type, node.op_type)
    for kind, (left, right) in ((node.op_type, node.inputs), (flipped, node.inputs[::-1])):
        number = constant_integers(right)
        if number is not None and len(number) == 1 and (number[0], outcome) == _SAYS_NONE[kind]:
            return _is_size(left, value, axis)
    return False


def _is_size(number: ir.Value | None, value: ir.Value, axis: int) -> bool:
    """Whether a number is a size of a value."""
    node = number.producer() if number is not None else None
    if node is None or not is_onnx(node) or not node.inputs:
        return False
    if node.op_type in {"Squeeze", "Reshape", "Identity"}:
        return _is_size(node.inputs[0], value, axis)
    dims = len(value.shape) if value.shape is not None else 0
    if node.op_type == "Gather" and _is_size_list(node.inputs[0], value):
        place = constant_integers(node.inputs[1])
        return place is not None and len(place) == 1 and place[0] % dims == axis
    start = node.attributes["start"].as_int() if "start" in node.attributes else 0
    end = node.attributes["end"].as_int() if "end" in node.attributes else dims
    return node.op_type == "Shape" and node.inputs[0] is value and (start, end) == (axis, axis + 1)


def _is_size_list(sizes: ir.Value | None, value: ir.Value) -> bool:
    """Whether a list has all sizes of a value."""
    node = sizes.producer() if sizes is not None else None
    if node is None or node.op_type != "Shape" or not is_onnx(node) or node.inputs[0] is not value:
        return False
    dims = len(value.shape) if value.shape is not None else 0
    start = node.attributes["start"].as_int() if "start" in node.attributes else 0
    end = node.attributes["end"].as_int() if "end" in node.attributes else dims
    return (start, end) == (0, dims)
