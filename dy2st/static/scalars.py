"""Which 0-d tensors of a program are Python's own numbers when it runs.

A graph has tensors alone: the test of a loop, a flag that a ``break`` sets, a counter are 0-d tensors in it, and an
``and`` of two of them is an operator. In the function that is generated from the graph they are Python's own, as they
were in eager code, unless some operator needs the tensor.

The rule: the greatest set of 0-d tensors of bool, int64 and float64 of which each is used by nothing but tests,
Python's operators on members of the set, places of branches and loops all of whose values are members, and arithmetic
with a tensor to whose dtype it is cast. A float is a member only if members alone made it: it has no gradient then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

from dy2st.static.subgraphs import OURS, body_of, inputs_of, is_result_of_ours, results_of
from dy2st.tracing.graph_ops import branch_op
from dy2st.tracing.guards import require_op
from dy2st.tracing.subgraph import graph_modules

ATEN = torch.ops.aten
_COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
# Operators on members, as Python's: how a member is written that one of them makes.
TEXTS: dict[Any, str] = {
    ATEN.logical_and.default: "({0} and {1})",
    ATEN.logical_or.default: "({0} or {1})",
    ATEN.logical_not.default: "(not {0})",
    ATEN.logical_xor.default: "({0} != {1})",
    ATEN.clone.default: "{0}",
    **{
        getattr(getattr(ATEN, name), kind): f"({{0}} {sign} {{1}})"
        for name, sign in _COMPARISONS.items()
        for kind in ("Tensor", "Scalar")
    },
}
_ON_INTS = {
    ATEN.add.Tensor: "({0} + {1})",
    ATEN.sub.Tensor: "({0} - {1})",
    ATEN.mul.Tensor: "({0} * {1})",
    ATEN.neg.default: "(-{0})",
    ATEN.minimum.default: "min({0}, {1})",
    ATEN.maximum.default: "max({0}, {1})",
}
_ON_BOOLS = {
    ATEN.bitwise_and.Tensor: "({0} and {1})",
    ATEN.bitwise_or.Tensor: "({0} or {1})",
    ATEN.bitwise_not.default: "(not {0})",
    ATEN.__and__.Tensor: "({0} and {1})",
    ATEN.__or__.Tensor: "({0} or {1})",
}
ITEMS = (ATEN.item.default, ATEN._local_scalar_dense.default)
_LITERALS = (ATEN.full.default, ATEN.scalar_tensor.default)
_ON_FLOATS = {
    ATEN.add.Tensor: "({0} + {1})",
    ATEN.sub.Tensor: "({0} - {1})",
    ATEN.mul.Tensor: "({0} * {1})",
    ATEN.neg.default: "(-{0})",
    ATEN.true_divide.Tensor: "({0} / {1})",
    ATEN.div.Tensor: "({0} / {1})",
}
# Arithmetic in which a number of Python's counts as a tensor of the other operand's dtype.
_WITH_TENSORS = tuple(getattr(ATEN, name).Tensor for name in ("add", "sub", "mul", "div", "true_divide"))
_KINDS = {torch.bool: "bool", torch.int64: "int", torch.float64: "float"}


def kind_of(node: Any) -> str | None:
    """``"bool"``, ``"int"`` or ``"float"`` for what may be a member by its type."""
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    if not isinstance(value, torch.Tensor) or value.dim() != 0:
        return None
    return _KINDS.get(value.dtype)


def text_of(node: fx.Node) -> str | None:
    """How Python computes what an operator makes of members, its operands to be filled in; None if it can't."""
    if not isinstance(node.target, OpOverload) or kind_of(node) is None:
        return None
    if node.target is ATEN.to.dtype:
        return _cast_of_member(node)
    operands = [kind_of(each) if isinstance(each, fx.Node) and not _is_symbol(each) else "number" for each in node.args]
    if None in operands or not set(node.kwargs) <= {"memory_format"}:
        return None
    found = TEXTS.get(node.target)
    if found is None and kind_of(node) == "int" and "bool" not in operands:
        found = _ON_INTS.get(node.target)
    if found is None and kind_of(node) == "float" and "bool" not in operands:
        found = _ON_FLOATS.get(node.target)
    if found is None and kind_of(node) == "bool":
        found = _ON_BOOLS.get(node.target)
    if found is None or found.count("{") != len(operands):
        return None
    if "logical" in node.target._schema.name and set(operands) != {"bool"}:
        return None
    return found


def _cast_of_member(node: fx.Node) -> str | None:
    """A cast that loses nothing: bool to int to float."""
    order = list(_KINDS.values())
    source, kind = kind_of(node.args[0]), kind_of(node)
    if len(node.args) != 2 or node.kwargs or source is None or order.index(source) > order.index(str(kind)):
        return None
    return "{0}" if source == kind else f"{kind}({{0}})"


def literal_of(node: fx.Node) -> Any:
    """The constant or symbol that a 0-d tensor is made of; None for another node."""
    if node.op != "call_function" or node.target not in _LITERALS or kind_of(node) is None:
        return None
    value = node.args[1] if node.target is ATEN.full.default else node.args[0]
    finite = isinstance(value, (bool, int)) or (isinstance(value, float) and value - value == 0)
    return value if finite or (isinstance(value, fx.Node) and _is_symbol(value)) else None


def is_cast(node: fx.Node) -> bool:
    """Whether a node casts a 0-d tensor for arithmetic with others, for which Python's number serves as it is."""
    if node.op != "call_function" or node.target is not ATEN.to.dtype or len(node.args) != 2 or node.kwargs:
        return False
    value = node.meta["val"]
    return (
        value.dim() == 0 and value.dtype.is_floating_point and all(_is_arithmetic(u, node, value) for u in node.users)
    )


def _is_arithmetic(user: fx.Node, node: fx.Node, value: Any) -> bool:
    if user.target not in _WITH_TENSORS or user.kwargs or len(user.args) != 2:
        return False
    others = [each for each in user.args if each is not node]
    if len(others) != 1 or not isinstance(others[0], fx.Node):
        return False
    other = others[0].meta.get("val")
    alike = isinstance(other, torch.Tensor) and other.dtype is value.dtype
    return alike and others[0].target is not ATEN.to.dtype  # of two numbers Python would make a number


def tensors_of(node: fx.Node) -> list[fx.Node]:
    """The tensors among the operands of a node."""
    return [each for each in node.all_input_nodes if isinstance(each.meta.get("val"), torch.Tensor)]


def _is_symbol(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), (int, torch.SymInt, torch.SymBool, torch.SymFloat))


class Scalars:
    """The members; ``numbers`` says which results of the program are numbers."""

    def __init__(self, module: fx.GraphModule, numbers: Sequence[bool]) -> None:
        self._slots: dict[fx.Node, list[set[fx.Node]]] = {}
        # What a member is handed on to: (graph, number of the result) pairs lead to places of branches and loops.
        self._places: list[set[fx.Node]] = []
        self._outputs: dict[tuple[fx.Node, int], set[fx.Node]] = {}
        self._inner: dict[fx.Node, set[fx.Node]] = {}
        self.members = {
            node for each in graph_modules(module) for node in each.graph.nodes if kind_of(node) is not None
        }
        self._find_places(module)
        output = next(node for node in reversed(module.graph.nodes) if node.op == "output")
        top = {node for node, number in zip(results_of(module), numbers, strict=False) if number}
        self.members -= {node for node in module.graph.nodes if node.op == "placeholder"}
        self.members -= {node for node in self.members if node.op == "get_attr"}
        self._shrink(output, top)

    def _find_places(self, module: fx.GraphModule) -> None:
        """The places of branches and loops: sets of nodes that are one value, or follow each other in one variable."""
        for owner in graph_modules(module):
            for node in owner.graph.nodes:
                if node.op != "call_function" or node.target not in OURS:
                    continue
                gets: dict[int, list[fx.Node]] = {}
                for user in node.users:
                    gets.setdefault(user.args[1], []).append(user)
                if node.target is branch_op:
                    arms = [body_of(owner, arm) for arm in node.args[1:3]]
                    self._operands(arms, node.args[3], 0)
                    for i, results in enumerate(zip(*map(results_of, arms), strict=True)):
                        self._place([*results, *gets.get(i, ())])
                else:
                    self._loop(owner, node, gets)

    def _loop(self, owner: fx.GraphModule, node: fx.Node, gets: dict[int, list[fx.Node]]) -> None:
        body = body_of(owner, node.args[0])
        inputs, results = inputs_of(body), results_of(body)
        carried: Any = node.args[3]
        self._operands([body], node.args[4], 1 + len(carried))
        for i, first in enumerate(carried):
            self._place([first, inputs[1 + i], results[1 + i], *gets.get(i, ())])
        for i in range(len(carried) + 1, len(results)):  # rows are stacked
            self.members.discard(results[i])

    def _operands(self, bodies: Sequence[fx.GraphModule], operands: Any, skip: int) -> None:
        for i, each in enumerate(operands):
            self._place([each, *(inputs_of(body)[skip + i] for body in bodies)])

    def _place(self, nodes: Sequence[Any]) -> None:
        """All of these are members, or none."""
        found = {node for node in nodes if isinstance(node, fx.Node)}
        if len(found) < len(set(nodes)):
            self.members -= found  # a literal that is no node
        self._places.append(found)
        for node in found:
            self._slots.setdefault(node, []).append(found)

    def _shrink(self, output: fx.Node, numbers: set[fx.Node]) -> None:
        while True:
            gone = {node for node in self.members if not self._stays(node, output, numbers)}
            if not gone:
                return
            self.members -= gone

    def _stays(self, node: fx.Node, output: fx.Node, numbers: set[fx.Node]) -> bool:
        if kind_of(node) == "float" and node.op == "call_function" and not self._is_of_members(node):
            return False
        if any(not each <= self.members for each in self._slots.get(node, ())):
            return False
        return all((node in numbers if user is output else self._takes(user)) for user in node.users)

    def _is_of_members(self, node: fx.Node) -> bool:
        """Whether a node's value is one of members, and of nothing else."""
        if literal_of(node) is not None or is_result_of_ours(node):
            return True
        return text_of(node) is not None and all(each in self.members for each in tensors_of(node))

    def _takes(self, user: fx.Node) -> bool:
        """Whether a user of a member has no need of a tensor."""
        if user.op == "output" or user.target in ITEMS:
            return True  # of a subgraph: its places decide
        if user.target is require_op:
            return True
        if user.target in OURS:
            return True  # the test, or an operand: its places decide
        if is_cast(user):
            return True
        members = all(each in self.members for each in tensors_of(user))
        return user in self.members and text_of(user) is not None and members
