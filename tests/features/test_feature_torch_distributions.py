"""Parts of torch that are Python, and branch on values: distributions that check their arguments, clipped gradients."""

from __future__ import annotations

from typing import Any

import torch
from harness import agree, row
from torch import Tensor
from torch.distributions import Distribution, constraints
from torch.distributions.utils import lazy_property


class Halved(Distribution):
    """A distribution of the user's, with a property that branches."""

    arg_constraints = {"weight": constraints.positive}  # noqa: RUF012  torch's own form
    support = constraints.real

    def __init__(self, weight: Tensor, validate_args: bool | None = None) -> None:
        self.weight = weight
        super().__init__(weight.shape[:1], (), validate_args=validate_args)

    @lazy_property
    def total(self) -> Any:
        total = self.weight.sum()
        if total > 3:
            total = total / 2
        return total

    def log_prob(self, value: Tensor) -> Tensor:
        return value - self.total


@row(43)
def test_a_distribution_that_checks_its_arguments() -> None:
    def model(mean: Tensor, scale: Tensor, value: Tensor) -> Tensor:
        return torch.distributions.Normal(mean, scale, validate_args=True).log_prob(value)

    zeros, ones = torch.zeros(2), torch.ones(2)
    agree(model, [(zeros, ones, ones), (ones, 3 * ones, zeros)], paths=1, raising=[(zeros, -ones, ones)])


@row(43)
def test_a_categorical_distribution() -> None:
    def model(logits: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        made = torch.distributions.Categorical(logits=logits)
        return made.log_prob(value), made.entropy()

    logits = torch.tensor([[0.1, 2.0, -1.0], [0.0, 0.0, 3.0]])
    agree(model, [(logits, torch.tensor([1, 2])), (-logits, torch.tensor([0, 0]))], paths=1)


@row(43)
def test_a_distribution_of_the_users() -> None:
    def model(weight: Tensor, value: Tensor) -> Tensor:
        return Halved(weight, validate_args=True).log_prob(value)

    ones = torch.ones(2)
    agree(model, [(ones, ones), (5 * ones, ones)], raising=[(-ones, ones)], whole=False)


@row(43)
def test_gradients_that_are_clipped() -> None:
    def model(gradient: Tensor) -> Any:
        point = torch.zeros(3, requires_grad=True)
        point.grad = gradient.clone()
        torch.nn.utils.clip_grad_norm_([point], 1.0, error_if_nonfinite=True)
        return point.grad

    agree(
        model,
        [(torch.ones(3),), (0.1 * torch.ones(3),)],
        paths=1,
        raising=[(torch.full((3,), float("inf")),)],
    )
