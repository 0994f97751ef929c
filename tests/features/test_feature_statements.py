"""Rows 43, 45, 46, 49 and 50: assert, raise, print and what asks about Python objects."""

# ruff: noqa: PT018, T201 - the constructs under test are written as users write them
from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING

import numpy as np
import torch
from harness import agree, agree_or_refuse, dyn, row, vectors
from torch import Tensor, nn

if TYPE_CHECKING:
    import pytest

logger = logging.getLogger(__name__)


def both_signs(*sizes: int) -> list[tuple[Tensor]]:
    """Vectors of these lengths with a positive and with a negative sum."""
    return [(sign * (x.abs() + 0.1),) for (x,) in vectors(*sizes) for sign in (1.0, -1.0)]


@row(45)
def test_assert_on_tensors() -> None:
    def model(x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
        assert x.shape[0] < 100, "static"
        assert (x < 100).all(), f"too large: {x.shape}"
        if x.sum() > 0:
            assert x.max() > 0
            x = x * 2
        for i in range(int(n)):
            assert i < 50 and n >= 0
            x = x + i
        assert not x.isnan().any()
        return x, n

    agree(
        model,
        [(*x, torch.tensor(n)) for x, n in zip(both_signs(3, 1, 2), (3, 0, 1, 2, 5, 4), strict=True)],
        (dyn(0), None),
        paths=6,
    )


@row(46)
def test_print_logging_and_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    def model(x: Tensor) -> Tensor:
        print("x is", x, f"{x.sum():.2f}" if x.ndim == 9 else "")
        if x.sum() > 0:
            print(f"positive: {x.shape}", x.max())
            logger.info("positive %s", x)
            y = x * 2
        else:
            warnings.warn("negative input", stacklevel=1)
            logger.warning("negative %s", x.sum())
            y = -x
        for element in y:
            print(element, end=" ")
            y = y + element
        return y

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree(model, both_signs(3, 1, 2), (dyn(0),), paths=4)
    assert "positive: torch.Size([3])" in capsys.readouterr().out


@row(49)
def test_isinstance_hasattr_getattr_and_callable() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(2, 2)
            self.scale = 3

        def forward(self, x: Tensor, state: tuple[Tensor, ...] | None = None) -> Tensor:
            y = x
            if isinstance(x, Tensor) and x.sum() > 0:
                y = getattr(self, "lin" + "ear")(x)
            if not hasattr(self, "missing") and state is None and y.max() > 0.5:
                y = y * getattr(self, "scale", 1)
            for name in ("linear", "scale", "nothing"):
                part = getattr(self, name, None)
                if callable(part) and y.mean() < 1:
                    y = part(y)
                elif type(part) is int:
                    y = y + part
            count = 1
            while y.norm() > 1:
                assert isinstance(y, torch.Tensor)
                y = y / 2
                count += 1
            return y * count if torch.is_tensor(y) else x

    inputs = [(scale * torch.randn(n, 2),) for n, scale in ((2, 1.0), (1, 5.0), (3, -5.0), (2, 0.01))]
    agree(Model(), inputs, (dyn(0),), paths=4)


@row(50)
def test_numpy() -> None:
    def constants(x: Tensor) -> Tensor:
        window = torch.from_numpy(np.hanning(5).astype(np.float32))
        if x.sum() > 0:
            x = x * float(np.pi)
        return x[:2] + window[:2]

    agree_or_refuse(constants, both_signs(3, 2), (dyn(0),))

    def of_values(x: Tensor) -> Tensor:
        if np.median(x.numpy()) > 0:
            return x * 2
        return torch.from_numpy(np.sort(x.numpy()))

    agree_or_refuse(of_values, both_signs(3, 2), (dyn(0),))
