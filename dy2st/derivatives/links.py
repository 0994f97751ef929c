"""Which results of a graph have gradients by which of its inputs: always, or on some paths only.

Source: autograd's own answer for each operator, which is run on tensors without values; data flow for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import grad  # a capture puts another function in its place
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

from dy2st.derivatives.gradient_values import is_real
from dy2st.derivatives.tape import Key, callable_of, key_of
from dy2st.tracing.graph_ops import branch_op, loop_op
from dy2st.tracing.size_facts import SizeFacts

# The inputs that a value depends on, by their indices, and whether it does so on every path.
Reach = dict[int, bool]


def merged(found: Sequence[Mapping[int, bool]]) -> Reach:
    """What is reached through any of several ways."""
    made: Reach = {}
    for each in found:
        for index, always in each.items():
            made[index] = made.get(index, False) or always
    return made


def through(inner: Mapping[int, bool], outer: Sequence[Mapping[int, bool]]) -> Reach:
    """What is reached through inputs of a subgraph, of which ``outer`` says what each reaches."""
    return merged([{i: always and each for i, each in outer[k].items()} for k, always in inner.items()])


def one_of(then: Mapping[int, bool], orelse: Mapping[int, bool]) -> Reach:
    """What one of two arms reaches, whichever is taken."""
    return {i: then.get(i, False) and orelse.get(i, False) for i in (*then, *orelse)}


def runs_for_sure(trips: Any, go: Any) -> bool:
    """Whether a loop is known to run once at least."""
    return go is None and (trips is None or (isinstance(trips, int) and trips > 0))


class Links:
    """The answers for graphs, each looked at once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[fx.GraphModule, list[Reach]]] = {}

    def of(self, module: fx.GraphModule) -> list[Reach]:
        """For each result of a graph what it reaches."""
        if id(module) not in self._known:
            self._known[id(module)] = module, self._found(module)
        return self._known[id(module)][1]

    def _found(self, module: fx.GraphModule) -> list[Reach]:
        inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
        reach: dict[Key, Reach] = {
            (node, None): {i: True} for i, node in enumerate(inputs) if is_real(node.meta.get("val"))
        }

        def reached(argument: Any) -> Reach:
            return reach.get(key_of(argument), {}) if isinstance(argument, fx.Node) else {}

        for node in module.graph.nodes:
            if node.op == "output":
                return [reached(each) for each in node.args[0]]
            if node.op != "call_function" or key_of(node)[0] is not node:
                continue
            given: Any = node.args
            if node.target is branch_op:
                _, *arms, operands = given
                outer = [reached(each) for each in operands]
                then, orelse = (self.of(getattr(module, str(arm.target))) for arm in arms)
                made = [through(one_of(a, b), outer) for a, b in zip(then, orelse, strict=True)]
            elif node.target is loop_op:
                body_node, trips, go, carried, operands, _, _ = given
                outer = [reached(each) for each in (*carried, *operands)]
                sure = runs_for_sure(trips, go)
                made = [
                    through(each, outer)
                    for each in self.of_loop(getattr(module, str(body_node.target)), len(carried), sure)
                ]
            else:
                made = [merged([reach[key] for key in keys]) for keys in _linked(node, reach)]
            several = node.target in (branch_op, loop_op) or isinstance(node.meta.get("val"), (list, tuple))
            for i, each in enumerate(made):
                if each:
                    reach[node, i if several else None] = each
        raise AssertionError(module)

    def of_body(self, body: fx.GraphModule) -> list[Reach]:
        """For each result of a loop's body (whether to go on left out) what it reaches, the counter left out."""
        return [{i - 1: always for i, always in each.items()} for each in self.of(body)[1:]]

    def of_loop(self, body: fx.GraphModule, count: int, sure: bool) -> list[Reach]:
        """For each result of a loop what it reaches of its ``count`` carried tensors and its operands."""
        step = self.of_body(body)
        found: list[Reach] = [{i: True} for i in range(count)]
        while True:
            outer = [*found, *({i: True} for i in range(count, self._width(body)))]
            following = [dict.fromkeys(merged([found[i], through(step[i], outer)]), False) for i in range(count)]
            if all(a.keys() == b.keys() for a, b in zip(found, following, strict=True)):
                break
            found = following
        outer = [*found, *({i: True} for i in range(count, self._width(body)))]
        made = [dict.fromkeys(each, False) for each in found]
        for i, each in enumerate(made):
            each[i] = step[i].get(i, False)
            if sure:
                each.update({k: True for k, always in step[i].items() if k >= count and always})
        rows = [dict.fromkeys(through(each, outer), False) for each in step[count:]]
        return [*made, *rows]

    def _width(self, body: fx.GraphModule) -> int:
        return -1 + sum(int(node.op == "placeholder") for node in body.graph.nodes)


def _linked(node: fx.Node, reach: Mapping[Key, Reach]) -> list[list[Key]]:
    """For each result of an operator the values that autograd finds it to depend on."""
    leaves: dict[Key, torch.Tensor] = {}

    def given(argument: fx.Node) -> Any:
        value, key = argument.meta.get("val"), key_of(argument)
        if key not in reach or not isinstance(value, torch.Tensor):
            return value
        if key not in leaves:
            leaves[key] = value.detach().requires_grad_()
        return leaves[key]

    with disable_proxy_modes_tracing():
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), given)
        if not leaves:
            return []
        env: Any = next(each.fake_mode.shape_env for each in leaves.values() if isinstance(each, FakeTensor))
        facts = SizeFacts.of(env)
        target = callable_of(node)
        with torch.enable_grad(), env.ignore_fresh_unbacked_symbols():
            results = target(*args, **kwargs)
            parts = results if isinstance(results, (list, tuple)) else [results]
            found = [_depends(part, leaves) for part in parts]
        facts.restore(env)
    return found


def _depends(value: Any, leaves: Mapping[Key, torch.Tensor]) -> list[Key]:
    if not isinstance(value, torch.Tensor) or not value.requires_grad:
        return []
    gradients: Any = grad(
        [value], list(leaves.values()), [torch.zeros_like(value)], allow_unused=True, retain_graph=True
    )
    return [key for key, gradient in zip(leaves, gradients, strict=True) if gradient is not None]
