"""Sizes that were seen to change are left open; sizes that have to be equal are; 0 and 1 are programs of their own."""

from __future__ import annotations

import gc
import itertools
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dy2st
from tests.static.test_results import outcome, same


def summed(x: Tensor, y: Tensor | None = None) -> Tensor:
    if x.sum() > 0:
        x = x * 2
    return x.sum(0) + (0 if y is None else y.sum())


def product(d: dict[str, Any]) -> Tensor:
    return d["a"] @ d["b"][0]


def by_size(x: Tensor) -> Tensor:
    return x * 2 if x.shape[0] > 4 else x


def added(x: Tensor, y: Tensor) -> Tensor:
    return x + y


def looped(x: Tensor) -> Tensor:
    total = torch.zeros(())
    for row in x:
        if row.sum() > 0:
            total = total + row.max()
    return total


def test_one_program_after_the_second_size() -> None:
    static = dy2st.to_static(summed)
    for size in (3, 4, 5, 7, 9):
        x = torch.randn(size, 2)
        torch.testing.assert_close(static(x), summed(x))
    assert static.cache_info().misses == 2
    for size in (1, 0, 1, 0, 8):
        x = torch.randn(size, 2)
        torch.testing.assert_close(static(x), summed(x))
    assert static.cache_info().misses == 4


def test_nested_arguments() -> None:
    static = dy2st.to_static(product)
    for n, m in ((3, 4), (5, 6), (7, 7), (2, 9)):
        given = {"a": torch.randn(n, m), "b": [torch.randn(m, 3)]}
        torch.testing.assert_close(static(given), product(given))
    assert static.cache_info().misses == 2


@pytest.mark.parametrize("function", [by_size, looped, lambda x: x.reshape(-1, 2) if x.sum() > 0 else x.view(-1, 2)])
def test_code_that_asks_for_sizes(function: Any) -> None:
    static = dy2st.to_static(function)
    for size in (4, 6, 8, 2, 10, 4):
        x = torch.randn(size)
        x = x[:, None] if function is looped else x
        torch.testing.assert_close(static(x), function(x))


def test_sizes_that_are_stretched_or_do_not_fit() -> None:
    static = dy2st.to_static(added)
    for a, b in ((3, 3), (4, 4), (5, 5), (5, 1), (1, 5), (6, 6), (3, 4), (7, 7), (2, 1)):
        x, y = torch.randn(a), torch.randn(b)
        assert same(outcome(static, x, y), outcome(added, x, y))
    programs = static.cache_info().currsize
    for a, b in ((8, 8), (9, 9)):
        assert same(static(torch.ones(a), torch.ones(b)), added(torch.ones(a), torch.ones(b)))
    assert static.cache_info().currsize == programs


@pytest.mark.filterwarnings("ignore::dy2st.errors.RetracingWarning")
def test_layouts_are_apart() -> None:
    static = dy2st.to_static(lambda x: x.reshape(-1) * 2)
    for size in (3, 4):
        x = torch.randn(size, size)
        for each in (x, x.t(), x[:, 1:]):
            torch.testing.assert_close(static(each), each.reshape(-1) * 2)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dy2st.errors.RetracingWarning")
def test_a_bounded_number_of_programs_those_that_ran_last() -> None:
    static = dy2st.to_static(lambda x, k: x * k)
    x = torch.ones(2)
    for k in range(80):
        assert torch.equal(static(x, k), x * k)
    info = static.cache_info()
    assert info.currsize == info.maxsize < 80
    static(x, 79)
    assert static.cache_info().hits == info.hits + 1
    static(x, 0)
    assert static.cache_info().misses == info.misses + 1


def test_nothing_of_the_arguments_is_kept_alive() -> None:
    static = dy2st.to_static(lambda x, items: x + items[0])
    x, items = torch.ones(2), [torch.ones(2)]
    static(x, items)
    references = [weakref.ref(x), weakref.ref(items[0])]
    del x, items
    gc.collect()
    assert [each() for each in references] == [None, None]
    assert static.programs[0].example_inputs is None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dy2st.errors.RetracingWarning")
def test_many_captures_leave_nothing_behind() -> None:
    static = dy2st.to_static(lambda x, k: x * k)
    x = torch.ones(2)

    def count() -> int:
        gc.collect()
        return sum(isinstance(each, (torch.fx.Graph, torch.export.ExportedProgram)) for each in gc.get_objects())

    numbers = itertools.count()
    for _ in range(70):
        static(x, next(numbers))
    before = count()
    for _ in range(20):
        static(x, next(numbers))
    assert count() <= before


def test_a_module_of_many_children_is_compared_at_once() -> None:
    static = dy2st.to_static(nn.Sequential(*[nn.Sequential(nn.Linear(2, 2), nn.ReLU()) for _ in range(100)]).eval())
    x = torch.ones(1, 2)
    static(x)
    forward: Any = static.forward
    binding = forward._programs.entries[0].binding
    assert binding.quick((x,), forward._roots) is not None
    static[50][0].weight.requires_grad_(False)
    assert binding.quick((x,), forward._roots) is None


TABLE = torch.ones(2)


def test_sizes_of_a_global_are_fixed() -> None:
    """They are no inputs of a program, which would have those of the tensor that it was captured with."""
    model = dy2st.to_static(lambda x: x * TABLE.numel() + TABLE.sum())
    x = torch.ones(1)
    for size in (2, 5, 7, 9, 5):
        TABLE.resize_(size).fill_(1)
        assert model(x).tolist() == [2 * size]
    assert model.cache_info().currsize == 4
