"""Tensors that are other objects in each call: fetched where they are, and still told from each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing._internal.two_tensor import TwoTensor

import dy2st
from dy2st.static.programs import Programs

X = torch.tensor([1.0, -2.0, 3.0])


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that grows by one in each call for which the world is walked."""
    seen: list[int] = []
    native = Programs.found_for

    def found_for(self: Programs, *args: Any) -> Any:
        seen.append(0)
        return native(self, *args)

    monkeypatch.setattr(Programs, "found_for", found_for)
    return seen


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
        self.held = {"weights": [torch.ones(3)]}

    def forward(self, x: Tensor) -> Tensor:
        y = x * self.first if x.sum() > 0 else x - self.first
        same = 1 if self.first is self.second else 0
        return y * self.second + self.held["weights"][0] + same


def new(value: float) -> nn.Parameter:
    return nn.Parameter(torch.full((3,), value))


def agree(static: nn.Module, model: nn.Module, *tensors: Tensor) -> None:
    expected, actual = model(X), static(X)
    torch.testing.assert_close(actual, expected, rtol=0, atol=0)
    for one, other in zip(
        torch.autograd.grad(actual.sum(), tensors), torch.autograd.grad(expected.sum(), tensors), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_parameters_that_are_replaced_before_each_call(walks: list[int]) -> None:
    model = Scaled()
    static = dy2st.to_static(model)
    for step in range(6):
        model.first = new(step + 2.0)
        model.held["weights"][0] = torch.full((3,), float(step))
        agree(static, model, model.first, model.second)
    assert len(walks) == 2
    assert static.forward.cache_info()[:2] == (5, 1)


def test_what_moves_is_fetched_from_then_on(walks: list[int]) -> None:
    model = Scaled()
    static = dy2st.to_static(model)
    for step in range(3):
        agree(static, model, model.first)
        model.first = new(step + 2.0)
    model.second = new(5.0)  # it has not moved before
    agree(static, model, model.first, model.second)
    before = len(walks)
    for step in range(3):
        model.first, model.second = new(step + 2.0), new(step - 2.0)
        agree(static, model, model.first, model.second)
    assert len(walks) == before
    assert static.forward.cache_info()[1] == 1


def in_place_of(name: str, value: Callable[[Scaled], Any]) -> Callable[[Scaled], None]:
    return lambda model: setattr(model, name, value(model))


@pytest.mark.parametrize(
    "change",
    [
        in_place_of("second", lambda model: model.first),
        in_place_of("first", lambda model: model.second),
        in_place_of("first", lambda _: nn.Parameter(torch.ones(1))),
        in_place_of("first", lambda _: nn.Parameter(torch.ones(3, dtype=torch.float64))),
        in_place_of("first", lambda _: nn.Parameter(torch.ones(3), requires_grad=False)),
    ],
    ids=["tied", "tied to one that stays", "shape", "dtype", "no gradient"],
)
def test_another_kind_of_tensor_is_another_program(change: Callable[[Scaled], None]) -> None:
    model = Scaled()
    static = dy2st.to_static(model)
    for step in range(3):
        model.first = new(step + 2.0)
        agree(static, model, model.first)
    change(model)
    for _ in range(2):
        agree(static, model, model.second)
    assert static.forward.cache_info().currsize == 2


def test_a_tensor_in_two_places_moves(walks: list[int]) -> None:
    model = Scaled()
    static = dy2st.to_static(model)
    for step in range(5):
        model.first = model.second = new(step + 2.0)
        agree(static, model, model.first)
    assert len(walks) == 2
    model.second = new(2.0)
    agree(static, model, model.first, model.second)
    assert static.forward.cache_info().currsize == 2


def test_arguments_are_told_from_what_moves() -> None:
    held = [torch.ones(3)]

    def model(x: Tensor) -> Tensor:
        return x * held[0] if x.sum() > 0 else x - held[0]

    static = dy2st.to_static(model)
    for step in range(4):
        held[0] = torch.full((3,), float(step))
        torch.testing.assert_close(static(X), model(X), rtol=0, atol=0)
    torch.testing.assert_close(static(held[0]), model(held[0]), rtol=0, atol=0)
    assert static.cache_info().currsize == 2


def test_programs_that_write_in_place_look_where_tensors_lie() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(3))

        def forward(self, x: Tensor) -> Tensor:
            self.count += x
            return self.count * 2 if x.sum() > 0 else self.count

    model, other = Counting(), Counting()
    static = dy2st.to_static(model)
    for step in range(4):
        model.count, other.count = torch.full((3,), float(step)), torch.full((3,), float(step))
        torch.testing.assert_close(static(X), other(X), rtol=0, atol=0)
        torch.testing.assert_close(model.count, other.count, rtol=0, atol=0)
    assert static.forward.cache_info().misses == 1


class Held(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight if x.sum() > 0 else x - self.weight


def test_a_tensor_that_python_answers_for_runs_the_function_itself(walks: list[int]) -> None:
    model = Held()
    static = dy2st.to_static(model)
    plain = model.weight
    model.weight = nn.Parameter(TwoTensor(torch.ones(3), torch.ones(3)))
    for _ in range(3):
        assert isinstance(static(X), TwoTensor)
    assert len(walks) == 1
    assert static.forward.cache_info() == (0, 0, 64, 0)
    model.weight = plain
    for _ in range(3):
        assert type(static(X)) is Tensor
    assert static.forward.cache_info()[:2] == (2, 1)
    model.weight = nn.Parameter(TwoTensor(torch.ones(3), torch.ones(3)))
    assert isinstance(static(X), TwoTensor)
    given = dy2st.to_static(lambda x: x * 2)
    assert isinstance(given(TwoTensor(X, X)), TwoTensor)
    assert type(given(X)) is Tensor
