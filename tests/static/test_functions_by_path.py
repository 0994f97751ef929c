"""Which function is called is decided by data: a program of ``to_static`` has both."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import dy2st

Mask = Callable[[Tensor, Tensor], Tensor]


def both(*functions: Mask) -> Mask:
    def each_of(i: Tensor, j: Tensor) -> Tensor:
        found = i.new_ones((), dtype=torch.bool)
        for function in functions:
            found = found & function(i, j)
        return found

    return each_of


def causal(i: Tensor, j: Tensor) -> Tensor:
    return j <= i


def padding(mask: Tensor) -> Mask:
    def inner(i: Tensor, j: Tensor) -> Tensor:
        return mask[j]

    return inner


def of_one_call(x: Tensor, mask: Tensor) -> Tensor:
    given = None if mask.all() else mask
    function = causal
    if given is not None:
        function = both(function, padding(given))
    i = torch.arange(x.shape[0])
    return function(i[:, None], i[None]) * x


def in_a_loop(x: Tensor, mask: Tensor) -> Tensor:
    i, y = torch.arange(x.shape[0]), x * 1
    for _ in range(4):
        function = causal if y.sum() < 20 else both(causal, padding(mask))
        y = y + function(i[:, None], i[None]) * x
        if y.sum() > 60:
            break
    return y


def by_its_name(x: Tensor, mask: Tensor) -> Tensor:
    function = torch.relu if mask.all() else torch.tanh
    return function(x) if function is torch.relu else function(x) * 2


@pytest.mark.parametrize("model", [of_one_call, in_a_loop, by_its_name])
def test_the_function_of_the_path_is_called(model: Callable[[Tensor, Tensor], Tensor]) -> None:
    static = dy2st.to_static(model)
    for mask in ([1, 1, 1, 1], [1, 0, 1, 1], [1, 1, 1, 1]):
        for scale in (1.0, -1.0, 3.0):
            given = torch.full((4, 4), scale), torch.tensor(mask).bool()
            assert torch.equal(static(*given), model(*given))
    assert static.cache_info().hits > 0
