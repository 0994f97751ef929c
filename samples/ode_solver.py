"""An ODE solver that chooses its own steps.

Integrates a batch of Van der Pol oscillators with the Bogacki-Shampine pair of orders 3 and 2. A step whose estimated
error is too large is rejected and tried again with a smaller one. It gives up after a number of steps.

Source: Bogacki, Shampine, "A 3(2) pair of Runge-Kutta formulas", 1989; step control as in Hairer, Norsett, Wanner,
"Solving Ordinary Differential Equations I", II.4.

=========================  ==========================================================
``while`` time remains     1 ``Loop`` (time, step size, state and two Python counters)
``if`` accept, ``else``    1 ``If``
``if`` too many, break     1 ``If``
=========================  ==========================================================
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.export import Dim


class VanDerPol(nn.Module):
    """``y'' = mu (1 - y^2) y' - y`` as a first-order system on ``[batch, 2]``."""

    def forward(self, y: Tensor, mu: Tensor) -> Tensor:
        position, velocity = y.unbind(-1)
        return torch.stack([velocity, mu * (1 - position**2) * velocity - position], -1)


class AdaptiveSolver(nn.Module):
    """The state at ``end``, the time that was reached, and the numbers of accepted and rejected steps."""

    def __init__(self, field: nn.Module, rtol: float = 1e-2, atol: float = 1e-3, max_steps: int = 60) -> None:
        super().__init__()
        self.field, self.rtol, self.atol, self.max_steps = field, rtol, atol, max_steps

    def step(self, y: Tensor, h: Tensor, mu: Tensor) -> tuple[Tensor, Tensor]:
        """The state one step on, and the ratio of its estimated error to the error allowed."""
        k1 = self.field(y, mu)
        k2 = self.field(y + h * k1 / 2, mu)
        k3 = self.field(y + h * k2 * 3 / 4, mu)
        new = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
        k4 = self.field(new, mu)
        error = h * (-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8)
        allowed = self.atol + self.rtol * torch.maximum(y.abs(), new.abs())
        return new, (error / allowed).square().mean().sqrt()

    def forward(self, y: Tensor, mu: Tensor, end: Tensor) -> tuple[Tensor, Tensor, int, int]:
        t = torch.zeros_like(end)
        h = torch.full_like(end, 0.5)
        accepted, rejected = 0, 0
        while end - t > 1e-5:
            h = torch.minimum(h, end - t)
            new, ratio = self.step(y, h, mu)
            if ratio <= 1:
                y, t = new, t + h
                accepted += 1
            else:
                rejected += 1
            if accepted + rejected == self.max_steps:
                break
            h = h * (0.9 * ratio.clamp(min=1e-6) ** (-1 / 3)).clamp(0.2, 5.0)
        return y, t, accepted, rejected


model = AdaptiveSolver(VanDerPol()).eval()
_batch = Dim("batch")
dynamic_shapes = ({0: _batch}, {0: _batch}, None)
control_flow = {"If": 1, "Loop": 1}


def example_inputs() -> list[tuple[Tensor, Tensor, Tensor]]:
    """Easy and stiff oscillators; no time at all, one step, rejected steps, and giving up."""
    return [
        (torch.tensor([[2.0, 0.0], [0.5, 1.0]]), torch.tensor([0.5, 1.0]), torch.tensor(3.0)),
        (torch.tensor([[1.0, 0.0]]), torch.tensor([1.0]), torch.tensor(0.0)),
        (torch.tensor([[0.1, 0.0]]), torch.tensor([0.1]), torch.tensor(0.05)),
        (torch.tensor([[2.0, 1.0], [1.0, -2.0], [0.1, 0.1]]), torch.tensor([8.0, 5.0, 1.0]), torch.tensor(1.0)),
        (torch.tensor([[2.0, 0.0]]), torch.tensor([60.0]), torch.tensor(20.0)),
    ]
