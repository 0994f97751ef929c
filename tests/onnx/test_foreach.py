"""The functions of many tensors that optimisers call become those of each of them in a file."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import dy2st

INPUTS = [(torch.rand(3) + 0.1, torch.rand(2, 2) + 0.1), (-torch.rand(3), torch.rand(2, 2))]
UNARY = "abs neg exp sqrt ceil floor sign tanh sigmoid reciprocal clone norm max powsum".split()
BINARY = "add sub mul div maximum minimum clamp_min clamp_max pow".split()


def made_by(name: str, tensors: list[Tensor], *others: Any, **options: Any) -> list[Tensor]:
    """What a function gives, or what it has made of the tensors."""
    found = getattr(torch, f"_foreach_{name}")(tensors, *others, **options)
    return tensors if name.endswith("_") else list(found)


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_each_tensor(name: str) -> None:
    def model(a: Tensor, b: Tensor) -> list[Tensor]:
        return made_by(name, [a * 1, b + 1])

    assert dy2st.check(model, INPUTS).outcome == "equal"


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_pairs_and_of_numbers(name: str) -> None:
    def model(a: Tensor, b: Tensor) -> list[Tensor]:
        beside = [(a + 1).abs(), (b - 0.5).abs()]
        found = made_by(name, [a.abs(), b.abs()], beside) + made_by(name, [a.abs(), b.abs()], 1.5)
        found += made_by(f"{name}_", [a.abs(), b.abs()], beside) + made_by(f"{name}_", [a.abs(), b.abs()], [0.5, 2.0])
        return found

    assert dy2st.check(model, INPUTS).outcome == "equal"


def test_functions_of_three_and_what_writes() -> None:
    def model(a: Tensor, b: Tensor) -> list[Tensor]:
        tensors, others = [a * 1, b * 1], [b.sum() + a, b + 2]
        torch._foreach_lerp_(tensors, others, 0.25)
        torch._foreach_addcmul_(tensors, others, others, value=0.5)
        torch._foreach_addcdiv_(tensors, others, [a.abs() + 1, b.abs() + 1], scalars=[0.5, 2.0])
        torch._foreach_addcdiv_(tensors, others, [a.abs() + 1, b.abs() + 1], torch.tensor([0.25, 4.0]))
        powers = torch._foreach_pow(2.0, tensors)
        torch._foreach_copy_(others, tensors)
        torch._foreach_zero_(tensors)
        return [*tensors, *others, *powers]

    assert dy2st.check(model, INPUTS).outcome == "equal"


def test_a_norm_decides() -> None:
    def model(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        norm = torch.stack(torch._foreach_norm([a, b])).norm()
        while norm > 0.5:
            a, b = torch._foreach_mul([a, b], 0.5)
            norm = torch.stack(torch._foreach_norm([a, b])).norm()
        return a, b

    assert dy2st.check(model, [*INPUTS, (torch.zeros(3), torch.zeros(2, 2))]).outcome == "equal"


def test_a_static_program_keeps_them() -> None:
    def model(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        return torch._foreach_add([a, b], 1.0) if a.sum() > 0 else torch._foreach_neg([a, b])

    static = dy2st.to_static(model)
    for given in INPUTS:
        torch.testing.assert_close(list(static(*given)), list(model(*given)))
    assert "_foreach_add" in str(static.programs[0])
