"""A recurrent network that decides how long to think about each input.

At each time step the cell is applied again and again until its halting unit has spent a probability of one, at most
``max_ponder`` times. The state that goes on is the mean of the intermediate states, weighted by those probabilities.
Each member of the batch halts at its own time.

Source: Graves, "Adaptive Computation Time for Recurrent Neural Networks", 2016, equations 5 to 13.

=================================  ==============================================
``for`` over the time steps        1 ``Loop`` (appended outputs become a stack)
``while`` some member still runs   1 ``Loop`` in it
``if`` at the last step allowed    1 ``If`` in that
=================================  ==============================================
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.export import Dim


class AdaptiveRNN(nn.Module):
    """``[batch, time, inputs]`` to the outputs of each time step and the ponder cost of each member of the batch."""

    def __init__(self, inputs: int = 4, hidden: int = 8, max_ponder: int = 6, epsilon: float = 0.01) -> None:
        super().__init__()
        self.cell = nn.GRUCell(inputs + 1, hidden)
        self.halt = nn.Linear(hidden, 1)
        self.out = nn.Linear(hidden, 3)
        with torch.no_grad():
            self.halt.weight.mul_(8)
        self.hidden, self.max_ponder, self.epsilon = hidden, max_ponder, epsilon

    def ponder(self, x: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Apply the cell until every member has halted; the mean state and the cost ``N + R``."""
        spent = x.new_zeros(x.shape[0], 1)
        cost = x.new_zeros(x.shape[0], 1)
        mean = torch.zeros_like(state)
        first = x.new_ones(x.shape[0], 1)
        steps = 0
        while (spent < 1 - self.epsilon).any():
            running = spent < 1 - self.epsilon
            state = self.cell(torch.cat([x, first], 1), state)
            p = torch.sigmoid(self.halt(state))
            steps += 1
            if steps == self.max_ponder:
                p = torch.ones_like(p)
            remainder = 1 - spent
            halts = spent + p >= 1 - self.epsilon
            p = torch.where(halts, remainder, p) * running
            cost = cost + running + remainder * (halts & running)
            mean = mean + p * state
            spent = spent + p
            first = torch.zeros_like(first)
        return mean, cost

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        state = x.new_zeros(x.shape[0], self.hidden)
        total = x.new_zeros(x.shape[0], 1)
        outputs = []
        for t in range(x.shape[1]):  # dy2st: uncovered ok (0): torch.stack needs an element
            state, cost = self.ponder(x[:, t], state)
            total = total + cost
            outputs.append(self.out(state))
        return torch.stack(outputs, 1), total


torch.manual_seed(0)
model = AdaptiveRNN().eval()
dynamic_shapes = ({0: Dim("batch"), 1: Dim("time")},)
control_flow = {"If": 1, "Loop": 2}


def example_inputs() -> list[tuple[Tensor]]:
    """Inputs that are thought about for one step, for a few, and for as many as are allowed; an empty batch."""
    generator = torch.Generator().manual_seed(1)
    sizes = [(2, 3, 1.0), (3, 2, 8.0), (1, 1, 30.0), (2, 6, 0.1), (4, 1, -30.0)]
    some = [(scale * torch.randn(batch, time, 4, generator=generator),) for batch, time, scale in sizes]
    return [*some, (torch.tensor([[[24.0, -26.0, 16.0, -41.0]]]),), (torch.zeros(0, 2, 4),)]
