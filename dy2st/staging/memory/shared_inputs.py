"""Inputs of one call that share memory with each other, or with what the model holds.

Two parameters are two inputs, whatever the example call gives for them: each has values of its own when the program
runs. So the export works on tensors of its own, a clone for each. What a model makes of inputs that are one tensor
(a write to one that the other sees, ``a is b``) holds for such calls alone, and is refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.errors import AliasError, IdentityError, Location
from dy2st.source.user_frames import location_of, named, users_frame
from dy2st.tracing.named_tuples import constructors_unasked
from dy2st.tracing.subgraph import storage_key

HINT = "export with tensors of their own (x, x.clone()), or compute a new tensor (y = y + 1 in place of y += 1)"


def own_tensors(values: Any, *, strides: bool = False) -> Any:
    """The same arguments, each of whose tensors has memory of its own; with ``strides`` laid out as it was."""

    def clone(tensor: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            made = tensor.clone()
            if strides and made.layout is torch.strided and made.stride() != tensor.stride():
                made = _laid_out(tensor)
            if isinstance(tensor, torch.nn.Parameter):  # code may ask what it is
                return torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
            return made.requires_grad_(tensor.requires_grad)

    with constructors_unasked():
        return pytree.tree_map_only(torch.Tensor, clone, values)


def _laid_out(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides; where elements share a place, in memory that is like the original's."""
    extent = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    whole = tensor.as_strided((extent,), (1,)).clone() if tensor.numel() else tensor.new_empty(0)
    return whole.as_strided(tensor.shape, tensor.stride())


def extent(tensor: torch.Tensor) -> tuple[Any, Any, Any] | None:
    """Where a tensor lies: its storage's address, and the bytes from where to where; None if it has no memory."""
    if tensor.layout is not torch.strided or tensor.device.type == "meta" or tensor.numel() == 0:
        return None
    with torch._C.DisableTorchFunction():
        last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        first, width = tensor.storage_offset(), tensor.element_size()
        return tensor.untyped_storage().data_ptr(), first * width, (first + last + 1) * width


def overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors share memory, as far as their first and last elements tell."""
    a, b = extent(one), extent(other)
    return a is not None and b is not None and a[0] == b[0] and a[1] < b[2] and b[1] < a[2]


class SharedInputs:
    """What the tensors of a trace were in the call; made anew for each trace."""

    def __init__(self) -> None:
        # By identity, the tensor of the trace and that of the call.
        self.given: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        # By storage, the tensor that has it and what a write to it would change as well.
        self.partners: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        # The inputs that have been written to, and where.
        self.written: dict[int, tuple[torch.Tensor, Location]] = {}
        # By storage, the inputs of the call.
        self.inputs: dict[int, torch.Tensor] = {}
        # The storages of the inputs, parameters and buffers.
        self.held: set[int] = set()
        # The lists and dicts among the arguments, by identity.
        self.containers: set[int] = set()

    def note(
        self,
        inputs: Iterable[tuple[Any, Any]],
        held: Iterable[tuple[Any, Any]],
    ) -> None:
        """These are the inputs, and the parameters and buffers: pairs of the trace's tensor and the call's."""
        inputs, held = list(_tensors(inputs)), list(_tensors(held))
        self.given = {id(traced): (traced, real) for traced, real in (*inputs, *held)}
        taken = {found[0] for _, real in inputs if (found := extent(real)) is not None}
        near = [(traced, real) for traced, real in held if (found := extent(real)) is not None and found[0] in taken]
        for (one, first), (other, second) in itertools.combinations((*inputs, *near), 2):
            if overlap(first, second):
                self.partners[storage_key(one)] = one, other
                self.partners[storage_key(other)] = other, one
        self.inputs = {storage_key(traced): real for traced, real in inputs}
        self.held = {storage_key(traced) for traced, _ in (*inputs, *held)}

    def is_one(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is an input, a parameter or a buffer itself."""
        return id(tensor) in self.given

    def real(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor of the call that one of the trace stands for; itself, if it stands for none."""
        return self.given.get(id(tensor), (tensor, tensor))[1]

    def twins(self, tensor: torch.Tensor) -> list[torch.Tensor]:
        """The tensors that stand for the same one in the trace, a tensor itself first."""
        real = self.real(tensor)
        return [tensor, *(each for each, other in self.given.values() if other is real and each is not tensor)]

    def has_grad(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor of the trace is one of the call that has a gradient."""
        _, real = self.given.get(id(tensor), (tensor, None))
        with torch._C.DisableTorchFunction():
            return real is not None and real.is_leaf and real.grad is not None

    def holds(self, storage: int) -> bool:
        """Whether a storage is that of an input, a parameter or a buffer."""
        return storage in self.held

    def check_write(self, storage: int) -> None:
        """A tensor with this storage is written to in place."""
        if storage in self.partners:
            written, other = self.partners[storage]
            raise AliasError(
                f"{named(written, 'an input')} is changed in place, and it shares memory with"
                f" {named(other, 'another one')} in this call: an exported program has one input for each",
                hint=HINT,
            )
        if storage in self.inputs and storage not in self.written:
            self.written[storage] = self.inputs[storage], location_of(users_frame())

    def check_identity(self, a: Any, b: Any) -> None:
        """Whether ``a`` is ``b`` is asked of two tensors of the trace, or of one and one that the model refers to.

        Or of lists or dicts, of which the arguments of a trace are copies.
        """
        containers = isinstance(a, (list, dict)) and isinstance(b, (list, dict))
        if a is not b and containers and not self.containers.isdisjoint((id(a), id(b))):
            raise IdentityError(
                "an identity test (is) compares a list or dict among the arguments with another one: a program has"
                " copies of them",
                hint="compare them with ==, or pass a flag that says whether they are one",
            )
        if a is b or not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)):
            return
        first, second = (self.given.get(id(each), (each, each))[1] for each in (a, b))
        if first is second:
            raise IdentityError(
                "an identity test (is) compares two inputs that are one tensor in this call: an exported program has"
                " one input for each",
                hint="pass a flag that says whether they are one",
            )

    def check_constants(self, constants: Iterable[Any]) -> None:
        """The trace is over; it refers to these tensors as they are."""
        for constant in constants:
            for real, location in self.written.values():
                if isinstance(constant, torch.Tensor) and overlap(real, constant):
                    raise AliasError(
                        "an input is changed in place, and it shares memory with a tensor that the model refers to: an"
                        " exported program has that tensor as a constant",
                        hint=HINT,
                        location=location,
                    )


def _tensors(pairs: Iterable[tuple[Any, Any]]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    return ((a, b) for a, b in pairs if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor))
