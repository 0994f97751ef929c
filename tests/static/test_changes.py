"""A program of ``to_static`` runs only where all that its code has read is what it was."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import dy2st
from tests.static.held_reads import held_reads
from tests.static.process_reads import process_reads
from tests.static.world import Change, of_modules, reads
from tests.static.wrapped_reads import wrapped_reads

X = torch.tensor([1.0, -2.0, 3.0])


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "DY2ST_TEST", "1")


def run(change: Change) -> None:
    """Eager and static agree before a change, after it, after it is undone, and so on."""
    static = dy2st.to_static(change.model)
    changed = False
    seen: list[Tensor] = []

    def agree() -> None:
        expected = change.model(X)
        for _ in range(2):  # the second call may find its program without a look at the world
            actual = static(X)
            assert actual.dtype == expected.dtype
            assert actual.requires_grad == expected.requires_grad
            torch.testing.assert_close(actual, expected, rtol=0, atol=0)
        seen.append(expected)

    try:
        for step in (None, change.change, change.back, change.change, change.back):
            if step is not None:
                step()
                changed = step is change.change
            agree()
    finally:
        if changed:
            change.back()
    if isinstance(static, nn.Module):
        info = static.forward.cache_info()
        # A forward that is replaced on the module or its class has programs of its own.
        assert info.currsize >= 1
    else:
        assert static.cache_info().hits >= 5


@pytest.mark.parametrize("name", reads())
def test_what_a_function_reads(name: str) -> None:
    run(reads()[name])


@pytest.mark.parametrize("name", wrapped_reads())
def test_what_a_wrapped_function_reads(name: str) -> None:
    run(wrapped_reads()[name])


@pytest.mark.parametrize("name", process_reads())
def test_what_is_read_by_other_names(name: str) -> None:
    run(process_reads()[name])


@pytest.mark.parametrize("name", held_reads())
def test_what_is_held_apart_from_attributes(name: str) -> None:
    run(held_reads()[name])


@pytest.mark.parametrize(("_name", "make"), of_modules().items(), ids=list(of_modules()))
def test_what_a_module_reads(_name: str, make: Callable[[], Change]) -> None:
    run(make())


class OfLayers(nn.Module):
    """A module whose code names the class of a child before the walk comes to the child."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


def test_a_class_that_is_named_before_it_is_looked_into() -> None:
    forward = nn.Linear.forward
    run(
        Change(
            OfLayers(),
            lambda: setattr(nn.Linear, "forward", lambda _, x: x * 7),
            lambda: setattr(nn.Linear, "forward", forward),
        )
    )
