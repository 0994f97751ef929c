"""Sizes that are put together with ``+``, and the texts and streams that code tells its user by."""

# ruff: noqa: RUF005 - how shapes are put together is what is tested

from __future__ import annotations

import sys
from typing import Any

import torch
from harness import agree, dyn, refuses, row
from torch import Tensor

PLACES = [
    (torch.randn(2, 3), torch.tensor([[0, 1, 1], [2, 3, 0]])),
    (torch.randn(2, 3).abs(), torch.tensor([[0, 1, 1], [2, 0, 0]])),
]


@row(19)
def test_a_size_that_is_data_in_a_shape() -> None:
    def scattered(x: Tensor, places: Tensor) -> Tensor:
        size = x.size()[:1] + (int(places.max()) + 1,) + x.size()[2:]
        return x.new_zeros(size).scatter_add_(1, places, x)

    def by_path(x: Tensor, places: Tensor) -> Tensor:
        n = int(places.max()) + 1 if x.sum() > 2 else 2
        return torch.ones((n,) + x.shape[1:])

    def viewed(x: Tensor, places: Tensor) -> Tensor:
        n = int(places.max()) + 1
        return torch.arange(2 * n).view([2, n]).reshape((n,) + (2,)) + places.sum()

    for model in (scattered, by_path, viewed):
        agree(model, PLACES, paths=1)


@row(21)
def test_tuples_of_other_things() -> None:
    def model(x: Tensor, places: Tensor) -> Any:
        n = places.sum().item()
        values = (n,) + (x, 2)
        for each in values[1:] + (n,):
            x = x * each
        return x, (n,) + (values[2],)

    agree(model, PLACES, paths=1)


class Message(str):
    """As a logging package has it: a text that knows its record."""

    __slots__ = ("record",)

    record: Any


@row(46)
def test_a_text_of_a_class_of_its_own_is_written_to_a_stream() -> None:
    def model(x: Tensor) -> Tensor:
        message = Message(f"a sum of {x.sum()}")
        message.record = {"values": x}
        if x.sum() > 0:
            sys.stderr.write(message)
            return message.record["values"] * 2
        return x

    agree(model, [(torch.ones(2),), (-torch.ones(2),)], (dyn(0),))


@row(46)
def test_how_much_of_a_staged_text_was_written_is_not_known() -> None:
    def model(x: Tensor) -> Tensor:
        count = sys.stderr.write(f"a sum of {x.sum()}")
        return x * count

    assert refuses(model, (torch.ones(2),)).code == "D2S207"
