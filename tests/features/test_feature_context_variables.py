"""Context variables are places like attributes and globals: set on a path or in a loop, and put back."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

import pytest
import torch
from harness import agree, refuses, row

import dy2st

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

SCALE = ContextVar("scale", default=1.0)
SHIFT: ContextVar[Tensor] = ContextVar("shift")
INPUTS = [(torch.tensor(v),) for v in ([0.5, 0.5], [9.0, 1.0], [1.0, 2.0], [-1.0, -3.0])]


@row(54)
def test_a_value_that_one_path_sets_and_puts_back() -> None:
    def scaled(x: Tensor) -> Tensor:
        return x * SCALE.get()

    def model(x: Tensor) -> Tensor:
        if x.sum() > 0:
            token = SCALE.set(2.0)
            try:
                x = scaled(x) + 1
            finally:
                SCALE.reset(token)
        return scaled(x)

    agree(model, INPUTS, paths=2)
    assert SCALE.get() == 1.0


@row(54)
def test_a_value_of_each_path() -> None:
    def model(x: Tensor) -> Tensor:
        token = SCALE.set(3.0)
        if x.sum() > 0:
            SCALE.set(float(x.max()))
        y = x * SCALE.get()
        SCALE.reset(token)
        return y + SCALE.get()

    agree(model, INPUTS, paths=2)


@row(54)
def test_a_value_that_a_loop_carries() -> None:
    def model(x: Tensor) -> Tensor:
        token = SCALE.set(0.5)
        while x.norm() > 1:
            SCALE.set(SCALE.get() + 0.5)
            x = x / 2 + SCALE.get() * 0.01
        x = x * SCALE.get()
        SCALE.reset(token)
        return x

    agree(model, INPUTS, paths=3)


@row(54)
def test_a_variable_without_a_value_that_each_iteration_sets() -> None:
    def shifted(x: Tensor) -> Tensor:
        return x - SHIFT.get()

    def model(x: Tensor) -> Tensor:
        while x.norm() > 1:
            token = SHIFT.set(x / 2)
            x = shifted(x)
            if x.sum() > 1:
                inner = SHIFT.set(x / 4)
                x = shifted(x)
                SHIFT.reset(inner)
            x = shifted(x) * 0.9
            SHIFT.reset(token)
        return x

    agree(model, INPUTS, paths=3)
    with pytest.raises(LookupError):
        SHIFT.get()


def put_back_on_a_path(x: Tensor) -> Tensor:
    token = SCALE.set(2.0)
    if x.sum() > 0:
        SCALE.reset(token)
    return x * SCALE.get()


@row(54)
def test_a_token_that_one_path_uses() -> None:
    assert refuses(put_back_on_a_path, (torch.ones(3),)).code == "D2S226"


def left_behind(x: Tensor) -> Tensor:
    if x.sum() > 0:
        SCALE.set(2.0)
    return x * SCALE.get()


@row(54)
def test_a_value_that_outlives_the_call() -> None:
    static: Callable[[Tensor], Tensor] = dy2st.to_static(left_behind)
    with pytest.raises(dy2st.errors.Dy2stError, match=r"context variable 'scale'|SCALE is changed"):
        static(torch.ones(3))
