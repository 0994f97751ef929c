"""Row 48: parts of two inputs meet, whose sizes are computed of two sizes that are declared apart."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from harness import agree, dyn, row
from torch import Tensor
from torch.nn import functional

TABLE = torch.arange(16.0).reshape(4, 4)
INPUTS = [
    (torch.arange(rows * size).reshape(rows, size) % 4, torch.arange(rows * size).reshape(rows, size) % 3 > 0)
    for rows, size in ((2, 4), (3, 5), (1, 3), (2, 2))
]


def filled(tags: Tensor, mask: Tensor) -> Tensor:
    return TABLE[tags[:, :-1], tags[:, 1:]].masked_fill(mask[:, 1:], -1e4)


def filled_whole_numbers(tags: Tensor, mask: Tensor) -> Tensor:
    return tags[:, 1:].masked_fill(~mask[:, 1:], 7), (tags > 1)[:, 1:].masked_fill(mask[:, :-1], False)


def chosen(tags: Tensor, mask: Tensor) -> Tensor:
    return torch.where(mask[:, 1:], 0.5, TABLE[tags[:, :-1], tags[:, 1:]])


def lost(tags: Tensor, mask: Tensor) -> Tensor:
    scores, wanted = TABLE[0][tags[:, 1:]], mask[:, 1:].float()
    return functional.mse_loss(scores, wanted), functional.l1_loss(scores, wanted, reduction="none")


@row(48)
@pytest.mark.parametrize("model", [filled, filled_whole_numbers, chosen, lost])
def test_they_are_one_size(model: Callable[[Tensor, Tensor], Tensor]) -> None:
    agree(model, INPUTS, {"tags": dyn(0, 1), "mask": dyn(0, 1)}, paths=1)
