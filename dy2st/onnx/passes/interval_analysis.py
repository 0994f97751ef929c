"""What intervals the values of a graph have: asked for one value, found by going back to what it is made of.

A model that turns tokens into tokens has no other numbers than its weights, which are known. So its logits are numbers,
and the first NaN among them needs no looking for::

    keys_end, token_end = Loop(, , none, start) <body = step (keys, token) {
        key = Gather(table, token)             # from -2.1 to 1.9: the least and the greatest number of the table
        grown = Concat<axis = 0>(keys, key)    # the same, if it is so of what the trip begins with
        ...

The state of a loop has the smallest interval of some that holds before the first trip, and holds after each before
which it does. It is looked for as in abstract interpretation, Cousot, Cousot, 1977: ends that move are set farther out.
"""

from __future__ import annotations

import itertools
import math
from collections import ChainMap
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from dy2st.onnx.building import BOOL, DOUBLE, FLOAT
from dy2st.onnx.passes.graph_facts import PICKING, is_onnx
from dy2st.onnx.passes.interval_rules import ELEMENTWISE
from dy2st.onnx.passes.interval_sums import Sums, sizes_of_growing_states
from dy2st.onnx.passes.intervals import ANY, Interval, union
from dy2st.onnx.passes.place_facts import places_below

_LOOPS = frozenset(("Loop", "Scan"))
_OTHERS = frozenset("Cast Concat ScatterElements ScatterND TopK Where".split())
_KINDS: dict[ir.DataType | None, type] = {FLOAT: np.float32, DOUBLE: np.float64}
# Where the ends of a state are set, one after the other.
_STEPS = (0.0, 1.0, 2.0**10, 2.0**30, 2.0**60, 2.0**100, math.inf)
# So often a body is gone through before its states may be anything.
_MOST_TRIPS = 24
# The weights of a large model are not all read for this.
_LARGE = 2**27


class Intervals:
    """The intervals of a graph's values, each found once. What a value is must not change meanwhile."""

    def __init__(self, graph: ir.Graph | None = None) -> None:
        self.known: ChainMap[ir.Value, Interval] = ChainMap({})
        nodes = list(graph.all_nodes()) if graph is not None else []
        loops = [node for node in nodes if node.op_type in _LOOPS and is_onnx(node)]
        self.loop_of = {value: node for node in loops for value in node.attributes["body"].as_graph().inputs}
        self.rules = {**ELEMENTWISE, **Sums(sizes_of_growing_states(loops)).rules}
        self.followed = PICKING | self.rules.keys() | _LOOPS | _OTHERS

    def of(self, value: ir.Value | None) -> Interval:
        """The interval of a value."""
        if value is None:
            return ANY
        # Graphs may be deeper than Python's stack.
        waiting = [value]
        while waiting:
            last = waiting[-1]
            missing = [] if last in self.known else [v for v in self._needed(last) if v not in self.known]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if last not in self.known:
                self._find(last)
        return self.known[value]

    def _needed(self, value: ir.Value) -> list[ir.Value]:
        """What has to be known before a value is."""
        node = value.producer() or self.loop_of.get(value)
        if node is None or not is_onnx(node) or ir.convenience.get_const_tensor(value) is not None:
            return []
        if node.op_type == "If":
            arms = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
            return [out for arm in arms for out in arm.outputs]
        return [each for each in node.inputs if each is not None] if node.op_type in self.followed else []

    def _constant(self, value: ir.Value) -> Interval | None:
        tensor = None if value.is_graph_input() else ir.convenience.get_const_tensor(value)
        if tensor is None or not (tensor.dtype in _KINDS or tensor.dtype.is_integer() or tensor.dtype == BOOL):
            return None
        if tensor.size > _LARGE:
            return ANY.of(_KINDS[tensor.dtype]) if tensor.dtype in _KINDS else None
        numbers = tensor.numpy()
        wrong = np.isnan(numbers) if tensor.dtype in _KINDS else np.zeros((), bool)
        kept = numbers[~wrong] if wrong.any() else numbers
        kind = _KINDS.get(tensor.dtype, int)
        if not kept.size:
            return Interval(kind(0), kind(0), bool(wrong.any()))
        return Interval(kind(kept.min()), kind(kept.max()), bool(wrong.any()))

    def _find(self, value: ir.Value) -> None:
        """Find a value of which all that it needs is known, and those that come with it."""
        constant, node = self._constant(value), value.producer()
        loop = node if node is not None and node.op_type in _LOOPS and is_onnx(node) else self.loop_of.get(value)
        if constant is not None:
            self.known[value] = constant
        elif loop is not None:
            self._enter(loop, loop.attributes["body"].as_graph())
        elif node is not None and is_onnx(node) and node.op_type == "If":
            arms = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
            for out, *ends in zip(node.outputs, *(arm.outputs for arm in arms), strict=True):
                self.known[out] = _typed(out, union(*(_typed(out, self.of(end)) for end in ends)))
        else:
            self.known[value] = _typed(value, self._result(node, value) if node is not None else None)

    def _result(self, node: ir.Node, value: ir.Value) -> Interval | None:
        """What a node gives; None if that is not known."""
        kind = node.op_type
        if not is_onnx(node) or not node.inputs:
            return None
        if kind in PICKING or kind == "Concat":
            return union(*(self.of(each) for each in (node.inputs if kind == "Concat" else node.inputs[:1])))
        if kind == "Cast":
            known = node.inputs[0] is not None and (node.inputs[0].dtype in _KINDS or _is_whole(node.inputs[0]))
            return self.of(node.inputs[0]) if known and value.dtype in _KINDS else None
        if kind == "Where":
            return self._chosen(node)
        if kind in {"ArgMax", "ArgMin"}:
            below = places_below(value)
            return Interval(0, below - 1, nan=False) if below else None
        if kind == "ConstantOfShape":
            filled = node.attributes["value"].as_tensor().numpy().item() if "value" in node.attributes else 0.0
            return ANY if math.isnan(filled) else Interval(filled, filled, nan=False)
        if kind in {"ScatterElements", "ScatterND"}:
            plain = "reduction" not in node.attributes or node.attributes["reduction"].as_string() == "none"
            return union(self.of(node.inputs[0]), self.of(node.inputs[2])) if plain else None
        if kind == "TopK":
            return self.of(node.inputs[0]) if value is node.outputs[0] else None
        rule = self.rules.get(kind)
        first = node.inputs[0]
        of_floats = value.dtype in _KINDS and first is not None and first.dtype == value.dtype
        if rule is None or not of_floats or value is not node.outputs[0]:
            return None
        with np.errstate(all="ignore"):
            given = [_typed(each, self.of(each)) for each in node.inputs if each is not None]
            return rule(node, given)

    def _chosen(self, node: ir.Node) -> Interval:
        test, one, other = node.inputs
        found = [self.of(one), self.of(other)]
        asked = test.producer() if test is not None else None
        if asked is not None and asked.op_type == "IsNaN" and is_onnx(asked) and asked.inputs[0] is other:
            found[1] = Interval(found[1].low, found[1].high, nan=False)
        return union(*found)

    def _enter(self, loop: ir.Node, body: ir.Graph) -> None:
        """Find the intervals of a loop's states, of what its body computes with them, and of its results."""
        first, states, ends = _states(loop, body)
        held = [_typed(inside, self.of(given)) for given, inside in zip(first, states, strict=True)]
        outer = self.known
        for count in itertools.count():
            self.known = outer.new_child()
            self._assume(loop, body, dict(zip(states, held, strict=True)))
            after = [_typed(inside, self.of(end)) for inside, end in zip(states, ends, strict=True)]
            joined = [union(*pair) for pair in zip(held, after, strict=True)]
            if joined == held:
                break
            if count > _MOST_TRIPS:
                held = [_typed(inside, None) for inside in states]
            else:
                held = [_widened(*pair) for pair in zip(held, joined, strict=True)] if count else joined
        results = [*held, *(self.of(row) for row in body.outputs[len(body.outputs) - len(loop.outputs) + len(held) :])]
        found, self.known = self.known.maps[0], outer
        self.known.update(found)
        self.known.update((out, _typed(out, each)) for out, each in zip(loop.outputs, results, strict=True))

    def _assume(self, loop: ir.Node, body: ir.Graph, states: dict[ir.Value, Interval]) -> None:
        self.known.update(states)
        if loop.op_type == "Loop":
            self.known.update((each, _typed(each, None)) for each in body.inputs[:2])
            return
        for row, whole in zip(body.inputs[len(states) :], loop.inputs[len(states) :], strict=True):
            self.known[row] = _typed(row, self.of(whole))


def never_nan(value: ir.Value | None) -> bool:
    """Whether no element can be NaN."""
    return not Intervals().of(value).nan


def _states(loop: ir.Node, body: ir.Graph) -> tuple[Sequence[ir.Value | None], Sequence[ir.Value], Sequence[ir.Value]]:
    """The states of a loop: before it, in the body, and after a trip."""
    if loop.op_type == "Loop":
        inside = body.inputs[2:]
        return loop.inputs[2:], inside, body.outputs[1 : 1 + len(inside)]
    count = len(loop.inputs) - loop.attributes["num_scan_inputs"].as_int()
    return loop.inputs[:count], body.inputs[:count], body.outputs[:count]


def _typed(value: ir.Value, found: Interval | None) -> Interval:
    """An interval of a value, with ends of its dtype."""
    if value.dtype in _KINDS:
        return (found or ANY).of(_KINDS[value.dtype])
    if not _is_whole(value):
        return ANY
    assert value.dtype is not None
    least, most = (0, 1) if value.dtype == BOOL else (int(value.dtype.min), int(value.dtype.max))
    known = found is not None and not found.nan and not found.is_infinite
    if known and found is not None and least <= found.low and found.high <= most:
        return Interval(int(found.low), int(found.high), nan=False)
    return Interval(least, most, nan=False)


def _is_whole(value: ir.Value) -> bool:
    return value.dtype is not None and (value.dtype.is_integer() or value.dtype == BOOL)


def _widened(before: Interval, after: Interval) -> Interval:
    """An interval around both, whose ends are steps if they have moved."""
    if isinstance(after.low, int):
        return after if before == after else Interval(-(2**63), 2**64, nan=False)
    kind = type(after.low)
    low = before.low if after.low == before.low else kind(-next(step for step in _STEPS if -step <= after.low))
    high = before.high if after.high == before.high else kind(next(step for step in _STEPS if step >= after.high))
    return Interval(low, high, after.nan)
