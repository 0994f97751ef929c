"""Rows 24 to 26 and 32: lists and comprehensions."""

# ruff: noqa: B905, PERF401 - the constructs under test are written as users write them
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, agree_or_refuse, dyn, refuses, row, scalars, tables, vectors
from torch import Tensor, nn

import dy2st
from dy2st.errors import DtypeWarning

SIZES = ((3, 2), (1, 2), (2, 3), (6, 1))


@row(24)
def test_append_then_stack_cat_len_and_index() -> None:
    def model(x: Tensor) -> tuple[Tensor, ...]:
        states, norms = [], []
        h = torch.zeros(x.shape[1])
        for t in range(x.shape[0]):
            h = torch.tanh(h + x[t])
            states.append(h)
            norms.append(h.norm())
        stacked = torch.stack(states)
        wide = torch.cat(states, 0)
        return stacked, wide, torch.stack(norms, -1), states[-1], states[0] * len(states)

    agree(model, tables(*SIZES), (dyn(0, 1),), paths=4)


@row(24)
def test_list_that_is_not_empty_before_the_loop() -> None:
    def model(x: Tensor, n: Tensor) -> tuple[Tensor, Tensor, int]:
        history = [x, x + 1]
        total = torch.zeros(())
        while n > 0:
            history.append(history[-1] * 0.5 + history[-2])
            n = n - 1
        for state in history:
            total = total * 0.5 + state.sum()
        for i, state in enumerate(reversed(history)):
            total = total + i * state.max()
        return torch.stack(history, 1), total, len(history)

    agree(
        model,
        [(x, n) for (x,), (n,) in zip(vectors(3, 2, 1, 4), scalars(3, 0, 1, 6), strict=True)],
        (dyn(0), None),
        paths=4,
    )


@row(24, 20)
def test_append_under_a_condition() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        kept = [x.max()]
        for element in x:
            if element > 0:
                kept.append(element * 2)
                if element > 1:
                    continue
            else:
                kept.append(-element)
                kept.append(element)
        return torch.stack(kept), len(kept)

    values = [[1.0, -1.0, 2.0], [0.5, 0.25], [-1.0], [-2.0, -3.0, 4.0, 5.0]]
    agree(model, [(torch.tensor(value),) for value in values], (dyn(0),), paths=4)


@row(24, 8)
def test_append_until_break_and_in_nested_loops() -> None:
    def model(x: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
        sums, total = [], torch.zeros(())
        for line in x:
            for element in line:
                total = total + element.abs()
                sums.append(total)
            if total > limit:
                break
        tops = []
        for line in x:
            tops += [line.max(), line.min()]
        return torch.stack(sums), torch.stack(tops)

    inputs = [(*x, torch.tensor(limit)) for x, limit in zip(tables(*SIZES), (2.0, 9.0, 0.0, 1.0), strict=True)]
    agree(model, inputs, (dyn(0, 1), None), paths=4)


@pytest.mark.slow
@row(24, 56)
def test_append_of_tuples_and_dicts() -> None:
    def model(x: Tensor) -> tuple[list[Tensor], Tensor, Tensor]:
        steps = []
        for i, line in enumerate(x):
            steps.append((line, {"sum": line.sum(), "index": i}))
        firsts = torch.stack([line for line, _ in steps])
        sums = torch.stack([info["sum"] * info["index"] for _, info in steps])
        return list(steps[-1][0][:1]), firsts, sums

    agree_or_refuse(model, tables(*SIZES), (dyn(0, 1),), paths=4)


@row(25)
def test_nested_lists() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cells = nn.ModuleList(nn.GRUCell(2, 2) for _ in range(2))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            states = [[torch.zeros(2), torch.ones(2)], [torch.ones(2)]]
            outputs = [[] for _ in self.cells]
            for line in x:
                for i, cell in enumerate(self.cells):
                    states[i][0] = cell(line + i, states[i][0])
                    outputs[i].append(states[i][0])
                if line.sum() > 0:
                    states[0][1] = states[0][1] + states[1][0]
            return torch.stack([torch.stack(column) for column in outputs]), states[0][1]

    agree_or_refuse(Model(), tables((3, 2), (1, 2), (2, 2), (6, 2)), (dyn(0),), paths=4)


@row(25)
def test_lists_of_rows_built_in_nested_loops() -> None:
    def model(x: Tensor) -> Tensor:
        table = []
        for i in range(x.shape[0]):
            line = []
            for j in range(x.shape[1]):
                line.append(x[i, j] * i - j)
            table.append(torch.stack(line))
        return torch.stack(table)

    agree(model, tables(*SIZES), (dyn(0, 1),), paths=4)


@pytest.mark.slow
@row(26)
def test_list_set_pop_insert_and_del() -> None:
    def rotated(x: Tensor) -> Tensor:
        window = [torch.zeros(()), torch.zeros(()), torch.ones(())]
        for element in x:
            window.pop(0)
            window.append(element)
            window[1] = window[1] * 0.5
            window.insert(0, window.pop())
            del window[2]
            window.extend([element - 1])
        return torch.stack(window)

    agree_or_refuse(rotated, vectors(3, 0, 1, 2, 6), (dyn(0),), paths=4)

    def stacked(x: Tensor) -> tuple[Tensor, int]:
        stack = [torch.zeros(())]
        for element in x:
            if element > 0:
                stack.append(element)
            elif len(stack) > 1:
                stack.pop()
        return torch.stack(stack).cumsum(0), len(stack)

    values = [[1.0, 2.0, -1.0, 3.0], [-1.0, 1.0], [1.0, -1.0, -1.0], []]
    agree_or_refuse(stacked, [(torch.tensor(value),) for value in values], (dyn(0),), paths=4)


@row(26)
def test_list_changed_in_one_arm() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        parts = [x, x + 1]
        alias = parts
        if x.sum() > 0:
            parts[0] = x * 2
            alias[1] = -x
        else:
            parts.reverse()
        return torch.cat(parts), alias[0]

    agree_or_refuse(model, [(sign * x.abs(),) for (x,) in vectors(3, 1, 4) for sign in (1, -1)], (dyn(0),))


@pytest.mark.slow
@row(32)
def test_comprehensions() -> None:
    def model(x: Tensor, n: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        doubled = torch.stack([line * 2 for line in x])
        powers = torch.stack([x[0] ** i for i in range(int(n) + 1)])
        mixed = torch.stack([a - b + i for i, (a, b) in enumerate(zip(x, reversed(x)))])
        return doubled, powers, mixed

    agree_or_refuse(
        model, [(*x, *n) for x, n in zip(tables(*SIZES), scalars(3, 0, 1, 2), strict=True)], (dyn(0, 1), None)
    )


@row(32)
def test_comprehension_with_condition_and_of_python_values() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.heads = nn.ModuleList(nn.Linear(3, 2) for _ in range(3))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            outputs = torch.cat([head(x) if x.sum() > 0 else head(-x) * i for i, head in enumerate(self.heads)], 1)
            kept = [x.max(), *[line.sum() for line in x if line.sum() > 0]]
            table = {name: value.mean() for name, value in zip("ab", (x, outputs), strict=True)}
            return outputs, torch.stack(kept) + table["a"] - table["b"]

    agree_or_refuse(
        Model(), [(scale * torch.randn(n, 3),) for n, scale in ((2, 1), (3, -1), (1, 2), (5, 1))], (dyn(0),)
    )


@pytest.mark.slow
@row(32)
def test_comprehensions_over_python_sequences_with_conditions_on_tensors() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        a, b, c = x
        kept = [v * 2 for v in (a, b, c) if v > 0]
        total = sum((v for v in (a, b, c) if v > 1), torch.zeros(()))
        count = sum(1 for i in range(4) if i < x.sum())
        numbers = [i for i, v in enumerate(x) if v > 0 if v < 3]
        any_left = any(v > 2 for v in kept) if kept else False
        large = [v for v in x if v > 0.5]
        best = max(large) if large else torch.zeros(())
        return total + len(kept), count, len(numbers), any_left, best

    agree(model, [(torch.tensor(v),) for v in ([1.0, 2.0, -1.0], [-1.0, -2.0, -3.0], [4.0, 0.6, 0.2])], paths=2)


@row(32)
def test_comprehensions_that_write_into_elements_are_refused() -> None:
    def model(x: Tensor) -> Tensor:
        y = x.clone()
        return y + len([y.add_(v) for v in x if v > 0])

    refuses(model, (torch.ones(3),))


@row(24, 47)
def test_the_greatest_of_what_may_be_nothing() -> None:
    def model(x: Tensor) -> Tensor:
        return x + max([v for v in x if v > 0.5], default=torch.zeros(()))

    agree(model, [(torch.tensor(values),) for values in ([1.0, 2.0, 3.0], [-1.0, -2.0], [0.6])], (dyn(0),), paths=2)


def sums_of_some(x: Tensor) -> tuple[Tensor, ...]:
    found = [each for each in x.view(-1, 1) if each > 0]
    first = sum(found) if found else torch.zeros(1)
    if len(found) == 0:
        second = x[:1] * 0
    elif len(found) == 1:
        second = found[0]
    else:
        second = sum(found) / len(found)
    third = sum(found, torch.zeros(1)) + sum(found, 0.5) + (sum(found) + x[:1])
    if len(found) != 0:
        return first, second, third + sum(found)
    return first, second, third


@row(24, 47)
def test_a_sum_of_what_may_be_nothing() -> None:
    values = [[1.0, 2.0, 3.0], [-1.0, -2.0], [4.0, -0.6, 0.2, -1.0], [0.5], [-0.5]]
    agree(sums_of_some, [(torch.tensor(v),) for v in values], (dyn(0),), paths=5)


@row(24, 47)
def test_the_sum_of_nothing_is_the_int_0() -> None:
    def model(x: Tensor) -> Any:
        return x.sum() + sum([each for each in x.view(-1, 1) if each > 0])

    agree(model, [(torch.tensor(v),) for v in ([1.0, -1.0], [-1.0, -2.0], [2.0, 3.0])], (dyn(0),), paths=3)
    with pytest.warns(DtypeWarning, match="or the int 0"):
        program = dy2st.export(lambda x: sum([each for each in x.view(-1, 1) if each > 0]), (torch.ones(2),))
    assert program.module()(torch.tensor([1.0, -1.0])).tolist() == [1]
    assert program.module()(-torch.ones(2)).item() == 0


def pooled(x: Tensor) -> Any:
    weights = x.softmax(0)
    return sum(weight * torch.stack([each, each * each]) for weight, each in zip(weights, x))


@pytest.mark.slow
@row(24, 47)
def test_a_sum_over_a_declared_size_needs_an_element() -> None:
    agree(pooled, vectors(3, 1, 5), (dyn(0),), paths=1)
    program = dy2st.export(pooled, (torch.ones(3),), dynamic_shapes=(dyn(0),))
    with pytest.raises(RuntimeError, match="one element at least"):
        program.module()(torch.ones(0))


@row(24, 47)
@pytest.mark.parametrize(
    "model",
    [
        lambda x: sum([each for each in x if each > 0]),
        lambda x: sum([each.item() for each in x if each > 0]),
        lambda x: sum([0.5 for each in x if each > 0]),
    ],
)
def test_a_sum_of_numbers_that_may_be_nothing_is_warned_of(model: Callable[[Tensor], Any]) -> None:
    with pytest.warns(DtypeWarning, match="int"):
        program = dy2st.export(model, (torch.tensor([1.0, 2.0]),), dynamic_shapes=(dyn(0),))
    for values in ([1.0, -1.0, 2.0], [-1.0]):
        assert program.module()(torch.tensor(values)) == model(torch.tensor(values))


@row(29, 24)
def test_a_list_of_the_module_grows_in_an_arm() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.log: list[Tensor] = []

        def forward(self, x: Tensor) -> Tensor:
            self.log = [x.sum()]
            if x.sum() > 0:
                self.log += [x.max(), x.min()]
            return torch.stack(self.log)

    agree(Model(), [(torch.ones(2),), (-torch.ones(2),)])


@row(32, 29)
def test_a_list_that_only_a_closure_in_the_loop_reads() -> None:
    def model(m: Tensor) -> Tensor:
        count = m.sum().long()
        while count > 0:
            count = count - 1
            kept = [e.sum() for e in m if e.sum() != 1.0]

            def length() -> int:
                return len(kept)  # noqa: B023

            count = count - length()
        return count

    agree(model, [(torch.tensor(v),) for v in ([[1.0, 2.0], [2.0, 3.0]], [[0.5, 0.5], [3.0, 1.0]])], (dyn(0),))


@pytest.mark.slow
@row(8, 24)
def test_a_list_that_is_appended_to_and_replaced_before_a_break() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        made = [x]
        for i in range(3):
            made.append(x * i)
            if made[i].sum() > 4:
                made = made[1:]
                break
            if made[i].max() > 1.2:
                made[0] = made[0] * 2
        return torch.stack(made).sum(0), len(made)

    given = [(torch.tensor(v),) for v in ([1.0, 2.0], [0.0, 1.0, 4.0, 2.0], [1.0, 1.0, 1.5], [-4.0, 1.0, 1.0])]
    agree(model, given, (dyn(0),), paths=3)


@pytest.mark.slow
@row(24)
def test_a_tuple_that_grows_with_every_iteration() -> None:
    def model(x: Tensor) -> Tensor:
        found: tuple[Tensor, ...] = ()
        while x.sum() < 20:
            found += (x.sum(),)
            x = x * 2
        return torch.stack(found)

    error = refuses(model, (torch.tensor([5.0, 1.0]),), (dyn(0),))
    assert error.code == "D2S215"
    assert "'found' is a tuple that grows" in str(error)


@pytest.mark.slow
@row(15, 24)
def test_a_tuple_that_keeps_the_last_few() -> None:
    def model(x: Tensor) -> Tensor:
        last: tuple[Tensor, ...] = ()
        total = x.sum() * 0
        for line in x:
            last = (last + (line.sum(),))[-5:]  # noqa: RUF005  # as users write it
            total = total + sum(last)
        return total

    agree(model, [(torch.randn(n, 3),) for n in (1, 3, 9, 5)], (dyn(0),))
