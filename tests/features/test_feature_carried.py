"""Row 70: state that lives on between calls, as inputs and outputs of a file."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from harness import outcomes, row
from torch import Tensor, nn

import dy2st
from dy2st.errors import CarriedStateError


class Streaming(nn.Module):
    """A noise floor, a hold that is counted in an int, and a recurrent cell that starts with nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)
        self.register_buffer("floor", torch.tensor(0.5))
        self.held = 0
        self.hidden: Any = None

    def forward(self, x: Tensor) -> tuple[Tensor, bool]:
        if self.hidden is None:
            self.hidden = (torch.zeros(1, 4), torch.zeros(1, 4))
        if x.abs().mean() > 2 * self.floor:
            self.held = 2
        else:
            self.floor = 0.9 * self.floor + 0.1 * x.abs().mean()
            if self.held > 0:
                self.held -= 1
        self.hidden = self.cell(x[None], self.hidden)
        return self.hidden[0], self.held > 0


class Growing(nn.Module):
    """All that it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x)
        return torch.stack(self.seen).mean(0)


@row(70)
def test_sequences_are_equal() -> None:
    loud, quiet = (5 * torch.ones(3),), (0.1 * torch.ones(3),)
    report = dy2st.check(Streaming().eval(), [[quiet, loud, quiet, quiet, quiet, quiet, loud], [quiet, quiet]])
    assert report.ok, str(report)
    assert report.covered, str(report)
    outcomes.append("Y")


@row(70)
def test_a_list_that_grows_is_refused() -> None:
    with pytest.raises(CarriedStateError, match="'seen' is a list of 0 elements before the call") as raised:
        dy2st.check(Growing(), [(torch.ones(3),)])
    assert raised.value.location is not None
    outcomes.append("R")
