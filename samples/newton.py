"""Square roots by Newton's method.

Newton's iteration for ``x * x = a`` on a whole tensor, until every element is good to a relative tolerance. The number
of steps depends on the values: none where the first guess is the root, many for very large or very small numbers.
Negative input has no real root and returns NaN at once.

Source: Heron's rule, in any text on numerical analysis (for instance Press et al., Numerical Recipes, 9.4).

=====================  ===================================
``if``, early return   1 ``If``
``while``              1 ``Loop`` (carries ``x`` and a count)
=====================  ===================================
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.export import Dim


class NewtonSqrt(nn.Module):
    """Element-wise square root, with the number of steps that the slowest element took."""

    def __init__(self, tolerance: float = 1e-5) -> None:
        super().__init__()
        self.tolerance = tolerance

    def forward(self, a: Tensor) -> tuple[Tensor, int]:
        if (a < 0).any():
            return torch.full_like(a, float("nan")), 0

        x = torch.where(a > 1, a, torch.ones_like(a))
        steps = 0
        while ((x * x - a).abs() > self.tolerance * a).any():
            x = 0.5 * (x + a / x)
            steps += 1
        return x, steps


model = NewtonSqrt().eval()
dynamic_shapes = ({0: Dim("n")},)
control_flow = {"If": 1, "Loop": 1}


def example_inputs() -> list[tuple[Tensor]]:
    """Many steps, no step, one step, the other branch, one element, no element."""
    return [
        (torch.tensor([2.0, 9.0, 1e4]),),
        (torch.ones(4),),
        (torch.tensor([1.002, 1.0]),),
        (torch.tensor([4.0, -1.0]),),
        (torch.tensor([1e-6]),),
        (torch.empty(0),),
    ]
