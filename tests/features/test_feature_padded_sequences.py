"""Row 59: tensors of data-dependent lengths, padded to the longest."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from harness import agree, dyn, row
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence, unpad_sequence

MASKS = ([True, False, True, True], [False] * 4, [True] * 4)


@row(59)
@pytest.mark.parametrize("options", [{}, {"batch_first": True, "padding_value": -1.5}, {"padding_side": "left"}])
def test_lengths_that_are_data(options: dict[str, Any]) -> None:
    def model(x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        return pad_sequence([x[mask], y, x[~mask] * 2, x[:1]], **options)

    inputs = [(torch.randn(4, 2), torch.randn(n, 2), torch.tensor(m)) for n, m in zip((3, 1, 0), MASKS, strict=True)]
    agree(model, inputs, (None, dyn(0), None), paths=1)


@row(59)
def test_of_integers_and_other_sides_of_a_branch() -> None:
    def model(x: Tensor, mask: Tensor) -> Tensor:
        if mask.sum() > 2:
            return pad_sequence((x[mask], x[~mask]), batch_first=True).sum(1)
        return pad_sequence([x, x[mask]], batch_first=True, padding_value=7).sum(1)

    agree(model, [(torch.arange(8).view(4, 2), torch.tensor(m)) for m in MASKS])


@row(59)
def test_there_and_back() -> None:
    def model(x: Tensor, lengths: Tensor) -> Tensor:
        rows = [each.flip(0) for each in unpad_sequence(x, lengths, batch_first=True)]
        return pad_sequence(rows, batch_first=True)

    inputs = [((3, 5), (5, 2, 3)), ((3, 4), (1, 1, 4)), ((3, 2), (2, 2, 2))]
    agree(model, [(torch.randn(*size), torch.tensor(n)) for size, n in inputs], (dyn(1), None), paths=1)
