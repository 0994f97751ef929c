"""Arrays of numpy's that are made of tensors of constants: their values are known while a model is traced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from harness import agree, refuses, row
from torch import Tensor, nn

import dy2st
from dy2st.errors import AliasError, NumpyError

INPUTS = [(torch.randn(5),), (torch.ones(5),), (-torch.ones(5),)]
TABLE = torch.linspace(0, 1, 7)


class Schedule:
    """As samplers of diffusion models have it."""

    def __init__(self) -> None:
        self.products = torch.cumprod(1 - torch.linspace(0.01, 0.2, 10), 0)

    def scales(self, steps: int) -> Tensor:
        noise = (((1 - self.products) / self.products) ** 0.5).numpy()
        times = np.linspace(0, 9, steps)[::-1].copy()
        return torch.from_numpy(np.interp(times, np.arange(10), noise)).to(torch.float32)


def scheduled(x: Tensor) -> Tensor:
    scales = Schedule().scales(5)
    return x * scales if x.sum() > 0 else x + scales


def counted(x: Tensor) -> Tensor:
    place = torch.searchsorted(torch.arange(0.0, 1.0, 0.1), torch.tensor(0.45))
    for step in range((8 - place).numpy().item()):
        x = x + step if x.sum() > 0 else x - step
    return x


def in_a_branch(x: Tensor) -> Tensor:
    if x.sum() > 0:
        table = torch.arange(5.0)
        return x * float(np.median((table * 2).numpy()))
    return x + float(np.asarray(torch.full((3,), 0.25)).sum())


class Holds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weights = torch.tensor([0.25, 0.5, 0.25])

    def forward(self, x: Tensor) -> Tensor:
        kernel = np.convolve(self.weights.numpy(), np.ones(2))
        return x * float(kernel.max()) if x.sum() > 0 else x + float(TABLE.numpy()[3])


@row(50)
@pytest.mark.parametrize("model", [scheduled, counted, in_a_branch, Holds()])
def test_values_of_constants(model: Any) -> None:
    agree(model, INPUTS, whole=False)


@row(50)
@pytest.mark.parametrize("model", [scheduled, counted, in_a_branch])
def test_in_static_functions(model: Any) -> None:
    static = dy2st.to_static(model)
    for given in INPUTS:
        torch.testing.assert_close(static(*given), model(*given))


@row(50)
def test_a_table_that_may_be_another_one_is_no_constant_of_a_static_function() -> None:
    def model(x: Tensor) -> Tensor:
        return x * float(TABLE.numpy()[3])

    with pytest.raises(NumpyError):
        dy2st.to_static(model)(torch.ones(2))


def data(x: Tensor) -> Tensor:
    return x * x.numpy().sum()


def drawn(x: Tensor) -> Tensor:
    return x + float(torch.rand(5).numpy()[0])


def written_before(x: Tensor) -> Tensor:
    table = torch.arange(5.0)
    table.add_(1)
    return x + float(table.numpy()[0])


def part_written_before(x: Tensor) -> Tensor:
    table = torch.arange(5.0)
    table[1:].mul_(2)
    return x + float((table + 1).numpy()[3])


def mixed(x: Tensor) -> Tensor:
    table = torch.arange(5.0)
    return x + float((table * x).numpy()[0])


@row(50)
@pytest.mark.parametrize("model", [data, drawn, written_before, part_written_before, mixed])
def test_what_is_no_constant(model: Any) -> None:
    assert isinstance(refuses(model, INPUTS[0]), NumpyError)


@row(50)
def test_what_shares_memory_is_not_written_to() -> None:
    def tensor(x: Tensor) -> Tensor:
        table = torch.arange(5.0)
        array = table.numpy()
        table.add_(1)
        return x + float(array[0])

    def array(x: Tensor) -> Tensor:
        table = torch.arange(5.0)
        table.numpy()[0] = 3.0
        return x + table

    assert isinstance(refuses(tensor, INPUTS[0]), AliasError)
    refuses(array, INPUTS[0])


def along_axes(x: Tensor) -> Tensor:
    table = x.view(5, 1, 1)
    axes: list[int] = torch.arange(1, table.dim()).tolist()
    return table.sum(dim=axes) if x.sum() > 0 else table.mean(dim=axes)


def of_items(x: Tensor) -> Tensor:
    times = torch.tensor(2).item()
    for i in range(times):
        x = x + i
    return x.repeat(times) if x.sum() > times else x.repeat(times + 1)[: -x.shape[0]]


def grown_from_an_item(x: Tensor) -> Tensor:
    n = torch.tensor(0).item()
    while n < x.sum():
        n += 1
    found = [0, *torch.tensor([1, 2]).tolist()]
    found.append(n)
    return x * n + found[2] + len(found)


@row(50)
@pytest.mark.parametrize("model", [along_axes, of_items, grown_from_an_item])
def test_numbers_of_constants_are_numbers_of_python(model: Any) -> None:
    agree(model, INPUTS, whole=False)
    static = dy2st.to_static(model)
    for given in INPUTS:
        torch.testing.assert_close(static(*given), model(*given))


@row(50)
def test_a_number_of_a_tensor_of_the_world_is_no_constant_of_a_static_function() -> None:
    table = torch.tensor([3.0, 4.0])

    def model(x: Tensor) -> Tensor:
        return x * table.tolist()[0] + table.max().item()

    static = dy2st.to_static(model)
    x = torch.ones(2)
    torch.testing.assert_close(static(x), model(x))
    table.mul_(2)
    torch.testing.assert_close(static(x), model(x))


def read_before_a_write(x: Tensor) -> Tensor:
    counter, n = torch.zeros(1), 0
    while n < 3 and x.sum() < 50:
        x = x + counter.item()
        counter.add_(1)
        n += 1
    return x + counter


def a_view_of_what_is_written_to(x: Tensor) -> Tensor:
    table = torch.arange(3.0)
    part = table[1:]
    while x.sum() < 20:
        x = x + part.tolist()[0] + 1
        table.mul_(2)
    return x


def written_in_an_arm(x: Tensor) -> Tensor:
    table = torch.zeros(2)
    for i in range(4):
        if x[0] > i:
            x = x + table.tolist()[1]
        else:
            table[1] += 2
    return x + table.tolist()[0]


def written_by_a_function(x: Tensor) -> Tensor:
    counter, n = torch.zeros(1), 0

    def bump() -> Any:
        value = counter.item()
        counter.add_(1)
        return value

    while n < 3:
        x = x + bump()
        n += 1
        if x.sum() > 9:
            break
    return x


def of_each_iteration(x: Tensor) -> Tensor:
    total: Any = 0.0
    for each in x.view(-1, 1):
        scales = torch.tensor([1.0, 2.0])
        values = scales.tolist()
        scales.mul_(each)
        total = total + values[1] * each.sum() + scales.tolist()[0]
    return x + total


@row(50)
@pytest.mark.parametrize(
    "model",
    [read_before_a_write, a_view_of_what_is_written_to, written_in_an_arm, written_by_a_function, of_each_iteration],
)
def test_what_a_loop_writes_to_is_no_constant_in_it(model: Any) -> None:
    inputs = [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0], [9.0, 2.0])]
    agree(model, inputs, whole=False, paths=1)
    static = dy2st.to_static(model)
    for given in inputs:
        torch.testing.assert_close(static(*given), model(*given))
