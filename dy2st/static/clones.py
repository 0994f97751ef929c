"""Which copies of a program can be left out, and which values are made once.

A capture copies what enters a branch or loop and what leaves it, so that no two values of the graph share memory; and
it works on a copy of what an arm or a loop's body writes to, and writes that back after it.

The rule. A copy of a capture's is left out where nobody would read anything else without it: see ``Moves``. So is one
that the user's code makes, if nothing is written later to what would share its memory and no result of the program may
be it; or if its operand is new and used by nothing else, not even by its own derivative: that of ``relu`` reads what
``relu`` gave, and autograd refuses what was written to since. A result that would then be an input, or another result,
and is neither in eager, is cloned at the end. What is made of constants alone and not written to is made once, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from dy2st.static.aliasing import CLONES, changes_nothing, is_guard, is_new, is_users_clone, name_of_operator
from dy2st.static.moves import Moves
from dy2st.static.subgraphs import OURS, body_of, inputs_of
from dy2st.tracing.graph_ops import branch_op, loop_op
from dy2st.tracing.subgraph import graph_modules, written_inputs

ATEN = torch.ops.aten
_MADE = (
    *(ATEN.full.default, ATEN.zeros.default, ATEN.ones.default, ATEN.scalar_tensor.default, ATEN.eye.default),
    *(ATEN.arange.default, ATEN.arange.start, ATEN.arange.start_step, ATEN.linspace.default),
)
# Elements of what is kept for good.
LARGEST_KEPT = 1 << 16
Origins = frozenset[Any]


class Clones:
    """What is known of the clones of a program."""

    def __init__(self, module: fx.GraphModule) -> None:
        nodes = [node for each in graph_modules(module) for node in each.graph.nodes]
        self._module = module
        self._written: dict[Any, dict[fx.Node, None]] = {}
        inputs = [frozenset((node,)) for node in inputs_of(module)]
        # What each result may be in eager, and the user's own copies among it.
        self._in_eager = self._results(module, inputs, is_users_clone)
        kept = {
            node for found in self._in_eager for node in found if isinstance(node, fx.Node) and is_users_clone(node)
        }
        left_out = {node for node in nodes if node.target in CLONES and isinstance(node.args[0], fx.Node)} - kept
        # A result is the caller's own, and may be an input on another path: it is not to be cloned then.
        made_once = set(filter(_is_made_once, nodes)) - frozenset().union(*self._in_eager)
        # Copies of a tensor into itself.
        self._idle: set[fx.Node] = set()
        if any(map(_writes, nodes)):
            found = _followed(module, left_out)
            self._idle = found.idle
            made_once -= found.written
        self._left_out, self.once = left_out, made_once

    def left_out(self, node: fx.Node) -> bool:
        """Whether a node is no more than another name of its operand: a clone, or a write of what is there."""
        return node in self._left_out or node in self._idle or changes_nothing(node) or is_guard(node)

    def writers(self) -> frozenset[fx.Node]:
        """The nodes that write to what existed before a run, as the program is run."""
        inputs = inputs_of(self._module)
        self._written = {}
        self._results(self._module, [frozenset((node,)) for node in inputs], lambda node: not self.left_out(node))
        found = frozenset(node for each in inputs for node in self._written.get(each, ()))
        return found - self._idle

    def changes_inputs(self) -> bool:
        """Whether a run of the program changes a tensor that existed before it."""
        return bool(self.written_inputs(cloning=True))

    def written_inputs(self, *, cloning: bool) -> dict[fx.Node, list[fx.Node]]:
        """The inputs whose memory is written to, or would be if no copy were made, and what writes there."""
        inputs = inputs_of(self._module)
        self._written = {}
        self._results(self._module, [frozenset((node,)) for node in inputs], _is_clone if cloning else _is_none)
        return {node: list(self._written[node]) for node in inputs if node in self._written}

    def results_to_clone(self) -> set[int]:
        """The results of the program, by number, that are not their own without the clones."""
        inputs = inputs_of(self._module)
        own = [frozenset((node,)) for node in inputs]
        after = self._results(self._module, own, lambda node: not self.left_out(node))
        found = set()
        for i, (old, new) in enumerate(zip(self._in_eager, after, strict=True)):
            others = frozenset().union(*(each for j, each in enumerate(after) if j < i and j not in found))
            if (new - old) & (frozenset(inputs) | others):
                found.add(i)
        return found

    def _results(
        self, module: fx.GraphModule, inputs: Sequence[Origins], copies: Callable[[fx.Node], bool]
    ) -> list[Origins]:
        """For each result the values whose memory it may be; ``copies`` says which clones are carried out."""
        known: dict[Any, Any] = dict(zip(inputs_of(module), inputs, strict=True))

        def of(argument: Any) -> Origins:
            found = known.get(argument, frozenset()) if isinstance(argument, fx.Node) else frozenset()
            return frozenset().union(*found) if isinstance(found, list) else found

        for node in module.graph.nodes:
            if node.op == "output":
                return [of(each) for each in node.args[0]]
            if node.op != "call_function":
                continue
            if _writes(node):
                for origin in frozenset().union(*(of(each) for each in written_inputs(node))):
                    self._written.setdefault(origin, {})[node] = None
            if node.target is branch_op:
                operands = [of(each) for each in node.args[3]]
                arms = [self._results(body_of(module, arm), operands, copies) for arm in node.args[1:3]]
                known[node] = [a | b for a, b in zip(*arms, strict=True)]
            elif node.target is loop_op:
                known[node] = self._of_loop(module, node, of, copies)
            elif getattr(node.target, "__name__", "") == "getitem" and isinstance(known.get(node.args[0]), list):
                known[node] = known[node.args[0]][node.args[1]]
            elif node.target in CLONES:
                known[node] = frozenset((node,)) if copies(node) else of(node.args[0])
            elif is_new(node):
                known[node] = frozenset((node,))
            else:  # a view, or what may be one
                known[node] = frozenset().union(*(of(each) for each in node.all_input_nodes), (node,))
        return []

    def _of_loop(
        self, module: fx.GraphModule, node: fx.Node, of: Any, copies: Callable[[fx.Node], bool]
    ) -> list[Origins]:
        carried: list[Origins] = [of(each) for each in node.args[3]]  # type: ignore[union-attr]
        operands = [of(each) for each in node.args[4]]  # type: ignore[union-attr]
        while True:
            given = [frozenset(), *carried, *operands]
            inside = self._results(body_of(module, node.args[0]), given, copies)
            grown = [a | b for a, b in zip(carried, inside[1:], strict=False)]
            if grown == carried:
                rows: Any = node.args[6]
                return [*carried, *(frozenset((node, i)) for i in range(rows))]
            carried = grown


def _is_clone(node: fx.Node) -> bool:
    return node.target in CLONES


def _is_none(_: fx.Node) -> bool:
    return False


def _followed(module: fx.GraphModule, left_out: set[fx.Node]) -> Moves:
    """Follow a program without some clones, and take those out of the set that have to be made."""
    depths = _depths(module)
    unwritten = {node for node in left_out if is_users_clone(node) and not _is_only_use(node)}
    while True:
        found = Moves(module, left_out, unwritten)
        made: set[fx.Node] = set()
        for between in found.conflicts:
            if made.isdisjoint(between):
                made.add(min(between & left_out, key=lambda node: (not is_users_clone(node), depths[node])))
        if not made:
            return found
        left_out -= made


def _depths(module: fx.GraphModule, depth: int = 0) -> dict[fx.Node, tuple[int, int]]:
    """In how many loops the nodes of a program are, and how late they come."""
    found: dict[fx.Node, tuple[int, int]] = {}
    for node in module.graph.nodes:
        if node.target in OURS:
            bodies = node.args[1:3] if node.target is branch_op else node.args[:1]
            for each in bodies:
                found |= _depths(body_of(module, each), depth + (node.target is loop_op))
        found[node] = depth, len(found)
    return found


def _is_only_use(node: fx.Node) -> bool:
    """Whether a clone's operand is new and used by nothing else, not even by its own derivative."""
    source: Any = node.args[0]
    return len(source.users) == 1 and is_new(source) and _is_unread(source)


def _writes(node: fx.Node) -> bool:
    return bool(written_inputs(node)) and not is_guard(node)


def _is_unread(node: fx.Node) -> bool:
    """Whether an operator's derivative is known not to read its result."""
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor) and not (value.dtype.is_floating_point or value.dtype.is_complex):
        return True
    return name_of_operator(node) in _RESULT_UNREAD or not node.all_input_nodes


# After torch's table of derivatives (tools/autograd/derivatives.yaml): their formulas don't name the result.
_RESULT_UNREAD = frozenset(
    "add sub rsub mul neg clone lift_fresh_copy to _to_copy copy stack cat where sum mean mm bmm matmul mv dot addmm "
    "linear full_like zeros_like ones_like new_zeros new_ones new_full index_select gather index masked_fill "
    "index_put scatter abs sin cos".split()
)


def _is_made_once(node: fx.Node) -> bool:
    """Whether a node gives the same small tensor each time."""
    if node.op != "call_function" or node.target not in _MADE or node.all_input_nodes:
        return False
    value = node.meta.get("val")
    return (
        isinstance(value, torch.Tensor)
        and all(isinstance(size, int) for size in value.shape)
        and value.numel() <= LARGEST_KEPT
    )
