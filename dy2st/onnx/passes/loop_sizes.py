"""The sizes of a loop: those of its state, and how often it goes round.

A number of trips is a size of a tensor and a number added to it. ``for t in range(1, x.shape[0])`` makes as many trips
as ``x`` has rows, less one: ``("time", -1)`` for a size that is called ``time``, and ``(None, 6)`` for one of 7.
Numbers and sizes that are zero where this is negative have that length, too: it is what they are if there is a trip.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import onnx_ir as ir

from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx, same_rank, same_size

# Sizes that torch writes as zero at least, and as a sum of a size and a number.
_AT_LEAST_ZERO = re.compile(r"Max\(0, ([^()]*)\)")
_SUM = re.compile(r"(\w+) ([+-]) (\d+)")


def name_state_sizes(model: ir.Model) -> None:
    """Call the sizes of a loop's state in its body what they are called before it; in place.

    torch's exporter gives them names of their own. One that may change from trip to trip keeps its name, or has none.
    """
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        if node.op_type != "Loop" or not is_onnx(node):
            continue
        body = node.attributes["body"].as_graph()
        for value, start, end in zip(body.inputs[2:], node.inputs[2:], body.outputs[1:], strict=False):
            if (
                value.shape is not None
                and start is not None
                and start.shape is not None
                and same_rank(start, end, value)
            ):
                kept = kept_sizes(start, end)
                sizes = zip(value.shape, start.shape, kept, strict=True)
                value.shape = ir.Shape([outside if same else size for size, outside, same in sizes])


def makes_all_trips(loop: ir.Node) -> bool:
    """Whether a ``Loop`` goes on in each trip, from the first one on, and nothing in it asks whether it does."""
    body = loop.attributes["body"].as_graph()
    going = body.outputs[0]
    node = going.producer()
    same = node is not None and node.op_type == "Identity" and node.inputs[0] is body.inputs[1]
    start = loop.inputs[1] if len(loop.inputs) > 1 else None
    others = [use.node for use in body.inputs[1].uses() if use.node is not node]
    return (same or is_true(going)) and (start is None or is_true(start)) and not others


def is_true(value: ir.Value) -> bool:
    """Whether a value is a constant that is true."""
    found = ir.convenience.get_const_tensor(value)
    return found is not None and found.size == 1 and bool(found.numpy().reshape(-1)[0])


def kept_sizes(start: ir.Value, end: ir.Value) -> list[bool]:
    """Which sizes of a state are known to be the same before a loop and after each trip."""
    if start.shape is None or not same_rank(start, end):
        return [False]
    assert end.shape is not None
    return [same_size(one, other) for one, other in zip(start.shape, end.shape, strict=True)]


@dataclass(frozen=True)
class Length:
    """A named size, or none, and what is added to it."""

    name: str | None
    more: int

    def plus(self, number: int) -> Length:
        """The length of some more."""
        return Length(self.name, self.more + number)

    @property
    def is_some(self) -> bool:
        """Whether it is known to be one at least."""
        return self.name is None and self.more > 0


def length_of_dimension(value: ir.Value, axis: int) -> Length | None:
    """The size of a dimension, if it is not zero; None if it has no name."""
    return _length_of_size(value, axis, bounded=True)


def read_sizes(graph: ir.Graph) -> frozenset[str]:
    """The names of sizes of which a graph takes an element whatever it is given: it fails where they are zero."""
    found = set()
    for node in graph:
        if node.op_type != "Gather" or not is_onnx(node) or node.inputs[0] is None:
            continue
        axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
        size, places = _length_of_size(node.inputs[0], axis, bounded=False), constant_integers(node.inputs[1])
        least = max((place + 1 if place >= 0 else -place for place in places or ()), default=0)
        if size is not None and size.name is not None and least > size.more:
            found.add(size.name)
    return frozenset(found)


def length_of_number(value: ir.Value | None) -> Length | None:
    """What a 0-d integer is, if it is positive and computed from the size of a dimension."""
    node = value.producer() if value is not None else None
    if node is None or not is_onnx(node):
        return exact_length(value)
    if node.op_type in {"Squeeze", "Reshape", "Identity"}:
        return _length_of_shape(node.inputs[0], bounded=True) or length_of_number(node.inputs[0])
    if node.op_type == "Max" and len(node.inputs) == 2:
        numbers = [constant_number(each) for each in node.inputs]
        return exact_length(node.inputs[1 - numbers.index(0)]) if 0 in numbers else None
    return exact_length(value)


def exact_length(value: ir.Value | None) -> Length | None:
    """What a 0-d integer is, whether it is positive or not."""
    number = constant_number(value)
    if number is not None:
        return Length(None, number)
    node = value.producer() if value is not None else None
    if node is None or not is_onnx(node):
        return None
    if node.op_type in {"Squeeze", "Reshape", "Identity"}:
        return _length_of_shape(node.inputs[0], bounded=False) or exact_length(node.inputs[0])
    if node.op_type in {"Add", "Sub"}:
        left, right = map(exact_length, node.inputs)
        if left is None or right is None:
            return None
        if right.name is None:
            return left.plus(right.more if node.op_type == "Add" else -right.more)
        return right.plus(left.more) if node.op_type == "Add" and left.name is None else None
    return None


def constant_number(value: ir.Value | None) -> int | None:
    """The integer that a constant of one element is."""
    found = constant_integers(value)
    return found[0] if found is not None and len(found) == 1 else None


def _length_of_size(value: ir.Value, axis: int, *, bounded: bool) -> Length | None:
    """The size of a dimension; ``bounded``: that of which one is the larger, it or zero, may stand for it."""
    if value.shape is None or not -len(value.shape) <= axis < len(value.shape):
        return None
    size = value.shape[axis]
    if isinstance(size, int):
        return Length(None, size)
    if size.value is None:
        return None
    larger = _AT_LEAST_ZERO.fullmatch(size.value) if bounded else None
    text = larger[1] if larger is not None else size.value
    found = _SUM.fullmatch(text)
    if found is None:
        return Length(text, 0)
    return Length(found[1], int(found[3]) if found[2] == "+" else -int(found[3]))


def _length_of_shape(value: ir.Value | None, *, bounded: bool) -> Length | None:
    """What a shape is that has one size."""
    node = value.producer() if value is not None else None
    if node is None or node.op_type != "Shape" or node.inputs[0] is None or node.inputs[0].shape is None:
        return None
    dims = len(node.inputs[0].shape)
    start, end = (
        node.attributes[name].as_int() if name in node.attributes else other
        for name, other in (("start", 0), ("end", dims))
    )
    start, end = (each % dims if each < 0 else min(each, dims) for each in (start, end))
    return _length_of_size(node.inputs[0], start, bounded=bounded) if end - start == 1 else None
