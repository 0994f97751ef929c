"""What an arm in a loop computes of rows of tensors alone is computed outside of it: then it can be before the loop.

Before, for ``if keep[i]: keep = keep & ~(clash[i] & later)``::

    end = Loop(n, "", keep) <body = step (i, go, state) {
        kept = Gather(state, i)
        next = If(kept) <
            then_branch = drop () => (some) {
                row = Gather(clash, i)                          # clash: [n, n]
                hit = And(row, later)
                free = Not(hit)
                some = And(state, free)
            },
            else_branch = as_it_is () => (all) { all = Identity(state) }
        >
    }>

After::

    end = Loop(n, "", keep) <body = step (i, go, state) {
        kept = Gather(state, i)
        row = Gather(clash, i)                                  # in all trips at once, as a Scan
        hit = And(row, later)
        free = Not(hit)
        next = If(kept) <
            then_branch = drop () => (some) { some = And(state, free) },
            else_branch = as_it_is () => (all) { all = Identity(state) }
        >
    }>

The arm may not run, so that this may be computed for nothing. So it is done for few operators on elements, of rows of
a tensor that is there in any case, each as large as such a row; and in loops of as many trips as that has rows, which
nothing ends early. Nothing is moved that may fail.

A branch that is left with one operator on truth values is one itself. After::

    next = And(state, Or(free, Not(kept)))

Source: if-conversion, Allen, Kennedy, Porterfield, Warren, "Conversion of Control Dependence to Data Dependence", 1983.
"""

from __future__ import annotations

import onnx_ir as ir

from dy2st.onnx.building import BOOL, op, put_in_place, recording
from dy2st.onnx.passes.expansions import ELEMENTWISE
from dy2st.onnx.passes.graph_facts import is_onnx, same_shape
from dy2st.onnx.passes.loop_invariants import never_fails
from dy2st.onnx.passes.loop_sizes import length_of_number, makes_all_trips
from dy2st.onnx.passes.plain_conditions import forget_arms
from dy2st.onnx.passes.repeated_nodes import is_pure

# Of one arm.
MOST_NODES = 6
_ON_ELEMENTS = ELEMENTWISE | frozenset("Abs Cast Ceil Floor Gather Identity IsNaN Neg Not Relu Sign".split())


def take_rows_out_of_arms(model: ir.Model, opset: int) -> None:
    """Move such nodes out of arms, and write what is left of these as operators; in place, inner loops first."""
    for graph in [model.graph, *model.graph.subgraphs()][::-1]:
        for node in list(graph):
            if node.op_type == "Loop" and is_onnx(node) and makes_all_trips(node):
                _in_loop(node, opset)


def _in_loop(loop: ir.Node, opset: int) -> None:
    body = loop.attributes["body"].as_graph()
    length = length_of_number(loop.inputs[0])
    if length is None:
        return
    rows = _Rows(loop)
    for node in list(body):
        if node.op_type == "If" and is_onnx(node):
            for arm in _arms(node):
                rows.move_out(arm, node)
            _write_as_operator(node, opset)
        rows.follow(node)


def _arms(node: ir.Node) -> tuple[ir.Graph, ir.Graph]:
    return node.attributes["then_branch"].as_graph(), node.attributes["else_branch"].as_graph()


class _Rows:
    """What in the body of a loop depends on its states."""

    def __init__(self, loop: ir.Node) -> None:
        self.body: ir.Graph = loop.attributes["body"].as_graph()
        self.step = self.body.inputs[0]
        length = length_of_number(loop.inputs[0])
        self.counters = {} if length is None else {self.step: length}
        self.bound: set[ir.Value] = set(self.body.inputs[1:])

    def follow(self, node: ir.Node) -> None:
        """Note whether what a node of the body gives depends on the states; a branch is taken to do so."""
        if not is_pure(node) or any(value in self.bound for value in node.inputs if value is not None):
            self.bound.update(node.outputs)

    def move_out(self, arm: ir.Graph, branch: ir.Node) -> None:
        """Move what an arm computes of rows alone before its branch, if that is little."""
        free: dict[ir.Value, ir.Node] = {}
        own = {*arm.initializers.values(), *(out for node in arm for out in node.outputs)}
        for node in arm:
            operands = [value for value in node.inputs if value is not None]
            apart = all(value in free or not (value in own or value in self.bound) for value in operands)
            if (
                apart
                and node.op_type in _ON_ELEMENTS
                and len(node.outputs) == 1
                and not node.outputs[0].is_graph_output()
                and is_pure(node)
                and never_fails(node, self.counters)
            ):
                free[node.outputs[0]] = node
        taken = [node for node in free.values() if node.op_type == "Gather" and self.step in node.inputs]
        sizes = [node.outputs[0] for node in taken]
        if not taken or len(free) > MOST_NODES:
            return
        if any(not _is_number(out) and not any(same_shape(out, row) for row in sizes) for out in free):
            return
        for node in free.values():
            arm.remove(node)
            self.body.insert_before(branch, node)


def _is_number(value: ir.Value) -> bool:
    return value.shape is not None and not len(value.shape)


def _write_as_operator(node: ir.Node, opset: int) -> None:
    """A branch between a tensor of truth values and its ``And`` or ``Or`` with another one as two operators."""
    test, arms = node.inputs[0], _arms(node)
    if test is None or not _is_number(test) or len(node.outputs) != 1 or node.outputs[0].dtype != BOOL:
        return
    for taken, (changing, keeping) in ((True, arms), (False, arms[::-1])):
        if len(changing) != 1 or len(keeping) != 1:
            continue
        change, kept = changing[0], keeping[0]
        if change.op_type not in {"And", "Or"} or kept.op_type != "Identity" or kept.inputs[0] not in change.inputs:
            continue
        state = kept.inputs[0]
        other = next((value for value in change.inputs if value is not state), state)
        if state is None or other is None or not same_shape(state, change.outputs[0]):
            continue
        if any(value.name in arm.initializers for arm in arms for value in (state, other)):
            continue
        with recording(opset) as made:
            if change.op_type == "And":
                found = op("And", state, op("Or", other, op("Not", test) if taken else test))
            else:
                found = op("Or", state, op("And", other, test if taken else op("Not", test)))
        found.shape = node.outputs[0].shape
        forget_arms(node, arms)
        put_in_place(node, made.nodes, [found])
        return
