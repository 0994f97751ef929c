"""What the tensors that a trace works on have of those that they stand for, beside their values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from dy2st.operators.export_session import current
from dy2st.staging.session import Session
from dy2st.tracing.wanted_gradients import Carried


def changeable_parts(value: Any) -> Iterator[Any]:
    """The lists and dicts in arguments or a result, which somebody may change."""
    if isinstance(value, (list, dict)):
        yield value
    if isinstance(value, (list, tuple, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from changeable_parts(each)


class GivenAttributes:
    """The user's own attributes of inputs, by the identity of what stands for these; a part of an export's session."""

    def __init__(self) -> None:
        self.names: dict[int, set[str]] = {}


def note_given(
    capture: Session, arguments: Any, inputs: Sequence[tuple[Any, Any]], state: Sequence[tuple[Any, Any]]
) -> None:
    """Of pairs of a traced tensor and the one that it stands for, of ``arguments`` and of a module's state.

    The traced one has the user's attributes from then on; which of them are one memory, and no leaves, is noted.
    """
    capture.shared_inputs.note(inputs, state)
    capture.shared_inputs.containers = {id(each) for each in changeable_parts(arguments[0])}
    capture.shared_inputs.containers |= {id(each) for each in changeable_parts(tuple(arguments[1].values()))}
    known, carried = current().part(GivenAttributes), current().part(Carried)
    for traced, real in (*inputs, *state):
        if not isinstance(traced, torch.Tensor) or not isinstance(real, torch.Tensor) or traced is real:
            continue
        with torch._C.DisableTorchFunction():
            own = {name: value for name, value in vars(real).items() if name not in vars(traced)}
            computed = real.requires_grad and not real.is_leaf
        if own:
            vars(traced).update(own)
            known.names[id(traced)] = set(own)
        node = capture.tracing.node_of(traced) if computed else None
        if node is not None:
            carried.computed.add(node)
