"""In what order a tensor's elements lie in memory, where that depends on the path.

What leaves an arm or a loop's body is copied, and for the trace the copy is contiguous. A program that runs as Python
leaves most of these copies out, and each operator takes a tensor as it lies, as eager's does. But where something has
asked how a tensor lies (``is_contiguous``, ``stride``), what it has done then rests on the answer. If torch's own
modules have asked, whose values don't depend on it, the copies are contiguous; and the user's code is refused.

Source: https://docs.pytorch.org/docs/stable/tensor_view.html, of which operators ask for a layout.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch._ops import HigherOrderOperator, OpOverload

from dy2st.errors import Location, StagedNumberError
from dy2st.tracing.grad_mode import HANDED_ON, WORKED_ON
from dy2st.tracing.graph_ops import branch_op

# The mark of a copy that has to be contiguous.
_KEPT = "dy2st_layout"
# What these give is contiguous, however their operands lie.
_CONTIGUOUS = frozenset(f"aten::{name}" for name in "linear matmul mm bmm addmm baddbmm embedding".split())


class Layouts:
    """Whether a layout was asked for in one export, and where in the user's code it was.

    ``by_path``: whether the program takes tensors as they lie, which depends on the path.
    """

    def __init__(self) -> None:
        self.by_path = False
        self.asked = False
        self.location: Location | None = None

    def note(self, location: Location | None) -> None:
        """It was asked for; ``location`` is None in torch's own modules."""
        self.asked = True
        self.location = self.location or location

    def settle(self, module: fx.GraphModule) -> None:
        """If so, all copies of the program have the layout that they have in the trace.

        Raises:
            StagedNumberError: that would not be what the user's code is told in eager.
        """
        if not self.asked:
            return
        copies = [
            node
            for each in module.modules()
            for node in (each.graph.nodes if isinstance(each, fx.GraphModule) else ())
            if HANDED_ON in node.meta
        ]
        for node in copies:
            node.meta[_KEPT] = True
        if self.location is not None and any(map(needs_a_layout, copies)):
            raise StagedNumberError(
                "it is asked how a tensor lies in memory, and here that may depend on the path",
                hint="call .contiguous() on every path, and don't ask",
                location=self.location,
            )


def rests_on_path(node: fx.Node, root: fx.Graph) -> bool:
    """Whether a tensor may lie in memory as something does that an arm or an iteration has handed on.

    ``root`` is the graph of the program, whose placeholders are its inputs; those of others are what a loop carries.
    """
    seen, left = {node}, [node]
    while left:
        each = left.pop()
        if each.op == "placeholder" and each.graph is not root:
            return True
        if each.op == "call_function" and isinstance(each.target, HigherOrderOperator):
            return True
        if isinstance(each.target, OpOverload) and each.target._schema.name in _CONTIGUOUS:
            continue
        left += [source for source in each.all_input_nodes if source not in seen]
        seen.update(each.all_input_nodes)
    return False


def lies_by_path(node: fx.Node, module: torch.nn.Module, root: fx.Graph) -> bool:
    """Whether a tensor may lie in memory otherwise than in the trace, depending on the path.

    ``module`` has the graphs that nodes name. Of what a loop carries that is not known before its end.
    """
    around: dict[fx.Node, Any] = {}
    seen: set[fx.Node] = set()
    left: list[Any] = [node]
    while left:
        each = left.pop()
        if not isinstance(each, fx.Node) or each in seen:
            continue
        seen.add(each)
        if each in around:
            left.append(around[each])
        elif each.op == "placeholder":
            if each.graph is not root:
                return True
        elif each.op == "call_function" and isinstance(each.target, HigherOrderOperator):
            if each.target is not branch_op:
                return True
            for arm in each.args[1:3]:
                graph: Any = getattr(module, str(arm.target)).graph  # type: ignore[union-attr]
                inputs = [inner for inner in graph.nodes if inner.op == "placeholder"]
                around.update(zip(inputs, each.args[3], strict=True))  # type: ignore[arg-type]
                copies = next(inner for inner in reversed(graph.nodes) if inner.op == "output").args[0]
                if any(isinstance(copy, fx.Node) and _is_handed_on_otherwise(copy) for copy in copies):
                    return True
                left += copies
        elif not (isinstance(each.target, OpOverload) and each.target._schema.name in _CONTIGUOUS):
            left += each.all_input_nodes
    return False


def _is_handed_on_otherwise(copy: fx.Node) -> bool:
    return copy.kwargs.get("memory_format") is torch.contiguous_format and not _is_contiguous(copy.args[0])


def needs_a_layout(node: fx.Node) -> bool:
    """Whether a clone is also to make its operand contiguous, which is not known to be so."""
    if node.kwargs.get("memory_format") is not torch.contiguous_format:
        return False
    if WORKED_ON in node.meta or (HANDED_ON in node.meta and _KEPT not in node.meta):
        return False
    return not _is_contiguous(node.args[0])


def _is_contiguous(source: Any) -> bool:
    """Whether the value of a node is contiguous, as far as the trace knows."""
    value = source.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return False
    step: Any = 1
    for size, stride in zip(reversed(value.shape), reversed(value.stride()), strict=True):
        if _symbolic(stride) != step:
            return False
        step = step * _symbolic(size)
    return True


def _symbolic(size: Any) -> Any:
    return size.node.expr if isinstance(size, torch.SymInt) else size
