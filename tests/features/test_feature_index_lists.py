"""Tensors indexed by lists of staged ints and tensors, as torch reads them; variables of a search that breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, dyn, refuses, row, vectors
from torch import Tensor

from dy2st.calls.torch_functions.indexing import _lists_are_tuples

GENERATOR = torch.Generator().manual_seed(0)
MATRICES = [torch.randn(4, 4, generator=GENERATOR) * scale for scale in (1.0, 3.0)]
INPUTS = [(m, torch.tensor(i)) for m in (*MATRICES, MATRICES[0].abs(), -MATRICES[1].abs()) for i in (0, 1, 3)]


def tensors_are_a_tuple(x: Tensor, i: Tensor) -> Any:
    k = int(i)
    x = x.clone()
    x[[k, i]] = 0.0
    part = x[[i]]
    part += 1
    return x, x[[0, i]], x[[k, i - 1]], x[[k, None]], x[[k, slice(1, 3)]], x[[[0, k], [1, 2]]], x[[[0, k]]]


def numbers_are_an_index(x: Tensor, i: Tensor) -> Any:
    k = int(i)
    x = x.clone()
    x[[0, k]] = x[[k, 0]]
    part = x[:, [i, 0]]
    part += 1
    return x, part, x[0, (k, 1)], x[(k, 1)], x[:, [i, k]], x[[-1, k]][:, [k, -1]]


def swaps(x: Tensor, i: Tensor) -> Any:
    x = x.clone()
    n = 0
    while n < 3 and x[n, 0] < 2:
        pivot = x[n:, n].abs().argmax() + n
        if pivot != n:
            x[[n, int(pivot)]] = x[[int(pivot), n]]
            x[[n, pivot]] += 1
        n += 1
    return x


def found_ints(x: Tensor, i: Tensor) -> Any:
    kept = []
    for row_ in range(x.shape[0]):
        if x[row_].sum() > 0:
            kept.append(row_)  # noqa: PERF401  # a loop is wanted
    rows, columns = [], []
    for a in range(4):
        for b in range(4):
            if x[a, b] > x[a, i]:
                rows.append(a)
                columns.append(b)
    y = x.clone()
    y[kept] = -1.0
    y[:, kept] += 1
    return x[kept], y, x[rows, columns], x[kept].sum(), len(kept)


def found_tensors(x: Tensor, i: Tensor) -> Any:
    best, larger = [], []
    n = 0
    while n < 4:
        best.append(x[n].argmax())
        larger.append(x[n, 0] > x[n, i])
        n += 1
    return x[:, best], x[:, larger], x[0, best]


@pytest.mark.slow_for("found_ints")
@row(24, 31)
@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")  # what eager says of lists of tensors
@pytest.mark.parametrize(
    "model",
    [tensors_are_a_tuple, numbers_are_an_index, swaps, found_ints, found_tensors],
    ids=lambda model: model.__name__,
)
def test_lists_as_indices(model: Callable[..., Any]) -> None:
    agree(model, INPUTS, paths=1)


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
def test_what_torch_makes_of_a_list_is_asked_on_the_cpu() -> None:
    x = torch.zeros(1, 1)
    eager = x[[torch.tensor(0), 0]].dim() == 0
    _lists_are_tuples.cache_clear()
    with torch.device("meta"):
        assert _lists_are_tuples() is eager


def tensors_of_any_number(x: Tensor, i: Tensor) -> Any:
    best = []
    for row_ in x:
        if row_.sum() > 0:
            best.append(row_.argmax())  # noqa: PERF401  # a loop is wanted
    return x[best]


@row(24)
def test_tensors_whose_number_is_data_are_no_index() -> None:
    # of two tensors eager makes x[a, b], of three it raises
    error = refuses(tensors_of_any_number, INPUTS[0])
    assert error.code == "D2S214"
    assert "torch.stack the list" in str(error)


def returned_where_found(x: Tensor) -> Any:
    total = torch.zeros(())
    for i in range(len(x)):
        total = total + x[i]
        if total > 1:
            break
    else:
        return total, -1
    return total, i


def assigned_in_the_else(x: Tensor) -> Any:
    for i, value in enumerate(x):  # noqa: B007  # read after the loop
        if value > 1:
            break
    else:
        i, value = -1, x[0]
    return i, value


def counted_by_data(x: Tensor) -> Any:
    for i in range(int(x.abs().sum())):
        if x.sum() < i:
            last = x * i
            break
    else:
        return x, -1
    return last, i


def with_while(x: Tensor) -> Any:
    while x.sum() < 5:
        where = x.argmax()
        x = x + 1
        if x[where] > 3:
            break
    else:
        return x, torch.tensor(-1)
    return x, where


@row(13)
@pytest.mark.parametrize(
    "model",
    [returned_where_found, assigned_in_the_else, counted_by_data, with_while],
    ids=lambda model: model.__name__,
)
def test_variables_of_a_search(model: Callable[[Tensor], Any]) -> None:
    agree(model, [*vectors(2, 3, 5, scale=2.0), *vectors(4, 6, scale=0.2), (-torch.ones(3) * 4,)], (dyn(0),))


def masks_behind_slices(x: Tensor) -> Any:
    y, chosen = x.clone(), x[1] > 0
    y[:, chosen] = 1.0
    y[:, x[1] < -1] = x.mean()
    y[1:, ~chosen] *= 2
    y[..., chosen] += x[:, :1]
    y[0, chosen] = x[1][chosen]
    y[x[:, 0] > 0, 1:3] = 4.0
    if x.sum() > 0:
        y[:, x[int(x[:, 0].argmax()) % 2] > 0] = 0.5
    twice = x[None].repeat(2, 1, 1)
    twice[:, x > 0] = 7.0
    twice[:, :, chosen] -= 1
    twice[1, :, chosen] = 0.25
    counts = (x > 0).long()
    counts[:, chosen] = 2
    return y, twice, counts


def columns_swapped(x: Tensor) -> Any:
    y = x.clone()
    y[:, [0, 2]] = y[:, [2, 0]]
    y[:2, [1, 3]] = x[:2, [3, 3]] + 1
    return y


@row(31)
@pytest.mark.parametrize("model", [masks_behind_slices, columns_swapped], ids=lambda model: model.__name__)
def test_written_behind_slices(model: Callable[[Tensor], Any]) -> None:
    sizes = [(torch.randn(n, 6, generator=torch.Generator().manual_seed(n)),) for n in (4, 7, 3)]
    agree(model, [*sizes, (sizes[0][0] - 9,)], (dyn(0),), paths=1)
