"""Changes to what is read by functions that a library's function stands around, and by what a metaclass has."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.static.world import Change, put, set_to


def wrapped_reads() -> dict[str, Change]:
    """Each model reads ``table["k"]`` through a wrapper of Python's or torch's, or an attribute of a metaclass."""
    table = {"k": 2}

    class Meta(type):
        k = 2

    class Made(metaclass=Meta):
        pass

    @contextlib.contextmanager
    def managed() -> Iterator[int]:
        yield table["k"]

    @torch.no_grad()
    def without(x: Tensor) -> Tensor:
        return x * table["k"]

    @functools.singledispatch
    def dispatched(_: object, x: Tensor) -> Tensor:
        return x

    @dispatched.register
    def _(_: int, x: Tensor) -> Tensor:
        return x * table["k"]

    def in_a_manager(x: Tensor) -> Tensor:
        with managed() as k:
            return x * k if x.sum() > 0 else x

    def in_a_stack(x: Tensor) -> Tensor:
        with contextlib.ExitStack() as stack:
            return x * stack.enter_context(managed())

    models = {
        "a context manager": in_a_manager,
        "a stack of context managers": in_a_stack,
        "a function under no_grad": lambda x: without(x) if x.sum() > 0 else x,
        "a function chosen by type": lambda x: dispatched(1, x),
        "a function that is reduced with": lambda x: functools.reduce(lambda a, b: a + b * table["k"], [x, x]),
    }
    found = {name: Change(model, put(table, "k", 5), put(table, "k", 2)) for name, model in models.items()}
    relu, native = nn.ReLU(), functional.relu
    found["a function that a module of torch's calls"] = Change(
        lambda x: relu(x) * 2 if x.sum() > 0 else x,
        set_to(functional, "relu", lambda x, inplace=False: x * 5),
        set_to(functional, "relu", native),
    )
    found["a metaclass"] = Change(
        lambda x: x * Made.k if x.sum() > 0 else x, set_to(Meta, "k", 5), set_to(Meta, "k", 2)
    )
    return found
