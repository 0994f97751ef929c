"""A model's state, put back after a run: every run of a check starts from the same buffers and attributes."""

from __future__ import annotations

import copy
import types
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from dy2st.capture.carried_places import Paths
from dy2st.capture.lost_state import is_same
from dy2st.errors import HeapSizeError
from dy2st.staging.memory.heap import names_in
from dy2st.tracing.replaced import without_modes
from dy2st.values.journal import Slot
from dy2st.values.plain_objects import attributes_of, is_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONTAINERS = (list, dict, set, deque)


class State:
    """The buffers, plain attributes and containers of models and of their children, as they are now.

    A bound method counts as its owner. Parameters above a megabyte are not copied: a forward that writes into a weight
    is rare, and a second copy of a large model may not fit.
    """

    def __init__(self, *models: Any) -> None:
        self.models = models
        owners = [getattr(model, "__self__", model) for model in models]
        modules = [module for owner in owners if isinstance(owner, torch.nn.Module) for module in owner.modules()]
        self._attributes = [(module, _attributes(module)) for module in modules]
        with without_modes():  # who counts a model's operators, or disturbs them, does not mean these
            self._tensors = [(tensor, tensor.detach().clone()) for module in modules for tensor in _tensors(module)]

    def restore(self) -> None:
        """Put it back; a tensor that has not changed is not written to."""
        for module, attributes in self._attributes:
            _restore(module, attributes)
        with torch.no_grad(), without_modes():
            for tensor, value in self._tensors:
                if not torch.equal(tensor, value):
                    tensor.copy_(value)


@contextmanager
def preserved(*models: Any) -> Iterator[None]:
    """On leaving, restore the state of each model as it was on entering."""
    state = State(*models)
    try:
        yield
    finally:
        state.restore()


class Reached:
    """All that a model leads to beside its modules, as it is now: plain objects, containers, variables of functions.

    Nobody knows yet what of it the model changes, so it is looked through once, and put back after each run.
    """

    def __init__(self, model: Any) -> None:
        try:
            objects = Paths(model).objects
        except HeapSizeError:  # what holds so much is not looked through
            objects = []
        functions = [each for each in objects if isinstance(each, types.FunctionType)]
        slots = [Slot.of("content", each) for each in objects if type(each) in _CONTAINERS]
        plain = [each for each in objects if is_plain(each)]
        slots += [Slot.of("attribute", each, name) for each in plain for name in attributes_of(each)]
        slots += [Slot.of("cell", cell) for each in functions for cell in each.__closure__ or ()]
        slots += [
            Slot.of("global", each.__globals__, name)
            for each in functions
            for name in names_in(each.__code__)
            if name in each.__globals__
        ]
        self._slots = [(slot, slot.get()) for slot in slots]
        tensors = [each for each in objects if isinstance(each, torch.Tensor) and each.layout is torch.strided]
        kept = [each for each in tensors if not isinstance(each, torch.nn.Parameter)]
        self._tensors = [(each, each.detach().clone()) for each in kept]

    def restore(self) -> None:
        """Put it back; what has not changed is not written to."""
        for slot, value in self._slots:
            if not is_same(slot, value, slot.get()):
                slot.set(value)
        with torch.no_grad(), without_modes():
            for tensor, value in self._tensors:
                if tensor.shape == value.shape and not torch.equal(tensor, value):
                    tensor.copy_(value)


@contextmanager
def as_before(model: Any) -> Iterator[None]:
    """On leaving, all that a model leads to beside its modules is as it was on entering."""
    reached = Reached(model)
    try:
        yield
    finally:
        reached.restore()


def _tensors(module: torch.nn.Module) -> list[torch.Tensor]:
    plain = [value for value in vars(module).values() if isinstance(value, torch.Tensor)]
    buffers = [value for value in module._buffers.values() if value is not None]  # noqa: SLF001 - own ones only
    small = [p for p in module.parameters(recurse=False) if p.numel() * p.element_size() <= 1 << 20]
    return [*plain, *buffers, *small]


def _attributes(module: torch.nn.Module) -> dict[str, tuple[Any, Any]]:
    """Each attribute with a shallow copy of its content if it is a container, and of the registries."""
    return {
        key: (value, copy.copy(value) if isinstance(value, _CONTAINERS) else None)
        for key, value in vars(module).items()
    }


def _restore(module: torch.nn.Module, attributes: dict[str, tuple[Any, Any]]) -> None:
    """Put the same objects back, with the content that they had."""
    for key in set(vars(module)) - set(attributes):
        del vars(module)[key]
    for key, (value, content) in attributes.items():
        vars(module)[key] = value
        if isinstance(value, (list, deque)):
            value.clear()
            value.extend(content)
        elif isinstance(value, (dict, set)):
            value.clear()
            value.update(content)
