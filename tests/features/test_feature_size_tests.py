"""What a test says of sizes holds where it is true, also where the example is on the other side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from harness import agree, row
from torch import Tensor
from torch.export import Dim
from torch.nn import functional as F  # noqa: N812

if TYPE_CHECKING:
    from collections.abc import Callable


def one_row(x: Tensor) -> Tensor:
    if x.shape[0] > 3:
        return x[3]
    return x.sum() + x.new_zeros(2)


def taken_apart(x: Tensor) -> Tensor:
    if len(x) >= 3:
        a, b, c = x[:3].unbind(0)
        return a + b * c
    return x.sum() + x.new_zeros(2)


def just_so_many(x: Tensor) -> Tensor:
    if x.shape[0] == 4:
        return x.view(2, 2, 2).sum(0)
    if x.shape[0] == 6:
        x = x.reshape(3, 2, 2)[1]
    return x.sum() + x.new_zeros(2, 2)


def chain(x: Tensor) -> Tensor:
    if x.shape[0] == 0:
        return torch.zeros(2)
    if x.shape[0] < 2:
        return x[0]
    if x.shape[0] < 4:
        return x[1] * 2
    return x[2] + x[3] + x[-4]


def nested(x: Tensor) -> Tensor:
    y = x.new_zeros(2)
    if x.shape[0] > 1:
        y = x[1]
        if x.shape[0] > 3 and x.sum() > 0:
            y = y * x[3]
        elif x.shape[0] > 2:
            y = y - x[2]
        y = y + x[0]
    return y * 2


def in_a_loop(x: Tensor) -> Tensor:
    total = x.new_zeros(2)
    for i in range(5):
        if x.shape[0] > i:
            total = total + x[i] * i
    return total


def after_it(x: Tensor) -> Tensor:
    if x.shape[0] <= 2:
        x = F.pad(x, (0, 0, 0, 3))
    return x[2] + x[:3].view(6)[4]


def pieces(x: Tensor) -> Tensor:
    if x.shape[0] > 3:
        first, second = torch.split(x[:4], 2)
        return (first @ second.T).sum(0) + x.narrow(0, 1, 2)[:, 0]
    return x.sum() + x.new_zeros(2)


def by_elements(x: Tensor) -> Tensor:
    if x.numel() >= 6:
        return x.flatten()[5] + x[2]
    return x.sum() + x.new_zeros(2)


def while_it_is_long(x: Tensor) -> Tensor:
    total = x.new_zeros(2)
    while x.shape[0] > 3:
        total = total + x[3] + x[:2].view(4)[3]
        x = x[2:]
    return total


def counted(x: Tensor) -> Tensor:
    total = x.new_zeros(2)
    for i in range(x.shape[0] - 3):
        total = total + x[3] * i
    return total


def two_tests(x: Tensor) -> Tensor:
    total, n = x.new_zeros(2), 0
    while n < x.shape[0] - 2 and total.sum() < 10:
        total = total + x[2] + x[:3].view(3, 2).sum(0)
        n += 1
    return total


def over_the_rest(x: Tensor) -> Tensor:
    total = x.new_zeros(2)
    for row_ in x[3:]:
        if row_.sum() > 0:
            total = total + x[3] * row_
    return total


LENGTHS = (5, 2, 4, 0, 1, 3, 6)


@row(48)
@pytest.mark.parametrize("example", [0, 1, 2])
@pytest.mark.parametrize(
    "model",
    [
        *(one_row, taken_apart, just_so_many, chain, nested, in_a_loop, after_it, pieces, by_elements),
        *(while_it_is_long, counted, two_tests, over_the_rest),
    ],
)
def test_any_side_may_be_the_example(model: Callable[..., Any], example: int) -> None:
    inputs = [(torch.randn(n, 2) + (n > 3) * 2,) for n in (*LENGTHS, 5)]
    inputs[-1] = (-inputs[-1][0],)
    inputs = [inputs[example], *inputs[:example], *inputs[example + 1 :]]
    agree(model, inputs, ({0: Dim.DYNAMIC},))


def longer(x: Tensor, y: Tensor) -> Tensor:
    if x.shape[0] > y.shape[0]:
        return x[y.shape[0]] + x[: y.shape[0]].sum()
    if x.shape[0] == y.shape[0]:
        return (x + y).sum(0)
    return y[x.shape[0]] * 2


@row(48)
@pytest.mark.parametrize("example", [0, 1, 2])
def test_two_sizes(example: int) -> None:
    inputs = [(torch.randn(n, 2), torch.randn(m, 2)) for n, m in ((5, 2), (3, 3), (2, 4), (0, 1), (1, 0), (2, 2))]
    inputs = [inputs[example], *inputs[:example], *inputs[example + 1 :]]
    agree(longer, inputs, ({0: Dim.DYNAMIC}, {0: Dim.DYNAMIC}))


def far_row(x: Tensor, k: Tensor) -> Tensor:
    if k.sum() > 0:
        return x[3]
    return x[0]


def square(x: Tensor, k: Tensor) -> Tensor:
    if k.sum() > 0:
        return x[:4].view(2, 2, 2).sum((0, 1))
    return x.sum(0)


def narrowed(x: Tensor, k: Tensor) -> Tensor:
    if k.sum() > 0:
        return x.narrow(0, 2, 3).sum(0) + x[-4] + x[4, :]
    return x.sum(0)


def in_each_trip(x: Tensor, k: Tensor) -> Tensor:
    total = x.sum(0)
    for _ in range(int(k.sum())):
        total = total + x[2]
    return total


@row(48)
@pytest.mark.parametrize("model", [far_row, square, narrowed, in_each_trip])
@pytest.mark.parametrize("example", [0, 1])
def test_what_an_operator_demands_where_the_example_does_not_come(model: Callable[..., Any], example: int) -> None:
    yes = torch.ones(2)
    inputs = [(torch.randn(2, 2), -yes), (torch.randn(5, 2), yes), (torch.randn(6, 2), yes), (torch.randn(1, 2), -yes)]
    agree(model, [*inputs[example:], *inputs[:example]], ({0: Dim.DYNAMIC}, None))


@row(48)
def test_a_multiple() -> None:
    def model(x: Tensor) -> Tensor:
        if x.shape[0] > 3:
            return x.view(3, -1).sum(1)
        return x.sum() + x.new_zeros(3)

    agree(model, [(torch.randn(n),) for n in (2, 6, 3, 9, 0)], ({0: Dim.DYNAMIC},))


@row(48)
def test_an_arm_that_raises_for_all_its_sizes() -> None:
    def model(x: Tensor) -> Tensor:
        if x.shape[0] > 3:
            return x[:3].view(2, 2)
        return x.sum() + x.new_zeros(2, 2)

    inputs, raising = ([(torch.randn(n),) for n in sizes] for sizes in ((2, 3, 0), (5,)))
    agree(model, inputs, ({0: Dim.DYNAMIC},), paths=1, raising=raising)


@row(48)
def test_what_an_arm_assumes_is_not_known_outside() -> None:
    def model(x: Tensor) -> Tensor:
        total = x.sum()
        if x.shape[0] > 3:
            total = total + x[3]
        if x.shape[0] > 1:
            return total + x[1]
        return total * 3

    agree(model, [(torch.randn(n),) for n in (2, 5, 1, 0, 3, 4)], ({0: Dim.DYNAMIC},))


@row(48)
def test_an_arm_that_no_size_takes() -> None:
    def model(x: Tensor) -> Tensor:
        if x.shape[0] > 8:
            return x[8]
        return x.sum()

    inputs = [(torch.randn(n),) for n in (2, 5)]
    agree(model, inputs, ({0: Dim("n", min=2, max=8)},), paths=1, whole=False)


@row(48)
def test_narrow_of_too_few_rows_raises() -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() > 50:
            return x.narrow(0, 2, 3).sum(0)
        return x.narrow(-2, -1, 1).sum(0)

    inputs = [(torch.ones(2, 2),), (90 * torch.ones(5, 2),), (90 * torch.ones(6, 2),), (torch.ones(1, 2),)]
    raising = [(90 * torch.ones(4, 2),), (torch.ones(0, 2),)]
    agree(model, inputs, ({0: Dim.DYNAMIC},), raising=raising)
