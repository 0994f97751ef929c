"""Programs in torch's own control-flow operators, as far as these can say it, and back.

``torch.cond`` and ``torch.while_loop`` are what other backends compile. They can't say that a size differs by arm or
changes from one iteration to the next, nor that rows are stacked, and take no float of Python's: such branches and
loops stay our own operators.

Source: ``torch.cond`` and ``torch._higher_order_ops.while_loop`` of torch 2.13.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch._higher_order_ops.cond import cond_op
from torch._higher_order_ops.while_loop import while_loop_op

from dy2st.tracing.bit_packing import pack, unpack
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
from dy2st.tracing.graph_ops import branch_op, loop_op
from dy2st.tracing.size_facts import ASSUMED
from dy2st.tracing.subgraph import call_node
from dy2st.tracing.while_loops import OWN_STATE, from_while_loop

# What the arm is called in which a loop stands that may not run.
GUARDED = "guarded"


def to_standard(module: fx.GraphModule) -> None:
    """Replace our operators by torch's where these can express them, in a module and its subgraphs."""
    _rewrite(module, _to_standard)
    # Recompiles the subgraphs too, however deep.
    module.recompile()


def from_standard(module: fx.GraphModule) -> None:
    """Replace torch's operators by ours, which are lowered without running a subgraph more than once."""
    _rewrite(module, _out_of_guard)
    _rewrite(module, _from_standard)
    module.recompile()


def _rewrite(module: fx.GraphModule, rewrite: Callable[[fx.GraphModule, fx.Node], None]) -> None:
    """The operators of a module, and first those of its subgraphs."""
    for inner in [each for _, each in module.named_children() if isinstance(each, fx.GraphModule)]:
        _rewrite(inner, rewrite)
    for node in [each for each in module.graph.nodes if each.op == "call_function"]:
        rewrite(module, node)
    module.graph.lint()


def _to_standard(module: fx.GraphModule, node: fx.Node) -> None:
    if node.meta.get("unbacked_bindings"):
        return
    if node.target is branch_op and not _has_floats(node.args[3]):
        node.target = cond_op
        pack(module, node)
    elif node.target is loop_op and not (node.args[6] or any(node.args[5]) or _has_floats(node.args[4])):  # type: ignore[arg-type]
        _to_while_loop(module, node)


def _out_of_guard(module: fx.GraphModule, node: fx.Node) -> None:
    if node.target is cond_op and str(getattr(node.args[1], "target", "")).startswith(GUARDED):
        unpack(module, node)
        _unguarded(module, node)


def _from_standard(module: fx.GraphModule, node: fx.Node) -> None:
    if node.target is cond_op:
        unpack(module, node)
        node.target = branch_op
    elif node.target is while_loop_op:
        from_while_loop(module, node)


def _test_of(trips: Any, state: list[Any], outside: list[Any]) -> fx.GraphModule:
    """Whether to go on: the carried flag, and the iteration number below the trip count (the last of ``outside``)."""
    flag = state[1]
    test_graph = fx.Graph()
    inputs = new_inputs(test_graph, state, "carried")
    constants = new_inputs(test_graph, outside, "operand")
    going = inputs[1]
    if trips is None:
        going = call_node(test_graph, torch.ops.aten.clone.default, (going,), flag)
    else:
        limit = constants[-1] if isinstance(trips, fx.Node) else trips
        tensors = isinstance(value_of(trips), torch.Tensor)
        compare = torch.ops.aten.lt.Tensor if tensors else torch.ops.aten.lt.Scalar
        less = call_node(test_graph, compare, (inputs[0], limit), flag)
        going = call_node(test_graph, torch.ops.aten.logical_and.default, (going, less), flag)
    test_graph.output(going)
    return fx.GraphModule(torch.nn.Module(), test_graph, class_name="going")


def _to_while_loop(module: fx.GraphModule, node: fx.Node) -> None:
    """``loop(body, trips, go, carried, operands)`` with the iteration number and the go flag as carried tensors."""
    body_attribute, trips, go, carried, operands = node.args[:5]
    assert isinstance(body_attribute, fx.Node)
    assert isinstance(carried, (list, tuple))
    assert isinstance(operands, (list, tuple))
    body = getattr(module, str(body_attribute.target))
    number, flag = loop_scalars(body.graph)
    extra = [trips] if isinstance(trips, fx.Node) else []
    state = [number, flag, *(value_of(c) for c in carried)]
    outside = [*(value_of(o) for o in operands), *(value_of(e) for e in extra)]

    test = _test_of(trips, state, outside)

    body_graph = fx.Graph()
    before = body.graph.find_nodes(op="placeholder")
    variables = ["iteration", "going", *map(variable_of, before[1 : 1 + len(carried)])]
    inputs = new_inputs(body_graph, state, "carried", variables)
    constants = new_inputs(body_graph, outside, "operand")
    results = body_graph.graph_copy(
        body.graph,
        dict(
            zip(
                before,
                [inputs[0], *inputs[2:], *constants[: len(operands)]],
                strict=True,
            )
        ),
    )
    assert isinstance(results, (list, tuple))
    following = call_node(body_graph, torch.ops.aten.add.Tensor, (inputs[0], 1), number)
    body_graph.output((following, *results))

    step = fx.GraphModule(dict(body.named_children()), body_graph, class_name="step")
    step.meta[ASSUMED] = body.meta.get(ASSUMED, ())
    graph = module.graph
    place = {k: v for k, v in node.meta.items() if k != "val"}
    with graph.inserting_before(node):
        first = call_node(graph, torch.ops.aten.full.default, ([], 0), number)
        first.kwargs = {"dtype": torch.int64}
        start = go
        if start is None:
            start = call_node(graph, torch.ops.aten.full.default, ([], True), flag)
            start.kwargs = {"dtype": torch.bool}
        arguments = [first, start, *carried, *operands, *extra]
        if _runs_at_least_once(go, trips) or not _differentiable(carried):
            made, left_out = _while_loop(module, graph, test, step, arguments, state), 0
        else:
            made, left_out = _guarded(module, graph, test, step, arguments, state, outside, place), OWN_STATE
    made.meta.update(place)
    for user in list(node.users):
        assert user.target is operator.getitem
        index = user.args[1]
        assert isinstance(index, int)
        user.args = (made, index + OWN_STATE - left_out)
    graph.erase_node(node)
    if made.target is cond_op:
        pack(module, made)
    if not body_attribute.users:
        graph.erase_node(body_attribute)
        delattr(module, str(body_attribute.target))


def _has_floats(operands: Any) -> bool:
    """Whether a number computed from sizes, a half of one, is among the operands: torch's operators take integers."""
    return any(isinstance(value_of(operand), (float, torch.SymFloat)) for operand in operands)


def _runs_at_least_once(go: Any, trips: Any) -> bool:
    return go is None and (trips is None or (isinstance(trips, int) and trips > 0))


def _differentiable(values: Sequence[Any]) -> bool:
    return any(isinstance(v := value_of(c), torch.Tensor) and v.dtype.is_floating_point for c in values)


def _while_loop(
    module: Any, graph: fx.Graph, test: fx.GraphModule, step: fx.GraphModule, arguments: list[Any], state: list[Any]
) -> fx.Node:
    """The loop itself, in ``graph``, whose subgraphs ``module`` keeps."""
    functions = [graph.get_attr(add_module(module, p, m)) for p, m in (("going", test), ("step", step))]
    carried, outside = tuple(arguments[: len(state)]), tuple(arguments[len(state) :])
    return call_node(graph, while_loop_op, (*functions, carried, outside), tuple(state))


def _guarded(
    module: fx.GraphModule,
    graph: fx.Graph,
    test: fx.GraphModule,
    step: fx.GraphModule,
    arguments: list[Any],
    state: list[Any],
    outside: list[Any],
    place: dict[str, Any],
) -> fx.Node:
    """The loop in an arm that is only taken if it runs: torch 2.13's gradient of one that does not run is wrong."""
    (going,) = inlined(graph, test, arguments)
    runs, skips, root = fx.Graph(), fx.Graph(), torch.nn.Module()
    inputs = [*new_inputs(runs, state, "carried"), *new_inputs(runs, outside, "operand")]
    loop = _while_loop(root, runs, test, step, list(inputs), state)
    loop.meta.update(place)
    results = [call_node(runs, operator.getitem, (loop, i), value) for i, value in enumerate(state)]
    runs.output(tuple(results[OWN_STATE:]))
    inputs = new_inputs(skips, state, "carried")
    new_inputs(skips, outside, "operand")
    skips.output(tuple(own_copy(skips, n) for n in inputs[OWN_STATE:]))
    arms = [
        graph.get_attr(add_module(module, prefix, fx.GraphModule(root, arm, class_name=prefix)))
        for prefix, arm in ((GUARDED, runs), ("skipped", skips))
    ]
    return call_node(graph, cond_op, (going, *arms, tuple(arguments)), tuple(state[OWN_STATE:]))


def _unguarded(module: fx.GraphModule, node: fx.Node) -> None:
    """Take the loop out of its arm again."""
    arm, arguments = node.args[1], node.args[3]
    assert isinstance(arm, fx.Node)
    assert isinstance(arguments, (list, tuple))
    graph, inner = module.graph, getattr(module, str(arm.target))
    names = {name: add_module(module, name, child) for name, child in inner.named_children()}
    with graph.inserting_before(node):
        results = inlined(graph, inner, list(arguments))
    for result in results:
        (loop,) = result.all_input_nodes
        for function in loop.args[:2]:
            if isinstance(function, fx.Node):
                function.target = names.get(str(function.target), function.target)
        names = {}
    for user in list(node.users):
        index = user.args[1]
        assert isinstance(index, int)
        user.replace_all_uses_with(results[index])
        graph.erase_node(user)
    erase_with_functions(module, node, node.args[1:3])
