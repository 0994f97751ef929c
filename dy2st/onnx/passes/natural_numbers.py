"""What is known of the integers in a value: that none of them is negative.

The state of a loop has none if it has none before the first trip, and after a trip that begins with none::

    length = Loop(trips, , 0) <body = step (place) {
        next = Add(place, 1)
        ...

That is looked for as a greatest fixed point: what a value is made of is, where that leads back to it, taken for granted
until something else is seen.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from dy2st.onnx.passes.graph_facts import PICKING, constant_integers, is_onnx
from dy2st.onnx.passes.integer_facts import IntegerFacts, chosen

_UNSIGNED = frozenset((ir.DataType.BOOL, ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64))
# How many values on the way to one are looked at.
_DEEPEST = 100

# They count or number elements, or leave out what is negative; TopK and Unique give indices behind their first output.
_COUNTING = frozenset(("ArgMax", "ArgMin", "NonZero", "Relu", "Shape", "Size"))
_NUMBERING = frozenset(("TopK", "Unique"))
# None is negative if none of what they take their elements from is; of a Max, one such operand will do.
_TAKING = PICKING | frozenset("Concat If Min ReduceMax ReduceMin ScatterElements ScatterND Trilu Unique Where".split())
# So it is of these, if no result is too large for its dtype.
_GROWING = frozenset("Abs Add Cast CumSum Mul ReduceSum".split())


class NaturalNumbers:
    """Which values of a model, as it is now, have no negative integer."""

    def __init__(self, model: ir.Model) -> None:
        self.facts = IntegerFacts(model)
        self._known: dict[ir.Value, bool] = {}
        # What is found if those taken for granted hold, and those that don't.
        self._found: dict[ir.Value, bool] = {}
        self._granted: set[ir.Value] = set()
        self._refuted: set[ir.Value] = set()

    def has(self, value: ir.Value | None) -> bool:
        """Whether no integer of a value is known to be negative."""
        while True:
            self._found, self._granted, self._refuted = {}, set(), set()
            found = self._ask(value, _DEEPEST)
            self._known |= dict.fromkeys(self._refuted, False)
            if not self._refuted:
                self._known |= self._found
                return found

    def _ask(self, value: ir.Value | None, depth: int) -> bool:
        if value is None or not depth:
            return False
        if value in self.facts.counters or value.dtype in _UNSIGNED:
            return True
        if value in self._known:
            return self._known[value]
        if value in self._found:
            self._granted.add(value)
            return self._found[value]
        self._found[value] = True
        self._found[value] = self._look(value, depth - 1)
        if not self._found[value] and value in self._granted:
            self._refuted.add(value)
        return self._found[value]

    def _look(self, value: ir.Value, depth: int) -> bool:
        constants = constant_integers(value)
        if constants is not None:
            return min(constants, default=0) >= 0
        if value in self.facts.states:
            return all(self._ask(each, depth) for each in self.facts.states[value])
        if value in self.facts.ends:
            return self._ask(self.facts.ends[value][2], depth)
        if value in self.facts.stacked:
            return self._ask(self.facts.stacked[value], depth)
        node = value.producer()
        if node is None or not is_onnx(node) or value.dtype is None or not value.dtype.is_integer():
            return False
        return self._is_made(node, value, depth)

    def _is_made(self, node: ir.Node, value: ir.Value, depth: int) -> bool:
        """Whether a node makes no negative number."""
        kind = node.op_type
        if kind in _COUNTING or (kind in _NUMBERING and value is not node.outputs[0]):
            return True
        if kind in _TAKING:
            if "reduction" in node.attributes and node.attributes["reduction"].as_string() not in {"none", "max"}:
                return False
            return all(self._ask(each, depth) for each in _taken(node, value))
        if kind in _GROWING:
            if not all(self._ask(each, depth) for each in _operands(node)):
                return False
            return _is_wider(node, value) or self._fits(value)
        rule = _RULES.get(kind)
        return rule is not None and rule(node, lambda each: self._ask(each, depth))

    def _fits(self, value: ir.Value) -> bool:
        """Whether no number is as large as those that come out as negative ones."""
        largest = self.facts.largest(value)
        return largest is not None and value.dtype is not None and largest < 2 ** (value.dtype.bitwidth - 1)


def _taken(node: ir.Node, value: ir.Value) -> list[ir.Value | None]:
    if node.op_type in {"ScatterElements", "ScatterND"}:
        return [node.inputs[0], node.inputs[2]]
    if node.op_type == "Where":
        return [each for place, each in enumerate(node.inputs) if place and not _is_tested(node.inputs[0], each, place)]
    return chosen(node, value)


def _is_tested(test: ir.Value | None, value: ir.Value | None, place: int) -> bool:
    """Whether a Where takes of a value only what is not negative: ``Where(x < 0, 0, x)``, ``Where(x >= 0, x, 0)``."""
    made = test.producer() if test is not None else None
    if made is None or not is_onnx(made) or made.inputs[0] is not value:
        return False
    limits = constant_integers(made.inputs[1]) if len(made.inputs) > 1 else None
    least = {("Less", 2): 0, ("LessOrEqual", 2): -1, ("GreaterOrEqual", 1): 0, ("Greater", 1): -1}
    bound = least.get((made.op_type, place))
    return bound is not None and bool(limits) and min(limits or [bound - 1]) >= bound


def _operands(node: ir.Node) -> list[ir.Value | None]:
    """The numbers that a result grows with: an axis is none."""
    return list(node.inputs if node.op_type in {"Add", "Mul"} else node.inputs[:1])


def _is_wider(node: ir.Node, value: ir.Value) -> bool:
    """Whether it is a cast of integers to a dtype that has them all."""
    given = node.inputs[0]
    if node.op_type != "Cast" or given is None or given.dtype is None or value.dtype is None:
        return False
    if given.dtype == ir.DataType.BOOL:
        return True
    is_unsigned = given.dtype in _UNSIGNED
    return given.dtype.is_integer() and given.dtype.bitwidth + is_unsigned <= value.dtype.bitwidth


_Ask = Callable[["ir.Value | None"], bool]


def _some(node: ir.Node, ask: _Ask) -> bool:
    return any(ask(each) for each in node.inputs)


def _clip(node: ir.Node, ask: _Ask) -> bool:
    x, low, high = (*node.inputs, None, None)[:3]
    return (ask(low) or ask(x)) and (high is None or ask(high))


def _modulo(node: ir.Node, ask: _Ask) -> bool:
    """The remainder has the sign of the divisor, or with ``fmod`` of what is divided."""
    as_in_c = "fmod" in node.attributes and node.attributes["fmod"].as_int()
    return ask(node.inputs[0] if as_in_c else node.inputs[1])


def _both(node: ir.Node, ask: _Ask) -> bool:
    return all(ask(each) for each in node.inputs)


def _without_rest(node: ir.Node, ask: _Ask) -> bool:
    """A number without its remainder, as in a division that rounds down."""
    whole, rest = node.inputs
    made = rest.producer() if rest is not None else None
    is_rest = made is not None and made.op_type == "Mod" and is_onnx(made) and made.inputs[0] is whole
    return made is not None and is_rest and ask(whole) and ask(made.inputs[1])


def _range(node: ir.Node, ask: _Ask) -> bool:
    """It ends before its limit."""
    start, limit, step = node.inputs
    down = constant_integers(limit)
    return ask(start) and (ask(step) or ask(limit) or (down is not None and min(down, default=0) >= -1))


def _filled(node: ir.Node, ask: _Ask) -> bool:
    return "value" in node.attributes and bool((node.attributes["value"].as_tensor().numpy() >= 0).all())


_RULES: dict[str, Callable[[ir.Node, _Ask], bool]] = {
    "BitwiseAnd": _some,
    "Clip": _clip,
    "ConstantOfShape": _filled,
    "Div": _both,
    "Max": _some,
    "Mod": _modulo,
    "Range": _range,
    "Sub": _without_rest,
}
