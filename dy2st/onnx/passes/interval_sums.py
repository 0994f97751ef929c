"""How intervals go through sums: products of matrices, reductions along dimensions, layer normalization."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from dy2st.onnx.passes.graph_facts import constant_integers
from dy2st.onnx.passes.interval_rules import ELEMENTWISE
from dy2st.onnx.passes.intervals import MOST_ELEMENTS, Interval, added, multiplied, squared, summed, union

# Of so many positive numbers a sum in float32 is half of what it should be at least.
_EXACT = 2**20


class Sums:
    """The rules for them. ``most`` has names of sizes, and what they do not exceed."""

    def __init__(self, most: dict[str, int]) -> None:
        self.most = most
        self.rules = {
            "Gemm": self.product,
            "LayerNormalization": self.normalized,
            "MatMul": self.product,
            "ReduceMax": self.extreme,
            "ReduceMean": self.mean,
            "ReduceMin": self.extreme,
            **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceSum", "ReduceSumSquare"), self.reduced),
        }

    def product(self, node: ir.Node, given: list[Interval]) -> Interval | None:
        """``MatMul`` and ``Gemm``: sums of products, along the inner dimension."""
        turned, left, right = bool(_number(node, "transA", 0)), node.inputs[0], node.inputs[1]
        if _number(node, "alpha", 1) != 1 or _number(node, "beta", 1) != 1 or left is None or right is None:
            return None
        inner = -2 if turned else -1
        other = -1 if _number(node, "transB", 0) or right.shape is None or len(right.shape) < 2 else -2
        count = min(self.most_along(left, [inner]), self.most_along(right, [other]))
        found = self._weighted(node, given, count) or summed(multiplied(given[0], given[1]), count)
        return added(found, given[2]) if len(given) > 2 else found

    def _weighted(self, node: ir.Node, given: list[Interval], count: int) -> Interval | None:
        """A product with a softmax: its rows sum to about one.

        Each part is divided by a sum that is at least that of any ``2**20`` parts, and so at least half of theirs as it
        should be.
        """
        if not given[1].is_finite or given[0].nan or not _is_softmax(node.inputs[0]):
            return None
        once = summed(given[1], math.ceil(2 * max(1, count / _EXACT)))
        # The sum itself is rounded as often as it has parts.
        kind = type(once.low)
        rounded = kind(1 + count * float(np.finfo(kind).eps))
        return Interval(once.low * rounded, once.high * rounded, once.nan)

    def reduced(self, node: ir.Node, given: list[Interval]) -> Interval | None:
        """Sums along dimensions, of the numbers, their sizes or squares."""
        (x, *_), value, axes = given, node.inputs[0], reduced_axes(node)
        if value is None or axes is None:
            return None
        count = self.most_along(value, axes)
        if node.op_type == "ReduceL1":
            return summed(Interval(type(x.low)(0), x.size, x.nan), count)
        if node.op_type == "ReduceSum":
            return summed(x, count)
        found = summed(squared(x), count)
        return ELEMENTWISE["Sqrt"](node, [found]) if node.op_type == "ReduceL2" else found

    def mean(self, node: ir.Node, given: list[Interval]) -> Interval | None:
        """``ReduceMean``. Of nothing there is none."""
        x, value, axes = given[0], node.inputs[0], reduced_axes(node)
        if value is None or axes is None or not _has_some(value, axes):
            return None
        count = self.most_along(value, axes)
        return Interval(-x.size * 2, x.size * 2, nan=False) if summed(x, count).is_finite and count < _EXACT else None

    def extreme(self, node: ir.Node, given: list[Interval]) -> Interval | None:
        """``ReduceMax`` and ``ReduceMin``, which pass over NaN in onnxruntime; of nothing it is an infinity."""
        x, value, axes = given[0], node.inputs[0], reduced_axes(node)
        if value is None or axes is None:
            return None
        return x if _has_some(value, axes) and not x.nan else union(x, Interval(-math.inf, math.inf, x.nan))

    def normalized(self, node: ir.Node, given: list[Interval]) -> Interval | None:
        """``LayerNormalization``: of ``n`` numbers none is farther from the mean than ``sqrt(n)`` standard deviations.

        As far as a mean is off, it is divided by the root of epsilon at least.
        """
        x, value, epsilon = given[0], node.inputs[0], _number(node, "epsilon", 1e-5)
        if value is None or value.shape is None or len(given) != len(node.inputs):
            return None
        axes = range(int(_number(node, "axis", -1)) % len(value.shape), len(value.shape))
        count = self.most_along(value, axes)
        kind = type(x.low)
        if not summed(squared(x), count).is_finite or epsilon <= 0 or not _has_some(value, axes):
            return None
        off = x.size * kind(2 * count * float(np.finfo(np.float32).eps)) / kind(epsilon**0.5)
        far = kind(2 * count**0.5) + off
        found = multiplied(Interval(-far, far, nan=False), given[1])
        return added(found, given[2]) if len(given) > 2 else found

    def most_along(self, value: ir.Value, axes: Sequence[int]) -> int:
        """How many elements there are at most along axes."""
        if value.shape is None:
            return MOST_ELEMENTS
        sizes = [
            size if isinstance(size, int) else self.most.get(str(size.value)) if size.value is not None else None
            for size in value.shape
        ]
        along = {axis % len(sizes) for axis in axes} if sizes else set()
        known = [sizes[axis] for axis in along]
        if None not in known:
            return math.prod(size for size in known if size is not None)
        others = [size for axis, size in enumerate(value.shape) if axis not in along and isinstance(size, int)]
        return MOST_ELEMENTS // max(math.prod(others), 1)


def _is_softmax(value: ir.Value | None) -> bool:
    """Whether a value is a ``Softmax`` along its last dimension, perhaps with other dimensions of one."""
    made = value.producer() if value is not None else None
    while made is not None and made.op_type == "Unsqueeze":
        axes, shape = constant_integers(made.inputs[1]), made.outputs[0].shape
        if axes is None or shape is None or any(axis % len(shape) == len(shape) - 1 for axis in axes):
            return False
        made = made.inputs[0].producer() if made.inputs[0] is not None else None
    if made is None or made.op_type != "Softmax" or made.outputs[0].shape is None:
        return False
    dims = len(made.outputs[0].shape)
    return int(_number(made, "axis", -1)) % dims == dims - 1


def _number(node: ir.Node, name: str, default: float) -> float:
    return float(node.attributes[name].value) if name in node.attributes else default


def reduced_axes(node: ir.Node) -> list[int] | None:
    """The axes that are reduced; None if they are not known."""
    value = node.inputs[0]
    if value is None or value.shape is None:
        return None
    given = node.inputs[1] if len(node.inputs) > 1 else None
    if given is not None:
        return constant_integers(given) or None
    return None if _number(node, "noop_with_empty_axes", 0) else list(range(len(value.shape)))


def _has_some(value: ir.Value, axes: Sequence[int]) -> bool:
    """Whether there are elements along axes."""
    return value.shape is not None and all(isinstance(s, int) and s > 0 for s in (value.shape[axis] for axis in axes))


def sizes_of_growing_states(loops: Sequence[ir.Node]) -> dict[str, int]:
    """The names of sizes of what grows in each of so many trips, and what they do not exceed.

    ::

        keys_end = Loop(128, go, none) <body = step (i, on, keys) {   # none: [batch, 0, 16]
            grown = Concat<axis = 1>(keys, key)                       # key: [batch, 1, 16], grown: at most 128
    """
    found: dict[str, int] = {}
    for loop in loops:
        trips = constant_integers(loop.inputs[0]) if loop.op_type == "Loop" else None
        body = loop.attributes["body"].as_graph()
        for first, state, end in zip(loop.inputs[2:], body.inputs[2:], body.outputs[1:], strict=False):
            grown = end.producer()
            if trips is None or grown is None or grown.op_type != "Concat" or state not in grown.inputs or not first:
                continue
            rows = [each for each in grown.inputs if each is not state]
            axis = grown.attributes["axis"].as_int()
            sizes = [each.shape[axis] if each is not None and each.shape is not None else None for each in rows]
            begin = first.shape[axis] if first.shape is not None else None
            name = end.shape[axis] if end.shape is not None else None
            if len(rows) + 1 != len(grown.inputs) or not isinstance(begin, int) or not isinstance(name, ir.SymbolicDim):
                continue
            if name.value is not None and all(isinstance(size, int) for size in sizes):
                most = begin + max(trips[0], 0) * sum(size for size in sizes if isinstance(size, int))
                found[name.value] = min(max(most, found.get(name.value, 0)), MOST_ELEMENTS)
    return found
