"""Which values of a trace want a gradient, as ``requires_grad`` says it of tensors in eager mode.

The rule. A parameter or input wants one if it does so outside of the trace; so does what ``requires_grad_()`` was
called on, from then on (``LEAF`` marks the node that stands for it). What is computed with gradients on, of a value
that wants one, wants one too. What is detached, has no real numbers, or is computed under ``torch.no_grad()`` does not.

What a loop carries is taken to be, at the head of each iteration, what it is before the loop. ``Carried`` keeps what
was made of that, and ``check_carried`` compares when the body is finished.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import torch
from torch import fx

from dy2st.errors import Location, NoGradientError
from dy2st.operators.export_session import current
from dy2st.tracing.grad_mode import HANDED_ON, STOPPED
from dy2st.tracing.gradients import DETACH
from dy2st.tracing.graph_ops import branch_op, loop_op
from dy2st.tracing.size_ops import sized_op
from dy2st.tracing.subgraph import alias_source, storage_of, written_inputs

LEAF = "dy2st_leaf"


class Wish(Enum):
    """What a value is to autograd: it wants no gradient, or is where a derivative ends, or was computed of such."""

    NONE = "no gradient"
    LEAF = "a gradient of its own"
    COMPUTED = "a gradient through what it was computed of"


class Carried:
    """What is known of the placeholders of loops' bodies, and what was made of that; a part of an export's session.

    ``before`` is what each is before its loop; None is a number or a constant. ``asked`` are those of which this has
    decided something, with the line that asked. By ``starts`` derivatives were taken; of a placeholder among them it
    only matters that it wants a gradient. What was ``told`` to want one must not be computed of what does. ``wanting``
    are the program's own inputs that do so outside of the trace.
    """

    def __init__(self) -> None:
        self.wanting: set[fx.Node] = set()
        # Those of them that have been computed of others.
        self.computed: set[fx.Node] = set()
        self.before: dict[fx.Node, fx.Node | None] = {}
        self.asked: dict[fx.Node, Location] = {}
        self.starts: dict[fx.Node, Location] = {}
        self.told: dict[fx.Node, Location] = {}
        # The memory outside of a graph that a derivative in it has read, with the line that took it.
        self.outside: dict[int, Location] = {}
        # What was told to want a gradient in an arm or loop: outside of that it wants one on some paths.
        self.uncertain: set[fx.Node] = set()

    def note_inputs(self, tensors: Iterable[tuple[torch.Tensor, fx.Node]]) -> None:
        """The program's inputs, as the code that is traced has them."""
        for tensor, node in tensors:
            self.note_input(tensor, node)

    def note_input(self, tensor: torch.Tensor, node: fx.Node) -> None:
        """One input, or a tensor that the code comes by otherwise."""
        with torch._C.DisableTorchFunction():
            if tensor.requires_grad:
                self.wanting.add(node)
                if not tensor.is_leaf:
                    self.computed.add(node)

    def wish(self, node: fx.Node, root: torch.nn.Module) -> Wish:
        """What a placeholder is before its loop; what nothing is known of may be computed of anything."""
        if node not in self.before:
            return Wish.COMPUTED
        before = self.before[node]
        return Wish.NONE if before is None else wish_of(before, root)


# By placeholders of graphs what they may stand for.
Given = Mapping[fx.Node, Sequence[Any]]


def wants_gradient(node: fx.Node, root: torch.nn.Module, given: Given | None = None) -> bool:
    """Whether the value of a node wants a gradient; ``root`` has the graphs that nodes name."""
    return any(told for _, told in _behind([node], (), root, given))


def is_uncertain(node: fx.Node, root: torch.nn.Module) -> bool:
    """Whether a node is computed of what wants a gradient on some paths only."""
    uncertain = current().part(Carried).uncertain
    return bool(uncertain) and any(each in uncertain for each, _ in _behind([node], (), root))


def placeholders_behind(nodes: Sequence[fx.Node], starts: Sequence[fx.Node], root: torch.nn.Module) -> list[fx.Node]:
    """The real inputs of graphs that nodes are computed of with gradients on, not looking behind ``starts``."""
    return [each for each, _ in _behind(nodes, starts, root) if each.op == "placeholder" and is_real(each)]


def inputs_reached(nodes: Sequence[fx.Node], root: torch.nn.Module) -> set[fx.Node]:
    """The program's own inputs to which derivatives of nodes lead."""
    wanting = current().part(Carried).wanting
    return {each for each, _ in _behind(nodes, (), root) if each in wanting}


def _behind(
    nodes: Sequence[fx.Node], starts: Sequence[fx.Node], root: torch.nn.Module, given: Given | None = None
) -> Iterator[tuple[fx.Node, bool | None]]:
    """What nodes are computed of with gradients on, each with whether it wants a gradient by itself."""
    carried = current().part(Carried)
    around: dict[fx.Node, Sequence[Any]] = dict(given or {})
    seen: set[fx.Node] = set()
    waiting: list[Any] = list(nodes)
    while waiting:
        each = waiting.pop()
        if not isinstance(each, fx.Node) or each in seen or each in starts:
            continue
        seen.add(each)
        if each in around:
            waiting += around[each]
            continue
        settled = _settled(each, carried)
        yield each, settled
        if each in carried.before:
            waiting.append(carried.before[each])
        elif settled is None:
            waiting += _made_of(each, root, around)
        if LEAF not in each.meta:
            waiting += _written_into(each)


def wish_of(node: fx.Node, root: torch.nn.Module, given: Given | None = None) -> Wish:
    """What a node's value is to autograd."""
    if not wants_gradient(node, root, given):
        return Wish.NONE
    return Wish.LEAF if is_leaf(node) else Wish.COMPUTED


def is_leaf(node: fx.Node) -> bool:
    """Whether a node that wants a gradient is where a derivative ends, as it is after writes without gradients."""
    node = leaf_of(node)
    carried = current().part(Carried)
    return node.meta.get(LEAF) is True or (node in carried.wanting and node not in carried.computed)


def leaf_of(node: fx.Node) -> fx.Node:
    """The node that a tensor was when it was told to want a gradient.

    Writes without gradients have left it that, and so has being carried into a loop.
    """
    before = current().part(Carried).before
    while LEAF not in node.meta:
        targets = written_inputs(node)[:1] if STOPPED in node.meta else [before.get(node)]
        if not targets or targets[0] is None:
            break
        node = targets[0]
    return node


def is_real(node: fx.Node) -> bool:
    """Whether a node gives a tensor of real or complex numbers, or several tensors."""
    value = node.meta.get("val")
    if isinstance(value, (list, tuple)):
        return True
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _settled(node: fx.Node, carried: Carried) -> bool | None:
    """Whether a node's value wants a gradient, where that does not depend on others."""
    if LEAF in node.meta:
        return bool(node.meta[LEAF])
    if not is_real(node) or node.target is DETACH:
        return False
    if node.op != "call_function":
        return node in carried.wanting
    if STOPPED in node.meta:
        return None if written_inputs(node) else False
    return None


def _made_of(node: fx.Node, root: torch.nn.Module, around: dict[fx.Node, Sequence[Any]]) -> list[Any]:
    """What a node has its wish from; through a branch or loop only what the one result depends on."""
    if STOPPED in node.meta:
        return list(written_inputs(node)[:1])
    source: Any = node.args[0] if node.target is operator.getitem else None
    if not isinstance(source, fx.Node) or source.target not in (branch_op, loop_op):
        return list(node.all_input_nodes)
    number: Any = node.args[1]
    given: Any = source.args
    if source.target is branch_op:
        found = []
        for arm in given[1:3]:
            inputs, results = _ends(getattr(root, str(arm.target)))
            around.update({one: [other] for one, other in zip(inputs, given[3], strict=True)})
            found.append(results[number])
        return found
    inputs, (_, *results) = _ends(getattr(root, str(given[0].target)))
    count = len(given[3])
    around.update({one: list(pair) for one, *pair in zip(inputs[1 : 1 + count], given[3], results, strict=False)})
    around.update({one: [other] for one, other in zip(inputs[1 + count :], given[4], strict=True)})
    return [results[number], *given[3][number : number + 1]]


def _ends(module: Any) -> tuple[list[fx.Node], Sequence[Any]]:
    """The inputs and the results of a graph."""
    nodes = list(module.graph.nodes)
    return [each for each in nodes if each.op == "placeholder"], nodes[-1].args[0]


def _written_into(node: fx.Node) -> list[fx.Node]:
    """What was written, with gradients on, into the memory of a node's tensor."""
    storage = storage_of(node)
    if storage is None or node.target is DETACH:
        return []
    while (source := alias_source(node)) is not None:
        node = source
    found: list[fx.Node] = []
    seen: set[fx.Node] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each in seen or storage_of(each) != storage or each.target is DETACH:
            continue
        seen.add(each)
        waiting += each.users
        if STOPPED not in each.meta and written_inputs(each):
            found += each.all_input_nodes
    return found


def check_carried(
    inputs: Sequence[fx.Node],
    initial: Sequence[fx.Node | None],
    following: Sequence[fx.Node],
    root: torch.nn.Module,
) -> None:
    """Refuse a loop whose body was traced for a value that wants another gradient than it does in some iteration.

    Raises:
        NoGradientError: it was.
    """
    carried = current().part(Carried)
    if not (carried.asked or carried.starts or carried.told):
        return
    pairs = {node: (_copied(a), _copied(b)) for node, a, b in zip(inputs, initial, following, strict=True)}
    ends = {leaf_of(each) for node in carried.starts for each in (node, *pairs.get(node, ())) if each is not None}
    for node, pair in pairs.items():
        place = carried.asked.get(node) or carried.starts.get(node) or carried.told.get(node)
        if place is None:
            continue
        around: dict[fx.Node, Sequence[Any]] = dict(pairs)
        found = _passed_along(pair, root, around)
        wishes = {wish_of(each, root, around) for each in found}
        taken = carried.wish(node, root)
        if node not in carried.asked:
            same = (Wish.NONE if node in carried.starts else Wish.COMPUTED) not in wishes
        else:
            same = wishes == {taken} and (taken is not Wish.LEAF or not ends.intersection(map(leaf_of, found)))
        if not same:
            raise NoGradientError(
                "a gradient depends on a value that a loop carries, and which is not in all iterations alike what "
                f"autograd takes it for: {' or '.join(sorted(each.value for each in wishes | {taken}))}",
                hint="let each iteration begin alike: x = x.detach().requires_grad_()",
                location=place,
            )


def _passed_along(
    values: Iterable[fx.Node | None], root: torch.nn.Module, around: dict[fx.Node, Sequence[Any]]
) -> list[fx.Node]:
    """What values are in some iteration and on some path, of those that are handed on as they are.

    ``around`` says what the placeholders of the body stand for, and is told that of arms.
    """
    found: dict[fx.Node, None] = {}
    seen: set[fx.Node] = set()
    waiting: list[Any] = list(values)
    while waiting:
        each = waiting.pop()
        if not isinstance(each, fx.Node) or each in seen:
            continue
        seen.add(each)
        source: Any = each.args[0] if each.target is operator.getitem else None
        if each in around:
            waiting += around[each]
        elif HANDED_ON in each.meta or each.target is sized_op:
            waiting += each.args[:1]
        elif isinstance(source, fx.Node) and source.target is branch_op:
            waiting += _made_of(each, root, around)
        else:
            found[each] = None
    return list(found)


def check_written(bases: Sequence[fx.Node]) -> None:
    """Refuse a loop that writes, with gradients on, into tensors from outside of which its body took a derivative.

    Raises:
        NoGradientError: it does: in eager an iteration goes through what the earlier ones have written.
    """
    outside = current().part(Carried).outside
    for base in bases:
        place = outside.get(storage_of(base) or 0) if is_real(base) else None
        if place is not None:
            raise NoGradientError(
                "a gradient is taken in a loop, through a tensor into which each iteration writes with gradients on",
                hint="keep the rows in a list, or write under torch.no_grad()",
                location=place,
            )


def _copied(node: fx.Node | None) -> fx.Node | None:
    """What a loop is given or gives a copy of."""
    source = None if node is None or node.target is not torch.ops.aten.clone.default else node.args[0]
    return source if isinstance(source, fx.Node) else node
