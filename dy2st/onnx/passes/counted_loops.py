"""Loops that count for themselves make as many trips as they count: ``while i < n`` with ``i = i + 1`` in it.

Before::

    go = Less(0, n)
    i_end, h_end = Loop("", go, 0, h_0) <body = step (t, going, i, h) {
        row = Gather(x, i)
        next = ...
        more = Add(i, 1)
        on = Less(more, n)
    }>

After::

    h_end = Loop(n, "", h_0) <body = step (t, going, h) {
        row = Gather(x, t)
        next = ...
        on = Identity(going)
    }>
    i_end = Max(n, 0)

So such a loop can be a ``Scan`` over rows, as one of ``for`` can. Where more than the counter ends the loop, the rest
of its condition stays, and a counter that is read after it is carried as before.

Source: induction variables, Aho, Lam, Sethi, Ullman, "Compilers", 2006, section 9.1.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from dy2st.onnx.building import INT64, constant, op, put_before, recording
from dy2st.onnx.passes.dead_results import drop_dead_results
from dy2st.onnx.passes.graph_facts import is_onnx
from dy2st.onnx.passes.linear_indices import LinearIndex, linear_index
from dy2st.onnx.passes.loop_sizes import Length, constant_number, exact_length, makes_all_trips
from dy2st.onnx.passes.plain_conditions import Part, parts_of

# How much more than the number the counter may be, and whether it stands on the left, by operator and what is meant.
_COMPARED = {
    ("Less", True): (0, True),
    ("Greater", True): (0, False),
    ("LessOrEqual", True): (1, True),
    ("GreaterOrEqual", True): (1, False),
    ("GreaterOrEqual", False): (0, True),
    ("LessOrEqual", False): (0, False),
    ("Greater", False): (1, True),
    ("Less", False): (1, False),
}

# The ends of int64.
_LEAST, _MOST = -(2**63), 2**63 - 1


def count_trips(model: ir.Model, opset: int) -> None:
    """Let loops make the trips that they count; in place, inner loops first."""
    changed = False
    for graph in [model.graph, *model.graph.subgraphs()][::-1]:
        for node in list(graph):
            if node.op_type == "Loop" and is_onnx(node):
                changed |= _Counting(node, opset).apply()
    if changed:
        drop_dead_results(model)


class _Counting:
    """One loop, and its states that count its trips."""

    def __init__(self, loop: ir.Node, opset: int) -> None:
        self.loop, self.opset = loop, opset
        self.body: ir.Graph = loop.attributes["body"].as_graph()
        self.counters = dict(_counters(loop, self.body))

    def apply(self) -> bool:
        """Rewrite the loop; whether there was something to do."""
        found = False
        for part in parts_of(self.body.outputs[0]):
            bound = self._bound(part)
            if bound is not None and self._is_left_out(part):
                self._limit(*bound)
                found = True
                break
        read = [state for state in self.counters if self._is_read_after(state)]
        trips = self.loop.inputs[0]
        scalar = trips is not None and trips.shape is not None and not len(trips.shape)
        all_trips = bool(read) and scalar and makes_all_trips(self.loop)
        for state, first in self.counters.items():
            if state not in read or all_trips:
                found |= self._replace(state, first)
        return found

    def _is_read_after(self, state: ir.Value) -> bool:
        out = self.loop.outputs[list(self.body.inputs).index(state) - 2]
        return bool(out.uses()) or out.is_graph_output()

    # ---- the condition

    def _bound(self, part: Part) -> tuple[ir.Value, int] | None:
        """A number from outside, and what is added to it for the number of trips, if a part asks for less than that."""
        compared = _compared(part)
        if compared is None:
            return None
        counter, number, more = compared
        index = linear_index(counter, self.body.inputs[0], self.counters)
        if index is None or index.sign != 1 or index.base.name is not None or not self._is_outside(number):
            return None
        # The trip ``t`` is followed by one if ``t + base < number + more``.
        return number, more + 1 - index.base.more

    def _is_outside(self, value: ir.Value) -> bool:
        scalar = value.dtype == INT64 and value.shape is not None and not len(value.shape)
        return scalar and value.graph is not self.body and value not in self.body.inputs

    def _is_left_out(self, part: Part) -> bool:
        """Take a part out of the condition, if nothing else reads it; whether that could be done."""
        going, value = self.body.outputs[0], _asked_as(part)
        if value is None or value.is_graph_output() != (value is going):
            return False
        if value is going:
            if value.uses() or sum(each is value for each in self.body.outputs) > 1:
                return False
            with recording(self.opset) as made:
                result = op("Identity", self.body.inputs[1])
            result.name, result.shape = f"{value.name}_going", ir.Shape([])
            made.nodes[0].name = f"node_{result.name}"
            made.nodes[0].metadata_props.update(self.loop.metadata_props)
            self.body.extend(made.nodes)
            self.body.outputs[0] = result
            return True
        users = [use.node for use in value.uses()]
        if len(users) != 1 or users[0].op_type != "And" or (users[0].outputs[0], True) not in parts_of(going):
            return False
        both = users[0]
        rest = both.inputs[1 - list(both.inputs).index(value)]
        if rest is None or rest is value:
            return False
        with recording(self.opset) as made:
            copy = op("Identity", rest)
        copy.shape, copy.name = both.outputs[0].shape, both.outputs[0].name
        made.nodes[0].metadata_props.update(both.metadata_props)
        ir.convenience.replace_nodes_and_values(self.body, both, [both], made.nodes, both.outputs, [copy])
        made.nodes[0].name = f"node_{copy.name}"
        return True

    def _limit(self, number: ir.Value, more: int) -> None:
        """Let the loop make no more trips than ``number + more``."""
        loop = self.loop
        start = loop.inputs[1] if len(loop.inputs) > 1 else None
        asked = parts_of(start) if start is not None else set()
        first = [part for part in asked if _is_first(part, number, more)]
        with recording(self.opset) as made:
            known = constant_number(number)
            if known is not None:
                trips = constant(min(max(known + more, 0 if first else 1), _MOST))
            else:
                trips = _added(number, more)
                # One trip is made before the counter is asked, if it is not asked before the loop.
                trips = trips if first else op("Max", trips, constant(1))
            if loop.inputs[0] is not None:
                trips = op("Min", trips, loop.inputs[0])
            trips.shape = ir.Shape([])
        put_before(loop, made.nodes, stem=f"{loop.outputs[0].name}_trips")
        loop.replace_input_with(0, trips)
        if first and start is not None and any(_asked_as(part) is start for part in first):
            loop.replace_input_with(1, None)

    # ---- the counters

    def _replace(self, state: ir.Value, first: LinearIndex) -> bool:
        """Read the number of the trip instead of a state that counts them; the loop's result is computed behind it."""
        place = list(self.body.inputs).index(state) - 2
        end, out = self.body.outputs[1 + place], self.loop.outputs[place]
        begin = first.base.more
        readers = [use for use in state.uses() if use.node is not end.producer()]
        others = bool(end.uses()) or sum(each is end for each in self.body.outputs) > 1
        if not readers and not others and not out.uses() and not out.is_graph_output():
            return False
        self._read(state, [(use.node, use.idx) for use in readers], begin)
        self._read(end, [(use.node, use.idx) for use in end.uses()], begin + 1)
        if out.uses() or out.is_graph_output():
            self._count_behind(out, begin)
        return True

    def _read(self, value: ir.Value, uses: list[tuple[ir.Node, int]], more: int) -> None:
        if not uses:
            return
        counted = self.body.inputs[0]
        if more:
            with recording(self.opset) as made:
                counted = op("Add", counted, constant(more))
            counted.shape = ir.Shape([])
            first = next(iter(self.body))
            put_before(first, made.nodes, stem=f"{value.name}_counted")
            for node in made.nodes:
                node.metadata_props.clear()
                node.metadata_props.update(self.loop.metadata_props)
        for node, operand in uses:
            node.replace_input_with(operand, counted)

    def _count_behind(self, out: ir.Value, begin: int) -> None:
        """What a counter is after all trips."""
        trips = self.loop.inputs[0]
        with recording(self.opset) as made:
            total = op("Max", trips, constant(0))
            total = op("Add", total, constant(begin)) if begin else total
        total.shape, total.type = ir.Shape([]), out.type
        name = out.name
        graph = self.loop.graph
        assert graph is not None
        for place, result in enumerate(graph.outputs):
            if result is out:
                graph.outputs[place] = total
        out.replace_all_uses_with(total)
        for count, node in enumerate(made.nodes):
            node.outputs[0].name = f"{name}_count_{count}"
            node.name = f"node_{node.outputs[0].name}"
            node.metadata_props.update(self.loop.metadata_props)
        total.name, out.name = name, f"{name}_counted"
        graph.insert_after(self.loop, made.nodes)


def _counters(loop: ir.Node, body: ir.Graph) -> Mapping[ir.Value, LinearIndex]:
    """The states that begin at a constant and become one more in each trip."""
    found = {}
    for state, start, end in zip(body.inputs[2:], loop.inputs[2:], body.outputs[1:], strict=False):
        first, node = constant_number(start), end.producer()
        scalar = state.dtype == INT64 and state.shape is not None and not len(state.shape)
        if not scalar or first is None or node is None or node.op_type != "Add" or not is_onnx(node):
            continue
        if state in node.inputs and 1 in [constant_number(each) for each in node.inputs if each is not state]:
            found[state] = LinearIndex(1, Length(None, first))
    return found


def _added(number: ir.Value, more: int) -> ir.Value:
    """A sum that is an end of int64 where it would be behind that: ``n`` is ``2**63 - 1`` in ``while i <= n`` at times.

    The size of a tensor is far from there.
    """
    if not more:
        return number
    if exact_length(number) is None:
        number = op("Min", number, constant(_MOST - more)) if more > 0 else op("Max", number, constant(_LEAST - more))
    return op("Add", number, constant(more))


def _compared(part: Part) -> tuple[ir.Value, ir.Value, int] | None:
    """A counter, and what it has to be less than: a number and what is added to it."""
    node = part[0].producer()
    found = _COMPARED.get((node.op_type, part[1])) if node is not None and is_onnx(node) else None
    if node is None or found is None:
        return None
    more, is_left = found
    counter, number = node.inputs if is_left else node.inputs[::-1]
    return None if counter is None or number is None else (counter, number, more)


def _is_first(part: Part, number: ir.Value, more: int) -> bool:
    """Whether a part of the condition before a loop asks whether there is a first trip: ``0 < number + more``."""
    compared = _compared(part)
    if compared is None:
        return False
    counter, other, apart = compared
    begin, same = constant_number(counter), constant_number(number)
    equal = other is number or (same is not None and constant_number(other) == same)
    return equal and begin is not None and apart - begin == more


def _asked_as(part: Part) -> ir.Value | None:
    """The value that says a part: itself, or the one ``Not`` of it."""
    value, meant = part
    if meant:
        return value
    readers = [use.node for use in value.uses()]
    return readers[0].outputs[0] if len(readers) == 1 and readers[0].op_type == "Not" else None
