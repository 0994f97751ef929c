"""``torch.Tensor(list)`` and its kin, of lists whose length or numbers are data-dependent."""

from __future__ import annotations

import torch
from harness import agree, dyn, row, vectors
from torch import Tensor

LENGTHS = vectors(3, 5, 1, 0)


@row(24)
def test_lists_of_dynamic_length() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        places = torch.Tensor(list(range(x.shape[0]))).to(torch.long)
        return x[places], torch.LongTensor(list(range(x.shape[0])))

    agree(model, LENGTHS, (dyn(0),), paths=1)


@row(24)
def test_staged_numbers() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        count = int(x.sum()) if x.sum() > 0 else 7
        return torch.Tensor([count, 2]), torch.DoubleTensor([0.1, float(x.sum())]), torch.IntTensor([[count], [1]])

    agree(model, LENGTHS, (dyn(0),), paths=1)


@row(24)
def test_sizes_and_plain_lists_are_torchs() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.Tensor([1, 2]) + x.sum(), torch.Tensor(torch.Size([2, 3])).fill_(1)

    agree(model, LENGTHS, (dyn(0),), paths=1)


@row(24)
def test_boxes_that_are_left_out_one_after_the_other() -> None:
    def model(x: Tensor) -> Tensor:
        order = torch.argsort(x, descending=True)
        kept = []
        left = torch.Tensor(list(range(x.shape[0]))).to(dtype=torch.long)
        while len(left) > 0:
            i = int(left[0].item())
            kept.append(i)
            near = ((x[order][left] - x[order][i]).abs() > 0.5).flatten()
            near[0] = False
            left = left[near]
        return order[kept]

    agree(model, vectors(4, 7, 1, seed=3), (dyn(0),))


def test_new_of_a_list_with_data_dependent_numbers() -> None:
    def model(x: Tensor) -> tuple[Tensor, ...]:
        count = (x > 0).sum().item()
        return x.new([count, 1]), torch.arange(3).new([count, x.shape[0]]), x.new((x.size(0), 3)), x.new([1.5, 2])

    agree(model, [(torch.ones(3),), (torch.tensor([1.0, -1, 2, -2, 3]),), (-torch.ones(2),)], (dyn(0),), paths=1)
