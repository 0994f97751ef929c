"""Rows 8, 9 and 10 to 13: ``break``, ``continue``, ``return`` in loops, and a loop's ``else``."""

# ruff: noqa: B007, PLW0120, PLW2901, RET508 - the constructs under test are written as users write them
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, agree_or_refuse, dyn, row
from torch import Tensor, nn


@row(8)
def test_break() -> None:
    def model(x: Tensor, limit: Tensor) -> tuple[Tensor, int, Tensor]:
        total, seen = torch.zeros(()), 0
        for element in x:
            total = total + element
            if total > limit:
                break
            seen += 1
        while True:
            total = total / 2
            if total < 1:
                break
            seen += 1
        rest = torch.zeros(())
        for i in range(x.shape[0]):
            if x[i] < 0:
                rest = rest - 1
                break
            else:
                rest = rest + x[i]
            rest = rest * 2
        return total, seen, rest

    ones = torch.ones(5)
    inputs = [(ones, 2.0), (ones[:2], 9.0), (torch.tensor([20.0, -1.0]), 2.0), (ones[:0], 1.0), (ones[:1] * 5, 9.0)]
    agree(model, [(x, torch.tensor(limit)) for x, limit in inputs], (dyn(0), None), paths=5)


@row(9)
def test_continue() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        total, skipped = torch.zeros(()), 0
        for element in x:
            if element < 0:
                skipped += 1
                continue
            if element > 2:
                element = element - 2
                if element > 2:
                    continue
            total = total + element
        i = 0
        while i < x.shape[0]:
            i += 1
            if x[i - 1] > 1:
                continue
            total = total + 1
        return total, skipped

    values = [[1.0, -1.0, 3.0, 5.0], [1.0, 0.5], [-1.0], [6.0, 7.0, 8.0], [2.5]]
    agree(model, [(torch.tensor(value),) for value in values] + [(torch.zeros(0),)], (dyn(0),), paths=6)


@row(8, 9)
def test_break_in_an_if_in_a_for_in_a_while() -> None:
    def model(x: Tensor, budget: Tensor) -> tuple[Tensor, Tensor, int]:
        rounds = 0
        while budget > 0:
            rounds += 1
            for i, element in enumerate(x):
                if element < 0:
                    if i == 0:
                        continue
                    budget = budget - 10
                    break
                if budget < element:
                    x = x * 0.5
                    break
                budget = budget - element
            budget = budget - 1
            if rounds > 20:
                break
        return x, budget, rounds

    cases = [
        ([1.0, 2.0], 10.0),
        ([1.0, -2.0, 3.0], 12.0),
        ([-1.0, 2.0], 5.0),
        ([4.0, 4.0], 3.0),
        ([-1.0], 30.0),
        ([1.0], 0.0),
    ]
    agree(model, [(torch.tensor(x), torch.tensor(b)) for x, b in cases], (dyn(0), None), paths=6)


@row(11)
def test_return_in_staged_loops() -> None:
    def search(x: Tensor, target: Tensor) -> tuple[Tensor, int]:
        for i, element in enumerate(x):
            if element == target:
                return element * 2, i
        return target - 1, -1

    cases = [([3.0, 4.0, 5.0], 4.0), ([3.0, 4.0], 9.0), ([3.0], 3.0), ([], 1.0), ([1.0, 2.0, 2.0, 2.0, 7.0], 7.0)]
    inputs = [(torch.tensor(x), torch.tensor(t)) for x, t in cases]
    agree_or_refuse(search, inputs, (dyn(0), None), paths=5)

    def nested(x: Tensor, target: Tensor) -> Tensor:
        total = torch.zeros(())
        for a in x:
            while total < a:
                total = total + target
                if total > 8:
                    return -total
        return total

    agree_or_refuse(nested, [inputs[0], inputs[1], inputs[2], inputs[3]], (dyn(0), None), paths=4)


@row(12)
def test_tensor_jumps_in_plain_python_loops() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(4))

        def forward(self, x: Tensor) -> tuple[Tensor, int]:
            used = 0
            for layer in self.layers:
                x = x + layer(x)
                used += 1
                if x.sum() > 3:
                    break
                if x.sum() < -3:
                    return x * 0, used
                if x.mean() < 0:
                    continue
                x = x * 1.5
            return x, used

    inputs = [(scale * torch.ones(batch, 3),) for batch, scale in ((2, 0.1), (2, 3.0), (3, -5.0), (1, -0.1), (4, 0.3))]
    agree_or_refuse(Model(), inputs, (dyn(0),), paths=3)


@row(12, 8)
def test_tensor_break_in_a_python_range() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        for i in range(6):
            x = x * 0.5
            if x.abs().max() < 0.2:
                break
        return x, i

    agree_or_refuse(
        model, [(torch.full((n,), v),) for n, v in ((2, 1.0), (3, 0.1), (1, 99.0), (4, 0.5))], (dyn(0),), paths=3
    )


@row(13)
def test_for_else_and_while_else() -> None:
    def model(x: Tensor, target: Tensor) -> tuple[Tensor, int]:
        found = -1
        for i, element in enumerate(x):
            if element == target:
                found = i
                break
        else:
            x = x - 100
        while target > 0:
            target = target - 2
            if x.sum() > 8:
                x = x / 2
                break
        else:
            x = x + 1
        return x, found

    cases = [([3.0, 4.0, 5.0], 4.0), ([3.0, 4.0], 9.0), ([0.0, 1.0], -1.0), ([1.0], 1.0), ([], 0.0), ([9.0, 9.0], 9.0)]
    agree(model, [(torch.tensor(x), torch.tensor(t)) for x, t in cases], (dyn(0), None), paths=5)


@row(13, 10)
def test_else_of_nested_loops() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        primes = torch.zeros(())
        count = 0
        for candidate in x:
            divisor = 2
            while divisor * divisor <= candidate:
                if candidate % divisor == 0:
                    break
                divisor += 1
            else:
                primes = primes + candidate
                count += 1
                continue
            primes = primes - 1
        else:
            primes = primes * 2
        return primes, count

    values = [[2, 3, 4, 5, 9, 15, 17], [4, 8], [7], [49]]
    agree(
        model, [(torch.tensor(value),) for value in values] + [(torch.zeros(0, dtype=torch.long),)], (dyn(0),), paths=5
    )


@row(10, 54)
def test_variables_of_closures_and_early_returns() -> None:
    def model(v: Tensor, s: Tensor) -> tuple[Tensor, int, int]:
        def branches() -> int:
            nonlocal s
            s = s * 1.5
            if v.sum() > 3:
                s = s + 1
            elif v.sum() > 1:
                s = s * 2
                return -1
            else:
                s = s * 3
                if v.sum() > 0.5:
                    return 3
                s = s * 7
            return 1

        def loops() -> int:
            nonlocal s
            for e in v:
                s = s + 1
                if e > 1.4:
                    s = s * 2
                    return -1
                if e > 1.2:
                    s = s * 3
                    break
                s = s + 3
            return 1

        first, second = branches(), loops()
        return s, first, second

    given = ([1.25, 1.5, 3.0], [0.2, 3.0, 1.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, 0.7], [1.3, 0.0])
    agree(model, [(torch.tensor(value), torch.tensor(2.0)) for value in given], (dyn(0), None), paths=4)


TOTAL = torch.zeros(())


@row(10, 54)
def test_globals_and_early_returns() -> None:
    def model(v: Tensor) -> Tensor:
        def inner() -> int:
            global TOTAL  # noqa: PLW0603
            for e in v:
                TOTAL = TOTAL + 1
                if e > 1.4:
                    TOTAL = TOTAL * 2
                    return -1
                TOTAL = TOTAL + 3
            return 1

        global TOTAL  # noqa: PLW0603
        TOTAL = v.sum()
        inner()
        result, TOTAL = TOTAL, torch.zeros(())
        return result

    agree(model, [(torch.tensor(v),) for v in ([1.25, 1.5, 3.0], [0.2, 1.0], [3.0])], (dyn(0),), paths=2)


@row(11, 24)
def test_a_list_that_is_returned_on_one_path_and_grows_on_the_others() -> None:
    def solve(x: Tensor, most: int) -> tuple[Tensor, int, list[Tensor]]:
        history = [x]
        for step in range(most):
            if x.abs() < 0.1:
                return x, step, history
            x = x * 0.5
            history.append(x)
        return x, most, history

    def model(x: Tensor) -> tuple[Tensor, int, Tensor]:
        found, steps, history = solve(x, 8)
        return found, steps, torch.stack(history)

    agree(model, [(torch.tensor(v),) for v in (0.05, 1.0, 3.0, 100.0)], paths=2)


@row(12, 14)
def test_a_variable_that_is_set_before_a_jump_in_a_later_arm() -> None:  # noqa: C901  three models
    def unrolled(x: Tensor) -> Tensor:
        for _ in range(3):
            if x[0] > 4:
                new = x - 1
            elif x[0] > 1:
                new = x * 2
            else:
                x = x + 5
                continue
            x = new
        return x

    def staged(x: Tensor) -> tuple[Tensor, int]:
        steps = 0
        while x.sum() < 40:
            steps += 1
            if x[0] <= x[1] < x[0] + 2:
                new = x + 1
            elif x[0] > 9:
                x = x * 5
                break
            else:
                if x[1] < 1:
                    new = x + 3
                else:
                    x = x * 2
                    continue
            x = new
        return x, steps

    def returning(x: Tensor) -> Tensor:
        for _ in range(4):
            if x[0] > 4:
                new = x - 1
            elif x[0] > 1:
                x = x * 3
                return x + 1
            else:
                new = x + 0.5
            x = new
        return x

    given = ([0.0, 1.0], [5.0, 1.0], [2.0, 8.0], [12.0, 1.0], [0.3, -2.0])
    for each in (unrolled, staged, returning):
        agree(each, [(torch.tensor(v),) for v in given], paths=3)


JUMPS = [(torch.tensor(v), torch.tensor(w)) for v in ([1.0, 3.0], [-1.0, -3.0]) for w in (1.0, -1.0)]


@row(8, 9, 12)
@pytest.mark.parametrize("items", [lambda x: [x, x + 1], lambda x: range(3), lambda x: x])
def test_every_arm_of_a_branch_jumps(items: Callable[[Tensor], Any]) -> None:
    def breaks(x: Tensor, y: Tensor) -> tuple[Tensor, int]:
        k = 0
        for _ in items(x):
            k += 1
            if x.sum() > 3:
                x = x * 2
                break
            else:  # this form is what is tested
                x = x + y
                break
        else:
            k += 10
        return x, k

    def continues(x: Tensor, y: Tensor) -> tuple[Tensor, int]:
        k = 0
        for _ in items(x):
            k += 1
            if x.sum() > 3:
                x = x * 2
                continue
            else:  # noqa: RET507  # this form is what is tested
                x = x - y
                continue
        k += 10
        return x, k

    for model in (breaks, continues):
        agree(model, JUMPS, (dyn(0), None), whole=False)


@row(8, 9)
def test_every_arm_of_a_branch_in_a_while_jumps() -> None:
    def model(x: Tensor, y: Tensor) -> tuple[Tensor, int]:
        k = 0
        while k < 3:
            k += 1
            if x.sum() > 3:
                x = x * 2
                continue
            elif y > 0:  # noqa: RET507  # this form is what is tested
                x = x - y
                continue
            else:
                break
        return x, k

    agree(model, JUMPS, (dyn(0), None), whole=False)


@pytest.mark.slow
@row(8, 11)
def test_loops_that_only_a_jump_leaves() -> None:
    def inner(x: Tensor, n: int) -> tuple[Tensor, int]:
        while True:
            for k in range(3):
                x = x + 1
                if x.sum() > n:
                    return x, k
            x = x * 2

    def model(x: Tensor, y: Tensor) -> tuple[Tensor, int, int]:
        i = 0
        while True:
            i += 1
            if x.sum() > 4:
                break
            x = x + i
        else:
            i += 100
        a, k = inner(y, 5)
        while True:
            while True:
                a = a + 1
                if a.sum() > 40:
                    return a, i, k
                if a.sum() > 30:
                    break
            a = a + 5

    given = [(torch.tensor(v), torch.tensor(w)) for v in ([5.0, 1.0], [-5.0, 2.0, 3.0]) for w in ([1.0, 3.0], [30.0])]
    agree(model, given, (dyn(0), dyn(0)), whole=False)


@row(8, 13)
def test_a_search_that_ends_the_loop_around_it() -> None:
    """What the search has found is of that iteration, and nobody reads what it was in the one before."""

    def model(x: Tensor) -> tuple[Tensor, int]:
        place, steps = torch.zeros((), dtype=torch.int64), 0
        while steps < 4:
            for step in range(1, 3):
                at = (place + step) % x.shape[0]
                if x[at] > 0:
                    break
            else:
                break
            steps += 1
            place = at
        return place, steps

    given = [(torch.tensor(v),) for v in ([1.0, 1.0, 1.0], [1.0, -1.0, 1.0], [-1.0, -1.0, 1.0, -2.0, -3.0], [-1.0] * 3)]
    agree(model, given, (dyn(0),), paths=2)
