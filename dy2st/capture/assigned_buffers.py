"""Buffers that a model assigns (``self.total = self.total + x``): eager puts another tensor in their place.

A program writes the new value into the old tensor. Whoever keeps the old one (``seen.append(model.total)``) would see
it change, so that who runs a program in eager's place puts a copy there before, and has to know where.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import torch

from dy2st.capture.root_module import original_of
from dy2st.staging.session import Session

# Where a program's graph module keeps them: a list of ``AssignedBuffer``.
ASSIGNED = "dy2st.assigned"


@dataclass(frozen=True)
class AssignedBuffer:
    """The module and the name of a buffer, and the tensor that it was when the program was captured."""

    owner: weakref.ref[torch.nn.Module]
    name: str
    tensor: torch.Tensor


def assigned_buffers(capture: Session) -> list[AssignedBuffer]:
    """Those that are another tensor at the end of the model's code."""
    found = []
    for slot, old in capture.trace_frames[0].journal.old.items():
        if slot.kind != "attribute" or not isinstance(slot.owner, torch.nn.Module):
            continue
        held = isinstance(old, torch.Tensor) and slot.name in slot.owner.__dict__["_buffers"]
        if held and slot.get() is not old:
            owner = original_of(slot.owner)
            real = owner.__dict__["_buffers"].get(slot.name)
            if isinstance(real, torch.Tensor):
                found.append(AssignedBuffer(weakref.ref(owner), slot.name, real))
    return found
