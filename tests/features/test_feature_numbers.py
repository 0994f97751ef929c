"""Rows 21 to 23, 47, 48, 51 and 59: numbers, logic, built-in functions and sizes."""

# ruff: noqa: RUF021, SIM201 - the constructs under test are written as users write them
from __future__ import annotations

import math

import pytest
import torch
from harness import agree, agree_or_refuse, dyn, refuses, row, scalars, vectors
from torch import Tensor

import dy2st
from dy2st.errors import DtypeWarning


@row(21)
def test_python_numbers_that_change() -> None:
    def model(x: Tensor) -> tuple[Tensor, int, float, bool]:
        count, weight, seen, sign = 0, 1.0, False, 1
        for element in x:
            if element > 0:
                count += 2
                weight *= 0.5
                seen = True
            elif seen:
                count -= 1
                sign = -sign
            else:
                weight = weight + 0.25
        if seen:
            count = count * 10
        if count > 30 and not count % 20:
            weight = -weight
        return x * weight * sign, count, weight, seen

    values = [[1.0, -1.0, 2.0, 3.0], [-1.0, -2.0], [1.0, 1.0, 1.0], [-1.0]]
    agree(model, [(torch.tensor(v),) for v in values] + [(torch.zeros(0),)], (dyn(0),), paths=5)


@row(21)
def test_numbers_that_change_become_sizes_indices_and_arguments() -> None:
    def model(x: Tensor, n: Tensor) -> tuple[Tensor, Tensor, int]:
        k, scale = 1, 2
        while n > 0:
            k = k + 1
            scale = scale + k // 2
            n = n - 2
        y = x[k % 3] * scale + torch.full((3,), k)
        if n < 0:
            k = -k
        return y, x.roll(1) * (k / 2), k**2 - (k << 1) + abs(k) % 4

    agree(model, [(torch.tensor([1.0, 2.0, 3.0]), n) for (n,) in scalars(3, 0, 1, 2, 9)], paths=5)


@row(21)
def test_int_that_becomes_float_and_bool() -> None:
    def model(x: Tensor) -> tuple[Tensor, float]:
        weight = 1
        if x.sum() > 0:
            weight = weight / 4
        flag = 0
        for element in x:
            if element > 1:
                flag = True
        return x * weight * flag, weight

    values = [2.0, 0.5], [-3.0, 2.0, 0.1], [0.5], [-1.0]
    agree(lambda x: model(x)[0], [(torch.tensor(v),) for v in values], (dyn(0),), paths=3)
    with pytest.warns(DtypeWarning, match=r"the float 0\.25 or the int 1"):
        program = dy2st.export(model, (torch.ones(2),), dynamic_shapes=(dyn(0),))
    for value in values:
        x = torch.tensor(value)
        assert program.module()(x)[1] == model(x)[1]


@row(22)
def test_lazy_and_or_not() -> None:
    def model(x: Tensor, y: Tensor) -> tuple[Tensor, int]:
        code = 0
        if x.shape[0] > 0 and x[0] > 0:
            code += 1
        if x.shape[0] == 0 or x[-1] < 0:
            code += 2
        if not (x.sum() > 0) and (y > 0 or y < -5):
            code += 4
        if (x > 0).all() and y and not y == 3:
            code += 8
        if x.numel() > 1 and x[1] > 0 or y < 0:
            code += 16
        return x * 2, code

    cases = [([1.0, 2.0], 1.0), ([-1.0, 1.0, -1.0], -6.0), ([-2.0, 1.0], -1.0), ([], 0.0), ([1.0], 3.0), ([-1.0], 2.0)]
    agree(model, [(torch.tensor(x), torch.tensor(y)) for x, y in cases], (dyn(0), None), paths=6)


@row(22)
def test_and_or_as_values() -> None:
    def model(x: Tensor, y: Tensor, default: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        either = x.sum() or y
        both = x.sum() and y.abs()
        scale = default or 3.0
        chain = (x > 1).any() and (x < 5).all() and y > 0
        return either * scale, both, torch.where(chain, x, -x)

    cases = [([1.0, 2.0], 1.0), ([-1.0, 1.0, 0.0], -6.0), ([7.0, 1.0], -1.0), ([0.0], 0.0), ([2.0], -3.0)]
    agree(model, [(torch.tensor(x), torch.tensor(y)) for x, y in cases], (dyn(0), None), paths=3)


@row(22)
def test_right_operand_runs_only_where_eager_runs_it() -> None:
    def positive(x: Tensor, log: Tensor) -> Tensor:
        log += 1
        return x.sum() > 0

    def model(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        log = torch.zeros(())
        if positive(x, log) and positive(y, log):
            x = x + y
        if positive(-x, log) or positive(-y, log) or positive(x - y, log):
            x = x - y
        return x, log

    ones = torch.ones(2)
    agree(model, [(a * ones, b * ones) for a, b in ((1, 2), (-1, 1), (1, -1), (2, -0.5), (0, 0))], paths=4)


@row(23)
def test_chained_comparison_evaluates_each_operand_once() -> None:
    def middle(x: Tensor, calls: Tensor) -> Tensor:
        calls += 1
        return x.mean()

    def model(x: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        calls = torch.zeros((), dtype=torch.int64)
        if low < middle(x, calls) < high:
            x = x * 2
        y = x + 1 if 0 < middle(x, calls) <= high != 4 else x - 1
        while -1 < middle(y, calls) < 20:
            y = y * 2 + 1
        return y, calls

    cases = [
        ([1.0, 2.0], 0.0, 3.0),
        ([-1.0, -3.0], 0.0, 3.0),
        ([1.0], 2.0, 4.0),
        ([7.0], 0.0, 4.0),
        ([-0.5], -1.0, 1.0),
    ]
    agree(
        model, [(torch.tensor(x), torch.tensor(a), torch.tensor(b)) for x, a, b in cases], (dyn(0), None, None), paths=5
    )


@row(23, 22)
def test_chained_comparison_with_is_and_in() -> None:
    def model(x: Tensor, mode: str = "sum", extra: Tensor | None = None) -> Tensor:
        if mode in ("sum", "mean") and extra is None and 0 < x.sum() < 10:
            return x * 2
        if mode not in {"sum", "mean"}:
            return x
        return x - 1

    agree(model, [(torch.tensor(v),) for v in ([1.0, 2.0], [-1.0], [20.0])], (dyn(0),), whole=False)


@row(47)
def test_builtin_functions_that_give_numbers() -> None:
    def model(x: Tensor, n: Tensor) -> tuple[Tensor, ...]:
        total = float(x.sum())
        k = int(n)
        if bool(x[0] > 0):
            total = total + k
        if n.item() > 2 and x.max().item() > 0:
            total = total - 1
        low, high = min(x.min(), n * 1.0), max(x.max(), n * 1.0)
        if abs(total) > 5:
            total = float(round(total))
        bits = k // 2 + k % 2 + divmod(k, 3)[0]
        return x * total, x + k, low, high, x.new_full((1,), total), n * bits

    cases = [([1.5, 2.25], 3), ([-1.0, 0.5, 4.0], 1), ([-7.0], 0), ([2.0, 9.0], 5)]
    agree(model, [(torch.tensor(x), torch.tensor(n)) for x, n in cases], (dyn(0), None), paths=3)


@row(47, 5)
def test_builtin_functions_over_a_tensor() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor, int]:
        y = torch.zeros(())
        if any(x > 1):
            y = y + 1
        if all(element > 0 for element in x):
            y = y + 2
        if max(x) > 2 and min(x) < 0:
            y = y + 4
        y = y + sum(x)
        return y, abs(x) - pow(x, 2), len(x)

    agree(
        model,
        [(torch.tensor(v),) for v in ([3.0, -1.0], [0.5, 0.25, 1.0], [2.0], [-1.0, 2.5, 7.0])],
        (dyn(0),),
        paths=4,
    )


@row(47)
def test_sorted_tolist_and_list() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        low, middle, high = sorted(x)
        first, *rest = x.tolist()
        total = torch.zeros(())
        for value in rest:
            total = total + value * first
        pieces = list(x)
        if pieces[0] > pieces[-1]:
            pieces.reverse()
        return high - low, middle + total, torch.stack(pieces)

    agree(model, [(torch.tensor(v),) for v in ([3.0, -1.0, 2.0], [0.5, 0.25, 1.0], [-1.0, -2.0, -3.0])], paths=2)


@row(47)
def test_math_functions_of_numbers_from_tensors() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        scale = math.sqrt(x.square().sum().item())
        if scale > 2:
            x = x / scale
        steps = math.ceil(float(x.abs().max()) * 4)
        y = x
        for _ in range(steps):
            y = y * 0.5
        return x, y

    agree_or_refuse(
        model, [(torch.tensor(v),) for v in ([3.0, -1.0], [0.5, 0.2, 1.0], [0.1], [0.0, 0.0])], (dyn(0),), paths=3
    )


@row(48)
def test_sizes_in_conditions_and_arithmetic() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor, int]:
        batch, length = x.shape
        half = (length + 1) // 2
        left, right = x[:, :half], x[:, half:]
        if length % 2:
            right = torch.cat([right, torch.zeros(batch, 1)], 1)
        y = left * right
        if x.shape[0] > 2:
            y = y * batch
        elif batch == 1:
            y = y + length
        window = min(length, 3)
        y = y.sum(1, keepdim=True) / max(half, 1) + x.new_ones(batch, window)
        padding = -x.numel() % 4
        return y, torch.arange(half).repeat(batch), padding

    sizes = [(2, 4), (3, 5), (1, 3), (2, 1), (5, 6), (1, 2)]
    agree(model, [(torch.randn(size),) for size in sizes], (dyn(0, 1),), paths=5)


@row(48, 3, 20)
def test_while_on_a_size() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        levels = 0
        while x.shape[0] > 1:
            if x.shape[0] % 2 == 1:
                x = torch.cat([x, x[-1:]])
            x = x[0::2] + x[1::2] * 0.5
            levels += 1
        return x, levels

    agree(model, vectors(5, 1, 2, 3, 8), (dyn(0),), paths=5)


@row(48, 3)
def test_while_on_a_size_until_nothing_is_left() -> None:
    def model(x: Tensor) -> Tensor:
        total = torch.zeros(())
        while x.shape[0]:
            total = total * 0.5 + x[0]
            x = x[2:]
        return total

    agree(model, vectors(5, 0, 1, 2, 8), (dyn(0),), paths=4)


@row(51)
def test_walrus() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor, int]:
        n = 0
        while (norm := x.norm()) > 1:
            x = x / 2
            n += 1
        if (top := x.max()) > 0.5 and (low := x.min()) < 0:
            x = x - low
        y = top if (positive := top > 0) else -top
        return x + norm, y * positive, (m := n + 1) * m

    values = [[3.0, 4.0], [0.1, 0.2, 0.3], [0.9, -0.1], [-20.0, 1.0], [1.5]]
    agree(model, [(torch.tensor(value),) for value in values], (dyn(0),), paths=4)


class Counter:
    def __init__(self, x: Tensor) -> None:
        self.x = x
        self.steps = 0

    def step(self) -> Tensor:
        self.steps += 1
        return self.steps * self.x.abs().sum()


@row(51, 3)
def test_walrus_of_a_test_that_the_body_reads() -> None:
    def model(x: Tensor) -> tuple[Tensor, int, Tensor]:
        counter = Counter(x)
        while (step := counter.step()) < 20:
            x = x + step
        values, kept = iter(x.tolist()), []
        while (value := next(values, -1.0)) != -1.0:
            kept.append(value)
        return x, counter.steps, torch.tensor(kept)

    agree(model, [(torch.tensor(v),) for v in ([1.0, 2.0], [30.0], [-1.0, 0.5, -1.0])], (dyn(0),), paths=2)


@row(51, 4)
def test_walrus_in_loops_and_comprehensions() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        total = torch.zeros(())
        for i in range(n := x.shape[0]):
            if (y := x[i] * n) < 0:
                continue
            total = total + y
        powers = [last := x.sum() ** k for k in range(1, 4)]
        return total, torch.stack(powers) - last

    agree(model, vectors(3, 0, 1, 2, 6), (dyn(0),), paths=4)


@row(59)
def test_sizes_that_depend_on_values() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor, int]:
        kept = x[x > 0]
        if kept.numel() == 0:
            return torch.zeros(1), torch.zeros(1, dtype=torch.int64), 0
        where = (x < 0).nonzero()[:, 0]
        if where.shape[0] > 1:
            kept = kept * where.sum()
        return kept, where, kept.shape[0]

    values = [[1.0, -1.0, 2.0, -3.0], [-1.0, -2.0], [1.0], [3.0, -1.0, 4.0]]
    agree_or_refuse(model, [(torch.tensor(value),) for value in values], (dyn(0),), paths=3)


@row(59, 5)
def test_loop_over_indices_and_unique_values() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        total = torch.zeros(x.shape[0])
        for i in (x > 1).nonzero()[:, 0]:
            total[i] = x[i] * 2
        kinds = torch.unique(x)
        for kind in kinds:
            total = total + (x == kind).sum() * kind
        return total, kinds

    values = [[1.0, 3.0, 2.0, 3.0], [-1.0, 0.0], [2.0], [5.0, 5.0, 5.0]]
    agree_or_refuse(model, [(torch.tensor(value),) for value in values], (dyn(0),), paths=3)


@row(59)
def test_a_key_with_a_number_is_compared() -> None:
    def model(x: Tensor) -> Tensor:
        table = {(3, 1): 1.0, (4, 1): 2.0}
        return x * table[int(x.sum()), 1]

    agree(model, [(torch.tensor(value),) for value in ([1.0, 2.0], [4.0], [1.0, 1.0, 1.0])], (dyn(0),), paths=1)

    def stored(x: Tensor) -> Tensor:
        table = {(int(x.sum()), 1): 1.0}
        return x * table.get((3, 1), 2.0)

    agree(stored, [(torch.tensor(value),) for value in ([1.0, 2.0], [4.0])], (dyn(0),), paths=1)


@row(47)
def test_more_functions_of_math() -> None:
    def model(x: Tensor) -> Tensor:
        a, b = x[0].item(), x[1].item()
        c = math.hypot(a, b) + math.degrees(a) + math.radians(b) + math.exp2(a) + math.hypot(a, b, 2.0) + math.hypot(a)
        if c > 3:
            c = c / 2
        return torch.full((2,), c)

    agree(model, [(torch.tensor(v),) for v in ([1.0, 2.0], [-1.0, 0.5])], paths=2)


def of_tensors(x: Tensor) -> tuple[Tensor, ...]:
    high, low = x[0], x[-1]
    if high > low:
        high, low = low, high
    count = (x > 0).sum()
    return (
        torch.tensor([high, low]),
        torch.tensor([[high, 1.0], [count, 2]]),
        torch.tensor([x[:1], high], dtype=torch.float64),
        torch.tensor([[1, count], torch.stack([count, count])]),
        torch.as_tensor((count, 3)),
        torch.asarray([high, count > 1]),
        x.new_tensor([count, 2]),
        torch.tensor([each * 2 for each in (high, low)]),
    )


@row(47)
def test_a_tensor_is_made_of_tensors() -> None:
    agree(of_tensors, [(torch.tensor(v),) for v in ([1.0, 2.0, 3.0], [3.0, -1.0], [0.5])], (dyn(0),), paths=2)


@row(47)
def test_a_tensor_of_more_than_one_element_is_no_number() -> None:
    def model(x: Tensor) -> Tensor:
        return torch.tensor([x, x])

    with pytest.raises(ValueError, match="only one element"):
        model(torch.ones(2))
    assert "only one element" in str(refuses(model, (torch.ones(2),)))


def at_a_place(x: Tensor, where: Tensor) -> tuple[Tensor, ...]:
    k = int(where)
    table = x * 1
    table[0] = 3
    if x.sum() > 0:
        table[k] += table[k] * 2
    return table[k], table.view(1, -1)[:, k], table[x.argmax()], table


@row(31, 59)
def test_an_element_is_returned_of_what_was_written_to() -> None:
    inputs = [(torch.tensor(v), torch.tensor(k)) for v, k in (([1.0, 2.0], 1), ([-3.0, 0.5, 1.0], -1), ([0.5], 0))]
    agree(at_a_place, inputs, (dyn(0), None), paths=2)


def filled_with_tensors(x: Tensor, k: Tensor) -> tuple[Tensor, ...]:
    largest = x.max()
    if largest > 1:
        largest = largest / 2
    made = torch.full((2, x.size(0)), largest), torch.full((3,), k), torch.full((2,), k > 1)
    return (
        *made,
        torch.full_like(x, k),
        torch.full_like(k, fill_value=largest),
        x.new_full((2,), largest),
        x.new_full(size=(1,), fill_value=k, dtype=torch.int32),
        torch.full(fill_value=x.double().sum(), size=(1,), dtype=torch.float64),
        x.new_full((2,), largest, dtype=torch.bool),
    )


@row(31)
def test_a_tensor_is_filled_with_the_number_of_another() -> None:
    inputs = [(torch.tensor(v), torch.tensor(k)) for v, k in (([1.0, 2.7], 1), ([-3.5, 0.5, 1.0], -1), ([0.5], 2))]
    agree(filled_with_tensors, inputs, (dyn(0), None), paths=2)


@row(31)
def test_a_tensor_is_not_filled_with_several_numbers() -> None:
    def model(x: Tensor) -> Tensor:
        return torch.full((2,), x)

    with pytest.raises(TypeError, match="must be Number"):
        model(torch.ones(1))
    assert "must be Number" in str(refuses(model, (torch.ones(1),)))


def filled_with_zeros_of_either_sign(x: Tensor) -> tuple[Tensor, ...]:
    least = x.min()
    number = least.item()
    made = torch.full((2,), least), torch.full_like(x, number), x.new_full((1,), number), torch.tensor([number, 1.0])
    return tuple(1 / each for each in made), torch.full((1,), number, dtype=torch.bool)


@row(31)
def test_a_zero_keeps_its_sign() -> None:
    agree(
        filled_with_zeros_of_either_sign,
        [(torch.tensor(v),) for v in ([-0.0, 1.0], [0.0, 2.0], [3.0])],
        (dyn(0),),
        paths=1,
    )


def spaced(x: Tensor, n: Tensor) -> tuple[Tensor, ...]:
    first = x.min() * 2 if n > 3 else x.min()
    return (
        torch.linspace(0, 1, n),
        torch.linspace(first, x.max(), steps=n, dtype=torch.float64),
        torch.logspace(-1, 2, n, 2.0),
        torch.logspace(first, 1, steps=n),
        torch.linspace(first, 2, 3),
    )


@row(31)
def test_a_range_has_as_many_steps_as_a_tensor_says() -> None:
    inputs = [(torch.tensor(v), torch.tensor(n)) for v, n in (([1.0, 2.5], 4), ([-1.5, 0.5, 1.0], 1), ([0.5], 0))]
    agree(spaced, [*inputs, (torch.tensor([-2.0, 3.0]), torch.tensor(7))], (dyn(0), None), paths=2)
