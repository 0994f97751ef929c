"""Tensors of several lengths in a list: pieces of a tensor, and what is collected in a loop.

They are put together again, padded, picked and sliced as in eager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, dyn, refused, row
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

import dy2st
from dy2st.errors import Dy2stError

DYNAMIC = ({0: Dim("n", min=2, max=4096)},)


def rows(*sizes: int) -> list[tuple[Tensor]]:
    """Matrices of three columns."""
    generator = torch.Generator().manual_seed(3)
    return [(torch.randn(size, 3, generator=generator),) for size in sizes]


class Normalised(nn.Module):
    """Normalises a batch in parts of four rows."""

    def forward(self, x: Tensor) -> Tensor:
        """Float32 [n, 3] to the same."""
        parts = x.chunk(-(-x.shape[0] // 4), 0)
        return torch.cat([part - part.mean(0) for part in parts], dim=0)


class Carried(nn.Module):
    """Goes on with what the part before has left."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = torch.zeros(3)

    def norm(self, part: Tensor) -> Tensor:
        """A part by all rows so far."""
        self.seen = self.seen + part.sum(0)
        return part / (1 + self.seen.abs())

    def forward(self, x: Tensor) -> Tensor:
        """Float32 [n, 3] to the same."""
        self.seen = torch.zeros(3)
        return torch.cat([self.norm(part) for part in x.split(4)], -2)


class InALoop(nn.Module):
    """The same in a loop that appends."""

    def forward(self, x: Tensor) -> Tensor:
        """Float32 [n, 3] to the same."""
        made = []
        for part in x.split(4):
            made.append(part - part.amax(0))  # noqa: PERF401  a loop is what this is about
        return torch.cat(made)


@pytest.mark.slow_for("Normalised")
@row(24, 32, 48)
@pytest.mark.parametrize("model", [Normalised, Carried, InALoop])
def test_pieces_are_put_together_again(model: type[nn.Module]) -> None:
    agree(model(), rows(8, 5, 12, 3, 9, 2), DYNAMIC, paths=1)


@row(48)
def test_pieces_whose_number_is_data_are_refused() -> None:
    def model(x: Tensor, n: Tensor) -> Tensor:
        return torch.cat([part - part.mean(0) for part in x.chunk(int(n))])

    def other_dimension(x: Tensor) -> Tensor:
        return torch.cat([part - part.mean(0) for part in x.split(4)], 1)

    with refused(Dy2stError, match="D2S244|chunk"):
        dy2st.export(model, (rows(12)[0][0], torch.tensor(3)))
    with refused(Dy2stError, match="pad them to one size"):
        dy2st.export(other_dimension, rows(9)[0], dynamic_shapes=DYNAMIC)


# Six rows, and how many of them each piece has.
LENGTHS = [
    (torch.arange(12.0).view(6, 2) - 4, torch.tensor(lengths)) for lengths in ([2, 4], [1, 1, 4], [6], [0, 5, 1])
]
EITHER_DYNAMIC = (dyn(0), dyn(0))


def put_together(x: Tensor, lengths: Tensor) -> Any:
    pieces = x.split(lengths.tolist())
    return len(pieces), pieces[0], pieces[-1].sum(), torch.cat(pieces), torch.cat([-p for p in reversed(pieces)])


def padded(x: Tensor, lengths: Tensor) -> Any:
    pieces = torch.split(x, tuple(lengths.tolist()), dim=0)
    behind = pad_sequence(pieces, batch_first=True, padding_value=-1.0)
    return behind, pad_sequence([p * 2 for p in pieces], padding_side="left"), isinstance(pieces, tuple)


def gone_over(x: Tensor, lengths: Tensor) -> Any:
    total = x.new_zeros(2)
    for i, piece in enumerate(x.split(lengths.tolist())):
        if piece.shape[0] > 1:
            total = total + piece.amax(0) * i
    return total


def cut(x: Tensor, lengths: Tensor) -> Any:
    pieces = x.split(lengths.tolist())
    return torch.cat(pieces[1:]) if len(pieces) > 1 else x


def collected(x: Tensor, lengths: Tensor) -> Any:
    found = [x[:1]]
    for n in lengths:
        found.append(x[:n])  # noqa: PERF401  a loop is what this is about
    found.append(x[2:])
    last = len(found) - 1
    return pad_sequence(found, batch_first=True), found[1], found[-2].sum(), found[last], torch.vstack(found)


def sliced(x: Tensor, lengths: Tensor) -> Any:
    found = [x[:n] for n in lengths.tolist()]
    moved = found[1:] + found[:1]
    by_length = sorted(found, key=lambda piece: -piece.shape[0])
    return pad_sequence(found[::-1]), torch.cat(moved), pad_sequence(by_length, batch_first=True), found[::2]


def filled_up(x: Tensor, lengths: Tensor) -> Any:
    found = [x[:n] for n in lengths.tolist()]
    longest = max(piece.shape[0] for piece in found)
    table = x.new_zeros(len(found), longest, 2)
    for i, piece in enumerate(found):
        table[i, : len(piece)] = piece
    return table, torch.stack([functional.pad(piece, (0, 0, 0, longest - len(piece))) for piece in found], 1)


def of_vectors(x: Tensor, lengths: Tensor) -> Any:
    found = [x[:n, 0] for n in lengths.tolist()]
    total = x.sum() * 0
    for vector in found:
        total = total * 2 + vector.sum()
    return torch.hstack(found), pad_sequence(found), total


def packed(x: Tensor, lengths: Tensor) -> Any:
    found = [x[: n + 1] for n in lengths.tolist()]
    counts = torch.tensor([piece.shape[0] for piece in found])
    both = pack_padded_sequence(pad_sequence(found, batch_first=True), counts, batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(both, batch_first=True)


def by_group(x: Tensor, lengths: Tensor) -> Any:
    group = torch.repeat_interleave(torch.arange(lengths.shape[0]), lengths)
    return pad_sequence([x[group == i] for i in range(lengths.shape[0])], batch_first=True)


@pytest.mark.slow_but_for("by_group")
@row(24, 32, 48)
@pytest.mark.parametrize(
    "model",
    [put_together, padded, cut, collected, sliced, filled_up, of_vectors, packed, by_group],
    ids=lambda model: model.__name__,
)
def test_pieces_of_given_lengths(model: Callable[[Tensor, Tensor], Any]) -> None:
    agree(model, LENGTHS, EITHER_DYNAMIC)


@pytest.mark.slow
@row(24, 32, 48)
def test_pieces_of_given_lengths_in_a_loop() -> None:
    agree(gone_over, LENGTHS, EITHER_DYNAMIC, paths=3)


def stacked(x: Tensor, lengths: Tensor) -> Tensor:
    return torch.stack([x[:n] for n in lengths.tolist()])


def split(x: Tensor, lengths: Tensor) -> Tensor:
    return torch.stack([piece.sum() for piece in x.split(lengths.tolist())])


@pytest.mark.slow_but_for("split")
@row(24, 48)
@pytest.mark.parametrize("model", [stacked, split])
def test_lengths_that_do_not_fit_fail_as_in_eager(model: Callable[[Tensor, Tensor], Tensor]) -> None:
    x = torch.arange(8.0).view(4, 2)
    agree(model, [(x, torch.tensor([2, 2])), (x[:3], torch.tensor([1, 1, 1]))], EITHER_DYNAMIC)
    program = dy2st.export(model, (x, torch.tensor([2, 2])), dynamic_shapes=EITHER_DYNAMIC).module()
    wrong = [2, 1] if model is stacked else [2, 1, -1, 1]
    for run in (model, program):
        with pytest.raises((RuntimeError, IndexError)):
            run(x, torch.tensor(wrong))


@row(59, 71)
def test_a_tensor_of_a_fixed_size_is_split_into_as_many_pieces_as_data_says() -> None:
    def model(x: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
        last = torch.cat([ends[:-1].nonzero()[:, 0], torch.tensor([x.shape[0] - 1])])
        lengths = torch.diff(last, prepend=torch.tensor([-1]))
        pieces = torch.split(x, lengths.tolist())
        total = torch.zeros(())
        for piece in pieces:
            total = total + piece.max()
        return torch.nn.utils.rnn.pad_sequence(pieces), total

    x = torch.arange(12.0).reshape(6, 2)
    agree(model, [(x, torch.tensor(each)) for each in ([0, 1, 0, 0, 1, 0], [0] * 6, [1] * 6)], paths=3)
