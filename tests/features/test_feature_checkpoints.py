"""``torch.utils.checkpoint`` around code with conditions (row 73), and derivatives forward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, both_signs, dyn, row, vectors
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

import dy2st


class Checkpointed(nn.Module):
    """A block with a loop and a condition, whose intermediate values are computed again."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(1.5))
        self.options = options

    def block(self, x: Tensor, shift: float = 0.0) -> Tensor:
        x = x * self.gain + shift
        while x.abs().max() > 1:
            x = x / 2
        return x.tanh() if x.sum() > 0 else x

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = checkpoint(self.block, x, **self.options)
        return checkpoint(self.block, y, 0.5, **self.options) + y


OPTIONS = [{"use_reentrant": False}, {"use_reentrant": False, "preserve_rng_state": False}, {"use_reentrant": True}]


@row(73)
@pytest.mark.parametrize("options", OPTIONS[:2])
def test_a_checkpoint_is_its_function(options: dict[str, Any]) -> None:
    agree(Checkpointed(**options), both_signs(3, 2), (dyn(0),))


@row(73)
def test_a_sequence_of_checkpoints() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.Sequential(Checkpointed(use_reentrant=False), nn.Tanh())

        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = checkpoint_sequential(self.parts, 2, x, use_reentrant=False)
            return y if y.sum() > 0 else checkpoint_sequential([torch.sin, torch.neg], 1, y, use_reentrant=False)

    agree(Model(), both_signs(3, 2), (dyn(0),))


@row(73)
@pytest.mark.parametrize("options", OPTIONS)
def test_its_gradients(options: dict[str, Any]) -> None:
    model = Checkpointed(**options)
    static = dy2st.to_static(model)
    with torch.enable_grad():
        for (x,) in both_signs(3, 2):
            found = []
            for each in (model, static):
                given, model.gain.grad = x.clone().requires_grad_(), None
                each(given).sum().backward()
                found.append((given.grad, model.gain.grad))
            assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def forward_through_a_loop(x: Tensor) -> Any:
    def change(a: Tensor, b: Tensor) -> dict[str, Tensor]:
        c = a * b
        while c.abs().max() > 1:
            c = c / 2
        return {"c": c.sin(), "d": a.sum()}

    return torch.func.jvp(change, (x, x * 2), (torch.ones_like(x), x))


def forward_of_several(x: Tensor) -> Any:
    (first, second), changes, aux = torch.func.jvp(
        lambda z: ((z.exp(), z.sum() if z.sum() > 0 else -z.sum()), z.abs()), (x,), (x,), has_aux=True
    )
    return first, second, *changes, aux


def by_columns(x: Tensor) -> Any:
    return torch.func.jacfwd(lambda z: torch.stack([z[0] ** 2, z.sum() * z[-1]]))(x)


# torch scripts what it decomposes for ``jvp``.
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
@row(73)
@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (forward_through_a_loop, vectors(3, 2, scale=2.0)),
        (forward_of_several, both_signs(3, 2)),
        (by_columns, vectors(3, 2)),
    ],
)
def test_derivatives_forward(model: Callable[[Tensor], Any], inputs: list[tuple[Tensor]]) -> None:
    agree(model, inputs, (dyn(0),), paths=1)
