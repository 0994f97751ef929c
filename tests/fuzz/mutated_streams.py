"""Models with state: what one call changes, the next one reads."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Detector(nn.Module):
    """Voice activity: a noise floor, and a hangover."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("floor", torch.tensor(1.0))
        self.hang = 0

    def forward(self, x: Tensor) -> tuple[bool, Tensor]:
        energy = x.abs().mean()
        if energy > 2 * self.floor:
            self.hang = 3
        else:
            self.floor = 0.9 * self.floor + 0.1 * energy
            self.hang = max(self.hang - 1, 0)
        return self.hang > 0, energy


class Ring(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("buffer", torch.zeros(4))
        self.register_buffer("at", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.buffer[self.at] = x.mean()
        self.at = (self.at + 1) % 4
        total = self.buffer.sum()
        return total - x if total > 1 else x * 2


class RunningNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("var", torch.ones(3))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.count = self.count + 1
        apart = x - self.mean
        if self.count > 1:
            self.mean = self.mean + apart / self.count
            self.var = self.var * 0.9 + 0.1 * apart * apart
        else:
            self.mean = x.clone()
        return apart / (self.var.sqrt() + 0.1)


class Cell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.cell = nn.LSTMCell(3, 2)
        self.register_buffer("h", torch.zeros(1, 2))
        self.register_buffer("c", torch.zeros(1, 2))

    def forward(self, x: Tensor) -> Tensor:
        h, c = self.cell(x[None], (self.h, self.c))
        if h.abs().max() > 0.5:
            h, c = h * 0.5, c * 0.5
        self.h, self.c = h, c
        return self.h[0]


class Tracker(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("place", torch.zeros(2))
        self.register_buffer("speed", torch.zeros(2))
        self.lost = 0

    def forward(self, seen: Tensor) -> tuple[Tensor, int]:
        guess = self.place + self.speed
        apart = seen - guess
        if apart.norm() < 2.0:
            self.speed = self.speed + 0.25 * apart
            self.place = guess + 0.5 * apart
            self.lost = 0
        else:
            self.lost += 1
            self.place = guess
            if self.lost >= 2:
                self.place, self.speed, self.lost = seen.clone(), torch.zeros(2), 0
        return self.place, self.lost


class Debounced(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.state = False
        self.count = 0

    def forward(self, x: Tensor) -> tuple[Tensor, bool]:
        raw = bool(x.sum() > 0.5)
        if raw != self.state:
            self.count += 1
            if self.count >= 2:
                self.state, self.count = raw, 0
        else:
            self.count = 0
        return torch.zeros(()) + self.count, self.state


class Average(nn.Module):
    """Exponential, with a warm-up."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.register_buffer("value", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        if self.calls <= 2:
            self.value = self.value + (x - self.value) / self.calls
        else:
            self.value = 0.8 * self.value + 0.2 * x
        return x * 0 if (x - self.value).abs().max() > 3 else self.value * 1.0


class Bucket(nn.Module):
    """Tokens, which are Python's numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = 5.0

    def forward(self, cost: Tensor, elapsed: Tensor) -> tuple[Tensor, Tensor]:
        self.tokens = min(5.0, self.tokens + elapsed.abs().sum().item() * 0.5)
        asked = cost.abs().sum().item()
        if asked <= self.tokens:
            self.tokens -= asked
            return torch.ones(()), torch.tensor(self.tokens)
        return torch.zeros(()), torch.tensor(self.tokens)


class Hysteresis(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.on = False
        self.register_buffer("peak", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        most = x.max()
        if self.on:
            if most < 0.25:
                self.on = False
        elif most >= 1.0:
            self.on = True
        self.peak = most if most > self.peak else self.peak * 0.5
        return self.peak + (10.0 if self.on else 0.0)


_VECTORS = [(torch.tensor([1.0, 2.0, 3.0]),), (torch.tensor([-1.0, 0.5, 0.25]),)]
_PLACES = [(torch.tensor([1.0, 2.0]),), (torch.tensor([-3.0, 0.5]),)]
_PAIRS = [(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])), (torch.tensor([0.0, 2.0]), torch.tensor([-3.0, 4.0]))]
STREAMS: dict[str, tuple[nn.Module, list[Any]]] = {
    **{
        type(model).__name__: (model.eval(), _VECTORS)
        for model in (Detector(), Ring(), RunningNorm(), Cell(), Debounced(), Average(), Hysteresis())
    },
    "Tracker": (Tracker(), _PLACES),
    "Bucket": (Bucket(), _PAIRS),
}
