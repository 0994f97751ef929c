"""What is known of the integers in a value: how far from zero they may be."""

from __future__ import annotations

import math
from collections.abc import Callable

import onnx_ir as ir

from dy2st.onnx.passes.graph_facts import PICKING, constant_integers, is_onnx

# No tensor has more elements, and no loop makes more trips: 64 GiB of indices.
ELEMENTS = 2**33
# How many values on the way to one are looked at.
_DEEPEST = 50

# Each element of their results is one of an operand.
_BOUNDED = PICKING | frozenset("Concat If Max Min ReduceMax ReduceMin Trilu Where".split())
# They count or number elements; the indices of TopK are its second output.
_COUNTING = frozenset(("ArgMax", "ArgMin", "NonZero", "Shape", "Size"))
_INTEGERS = frozenset((ir.DataType.INT32, ir.DataType.INT64))
_NARROW = {
    ir.DataType.BOOL: 1,
    ir.DataType.INT8: 2**7,
    ir.DataType.UINT8: 2**8,
    ir.DataType.INT16: 2**15,
    ir.DataType.UINT16: 2**16,
    ir.DataType.INT32: 2**31,
    ir.DataType.UINT32: 2**32,
}


_UNSIGNED = frozenset((ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64))
# Where their results would be less than zero, those of a dtype without signs are the largest that it has.
_BELOW_ZERO = frozenset(("Cast", "Neg", "Sub"))

# Which operands bound a result, and how their bounds make up its own.
_RULES: dict[str, tuple[range, Callable[[list[int]], int]]] = {
    "Cast": (range(1), max),
    "Add": (range(2), sum),
    "Sub": (range(2), sum),
    "Mul": (range(2), math.prod),
    "Neg": (range(1), max),
    "Abs": (range(1), max),
    "Div": (range(1), max),
    "Mod": (range(1, 2), max),
    "Clip": (range(1, 3), max),
    "Range": (range(2), max),
    "Sign": (range(1), lambda _: 1),
    "ReduceSum": (range(1), lambda largest: largest[0] * ELEMENTS),
    "CumSum": (range(1), lambda largest: largest[0] * ELEMENTS),
}


class IntegerFacts:
    """What is known of the integers in the values of a model, as it is now."""

    def __init__(self, model: ir.Model) -> None:
        nodes = ir.traversal.RecursiveGraphIterator(model.graph)
        self._loops = [node for node in nodes if node.op_type == "Loop" and is_onnx(node)]
        bodies = [(loop, loop.attributes["body"].as_graph()) for loop in self._loops]
        self.counters = {body.inputs[0] for _, body in bodies}
        # What a state of a loop is before it, and after each trip.
        self.states = {
            inside: (first, end)
            for loop, body in bodies
            for inside, first, end in zip(body.inputs[2:], loop.inputs[2:], body.outputs[1:], strict=False)
        }
        self.ends = {
            out: (loop.inputs[2 + place], body.outputs[1 + place], body.inputs[2 + place])
            for loop, body in bodies
            for place, out in enumerate(loop.outputs[: len(body.inputs) - 2])
        }
        self.stacked = {
            out: body.outputs[1 + place]
            for loop, body in bodies
            for place, out in enumerate(loop.outputs)
            if place >= len(body.inputs) - 2
        }
        # What is being looked at is not known: a state of a loop leads to itself.
        self._largest: dict[ir.Value, int | None] = {}
        self._grown: dict[tuple[ir.Value, ir.Value], int | None] = {}

    def largest(self, value: ir.Value | None, depth: int = _DEEPEST) -> int | None:
        """A number that no integer of a value is further from zero than; None if none is known."""
        if value is None or value.dtype is None or depth == 0:
            return None
        if value not in self._largest:
            self._largest[value] = None
            self._largest[value] = self._looked_at(value, depth)
        return self._largest[value]

    def _looked_at(self, value: ir.Value, depth: int) -> int | None:
        if value in self.counters:
            return ELEMENTS
        constants = constant_integers(value)
        if constants is not None:
            return max(map(abs, constants), default=0)
        if value in self.states:
            return self._state(*self.states[value], value, depth - 1)
        if value in self.ends:
            return self._state(*self.ends[value], depth - 1)
        if value in self.stacked:
            return self.largest(self.stacked[value], depth - 1)
        node = value.producer()
        found = None if node is None or not is_onnx(node) else self._made(node, value, depth - 1)
        return _NARROW.get(value.dtype) if found is None and value.dtype is not None else found

    def _made(self, node: ir.Node, value: ir.Value, depth: int) -> int | None:
        kind = node.op_type
        if kind in _COUNTING or (kind in {"TopK", "Unique"} and value is not node.outputs[0]):
            return ELEMENTS
        if kind in _BOUNDED:
            return _together(max, [self.largest(each, depth) for each in chosen(node, value)])
        given, how = _RULES.get(kind, (range(0), max))
        if len(node.inputs) < given.stop:
            return None  # a Clip with an open end
        values = [node.inputs[place] for place in given]
        if kind == "Cast" and not _is_whole(values[0]):
            return None
        if kind in _BELOW_ZERO and value.dtype in _UNSIGNED and not (kind == "Cast" and _has_no_sign(values[0])):
            return None
        return _together(how, [self.largest(each, depth) for each in values])

    def _state(self, first: ir.Value | None, end: ir.Value, inside: ir.Value, depth: int) -> int | None:
        """Of a state that each trip adds to, or chooses anew."""
        before, more = self.largest(first, depth), self._growth(end, inside, depth)
        return None if before is None or more is None else before + more * ELEMENTS

    def _growth(self, value: ir.Value | None, inside: ir.Value, depth: int) -> int | None:
        """How much further from zero a value may be than a state is at the beginning of a trip."""
        if value is inside:
            return 0
        if value is None or depth == 0:
            return None
        if (value, inside) not in self._grown:
            self._grown[value, inside] = None
            self._grown[value, inside] = self._grows(value, inside, depth)
        return self._grown[value, inside]

    def _grows(self, value: ir.Value, inside: ir.Value, depth: int) -> int | None:
        node = value.producer()
        if node is None or not is_onnx(node):
            return self.largest(value, depth - 1)
        if node.op_type in _BOUNDED:
            return _together(max, [self._growth(each, inside, depth - 1) for each in chosen(node, value)])
        if node.op_type in {"Add", "Sub"} and value.dtype not in _UNSIGNED:
            one, other = node.inputs
            growth = self._growth(one, inside, depth - 1)
            if growth is None:
                one, other, growth = other, one, self._growth(other, inside, depth - 1)
            step = self.largest(other, depth - 1)
            return None if growth is None or step is None else growth + step
        return self.largest(value, depth - 1)


def _is_whole(value: ir.Value | None) -> bool:
    """Whether a value has integers or flags."""
    return (
        value is not None and value.dtype is not None and (value.dtype.is_integer() or value.dtype == ir.DataType.BOOL)
    )


def _has_no_sign(value: ir.Value | None) -> bool:
    return value is not None and (value.dtype in _UNSIGNED or value.dtype == ir.DataType.BOOL)


def _together(how: Callable[[list[int]], int], found: list[int | None]) -> int | None:
    known = [each for each in found if each is not None]
    return how(known) if len(known) == len(found) and known else None


def chosen(node: ir.Node, value: ir.Value) -> list[ir.Value | None]:
    """The values of which a node gives one for each element."""
    if node.op_type == "If":
        place = list(node.outputs).index(value)
        arms = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
        return [arm.outputs[place] for arm in arms]
    if node.op_type == "Where":
        return list(node.inputs[1:])
    return list(node.inputs if node.op_type in {"Concat", "Max", "Min"} else node.inputs[:1])
