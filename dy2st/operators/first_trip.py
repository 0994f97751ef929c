"""In-place changes of a carried tensor: in the first iteration eager changes the tensor from before the loop itself.

``while ...: n -= 1; n = n * 2`` writes once into what ``n`` was before. The graph's loop works on a copy, which is the
same only if nobody else looks at that tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from dy2st.errors import AliasError
from dy2st.graph.aliases import storage_key
from dy2st.graph.region import storage_of, written_inputs

if TYPE_CHECKING:
    from dy2st.operators.loop_state import LoopState


def check_first_trip(state: LoopState) -> None:
    """Refuse a loop whose body writes to a carried tensor that something else refers to before the loop."""
    written = {storage_of(t) for node in state.scope.region.graph.nodes for t in written_inputs(node)}
    if not written:
        return
    for name, before in state.before.items():
        head = state.head.get(name)
        if before is head or not isinstance(name, str):
            continue
        changed = any(storage_key(t) in written for t in _tensors(head))
        if changed and any(_is_input(state, t) or _seen(state.loop.frame, name, t) for t in _tensors(before)):
            raise AliasError(
                f"{name!r} is changed in place in a staged loop that also assigns it: in the first iteration that"
                " changes the tensor from before the loop, which is used elsewhere",
                hint=f"start the loop with {name} = {name}.clone(), or compute a new tensor ({name} = {name} + 1)",
                location=state.loop.location,
            )


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _is_input(state: LoopState, tensor: torch.Tensor) -> bool:
    """Whether a tensor is one of the program's inputs, parameters or buffers, or a view of it."""
    tracing = state.capture.tracing
    storage = storage_key(tensor)
    return isinstance(tensor, torch.nn.Parameter) or any(
        storage_of(node) == storage for node in tracing.root.graph.nodes if node.op in ("placeholder", "get_attr")
    )


def _seen(frame: FrameType, name: str, tensor: torch.Tensor) -> bool:
    """Whether a variable of the running functions, other than ``name`` itself, refers to a tensor's memory."""
    storage = storage_key(tensor)
    around: FrameType | None = frame
    while around is not None and "/torch/" not in around.f_code.co_filename:
        for variable, value in around.f_locals.items():
            if (around is frame and variable == name) or variable.startswith("loop_"):
                continue
            if any(storage_key(t) == storage for part in _parts(value) for t in _tensors(part)):
                return True
        around = around.f_back
    return False


def _parts(value: Any) -> Iterator[Any]:
    yield value
    if hasattr(value, "__dict__") and not isinstance(value, type):
        yield from vars(value).values()
