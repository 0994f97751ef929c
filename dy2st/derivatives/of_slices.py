"""The derivative of a slice of a trace, as nodes of that trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import CallMethodKey
from torch.utils import _pytree as pytree

from dy2st.derivatives.backward_rules import RULES
from dy2st.derivatives.branch_gradients import branch_rule
from dy2st.derivatives.decomposing import retraced, unfused, without_writes
from dy2st.derivatives.gradient_values import Gradient, fitted, summed
from dy2st.derivatives.links import Links
from dy2st.derivatives.loop_gradients import loop_rule
from dy2st.derivatives.pruning import prune
from dy2st.derivatives.random_draws import is_draw
from dy2st.derivatives.slicing import Slice, nodes_of
from dy2st.derivatives.tape import Tape, place_in
from dy2st.errors import NoGradientError
from dy2st.tracing.grad_mode import function_left
from dy2st.tracing.gradients import DETACH
from dy2st.tracing.graph_ops import branch_op, loop_op
from dy2st.tracing.size_facts import expression
from dy2st.tracing.tracer import Tracing

# A gradient by each start: None, or a tensor and whether it is there (True, or a 0-d bool tensor).
Found = tuple[torch.Tensor, Any] | None


def derivative(
    tracing: Tracing,
    modules: dict[str, Any],
    between: Slice,
    tangents: Sequence[tuple[fx.Node, torch.Tensor]],
    *,
    again: bool,
) -> list[Found]:
    """The gradients of the ends of a slice by its starts, as values of the trace.

    ``tangents`` are nodes and values, one pair for each end. New subgraphs are noted in ``modules``. ``again`` says
    that the gradients may be differentiated in turn.

    Raises:
        NoGradientError: an operator on the way has no derivative that a graph can compute.
    """
    for node in nodes_of(between.module):
        left = function_left(node)
        if left is not None:
            raise NoGradientError(
                f"a gradient is taken through {left}, a torch.autograd.Function with a backward of "
                "its own, of which a program has the forward only",
                hint="compute it with torch functions in place of the torch.autograd.Function",
                location=place_in(node, None),
            )
        if again and node.target is DETACH:
            raise NoGradientError(
                "a gradient with create_graph=True is taken through a loop or branch, or a write in place, that has a "
                "part without gradients",
                hint="compute that part before it",
                location=place_in(node, None),
            )
        if is_draw(node):
            raise NoGradientError(
                "random numbers are drawn on the way from what a gradient is taken by to what it is taken of",
                hint="draw them before it, of no value that wants a gradient; or switch dropout off (model.eval())",
                location=place_in(node, None),
            )
    values = [node.meta["val"] for node in between.module.graph.nodes if node.op == "placeholder"]
    plain = without_writes(between.module, values, tracing.fake_mode)
    there: list[Any] = []

    def pulled(*given: Any) -> list[torch.Tensor]:
        there.clear()
        links = Links()
        tape = Tape(plain, {branch_op: branch_rule(links), loop_op: loop_rule(links)})
        tape.run(given[: len(values)], [i for places, _ in between.starts for i in places])
        told: list[Gradient | None] = [Gradient(each) for each in given[len(values) :]]
        by_input = tape.pull([*told, *([None] * (len(tape.outputs) - len(told)))])
        made = []
        for places, result in between.starts:
            found: Gradient | None = None if result is None else tape.by_result(result)
            for i in places:
                found = summed(found, by_input[i])
            if found is None:
                there.append(None)
                continue
            like = tape.value(tape.outputs[result]) if result is not None else given[places[0]]
            settled = found.settled()
            there.append(settled.there is True)
            made.append(fitted(settled.value, like).clone())
            if settled.there is not True:
                made.append(settled.there.clone())
        return made

    with unfused():
        graph = retraced(pulled, [*values, *(value for _, value in tangents)], tracing.fake_mode, RULES)
    prune(graph)
    results = inlined(tracing, modules, graph, [*between.sources, *(node for node, _ in tangents)])
    found: list[Found] = []
    for each in there:
        if each is None:
            found.append(None)
        else:
            found.append((results.pop(0), True if each else results.pop(0)))
    return found


def bindings_of(node: fx.Node) -> dict[Any, Any]:
    """Where new symbols are first seen in what a node gives: a branch or loop may have lost some of its results."""
    bindings: dict[Any, Any] = node.meta["unbacked_bindings"]
    if node.target not in (branch_op, loop_op):
        return bindings
    places: dict[Any, Any] = {
        expression(size): (pytree.SequenceKey(i), CallMethodKey("size"), pytree.SequenceKey(d))
        for i, value in reversed(list(enumerate(node.meta["val"])))
        for d, size in enumerate(value.shape)
    }
    return {symbol: places[symbol] for symbol in bindings if symbol in places}


def inlined(
    tracing: Tracing, modules: dict[str, Any], module: fx.GraphModule, inputs: Sequence[fx.Node]
) -> list[torch.Tensor]:
    """Append the nodes of a graph to the running trace; its results as values of that."""
    local: dict[fx.Node, Any] = dict(
        zip((node for node in module.graph.nodes if node.op == "placeholder"), inputs, strict=True)
    )
    tracer = tracing.tracer
    results: list[torch.Tensor] = []

    def proxy_of(node: fx.Node) -> Any:
        return fx.Proxy(local[node], tracer)

    for node in module.graph.nodes:
        if node.op == "get_attr":
            inner = getattr(module, str(node.target))
            if not isinstance(inner, fx.GraphModule):
                raise NoGradientError("a derivative needs a constant that is no part of the trace", hint="pass it in")
            name = tracing.register(str(node.target).rstrip("_0123456789"), inner, modules)
            local[node] = tracer.create_proxy("get_attr", name, (), {}).node
        elif node.op == "call_function":
            args, kwargs = fx.node.map_arg((node.args, node.kwargs), proxy_of)
            made = tracer.create_proxy("call_function", node.target, args, kwargs)
            made.node.meta["val"] = node.meta["val"]
            if "unbacked_bindings" in node.meta:
                made.node.meta["unbacked_bindings"] = bindings_of(node)
            local[node] = made.node
        elif node.op == "output":
            for each in node.args[0]:
                value = each.meta["val"]
                tracing.track(value, fx.Proxy(local[each], tracer))
                results.append(value)
    return results
