"""Whether eager's results would have gradients, by a program's graph and by which of its inputs want some.

The rule. A value has a gradient if it is one of floats, made of one that has; ``detach``, which a capture puts wherever
``torch.no_grad()`` ends, ends it. An arm counts whether or not it is taken. After a write of what has a gradient all
floats count, since they may share memory with what was written to.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from dy2st.static.subgraphs import body_of, inputs_of, is_result_of_ours, results_of
from dy2st.tracing.graph_ops import branch_op, loop_op
from dy2st.tracing.subgraph import written_inputs

_NONE = (torch.ops.aten.detach.default, torch.ops.aten.detach_.default)


def gradients_wanted(module: fx.GraphModule, wanted: Sequence[bool]) -> bool:
    """Whether some result, or what is written to an input, has a gradient; ``wanted`` says it of the inputs."""
    flow = _Flow()
    return any(flow.results(module, wanted)) or flow.written


class _Flow:
    def __init__(self) -> None:
        self.written = False

    def results(self, module: fx.GraphModule, wanted: Sequence[bool]) -> list[bool]:
        """Which results of a graph have a gradient."""
        known: dict[Any, Any] = dict(zip(inputs_of(module), wanted, strict=True))

        def has(value: Any) -> bool:
            return isinstance(value, fx.Node) and (known.get(value) is True or (self.written and _is_of_floats(value)))

        for node in module.graph.nodes:
            if node.op != "call_function" or node.target in _NONE:
                continue
            if node.target is branch_op:
                operands = [has(each) for each in node.args[3]]
                arms = [self.results(body_of(module, arm), operands) for arm in node.args[1:3]]
                known[node] = [a or b for a, b in zip(*arms, strict=True)]
            elif node.target is loop_op:
                known[node] = self._of_loop(module, node, has)
            elif node.target is operator.getitem and is_result_of_ours(node):
                known[node] = known[node.args[0]][node.args[1]]
            else:
                flows = any(map(has, node.all_input_nodes))
                known[node] = flows and _is_of_floats(node)
                self.written |= flows and any(map(_is_of_floats, written_inputs(node)))
        return [has(each) for each in results_of(module)]

    def _of_loop(self, module: fx.GraphModule, node: fx.Node, has: Any) -> list[bool]:
        carried: list[bool] = [has(each) for each in node.args[3]]  # type: ignore[union-attr]
        operands = [has(each) for each in node.args[4]]  # type: ignore[union-attr]
        while True:
            _, *inside = self.results(body_of(module, node.args[0]), [False, *carried, *operands])
            grown = [a or b for a, b in zip(carried, inside, strict=False)]
            if grown == carried:
                return [*carried, *inside[len(carried) :]]
            carried = grown


def _is_of_floats(node: fx.Node) -> bool:
    """Whether a node gives floats or complex numbers; something that is no tensor may hold such."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return value is None or isinstance(value, (list, tuple))
    return value.is_floating_point() or value.is_complex()
