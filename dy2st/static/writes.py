"""In which order a program writes to its inputs, draws random numbers, and comes to the places where eager raises."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import fx
from torch._ops import OpOverload

from dy2st.static.clones import Clones
from dy2st.static.subgraphs import OURS, body_of
from dy2st.tracing.graph_ops import branch_op, loop_op
from dy2st.tracing.guards import require_op
from dy2st.tracing.subgraph import graph_modules


def writes_to_undo(module: fx.GraphModule, clones: Clones) -> tuple[frozenset[fx.Node], frozenset[fx.Node]]:
    """The nodes that write to an input, and those of them that may have to be undone.

    That is where a guard may come after them, or, in the same branch or loop, an operator that may fail.
    """
    writers = clones.writers()
    if not writers:
        return writers, writers
    followed = set(_before_guards(module)) if has_guards(module) else set()
    for node in module.graph.nodes:
        if node.target in OURS:
            inside = list(_inside(module, node))
            last = max((i for i, each in enumerate(inside) if _may_fail(each)), default=0)
            followed |= set(inside[:last])
    return writers, writers & followed


def has_guards(module: fx.GraphModule) -> bool:
    """Whether a program has places where eager raises."""
    return any(node.target is require_op for each in graph_modules(module) for node in each.graph.nodes)


def draws_before_guards(module: fx.GraphModule) -> bool:
    """Whether a guard may come after random numbers have been drawn."""
    return any(torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) for node in _before_guards(module))


def _before_guards(module: fx.GraphModule) -> list[fx.Node]:
    """The nodes behind which a guard stands, on some path."""
    nodes = list(_in_order(module))
    last = max((i for i, node in enumerate(nodes) if node.target is require_op), default=0)
    return nodes[:last]


def _in_order(module: fx.GraphModule) -> Iterator[fx.Node]:
    """All nodes, those of arms one after the other; those of loops twice: what comes first comes again."""
    for node in module.graph.nodes:
        yield from _inside(module, node)
        yield node


def _inside(module: fx.GraphModule, node: fx.Node) -> Iterator[fx.Node]:
    """The nodes of the arms or the body of a node."""
    if node.target is branch_op:
        for arm in node.args[1:3]:
            yield from _in_order(body_of(module, arm))
    elif node.target is loop_op:
        for _ in range(2):
            yield from _in_order(body_of(module, node.args[0]))


def _may_fail(node: fx.Node) -> bool:
    """Whether an operator may refuse what it is given, beyond what is known of its operands' sizes."""
    if node.op != "call_function" or not isinstance(node.target, OpOverload) or node.target in _NEVER_FAILING:
        return False
    if torch.Tag.pointwise in node.target.tags:
        return False
    known = node.target._schema.name.partition("::")[2] in _SAFE_ON_KNOWN_SIZES
    return not known or any(not isinstance(each.meta.get("val"), torch.Tensor) for each in node.all_input_nodes)


# They take any number, as large as it may be.
_NEVER_FAILING = (torch.ops.aten.slice.Tensor, torch.ops.aten.full.default, torch.ops.aten.scalar_tensor.default)
_SAFE_ON_KNOWN_SIZES = frozenset(
    "select view reshape expand permute transpose t unsqueeze squeeze sum mean amax amin max min argmax argmin any all "
    "prod norm matmul mm bmm mv dot addmm linear zeros ones empty clone copy_ fill_ zero_ detach alias lift_fresh_copy "
    "cat stack where softmax log_softmax arange cumsum roll flip zeros_like ones_like full_like new_zeros new_ones "
    "new_full sort topk item _local_scalar_dense to masked_fill masked_fill_ relu_ conv2d layer_norm batch_norm".split()
)
