"""Row 48: the sizes of two tensors are compared, as shapes, lists, tuples and what is unpacked of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from harness import agree, dyn, row
from torch import Tensor

INPUTS = [
    (torch.arange(float(a * b)).reshape(a, b), torch.ones(c, d))
    for a, b, c, d in ((2, 3, 2, 3), (2, 3, 4, 3), (3, 2, 3, 4), (1, 2, 1, 2))
]


def of_lists(x: Tensor, y: Tensor) -> Tensor:
    if list(x.shape) == list(y.shape):
        return x.sum() + y.sum()
    return x.sum() - y.sum()


def of_the_rest(x: Tensor, y: Tensor) -> Tensor:
    *lead, last = x.shape
    *others, _ = y.shape
    if lead != others:
        return x.sum() * last
    return x.sum() + y.sum()


def of_names(x: Tensor, y: Tensor) -> Tensor:
    ours = tuple(x.shape)
    theirs = y.size()
    same = ours == theirs
    return x.sum() + y.sum() if same else x.sum() - y.sum()


def of_nested(x: Tensor, y: Tensor) -> Tensor:
    if [tuple(x.shape), 1] == [tuple(y.shape), 1]:
        return x.sum() + y.sum()
    return x.sum() - y.sum()


@row(48)
@pytest.mark.parametrize("model", [of_lists, of_the_rest, of_names, of_nested])
def test_either_may_be(model: Callable[[Tensor, Tensor], Tensor]) -> None:
    agree(model, INPUTS, {"x": dyn(0, 1), "y": dyn(0, 1)}, paths=2)


def asserted(x: Tensor, y: Tensor) -> Tensor:
    *lead, _ = x.shape
    assert lead == list(y.shape[:-1]), f"{x.shape} beside {y.shape}"
    return x.sum(-1) + y.sum(-1)


@row(48)
def test_what_is_asserted_of_all() -> None:
    sizes = {"x": dyn(0, 1), "y": dyn(0, 1)}
    agree(asserted, [INPUTS[0], INPUTS[2]], sizes, paths=1)
