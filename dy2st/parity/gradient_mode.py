"""Whether a check runs a model with autograd on: where the model takes gradients by itself, and does not switch it on.

A check runs eager under ``torch.no_grad()``, as inference does. A model that calls ``torch.autograd.grad`` on what it
computes raises there; it is run with gradients from then on, by all stages and by whatever else looks at it.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

import torch

# What autograd says where there is nothing to differentiate.
_SAYS = ("does not require grad", "has requires_grad=False", "doesn't require gradient")

_ASKING: weakref.WeakSet[Any] = weakref.WeakSet()


def _owner(model: Any) -> Any:
    return getattr(model, "__self__", model)


def asks_for_gradients(model: Any, error: Exception) -> bool:
    """Whether a model has raised for want of gradients; it is run with them from now on, but not a second time."""
    if not isinstance(error, RuntimeError) or runs_with_gradients(model):
        return False
    if not any(words in str(error) for words in _SAYS):
        return False
    try:
        _ASKING.add(_owner(model))
    except TypeError:  # an object that nothing can refer to weakly
        return False
    return True


def runs_with_gradients(model: Any) -> bool:
    """Whether a model is run with autograd on."""
    try:
        return _owner(model) in _ASKING
    except TypeError:
        return False


@contextlib.contextmanager
def gradients_as_asked(model: Any) -> Iterator[None]:
    """Run a model with autograd off, unless it needs it."""
    with torch.set_grad_enabled(runs_with_gradients(model)):
        yield
