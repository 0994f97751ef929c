"""What Python computes with sizes (row 48): comparisons are bools, quotients are rounded down, floats are doubles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, dyn, refuses, row
from torch import Tensor

import dy2st

# int(100 * 0.29) is 28; in single precision it would be 29.
SIZES = (3, 1, 2, 6, 57, 100, 114)


def ramps(*sizes: int) -> list[tuple[Tensor]]:
    """One-argument inputs: vectors that differ in size and sign."""
    return [(torch.linspace(-1, 2, size) * (-1) ** size,) for size in sizes]


# ---- comparisons are bools, and True is 1


def bools_beside_numbers(x: Tensor) -> tuple[Any, ...]:
    two, more = x.shape[0] == 2, x.shape[0] > 2
    same = two == 1, 1 == two, two != 1, two == 0, two == 1.0, two == 2, two is True, two in (0, 1)  # noqa: SIM300
    order = two < more, two > 0, 0 < two, two >= 1, two <= more  # noqa: SIM300
    return (*same, *order, two == (x.shape[0] - 1), (x.shape[0] - 1) == two)


def bools_in_arithmetic(x: Tensor) -> tuple[Any, ...]:
    two, more = x.shape[0] == 2, x.shape[0] > 2
    sums = two + 1, 1 + two, two - more, two * 3, two / 2, two // 1, two % 2, two**2, two + 0.5, sum([two, more])
    logic = two & more, two | more, two ^ more, two & 3, two | 2, not two
    return (*sums, *logic, -two, +two, ~two, abs(two), round(two), round(two, 1), max(two, 0), math.floor(two))


def bools_beside_tensors(x: Tensor) -> tuple[Any, ...]:
    two = x.shape[0] == 2
    return x * two, x * (two + 2), x[two], x[..., two], x.sum() == two, [x[0], x[-1]][two], torch.zeros(two + 1)


def bools_by_path(x: Tensor) -> tuple[Any, ...]:
    positive = bool(x.sum() > 0)
    return positive + 1, positive == 1, positive is True, x[positive], x[None, positive], x[positive, :1]


def branches_on_bools(x: Tensor) -> Tensor:
    found, flag = [x.sum()], x.shape[0] == 2
    if flag == 0:
        found.append(x.sum() * 2)
    match flag:
        case 1:
            found.append(x.sum() * 3)
        case _:
            found.append(x.sum() * 4)
    match {"a": flag, "b": [flag, 2]}:
        case {"a": 0, "b": [0, _]}:
            found.append(x.sum() * 5)
    return torch.stack(found)


# ---- ints


def bits(x: Tensor) -> tuple[Any, ...]:
    n = x.shape[0]
    shifted = n << 1, n >> 1, 1 << n % 7, (n - 5) >> 1, (n + 7) >> 3
    masked = n & 1, n & -2, (n - 5) & 3, (n - 5) & -4, 5 & n, n & (n - 1), n | 1, n ^ 1, ~n
    return (*shifted, *masked, x[: n >> 1].sum(), x[(n ^ 1) & 1 % n], torch.zeros(n & 1))


def rounded_down(x: Tensor) -> tuple[Any, ...]:
    n = x.shape[0]
    quotients = (n - 5) // 2, (5 - n) // -2, -n // 2, -(-n // 4), -1 // n, n // -2, divmod(n - 5, 3)
    remainders = (n - 5) % 3, (n - 5) % -3, -7 % n
    return (*quotients, *remainders, x[(n - 5) // 2 :].sum(), x.new_zeros(-(-n // 4)))


# ---- floats


def doubles(x: Tensor) -> tuple[Any, ...]:
    n = x.shape[0]
    ints = int(n * 0.29), math.floor(n * 0.29), math.ceil(n / 10 * 3), round(n * 0.29), int((n - 7) / 3), n * 0.29 // 1
    floats = n * 0.1, n / 3, n**0.5, n**-1, (n - 5) / 2 % 2, (n - 5) / 2 % -2, 7.5 % n, 7.5 // n, n % 1.5, abs(0.5 - n)
    tests = n * 0.29 == 29, n * 0.29 < 29, n * 0.1 >= 0.3, (n / 2).is_integer()
    return (*ints, *floats, *tests, x[: int(n * 0.29)], x.double() * (n / 3), x * (n / 3), x.clamp(max=n * 0.003))


def doubles_in_arms_and_loops(x: Tensor) -> tuple[Any, ...]:
    n = x.shape[0]
    part, taken, turns, total = n * 0.29, 0, 0, x * 1
    if x.sum() > 0:
        taken = int(part)
        if x[0] < 0:
            taken = int(part * 2) - 1
            total = total * part
    while turns < part and total.sum() < 1000:
        total = total + part
        turns += 1
        if total.sum() > 500:
            taken += int(part)
    return taken, turns, total


@row(48)
@pytest.mark.parametrize(
    "model",
    [
        bools_beside_numbers,
        bools_in_arithmetic,
        bools_beside_tensors,
        bools_by_path,
        bits,
        rounded_down,
        doubles,
    ],
)
def test_expressions(model: Callable[..., Any]) -> None:
    agree(model, ramps(*SIZES), (dyn(0),), paths=1)


@row(48)
def test_branches_on_bools() -> None:
    agree(branches_on_bools, ramps(*SIZES), (dyn(0),))


@row(48)
def test_doubles_are_doubles_in_arms_and_loops() -> None:
    agree(doubles_in_arms_and_loops, ramps(*SIZES), (dyn(0),))


@row(48)
def test_rounding_to_tens_is_refused() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        return round(x.shape[0], -1), x

    assert refuses(model, ramps(57)[0], (dyn(0),)).code == "D2S241"


@row(48, 20)
def test_a_float_made_of_sizes_in_a_loop_and_a_branch() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        half = x.shape[0] / 2
        y = x.sum()
        while y < 4:
            y = y + half
        z = x * half if y > 5 else x
        return y, z

    agree(model, [(torch.tensor(v),) for v in ([3.0, 2.0], [1.0], [0.5, 0.5, 0.5])], (dyn(0),), paths=3)


# ---- powers of ints are ints, where the exponent is not negative


@row(48)
def test_the_power_of_two_above_a_size() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        size = 2 ** math.ceil(math.log2(x.shape[0]))
        return torch.nn.functional.pad(x, (0, size - x.shape[0])), size

    agree(model, ramps(*SIZES), (dyn(0),), paths=1)


@row(48)
def test_a_power_of_a_counted_exponent() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        count = 0
        while x.abs().max() > 0.1:
            x, count = x / 2, count + 1
        return x, 2**count, 10 ** (count - 1)

    agree(model, [(torch.tensor(each),) for each in (3.0, 0.3)])
    with pytest.raises(RuntimeError, match="exponent is not negative"):
        dy2st.export(model, (torch.tensor(3.0),)).module()(torch.tensor(0.05))


@row(48)
def test_a_power_that_is_a_fraction_is_refused() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        for i in range(x.shape[0]):
            x = x * 10**-i
        return (x,)

    assert refuses(model, ramps(3)[0], (dyn(0),)).code == "D2S241"
