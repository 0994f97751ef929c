"""A model's state, put back after a run: every run of a check starts from the same buffers and attributes."""

from __future__ import annotations

import copy
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

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
        self._tensors = [(tensor, tensor.detach().clone()) for module in modules for tensor in _tensors(module)]

    def restore(self) -> None:
        """Put it back; a tensor that has not changed is not written to."""
        for module, attributes in self._attributes:
            _restore(module, attributes)
        with torch.no_grad():
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
