"""Indices that go on by one from trip to trip of a loop, or back: ``step + base`` or ``base - step``.

What a loop reads and writes at such indices is known before it runs: ``x[t + 1]`` in a loop that makes ``n - 1`` trips
over a tensor with ``n`` rows is a row of it in each trip.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import onnx_ir as ir

from dy2st.onnx.passes.graph_facts import is_onnx
from dy2st.onnx.passes.loop_sizes import Length, constant_number, exact_length, length_of_dimension

# By the number of the trip in the body of a loop: how many trips it makes at most, if it makes one.
Counters = Mapping[ir.Value, Length]

_ONE_ELEMENT = frozenset(("Expand", "Identity", "Reshape", "Squeeze", "Unsqueeze"))


@dataclass(frozen=True)
class LinearIndex:
    """``sign * step + base``; a sign of 0 is that of a number that no trip changes."""

    sign: int
    base: Length

    def ahead_of(self, other: LinearIndex) -> int | None:
        """In how many trips from now the other index is what this one is now; None if that is not known."""
        apart = _difference(self.base, other.base) if self.sign == other.sign and self.sign else None
        return None if apart is None else self.sign * apart

    def is_within(self, trips: Length, size: Length) -> bool:
        """Whether it is known to be a place in a dimension in each of so many trips."""
        last = trips.plus(self.base.more - 1) if self.base.name is None else None
        if self.sign == 1:
            behind = None if last is None else _difference(size, last)
            return self.base.more >= 0 and behind is not None and behind > 0
        least, behind = _difference(self.base, trips.plus(-1)), _difference(size, self.base)
        return self.sign == -1 and least is not None and least >= 0 and behind is not None and behind > 0


def linear_index(
    value: ir.Value | None, step: ir.Value, known: Mapping[ir.Value, LinearIndex] = MappingProxyType({})
) -> LinearIndex | None:
    """What an index of one element is, where ``step`` is the number of the trip; stretched it is the same.

    ``known`` are other values that go on with the trips.
    """
    if value is step:
        return LinearIndex(1, Length(None, 0))
    if value is not None and value in known:
        return known[value]
    length = exact_length(value)
    if length is not None:
        return LinearIndex(0, length)
    node = value.producer() if value is not None else None
    if node is None or not is_onnx(node):
        return None
    operands = list(node.inputs)
    if node.op_type in _ONE_ELEMENT:
        return linear_index(operands[0], step, known) if _has_one_element(operands[0]) else None
    if node.op_type == "Neg":
        return _sum(LinearIndex(0, Length(None, 0)), linear_index(operands[0], step, known), -1)
    if node.op_type == "Mul" and -1 in (numbers := [constant_number(each) for each in operands]):
        return _sum(LinearIndex(0, Length(None, 0)), linear_index(operands[1 - numbers.index(-1)], step, known), -1)
    if node.op_type in {"Add", "Sub"}:
        left, right = (linear_index(each, step, known) for each in operands)
        return _sum(left, right, 1 if node.op_type == "Add" else -1)
    return None


def is_row_of(data: ir.Value | None, axis: int, index: ir.Value | None, counters: Counters) -> bool:
    """Whether an index is known to be a place along an axis of a tensor, in each trip of the loops around."""
    size = length_of_dimension(data, axis) if data is not None else None
    if size is None:
        return False
    found = ((linear_index(index, step), trips) for step, trips in counters.items())
    return any(place is not None and place.sign and place.is_within(trips, size) for place, trips in found)


def _has_one_element(value: ir.Value | None) -> bool:
    return value is not None and value.shape is not None and all(size == 1 for size in value.shape)


def _difference(one: Length, other: Length) -> int | None:
    return one.more - other.more if one.name == other.name else None


def _sum(left: LinearIndex | None, right: LinearIndex | None, factor: int) -> LinearIndex | None:
    if left is None or right is None:
        return None
    sign, more = left.sign + factor * right.sign, left.base.more + factor * right.base.more
    if abs(sign) > 1:
        return None
    if right.base.name is None:
        return LinearIndex(sign, Length(left.base.name, more))
    if factor == 1 and left.base.name is None:
        return LinearIndex(sign, Length(right.base.name, more))
    return LinearIndex(sign, Length(None, more)) if factor == -1 and left.base.name == right.base.name else None
