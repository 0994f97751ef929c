"""``torch.func.functional_call``: a module that is called with other tensors is converted like any other (row 41)."""

from __future__ import annotations

import torch
from harness import agree, dyn, row
from torch import Tensor, nn
from torch.func import functional_call

WEIGHT = torch.eye(3)
INPUTS = [(torch.ones(3), WEIGHT), (-torch.ones(3), WEIGHT), (torch.ones(3), -WEIGHT)]


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.linear.weight.data, self.linear.bias.data = torch.eye(3) * 2, torch.zeros(3)
        self.register_buffer("calls", torch.zeros(()))
        self.scale = torch.ones(3)

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x) * self.scale
        if y.sum() > 0:
            self.calls.add_(1)
            return y * 2
        return y - self.calls


class Called(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = Part()

    def forward(self, x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        """A parameter, a plain attribute, and a buffer whose last value is written back to the dict."""
        others = {"linear.weight": w, "scale": w[0] + 1, "calls": torch.ones(())}
        return functional_call(self.part, others, (x,)), others["calls"]


class ByPath(Called):
    def forward(self, x: Tensor, w: Tensor) -> Tensor:  # type: ignore[override]
        if x.sum() > 0:
            return functional_call(self.part, {"linear.weight": w}, x)
        return self.part(x)


class Looped(Called):
    def forward(self, x: Tensor, w: Tensor) -> Tensor:  # type: ignore[override]
        total = torch.zeros(3)
        for each in x:
            if each.sum() > 0:
                w = w * 0.5
            total = total + functional_call(self.part, {"linear.weight": w, "calls": torch.ones(())}, (each,))
        return total


class Adapted(Called):
    def forward(self, x: Tensor, w: Tensor) -> Tensor:  # type: ignore[override]
        """One step down the gradient, then a call with what it gave."""
        with torch.enable_grad():
            held = {"linear.weight": w.detach().requires_grad_()}
            loss = functional_call(self.part, held, (x,)).pow(2).mean()
            (gradient,) = torch.autograd.grad(loss, list(held.values()))
        return functional_call(self.part, {"linear.weight": w - 0.1 * gradient}, (x,))


@row(41)
def test_with_other_tensors() -> None:
    agree(Called(), INPUTS)


@row(41)
def test_on_a_path() -> None:
    agree(ByPath(), INPUTS)


@row(41)
def test_in_a_loop() -> None:
    agree(Looped(), [(torch.ones(2, 3), WEIGHT), (-torch.ones(4, 3), WEIGHT)], (dyn(0), None))


@row(73)
def test_with_what_a_gradient_gave() -> None:
    agree(Adapted(), INPUTS)
