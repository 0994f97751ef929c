"""Conditions of loops without a branch for each part, and without what follows a ``break`` in a branch of its own.

``while test and more`` asks ``more`` in an arm, which runs where ``test`` is true. Where that arm computes a single
truth value of few numbers, and can't fail, it is an ``And``.

Before::

    go = If(test) <
        then_branch = more () => (more_1) { more_1 = Less(count, 60) },
        else_branch = no () => (more_2) { more_2 = Constant<value = false>() }
    >

After::

    more = Less(count, 60)
    go = And(test, more)

Behind a ``break`` a body goes on in an arm, too. What it computes there for the next iteration is read by nobody where
there is none: it may as well be computed in the last one, if that can't fail and is no product of matrices.

Before::

    stop = Less(rest, 1e-5)
    next = If(stop) <
        then_branch = left () => (x_1) { x_1 = Identity(x) },
        else_branch = on () => (x_2) { x_2 = Add(rest, x) }
    >                                                       # only the next iteration reads it
    go = And(before, Not(stop))

After::

    stop = Less(rest, 1e-5)
    next = Add(rest, x)
    go = And(before, Not(stop))

A condition that is a part of another one is asked once: ``And(x, x)`` is ``x``.

Source: if-conversion, Allen, Kennedy, Porterfield, Warren, "Conversion of Control Dependence to Data Dependence", 1983.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import onnx_ir as ir

from dy2st.onnx.building import BOOL, op, put_in_place, recording
from dy2st.onnx.passes.graph_facts import is_onnx
from dy2st.onnx.passes.loop_invariants import never_fails
from dy2st.onnx.passes.repeated_nodes import is_pure

# Of an arm that is computed whether it is needed or not.
MOST_NODES = 4
_PRODUCTS = frozenset(("Gemm", "MatMul"))

# A truth value, and whether it or its contrary is meant.
Part = tuple[ir.Value, bool]


def write_conditions(model: ir.Model, opset: int) -> None:
    """Write such conditions; in place, in the bodies of loops and for their first trip, inner ones first."""
    for graph in [model.graph, *model.graph.subgraphs()][::-1]:
        for node in list(graph):
            if node.op_type == "Loop" and is_onnx(node):
                _in_body(node, node.attributes["body"].as_graph(), opset)
                start = node.inputs[1] if len(node.inputs) > 1 else None
                asked = start.producer() if start is not None else None
                if asked is not None and asked.op_type == "If" and is_onnx(asked) and asked.graph is graph:
                    _truth_value(asked, opset)


def _in_body(loop: ir.Node, body: ir.Graph, opset: int) -> None:
    _truth_values(body, opset)
    for node in list(body):
        if node.op_type == "If" and is_onnx(node):
            _computed_anyway(node, loop, body)
    for node in list(body):
        if node.op_type == "And" and is_onnx(node) and node.graph is not None:
            _asked_once(node, opset)


# ---- a truth value in an arm


def _truth_values(graph: ir.Graph, opset: int) -> None:
    """Write the truth values in arms of a body, inner ones first; inner loops have been looked at."""
    for node in list(graph):
        if node.op_type == "If" and is_onnx(node):
            _truth_value(node, opset)


def _truth_value(node: ir.Node, opset: int) -> None:
    for arm in _arms(node):
        _truth_values(arm, opset)
    _without_arms(node, opset)


def _without_arms(node: ir.Node, opset: int) -> None:
    """An ``If`` for one truth value, of which one arm is constant, as an operator on truth values."""
    test, out = node.inputs[0], node.outputs[0]
    if test is None or len(node.outputs) != 1 or out.dtype != BOOL or not _is_number(test):
        return
    arms = _arms(node)
    then, orelse = (_truth(arm.outputs[0]) for arm in arms)
    if (then is None) == (orelse is None):
        return
    other, known = (arms[0], orelse) if then is None else (arms[1], then)
    value = other.outputs[0]
    if not _is_cheap(other) or not all(_is_number(each) for inner in other for each in inner.outputs):
        return
    with recording(opset) as made:
        asked = test if (then is not None) == known else op("Not", test)
        found = op("Or" if known else "And", asked, value)
    found.shape = ir.Shape([])
    nodes = _taken_out(other)
    forget_arms(node, arms)
    graph = node.graph
    assert graph is not None
    graph.insert_before(node, nodes)
    put_in_place(node, made.nodes, [found])


def _truth(value: ir.Value) -> bool | None:
    """The truth value that a constant of one is."""
    found = ir.convenience.get_const_tensor(value)
    return bool(found.numpy().reshape(-1)[0]) if found is not None and found.size == 1 else None


def _is_number(value: ir.Value | None) -> bool:
    return value is not None and value.shape is not None and not len(value.shape)


def _is_cheap(arm: ir.Graph) -> bool:
    """Whether an arm of few nodes computes something of whatever it reads."""
    return 0 < len(arm) <= MOST_NODES and _computes(arm)


def _computes(arm: ir.Graph) -> bool:
    """Whether an arm computes something of whatever it reads, and all of its results."""
    own = {id(value) for node in arm for value in node.outputs}
    results = {id(value) for value in arm.outputs}
    return (
        not arm.initializers
        and all(is_pure(node) and never_fails(node) for node in arm)
        and results <= own
        and len(results) == len(arm.outputs)
    )


# ---- what only the next iteration reads


def _computed_anyway(node: ir.Node, loop: ir.Node, body: ir.Graph) -> None:
    """One arm of an ``If`` in its place, where nobody reads what the other one gives."""
    test, arms = node.inputs[0], _arms(node)
    going = parts_of(body.outputs[0], but=node)
    for arm, needed in ((arms[0], True), (arms[1], False)):
        if test is None or (test, needed) not in going:
            continue
        if not all(_is_for_next(out, loop, body) or _is_asked(out, body, going) for out in node.outputs):
            continue
        if not _computes(arm) or any(each.op_type in _PRODUCTS for each in arm):
            continue
        values = list(arm.outputs)
        nodes = _taken_out(arm)
        forget_arms(node, arms)
        body.insert_before(node, nodes)
        for old, new in zip(node.outputs, values, strict=True):
            new.name, old.name = old.name, f"{old.name}_before"
        ir.convenience.replace_nodes_and_values(body, node, [node], [], node.outputs, values)
        return


def _is_for_next(value: ir.Value, loop: ir.Node, body: ir.Graph) -> bool:
    """Whether a value is the next one of states that nothing reads after the loop, and nothing else."""
    places = [place for place, result in enumerate(body.outputs) if result is value]
    states = len(body.inputs) - 2
    return not value.uses() and all(
        1 <= place <= states and not loop.outputs[place - 1].uses() and not loop.outputs[place - 1].is_graph_output()
        for place in places
    )


def _is_asked(value: ir.Value, body: ir.Graph, going: Collection[Part]) -> bool:
    """Whether a value is there for the condition of a loop only, which is false if one of its parts is."""
    if value is body.outputs[0]:
        return not value.uses() and sum(value is result for result in body.outputs) == 1
    users = [use.node for use in value.uses()]
    return (
        bool(users)
        and not value.is_graph_output()
        and all(
            user.op_type in {"And", "Identity"}
            and (out := user.outputs[0], True) in going
            and _is_asked(out, body, going)
            for user in users
        )
    )


# ---- parts of a condition


def parts_of(value: ir.Value, but: ir.Node | None = None) -> set[Part]:
    """What is known to be true where a condition is: the value itself, and what it is an ``And`` of.

    What a branch ``but`` tells is left out.
    """
    found: set[Part] = set()
    waiting: list[Part] = [(value, True)]
    while waiting:
        part = waiting.pop()
        if part in found:
            continue
        found.add(part)
        value, meant = part
        node = value.producer()
        if node is None or not is_onnx(node):
            continue
        operands = [each for each in node.inputs if each is not None]
        if node.op_type == "Not":
            waiting.append((operands[0], not meant))
        elif node.op_type == "Identity" or (node.op_type == "And" and meant) or (node.op_type == "Or" and not meant):
            waiting += [(each, meant) for each in operands]
        elif node.op_type == "If" and meant and node is not but:
            place = list(node.outputs).index(value)
            known = [_truth(arm.outputs[place]) for arm in _arms(node)]
            waiting += [(operands[0], other == 1) for other in (0, 1) if known[1 - other] is False]
    return found


def _asked_once(node: ir.Node, opset: int) -> None:
    """An operand of an ``And`` where that says the other one, too."""
    left, right = node.inputs
    if not _is_number(left) or not _is_number(right):
        return
    assert left is not None
    assert right is not None
    for value, other in ((left, right), (right, left)):
        if value is other or (other, True) in parts_of(value) or _contrary_of(other) in parts_of(value):
            with recording(opset) as made:
                found = op("Identity", value)
            found.shape = ir.Shape([])
            put_in_place(node, made.nodes, [found])
            return


def _contrary_of(value: ir.Value) -> Part | None:
    """What a ``Not`` of a value is another way to say."""
    node = value.producer()
    operand = node.inputs[0] if node is not None and node.op_type == "Not" and is_onnx(node) else None
    return None if operand is None else (operand, False)


# ---- arms


def _arms(node: ir.Node) -> tuple[ir.Graph, ir.Graph]:
    return node.attributes["then_branch"].as_graph(), node.attributes["else_branch"].as_graph()


def _taken_out(arm: ir.Graph) -> list[ir.Node]:
    """The nodes of an arm, which are in it no more."""
    nodes = list(arm)
    while arm.outputs:
        arm.outputs.pop()
    for node in nodes:
        arm.remove(node)
    return nodes


def forget_arms(node: ir.Node, arms: Sequence[ir.Graph]) -> None:
    """Let what is left of arms read nothing any more."""
    for arm in arms:
        for inner in arm.all_nodes():
            for place in range(len(inner.inputs)):
                inner.replace_input_with(place, None)
    node.replace_input_with(0, None)
