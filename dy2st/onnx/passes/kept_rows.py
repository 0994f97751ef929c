"""Numbers that a loop over rows appends on a condition are stacked, and those that are kept are taken behind it.

Before, for ``if keep: kept.append(number)``::

    end = Loop(steps, "", start) <body = step (i, go, before) {
        number, keep = ...
        more = If(keep) <
            then_branch = some () => (one) { one = Unsqueeze(number, [0]) },
            else_branch = none () => (nothing) { nothing = Constant<value = []>() }
        >
        after = Concat<axis = 0>(before, more)
    }>

After::

    numbers, keeps = Loop(steps, "") <body = step (i, go) {
        number, keep = ...
    }>
    end = Concat<axis = 0>(start, Compress<axis = 0>(numbers, keeps))

The first loop copies all numbers in each trip, and the second none. The ``Concat`` may as well be in the arm, whose
other arm gives the tensor as it was. It is done in a loop of as many trips as a tensor has rows, which nothing ends
early: so no more is stacked than there was before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from dy2st.onnx.building import op, put_before, put_in_place, recording
from dy2st.onnx.passes.dead_results import drop_dead_results
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx
from dy2st.onnx.passes.loop_invariants import never_fails
from dy2st.onnx.passes.loop_sizes import length_of_number, makes_all_trips
from dy2st.onnx.passes.loop_states import results_with, stack_in_place_of
from dy2st.onnx.passes.repeated_nodes import is_pure

# Of the arms, which are computed in each trip afterwards.
MOST_NODES = 6
_PRODUCTS = frozenset(("Gemm", "MatMul", "Einsum", "Conv"))

# A truth value, and whether it or its contrary is meant.
Part = tuple[ir.Value, bool]


def stack_kept_rows(model: ir.Model, opset: int) -> None:
    """Stack such numbers; in place, inner loops first."""
    changed = False
    for graph in [model.graph, *model.graph.subgraphs()][::-1]:
        for node in list(graph):
            loop: ir.Node | None = node
            while loop is not None and loop.op_type == "Loop" and is_onnx(loop):
                loop = _stack(loop, opset)
                changed = changed or loop is not None
    if changed:
        drop_dead_results(model)


def _stack(loop: ir.Node, opset: int) -> ir.Node | None:
    """The loop that takes the place of one; None if no state of it grows so."""
    length = length_of_number(loop.inputs[0])
    if length is None or length.name is None or not makes_all_trips(loop):
        return None
    for place in range(len(loop.inputs) - 2):
        found = _Kept(loop, place)
        if found.is_one():
            return found.apply(opset)
    return None


@dataclass(frozen=True)
class _Appended:
    """What one trip appends: one row if all parts are as they say, and else none."""

    parts: tuple[Part, ...]
    row: ir.Value


class _Kept:
    """A state of a loop to which a trip appends a number, or none."""

    def __init__(self, loop: ir.Node, place: int) -> None:
        self.loop, self.place = loop, place
        self.body: ir.Graph = loop.attributes["body"].as_graph()
        self.start, self.state = loop.inputs[2 + place], self.body.inputs[2 + place]
        self.end = self.body.outputs[1 + place]
        self.readers: set[tuple[ir.Node, int]] = set()  # what reads the state, and hands on no more than it is
        self.arms: list[ir.Graph] = []
        self.moved: list[ir.Node] = []  # what is computed in arms for the row and the conditions

    def is_one(self) -> bool:
        """Whether the state grows so, and nothing else reads it."""
        start = self.start
        if start is None or start.shape is None or len(start.shape) != 1 or self.end.uses():
            return False
        if sum(each is self.end for each in self.body.outputs) != 1 or self.state.is_graph_output():
            return False
        found = self._appended(self.end, self.body)
        if not isinstance(found, _Appended) or not found.parts:
            return False
        self.found = found
        if {(use.node, use.idx) for use in self.state.uses()} != self.readers:
            return False
        self.number = self._number(found.row)
        return self.number is not None and all(self._is_free(value) for value, _ in found.parts)

    def _appended(self, value: ir.Value, graph: ir.Graph) -> _Appended | bool:
        """What a value of a graph has more than the state; True if nothing, False if that can't be told."""
        if value is self.state:
            return True
        node = value.producer()
        if node is None or not is_onnx(node) or node.graph is not graph:
            return False
        if node.op_type == "Identity":
            self._reads(node, 0)
            return node.inputs[0] is self.state or self._appended(_given(node, 0), graph)
        if node.op_type == "Concat" and len(node.inputs) == 2 and node.inputs[0] is self.state:
            self._reads(node, 0)
            return self._one_row(_given(node, 1), graph)
        if node.op_type != "If":
            return False
        arms = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
        place = list(node.outputs).index(value)
        found = [self._appended(arm.outputs[place], arm) for arm in arms]
        return self._chosen(node, arms, found)

    def _one_row(self, value: ir.Value, graph: ir.Graph) -> _Appended | bool:
        """One row, or a choice between one and none."""
        if _rows(value) == 1:
            return _Appended((), value)
        node = value.producer()
        if node is None or node.op_type != "If" or not is_onnx(node) or node.graph is not graph:
            return False
        arms = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
        place = list(node.outputs).index(value)
        found: list[_Appended | bool] = []
        for arm in arms:
            given = arm.outputs[place]
            found.append(True if _rows(given) == 0 else self._one_row(given, arm))
        return self._chosen(node, arms, found)

    def _chosen(self, node: ir.Node, arms: Sequence[ir.Graph], found: Sequence[_Appended | bool]) -> _Appended | bool:
        """What is appended where one arm appends something, and the other one nothing."""
        test = node.inputs[0]
        for way, (one, other) in ((True, found), (False, found[::-1])):
            if isinstance(one, _Appended) and other is True and test is not None:
                self.arms.append(arms[not way])
                return _Appended(((test, way), *one.parts), one.row)
        return bool(found[0] is True and found[1] is True)

    def _reads(self, node: ir.Node, place: int) -> None:
        if node.inputs[place] is self.state:
            self.readers.add((node, place))

    def _number(self, row: ir.Value) -> ir.Value | None:
        """The number that a row consists of, if it may be computed in each trip."""
        node = row.producer()
        if node is None or node.op_type != "Unsqueeze" or not is_onnx(node) or constant_integers(node.inputs[1]) != [0]:
            return None
        return node.inputs[0] if node.inputs[0] is not None and self._is_free(node.inputs[0]) else None

    def _is_free(self, value: ir.Value) -> bool:
        """Whether a value is there in each trip, or can be: ``moved`` has the nodes of arms that it takes."""
        node = value.producer()
        if node is None:
            return not any(value is each for arm in self.arms for each in arm.initializers.values())
        if node in self.moved or not any(node.graph is arm for arm in self.arms):
            return True
        if not is_pure(node) or not never_fails(node) or node.op_type in _PRODUCTS or len(self.moved) >= MOST_NODES:
            return False
        if not all(each is None or self._is_free(each) for each in node.inputs):
            return False
        self.moved.append(node)
        return True

    def apply(self, opset: int) -> ir.Node:
        """Write the loop anew; gives it."""
        number, start = self.number, self.start
        assert number is not None
        assert start is not None
        outermost = next(node for node in self.body if _has(node, self.arms))
        for node in self.moved:
            assert isinstance(node.graph, ir.Graph)
            _copy_results(node, node.graph, opset)
            node.graph.remove(node)
            self.body.insert_before(outermost, node)
        for node, place in self.readers:
            node.replace_input_with(place, start)  # the result is read by nobody any more
        with recording(opset) as inner:
            keep: ir.Value | None = None
            for value, meant in self.found.parts:
                part = value if meant else op("Not", value)
                keep = part if keep is None else op("And", keep, part)
            told = op("Identity", keep), op("Identity", number)
        for each in inner.nodes:
            each.outputs[0].shape = ir.Shape([])
        put_before(outermost, inner.nodes, stem=f"{self.end.name}_kept")
        with recording(opset) as made:
            new = stack_in_place_of(self.loop, self.place, [], *told)
            keeps, numbers = new.outputs[-2:]
            found = op("Compress", numbers, keeps, axis=0)
            if start.shape is None or start.shape[0] != 0:
                found = op("Concat", start, found, axis=0)
        put_in_place(self.loop, made.nodes, results_with(self.loop, new, self.place, 0, found, told=2))
        return new


def _has(node: ir.Node, arms: Sequence[ir.Graph]) -> bool:
    """Whether an arm is one of a node's, or in one."""
    graphs = [each.as_graph() for each in node.attributes.values() if each.type == ir.AttributeType.GRAPH]
    return any(any(each is arm for arm in arms) or any(_has(inner, arms) for inner in each) for each in graphs)


def _copy_results(node: ir.Node, arm: ir.Graph, opset: int) -> None:
    """Have an arm give copies of what a node of its computes: none gives a value from outside as it is."""
    for place, given in enumerate(arm.outputs):
        if given.producer() is node:
            with recording(opset) as made:
                copy = op("Identity", given)
            copy.name, copy.type, copy.shape = f"{given.name}_{arm.name}", given.type, given.shape
            arm.extend(made.nodes)
            arm.outputs[place] = copy


def _given(node: ir.Node, place: int) -> ir.Value:
    value = node.inputs[place]
    assert value is not None
    return value


def _rows(value: ir.Value) -> int | None:
    """How many elements a vector is known to have."""
    size = value.shape[0] if value.shape is not None and len(value.shape) == 1 else None
    return size if isinstance(size, int) else None
