"""In-place changes in a loop of a tensor that something carried is the same as, in some iterations.

With ``b = a`` before the loop, or as its last statement, ``a += 1`` changes ``b`` too. The graph's loop has a copy of
each that it carries, so that ``b`` is out of date from there on: it may be assigned anew, but not be used.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Iterable
from itertools import product

import torch
from torch import fx

from dy2st.errors import AliasError
from dy2st.source.assigning_lines import quoted
from dy2st.staging.loops.carried import Carried
from dy2st.staging.loops.loop_state import LoopState
from dy2st.tracing.subgraph import storage_key, storage_of, written_inputs
from dy2st.values.describing import shown


def check_stale_copies(state: LoopState, carried: list[Carried]) -> None:
    """Refuse to use what is carried after the change of a tensor that it may be the same as."""
    nodes = list(state.scope.subgraph.graph.nodes)
    index = {node: i for i, node in enumerate(nodes)}
    heads = {each.head for each in carried}
    own = state.scope.subgraph.own_storages() - heads
    changes: dict[int, int] = {}
    for node in nodes:
        for written in written_inputs(node):
            storage = storage_of(written)
            if storage is not None and storage not in own:
                changes.setdefault(storage, index[_changing(node)])
    pairs = _pairs(state, carried, set(changes) - heads) if changes else set()
    for each in carried:
        since = min((changes[b] for a, b in pairs if a == each.head and b in changes), default=None)
        if since is None:
            continue
        # A branch or loop that changes it may read it after that.
        is_operator = isinstance(nodes[since].target, torch._ops.OpOverload)
        later = nodes[since + 1 if is_operator else since :]
        read = any(storage_of(read) == each.head for node in later for read in node.all_input_nodes)
        if read or any(each.head in other.ends for other in carried):
            raise AliasError(
                f"{quoted(shown(each.place))} is used after the change of a tensor that it is the same as, in some"
                " iterations of a staged loop",
                hint="assign a clone() of it, or compute a new tensor (x = x + 1 in place of x += 1)",
                location=state.loop.location,
            )


def _pairs(state: LoopState, carried: list[Carried], outside: set[int]) -> set[tuple[int, int]]:
    """Which may be the same at the head of an iteration: storages of heads, or from ``outside`` of the loop."""
    # By what a storage is one of at the head of the first iteration, and of the next one.
    first: dict[int, set[int]] = defaultdict(set, {storage: {storage} for storage in outside})
    following: dict[int, set[int]] = defaultdict(set, {storage: {storage} for storage in outside})
    for each in carried:
        known = () if each.before is None else (each.before, *state.capture.aliases.others(each.before))
        for tensor in known:
            first[storage_key(tensor)].add(each.head)
        for end in each.ends:
            following[end].add(each.head)
    found: set[tuple[int, int]] = set()
    left = [pair for same in (*first.values(), *following.values()) for pair in _unlike(same, same)]
    while left:
        pair = left.pop()
        if pair not in found:
            found.add(pair)
            left += _unlike(*(following.get(one, set()) for one in pair))
    return found


def _unlike(some: Iterable[int], others: Iterable[int]) -> list[tuple[int, int]]:
    return [(one, other) for one, other in product(some, others) if one != other]


def _changing(node: fx.Node) -> fx.Node:
    """The node that changes a tensor: the branch or loop whose result is copied into it, if that is how it is done."""
    source = node.args[1] if node.target is torch.ops.aten.copy_.default else None
    while isinstance(source, fx.Node) and source.target is operator.getitem:
        source = source.args[0]
    if not isinstance(source, fx.Node) or source.graph is not node.graph:
        return node
    return source if isinstance(source.target, torch._ops.HigherOrderOperator) else node
