"""In-place changes in a loop of what is carried: in the first iteration eager changes the tensor from before the loop.

``while ...: n -= 1; n = n * 2`` writes once into what ``n`` was before. The graph's loop works on a copy, which is the
same only if nobody else looks at that tensor. With ``a, b = b, a`` a later iteration does it.
"""

from __future__ import annotations

import torch

from dy2st.errors import AliasError
from dy2st.source.assigning_lines import quoted
from dy2st.staging.loops.carried import carried_tensors
from dy2st.staging.loops.loop_state import LoopState
from dy2st.staging.loops.stale_copies import check_stale_copies
from dy2st.staging.visibility import seen_from
from dy2st.tracing.subgraph import storage_key, storage_of, written_inputs
from dy2st.values.describing import shown
from dy2st.values.journal import Slot


def check_first_trip(state: LoopState) -> None:
    """Refuse a loop whose body writes to a carried tensor that something else refers to before the loop."""
    written = {storage_of(t) for node in state.scope.subgraph.graph.nodes for t in written_inputs(node)}
    if not written:
        return
    carried = list(carried_tensors(state))
    check_stale_copies(state, carried)
    changed = {each.head for each in carried if each.head in written}
    while True:
        # What becomes such a tensor in one iteration is written to in the next.
        handed_on = {end for each in carried if each.head in changed for end in each.ends}
        more = {each.head for each in carried if each.head in handed_on} - changed
        if not more:
            break
        changed |= more
    own = state.scope.subgraph.own_storages()
    for each in carried:
        if each.head in changed and not each.ends <= own:
            raise AliasError(
                f"{quoted(shown(each.place))} is changed in place in a staged loop that also assigns a tensor from"
                " outside of the loop to it: a later iteration changes that tensor",
                hint="assign a clone() of it, or compute a new tensor (x = x + 1 in place of x += 1)",
                location=state.loop.location,
            )
        before = each.before
        if (
            each.head in changed
            and before is not None
            and (_is_input(state, before) or _seen(state, each.place, before))
        ):
            name = quoted(shown(each.place))
            raise AliasError(
                f"{name} is changed in place in a staged loop that also assigns it: in the first iteration that"
                " changes the tensor from before the loop, which is used elsewhere",
                hint="start the loop with a clone() of it, or compute a new tensor (x = x + 1 in place of x += 1)",
                location=state.loop.location,
            )


def _is_input(state: LoopState, tensor: torch.Tensor) -> bool:
    """Whether a tensor is one of the program's inputs, parameters or buffers, or a view of it."""
    tracing = state.capture.tracing
    storage = storage_key(tensor)
    return isinstance(tensor, torch.nn.Parameter) or any(
        storage_of(node) == storage for node in tracing.root.graph.nodes if node.op in ("placeholder", "get_attr")
    )


def _seen(state: LoopState, place: str | Slot, before: torch.Tensor) -> bool:
    """Whether a variable of the running functions, other than the place itself, leads to a tensor's memory."""
    storage, frame = storage_key(before), state.loop.frame
    found = seen_from(frame, frame.f_locals, place)
    return any(isinstance(t, torch.Tensor) and storage_key(t) == storage for t in found)
