"""Attributes that each call stores to before it reads them: no state is carried into a call.

The law: what is there before a call makes no difference to it. What may make one is refused, as before.
"""

from __future__ import annotations

import pytest
import torch
from harness import agree, refused, row
from torch import Tensor, nn
from torch.export import Dim

import dy2st
import dy2st.onnx
from dy2st.errors import CarriedStateError

DYNAMIC = ({0: Dim.DYNAMIC},)


def rows(*sizes: int) -> list[tuple[Tensor]]:
    """Matrices of three columns."""
    generator = torch.Generator().manual_seed(2)
    return [(2 * torch.randn(size, 3, generator=generator),) for size in sizes]


class Neuron(nn.Module):
    """Keeps its potential: a float until the first step tells the size."""

    def __init__(self) -> None:
        super().__init__()
        self.v: float | Tensor = 0.0

    def forward(self, x: Tensor) -> Tensor:
        """One step: the spikes."""
        if isinstance(self.v, float):
            self.v = torch.full_like(x, self.v)
        self.v = self.v + (x - self.v) / 2.0
        spikes = (self.v >= 1.0).to(x)
        self.v = (1.0 - spikes) * self.v
        return spikes


class Reset(nn.Module):
    """Starts afresh in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.neuron = Neuron()

    def forward(self, x: Tensor) -> Tensor:
        """Float32 [n, 3] to the spikes."""
        self.neuron.v = 0.0
        return torch.stack([self.neuron(step) for step in x])


class Logged(nn.Module):
    """Makes its list anew in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        """Float32 [n, 3] to [n]."""
        self.log = []
        for r in x:
            self.log.append(r.sum())
        return torch.stack(self.log)


@pytest.mark.slow_but_for("Logged")
@row(29, 32)
@pytest.mark.parametrize("model", [Reset, Logged])
def test_what_each_call_stores_first_is_no_state(model: type[nn.Module]) -> None:
    agree(model(), rows(4, 1, 6), DYNAMIC, paths=1)
    report = dy2st.check(model(), rows(4, 1, 6), dynamic_shapes=({0: Dim("n", min=1)},))
    assert report.ok, str(report)


class Kept(nn.Module):
    """Has a float before the first call."""

    def __init__(self) -> None:
        super().__init__()
        self.v: float | Tensor = 0.0
        self.old: float | Tensor = 0.0


class ReadFirst(Kept):
    """Reads it before it stores another."""

    def forward(self, x: Tensor) -> Tensor:
        """Float32 [n, 3] to the same."""
        y = x * self.v if isinstance(self.v, float) else x + self.v
        self.v = x.sum()
        return y


class StoredOnOnePath(Kept):
    """Leaves it as it is on the other path."""

    def forward(self, x: Tensor) -> Tensor:
        """Float32 [n, 3] to the same."""
        if x.sum() > 0:
            self.v = x.sum()
            return x * self.v
        return x


class Passed(Kept):
    """Keeps the one of the call before, in another attribute."""

    def forward(self, x: Tensor) -> Tensor:
        """Float32 [n, 3] to the same."""
        y = x if isinstance(self.old, float) else x + self.old
        self.old = self.v
        self.v = x.sum()
        return y * self.v


class InText(Kept):
    """Writes it into a text."""

    def forward(self, x: Tensor) -> Tensor:
        """Float32 [n, 3] to the same."""
        text = f"{self.v}"
        self.v = x.sum()
        return x * self.v * len(text)


@row(29)
@pytest.mark.parametrize("model", [ReadFirst, StoredOnOnePath, Passed, InText])
def test_what_may_be_read_first_is_refused(model: type[nn.Module]) -> None:
    with refused(CarriedStateError, match=r"is the float 0.0 before the call and"):
        dy2st.onnx.export(model(), rows(4)[0], dynamic_shapes=DYNAMIC)
