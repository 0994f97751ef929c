"""Sparse coding by iterative soft thresholding, with backtracking.

Minimises ``|x D - y|^2 / 2 + penalty |x|_1``. The bound on the curvature is doubled until the step is safe, and the
iteration ends when the code no longer changes.

Source: Beck, Teboulle, "A Fast Iterative Shrinkage-Thresholding Algorithm for Linear Inverse Problems", 2009, section 3
(ISTA with backtracking; for a quadratic loss, their test is the one on ``move`` below).

=======================================  ===========================================================
``for k in range(...)`` with ``break``   1 ``Loop`` (``k`` is used after it) with 1 ``If``
``while`` the bound is too small         1 ``Loop`` in it (changes a Python float)
=======================================  ===========================================================
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.export import Dim


class ISTA(nn.Module):
    """Signals ``[batch, signal]`` to sparse codes, the number of iterations and the bound that was found."""

    def __init__(self, atoms: int = 8, signal: int = 6, penalty: float = 0.2, tolerance: float = 2e-3) -> None:
        super().__init__()
        dictionary = torch.randn(atoms, signal)
        self.register_buffer("dictionary", dictionary / dictionary.norm(dim=1, keepdim=True))
        self.penalty, self.tolerance, self.max_iterations = penalty, tolerance, 60

    def shrink(self, x: Tensor, by: float) -> Tensor:
        """Pull every element toward zero by the same amount."""
        return x.sign() * (x.abs() - by).clamp(min=0)

    def forward(self, y: Tensor) -> tuple[Tensor, int, float]:
        x = y.new_zeros(y.shape[0], self.dictionary.shape[0])
        bound = 0.5
        for k in range(self.max_iterations):  # noqa: B007 - used after the loop
            gradient = (x @ self.dictionary - y) @ self.dictionary.T
            new = self.shrink(x - gradient / bound, self.penalty / bound)
            move = new - x
            while (move @ self.dictionary).square().sum() > bound * move.square().sum():
                bound *= 2
                new = self.shrink(x - gradient / bound, self.penalty / bound)
                move = new - x
            x = new
            if move.abs().max() < self.tolerance:
                break
        return x, k + 1, bound


torch.manual_seed(0)
model = ISTA().eval()
dynamic_shapes = ({0: Dim("batch")},)
control_flow = {"If": 0, "Loop": 2}


def example_inputs() -> list[tuple[Tensor]]:
    """Codes that settle after some iterations, at once (nothing to code) and not before the limit.

    The bound is right at first, or doubled once (a signal that is one atom) or more often.
    """
    generator = torch.Generator().manual_seed(1)
    signals = torch.randn(3, 6, generator=generator)
    some = [(signals[:2],), (torch.zeros(2, 6),), (1e-3 * signals,), (0.3 * signals[:1],), (50 * signals,)]
    return [*some, (0.3 * model.dictionary[5:6],)]
