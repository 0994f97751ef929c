"""``torch.while_loop`` as a loop of ours.

A loop that counts gets the number of its trips back: it is faster on onnxruntime, and may become a ``Scan``.
Source: ``torch._higher_order_ops.while_loop`` of torch 2.13.
"""

from __future__ import annotations

import dataclasses
import operator
from typing import Any

import torch
from torch import fx

from dy2st.tracing.graph_functions import (
    add_module,
    erase_with_functions,
    inlined,
    loop_scalars,
    new_inputs,
    own_copy,
    value_of,
    variable_of,
)
from dy2st.tracing.graph_ops import loop_op
from dy2st.tracing.size_facts import ASSUMED
from dy2st.tracing.subgraph import call_node

# torch's loop carries the number of the iteration and a flag before what ours carries.
OWN_STATE = 2


def from_while_loop(module: fx.GraphModule, node: fx.Node) -> None:
    """``while_loop(test, body, carried, operands)`` as a loop that counts, or one that ends with the test."""
    if not _from_counting_loop(module, node):
        _from_testing_loop(module, node)


def _from_counting_loop(module: fx.GraphModule, node: fx.Node) -> bool:
    """Undo ``_to_while_loop``: what is carried first counts from 0 up to a limit, what is carried next is a flag.

    It is left as it is, with the answer False, if there is no such state, or if it is read otherwise.
    """
    carried: Any = node.args[2]
    operands: Any = node.args[3]
    test, body = (getattr(module, str(each.target)) for each in node.args[:2])  # type: ignore[union-attr]
    if len(carried) <= OWN_STATE or not _is_constant(carried[0], 0):
        return False
    for user in list(node.users):
        if not user.users and user.target is operator.getitem:
            module.graph.erase_node(user)
    if any(user.target is not operator.getitem or user.args[1] < OWN_STATE for user in node.users):  # type: ignore[operator]
        return False
    inputs = [each for each in body.graph.nodes if each.op == "placeholder"]
    results: Any = next(iter(reversed(body.graph.nodes))).args[0]
    number, flag = inputs[:OWN_STATE]
    counted = results[0]
    if getattr(counted, "target", None) is not torch.ops.aten.add.Tensor or counted.args != (number, 1) or flag.users:
        return False
    limit = _limit_of(test, len(carried))
    if limit is None:
        return False
    kept = [i for i, each in enumerate(inputs[len(carried) :]) if each.users]
    order = [number, *inputs[OWN_STATE : len(carried)], *(inputs[len(carried) + i] for i in kept)]
    counted_graph = fx.Graph()
    places = new_inputs(
        counted_graph, [value_of(each) for each in order], "input", [variable_of(each) for each in order]
    )
    known = dict.fromkeys(inputs, places[0])  # but for those in the order, nothing reads them
    known.update(zip(order, places, strict=True))
    found: Any = counted_graph.graph_copy(body.graph, known)
    counted_graph.output(tuple(found[1:]))
    counted_graph.eliminate_dead_code()
    made_body = fx.GraphModule(dict(body.named_children()), counted_graph, class_name="counted")
    made_body.meta.update({"first_symbol": body.meta.get("first_symbol", 0), ASSUMED: body.meta.get(ASSUMED, ())})
    graph = module.graph
    with graph.inserting_before(node):
        function = graph.get_attr(add_module(module, "counted", made_body))
        trips = operands[limit.place] if limit.place is not None else limit.number
        go = None if _is_constant(carried[1], True) else carried[1]
        state, outside = tuple(carried[OWN_STATE:]), tuple(operands[i] for i in kept)
        arguments = (function, trips, go, state, outside, ((),) * len(state), 0)
        made = call_node(graph, loop_op, arguments, tuple(node.meta["val"][OWN_STATE:]))
    made.meta.update({k: v for k, v in node.meta.items() if k != "val"})
    for user in list(node.users):
        user.args = (made, user.args[1] - OWN_STATE)  # type: ignore[operator]
    erase_with_functions(module, node, node.args[:2])
    return True


@dataclasses.dataclass(frozen=True)
class _Limit:
    """How often a loop runs at most: the place of an operand, or a number; neither is no limit."""

    place: int | None = None
    number: int | None = None


def _limit_of(test: fx.GraphModule, carried: int) -> _Limit | None:
    """The limit of a test as ``_test_of`` makes it; None for any other."""
    inputs = [each for each in test.graph.nodes if each.op == "placeholder"]
    result: Any = next(iter(reversed(test.graph.nodes))).args[0]
    result = result[0] if isinstance(result, (list, tuple)) else result
    number, flag = inputs[:OWN_STATE]
    aten = torch.ops.aten
    if result.target is aten.clone.default and result.args[0] is flag:
        return _Limit()
    if result.target is not aten.logical_and.default or result.args[0] is not flag:
        return None
    less = result.args[1]
    if less.target not in (aten.lt.Tensor, aten.lt.Scalar) or less.args[0] is not number:
        return None
    limit = less.args[1]
    if isinstance(limit, fx.Node):
        return _Limit(inputs.index(limit) - carried) if limit in inputs[carried:] else None
    return _Limit(number=limit) if type(limit) is int else None


def _is_constant(value: Any, number: Any) -> bool:
    """Whether a node makes a 0-d tensor of this number."""
    made = isinstance(value, fx.Node) and value.target is torch.ops.aten.full.default
    return bool(made and not value.args[0] and type(value.args[1]) is type(number) and value.args[1] == number)


def _from_testing_loop(module: fx.GraphModule, node: fx.Node) -> None:
    """A loop whose body ends with the next test."""
    test_attribute, body_attribute, carried, operands = node.args
    assert isinstance(test_attribute, fx.Node)
    assert isinstance(body_attribute, fx.Node)
    assert isinstance(carried, (list, tuple))
    assert isinstance(operands, (list, tuple))
    test, body = (getattr(module, str(a.target)) for a in (test_attribute, body_attribute))
    fused = fx.Graph()
    (_,) = new_inputs(fused, [loop_scalars(body.graph)[0]], "iteration")
    variables = [variable_of(each) for each in body.graph.find_nodes(op="placeholder")[: len(carried)]]
    inputs = new_inputs(fused, [value_of(c) for c in carried], "carried", variables)
    constants = new_inputs(fused, [value_of(o) for o in operands], "operand")
    following = inlined(fused, body, [*inputs, *constants])
    (going,) = inlined(fused, test, [*following, *constants])
    fused.output((own_copy(fused, going), *(own_copy(fused, f) for f in following)))
    children = {name: child for source in (body, test) for name, child in source.named_children()}
    made_body = fx.GraphModule(children, fused, class_name="fused")
    made_body.meta.update({"first_symbol": body.meta.get("first_symbol", 0), ASSUMED: body.meta.get(ASSUMED, ())})

    graph = module.graph
    with graph.inserting_before(node):
        (first,) = inlined(graph, test, [*carried, *operands])
        for name, child in test.named_children():
            if not hasattr(module, name):
                module.add_module(name, child)
        function = graph.get_attr(add_module(module, "fused", made_body))
        arguments = (function, None, first, tuple(carried), tuple(operands), ((),) * len(carried), 0)
        made = call_node(graph, loop_op, arguments, node.meta["val"])
    made.meta.update({k: v for k, v in node.meta.items() if k != "val"})
    node.replace_all_uses_with(made)
    erase_with_functions(module, node, node.args[:2])
