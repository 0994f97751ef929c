"""Which copies of a program can be left out, and which values are made once.

A capture copies what enters a branch or loop and what leaves it, so that no two values of the graph share memory. Where
none of what shares memory is written to, nobody can see that it does; only what leaves the program matters.

The rule. A clone is left out where nothing that its operand may share memory with is written to, anywhere in the
program; but a copy that the user made, and that a result of the program may be, is carried out. A result that would
then be an input, or another result, and is neither in eager, is cloned at the end. Where there is a write, a clone is
left out whose operand is new and used by nothing else, not even by its own derivative: that of ``relu`` reads what
``relu`` gave, and autograd refuses what was written to since. In a program without writes what is made of constants
alone is made once, too, and cloned where it is a result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

from dy2st.static.subgraphs import body_of, inputs_of
from dy2st.tracing.grad_mode import HANDED_ON
from dy2st.tracing.graph_ops import branch_op, loop_op
from dy2st.tracing.guards import require_op, tied_op
from dy2st.tracing.subgraph import graph_modules, written_inputs

ATEN = torch.ops.aten
CLONES = (ATEN.clone.default, ATEN.lift_fresh_copy.default, tied_op)
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
        self.writes = any(_writes(node) for each in graph_modules(module) for node in each.graph.nodes)
        self._module = module
        self._written: dict[Any, dict[fx.Node, None]] = {}
        self._operands: dict[fx.Node, Origins] = {}
        nodes = [node for each in graph_modules(module) for node in each.graph.nodes]
        self.once: set[fx.Node] = set() if self.writes else set(filter(_is_made_once, nodes))
        inputs = [frozenset((node,)) for node in inputs_of(module)]
        self._results(module, inputs, _is_none)
        written = frozenset(self._written)
        # The clones without which nothing shares memory that is written to.
        self._idle = {node for node, origins in self._operands.items() if written.isdisjoint(origins)}
        # What each result may be in eager, and the user's own copies among it.
        self._in_eager = self._results(module, inputs, _is_users_clone)
        self._kept = {
            node for found in self._in_eager for node in found if isinstance(node, fx.Node) and _is_users_clone(node)
        }

    def left_out(self, node: fx.Node) -> bool:
        """Whether a clone is no more than another name of its operand."""
        if _changes_nothing(node) or is_guard(node):
            return True
        if node.target not in CLONES or not isinstance(node.args[0], fx.Node):
            return False
        if node in self._idle:
            return node not in self._kept
        source = node.args[0]
        return len(source.users) == 1 and _is_new(source) and _is_unread(source)

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
            if (new - old) & (frozenset(inputs) | others) or new & self.once:
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
                self._operands[node] = self._operands.get(node, frozenset()) | of(node.args[0])
                known[node] = frozenset((node,)) if copies(node) else of(node.args[0])
            elif _is_new(node):
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


def _is_users_clone(node: fx.Node) -> bool:
    """Whether eager copies here, too."""
    return node.target in CLONES and node.target is not tied_op and HANDED_ON not in node.meta


def is_guard(node: fx.Node) -> bool:
    """Whether a node adds the zero of a guard to the token of the program: what comes next in a function is later."""
    if node.op != "call_function" or node.target is not ATEN.add_.Tensor:
        return False
    return getattr(node.args[1], "target", None) is require_op


def _writes(node: fx.Node) -> bool:
    return bool(written_inputs(node)) and not is_guard(node)


def _is_new(node: fx.Node) -> bool:
    """Whether an operator's results are memory of their own, by its schema."""
    if not isinstance(node.target, OpOverload):
        return False
    returns = node.target._schema.returns
    # Operators that give back their operand as it is, where there is nothing to do, don't say so in their schema.
    maybe = node.target._schema.name.partition("::")[2] in _MAYBE_THE_SAME
    return _copies(node) or (not maybe and all(each.alias_info is None for each in returns))


def _is_unread(node: fx.Node) -> bool:
    """Whether an operator's derivative is known not to read its result."""
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor) and not (value.dtype.is_floating_point or value.dtype.is_complex):
        return True
    name = node.target._schema.name.partition("::")[2]  # type: ignore[union-attr]
    return name in _RESULT_UNREAD or not node.all_input_nodes


def _copies(node: fx.Node) -> bool:
    """Whether a cast is told to copy."""
    names = [argument.name for argument in node.target._schema.arguments]  # type: ignore[union-attr]
    if "copy" not in names:
        return False
    place = names.index("copy")
    return bool(node.args[place] if place < len(node.args) else node.kwargs.get("copy"))


def _changes_nothing(node: fx.Node) -> bool:
    """Whether a cast is one to the dtype that there is, for which eager gives back its operand as well."""
    if node.target is ATEN.alias.default:  # ours
        return True
    if node.target is not ATEN.to.dtype or len(node.args) != 2 or node.kwargs:
        return False
    source: Any = node.args[0]
    value = source.meta.get("val") if isinstance(source, fx.Node) else None
    return isinstance(value, torch.Tensor) and value.dtype is node.args[1]


_MAYBE_THE_SAME = frozenset(
    "to contiguous reshape flatten type_as float double half bfloat16 int long bool dropout feature_dropout "
    "alpha_dropout native_dropout expand_as view_as reshape_as broadcast_to squeeze ravel conj resolve_conj "
    "resolve_neg real imag atleast_1d atleast_2d atleast_3d movedim moveaxis swapaxes chunk tensor_split split "
    "unflatten numpy_T positive cpu cuda broadcast_tensors meshgrid matrix_H adjoint narrow hsplit vsplit dsplit pad "
    "rrelu _reshape_alias".split()
)

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
