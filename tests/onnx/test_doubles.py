"""Python's floats are doubles: in a file too, wherever an operator takes one beside tensors of doubles."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

import dy2st

# 0.1, 0.3 and 0.7 are other numbers in float32.
VALUES = torch.tensor([-2.1, 0.1, 0.3, 0.7], dtype=torch.float64)


def leaky(x: Tensor, t: Tensor) -> Tensor:
    return F.leaky_relu(x, t.item())


def elu(x: Tensor, t: Tensor) -> Tensor:
    return F.elu(x, t.item())


def place(x: Tensor, t: Tensor) -> Tensor:
    return torch.searchsorted(x, t.item())


def place_on_the_right(x: Tensor, t: Tensor) -> Tensor:
    return torch.bucketize(t.item(), x, right=True)


def is_in(x: Tensor, t: Tensor) -> Tensor:
    return torch.isin(t.item(), x)


def of_a_power(x: Tensor, t: Tensor) -> Tensor:
    return torch.float_power(t.item(), x) + torch.special.xlogy(t.item(), x.abs())


def of_no_tensor(x: Tensor, t: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return torch.scalar_tensor(t.item()), torch.scalar_tensor(int(t.item())), torch.sqrt(torch.tensor(abs(t.item())))


def in_a_branch(x: Tensor, t: Tensor) -> Tensor:
    scale = t.item()
    if x.sum() > scale:
        return torch.searchsorted(x, scale)
    return torch.searchsorted(x, scale * 1.0) + 1


def in_a_loop(x: Tensor, t: Tensor) -> Tensor:
    scale = t.item()
    found = torch.zeros((), dtype=torch.int64)
    while found < 6:
        found = found + torch.searchsorted(x, scale) + 1
    return found


MODELS = [leaky, elu, place, place_on_the_right, is_in, of_a_power, of_no_tensor, in_a_branch, in_a_loop]


@pytest.mark.parametrize("model", MODELS)
def test_a_float_beside_doubles_is_not_rounded(model: Any) -> None:
    inputs = [(VALUES, VALUES[i].clone()) for i in (1, 2, 3)]
    inputs.append((VALUES + 2, VALUES[1] + 2))
    assert dy2st.check(model, inputs).outcome == "equal"


@pytest.mark.parametrize("model", MODELS)
def test_a_float_beside_singles_is_a_double_too(model: Any) -> None:
    """Also: onnxruntime 1.31 removes a widening cast and the cast back, and then misses the value inside a body."""
    singles = VALUES.float()
    inputs = [(singles, singles[i].clone()) for i in (1, 2, 3)]
    assert dy2st.check(model, inputs).outcome == "equal"


@pytest.mark.parametrize("model", MODELS)
def test_a_double_beside_singles(model: Any) -> None:
    inputs = [(VALUES.float(), VALUES[i].clone()) for i in (1, 2, 3)]
    assert dy2st.check(model, inputs).outcome == "equal"


def test_a_cast_to_doubles_and_back_before_a_loop() -> None:
    def model(x: Tensor, t: Tensor) -> Tensor:
        step = t.double().float()
        while x.sum() < 10:
            x = x + step
        return x

    inputs = [(torch.zeros(3), torch.tensor(0.75)), (torch.ones(3) * 9, torch.tensor(0.1))]
    assert dy2st.check(model, inputs).outcome == "equal"
