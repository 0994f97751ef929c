"""Buffers that a program assigns: it writes to a copy, which takes the place of the old tensor after each run.

Eager puts another tensor there, and whoever keeps the old one sees no change of it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch import fx

from dy2st.capture.assigned_buffers import ASSIGNED
from dy2st.guards.sources import World
from dy2st.static.clones import Clones
from dy2st.static.subgraphs import inputs_of

Take = Callable[[Sequence[Any]], Any]


def assigned_inputs(
    program: torch.export.ExportedProgram, numbers: Sequence[int | None], clones: Clones, world: World
) -> dict[int, Place]:
    """Which tensors of a world are buffers that the program does nothing else to than assign them, and where they are.

    ``numbers`` are those of the tensors among the program's inputs.
    """
    buffers = {id(each.tensor): each for each in program.graph_module.meta.pop(ASSIGNED, ())}
    if not buffers:
        return {}
    writers = clones.written_inputs(cloning=True)
    found = {}
    for node, number in zip(inputs_of(program.graph_module), numbers, strict=True):
        if number is None or len(writers.get(node, ())) != 1:
            continue
        tensor = world.tensors[number].value
        known = buffers.get(id(tensor))
        several = sum(source.value is tensor for source in world.sources) > 1
        if known is not None and not several and not tensor.requires_grad:
            found[number] = Place(known.owner, known.name)
    return found


def read_copies(
    program: torch.export.ExportedProgram, numbers: Sequence[int | None], assigned: Collection[int]
) -> None:
    """Let a program read copies of the buffers that it assigns, in place.

    Where gradients are recorded, what it reads is kept for the backward pass, and can't be what it writes to.
    """
    module = program.graph_module
    inputs = inputs_of(module)
    for node, number in zip(inputs, numbers, strict=True):
        readers = [user for user in node.users if not _writes_to(user, node)]
        if number in assigned and readers:
            with module.graph.inserting_after(inputs[-1]):
                copy = module.graph.call_function(torch.ops.aten.alias_copy.default, (node,))
            copy.meta.update(node.meta)
            for user in readers:
                user.replace_input_with(node, copy)
    module.recompile()


def _writes_to(user: fx.Node, node: fx.Node) -> bool:
    return user.target is torch.ops.aten.copy_.default and user.args[0] is node


class Place:
    """Where a buffer is."""

    def __init__(self, owner: weakref.ref[torch.nn.Module], name: str) -> None:
        self._owner, self._name = owner, name

    def get(self) -> Any:
        """What is there now."""
        owner = self._owner()
        return None if owner is None else owner.__dict__["_buffers"].get(self._name)

    def put(self, tensor: torch.Tensor) -> None:
        """Put another tensor there."""
        owner = self._owner()
        if owner is not None:
            owner.__dict__["_buffers"][self._name] = tensor


class Rebinding:
    """The buffers of one binding; ``beside`` is a list of tensors in which they are kept up to date, or None."""

    def __init__(
        self, places: Sequence[Place], tensors: Sequence[torch.Tensor], beside: list[torch.Tensor] | None
    ) -> None:
        self._places, self._tensors = list(places), list(tensors)
        self._beside = beside
        self._at = [next((i for i, each in enumerate(beside or ()) if each is tensor), None) for tensor in tensors]

    def holds(self) -> bool:
        """Whether these are the tensors that are there."""
        return all(place.get() is tensor for place, tensor in zip(self._places, self._tensors, strict=True))

    def taking(self, take: Take) -> Take:
        """A function that runs a program on copies, and the tensors that it is given, and puts the copies there."""

        def run(tensors: Sequence[Any]) -> Any:
            copies = [tensor.clone() for tensor in self._tensors]
            result = take([*copies, *tensors])
            for i, (place, copy, at) in enumerate(zip(self._places, copies, self._at, strict=True)):
                place.put(copy)
                self._tensors[i] = copy
                if at is not None and self._beside is not None:
                    self._beside[at] = copy
            return result

        return run
