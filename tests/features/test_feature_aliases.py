"""Rows 26 to 31: what may be the same object as something else. Right or refused, never silently wrong."""

from __future__ import annotations

import collections
import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from harness import agree, agree_or_refuse, dyn, refuses, row
from torch import Tensor, nn

import dy2st

BOTH = [(torch.tensor([1.0, 2.0, 3.0]),), (torch.tensor([-1.0, -2.0, -4.0]),)]


@dataclass
class Pair:
    """Two fields that code changes in place."""

    value: Tensor
    count: int = 0


def identity_arm(x: Tensor) -> tuple[Tensor, Tensor]:
    """One arm hands on a tensor, which is then changed."""
    y = x * 1
    z = y if x.sum() > 0 else x + 1
    z.mul_(3)
    return y, z


def loop_result(x: Tensor) -> tuple[Tensor, Tensor]:
    """Without a trip the result is the initial value itself."""
    h = x * 1
    kept = h
    while h.sum() < 5:
        h = h + 1
    h += 100
    return h, kept


def best_so_far(x: Tensor) -> Tensor:
    """The best state is the running one, which goes on changing."""
    w = x * 1
    best, lowest = w, (w * w).sum()
    for i in range(3):
        w.sub_(0.3 * (w - x) * (i + 1))
        loss = (w * w).sum()
        if loss < lowest:
            best, lowest = w, loss
    return best + w


def chosen_list(x: Tensor) -> tuple[int, int]:
    """Two lists, one of which grows."""
    a, b = [x], [x * 2]
    c = a if x.sum() > 0 else b
    c.append(x)
    return len(a), len(b)


def replaced_object(x: Tensor) -> tuple[Tensor, Tensor]:
    """A second name sees the change of an object only where it was not replaced."""
    a = Pair(x)
    b = a
    if x.sum() > 0:
        a = Pair(x * 3)
    a.value = a.value * 5
    return a.value, b.value


def appended_then_changed(x: Tensor) -> Tensor:
    """The rows of the list are one tensor."""
    h, rows = torch.zeros(2), []
    for i in range(x.shape[0]):
        h += x[i]
        rows.append(h)
    return torch.stack(rows)


def iterator_in_an_arm(x: Tensor) -> Tensor:
    """An iterator advances on one path only."""
    numbers = iter([1.0, 2.0, 3.0])
    if x.sum() > 0:
        x = x + next(numbers)
    return x + next(numbers)


@row(31)
@pytest.mark.parametrize(
    "model",
    [identity_arm, loop_result, best_so_far, chosen_list, replaced_object, appended_then_changed, iterator_in_an_arm],
)
def test_changes_of_what_may_be_an_alias(model: Callable[..., Any]) -> None:
    agree_or_refuse(model, BOTH, (dyn(0),), paths=1, whole=False)


@row(31)
def test_writes_that_are_seen_through_views_taken_before() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        table = torch.zeros(3, 2)
        first, column = table[0], table[:, 1]
        if x.sum() > 0:
            table[0] = x[:2]
            first += 1
        else:
            column.fill_(7)
        for i in range(x.shape[0]):
            first[0] += x[i]
        return table, first, column

    agree(model, BOTH, (dyn(0),))


@row(31, 47)
def test_greatest_is_one_of_the_tensors_itself() -> None:
    def of_two(x: Tensor) -> tuple[Tensor, Tensor]:
        a, b = x[0] * 1, x[1] * 1
        greatest = max(a, b)
        a += 5
        return greatest, a

    def element(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 1
        least = min(y)
        y += 5
        return least, y

    def the_same(x: Tensor) -> tuple[Tensor, Tensor]:
        b = x[1] * 1
        same = max(b, b)
        b.mul_(0.5)
        return same, b

    refuses(of_two, BOTH[0])
    refuses(element, BOTH[0])
    agree(the_same, BOTH, paths=1)

    def without_writes(x: Tensor) -> Tensor:
        return max(x[0], x[1]) - min(x) * max(x[1], x[2], 0.5)

    agree(without_writes, BOTH, paths=1)


@row(26, 30)
def test_containers_changed_by_code_without_source() -> None:
    def model(x: Tensor) -> tuple[Tensor, int, int]:
        rows: list[Any] = []
        numbers = [5, 3]
        groups = collections.defaultdict(list)
        if x.sum() > 0:
            list.append(rows, x)
            heapq.heappush(numbers, 1)
            groups[1].append(2)
        return x * len(rows), len(numbers), len(groups)

    agree_or_refuse(model, BOTH, (dyn(0),))


@row(29)
def test_setattr_in_an_arm() -> None:
    def model(x: Tensor) -> Tensor:
        pair = Pair(x)
        if x.sum() > 0:
            setattr(pair, "value", x * 3)  # noqa: B010 - the construct under test
        return pair.value

    agree(model, BOTH, (dyn(0),))


@row(47)
def test_numbers_are_no_aliases() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        n = x.sum().to(torch.int64)
        k = int(n)
        if x[0] > 0:
            n += 1
        return n, k

    agree(model, BOTH, (dyn(0),))


@row(67)
def test_normalisation_in_training_mode_under_a_condition_is_refused() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(2)

        def forward(self, x: Tensor) -> Tensor:
            if x.sum() > 0:
                x = self.norm(x)
            return x

    refuses(Model(), (torch.randn(4, 2),), (dyn(0),))


@row(54)
def test_random_generator_seeded_inside_is_refused() -> None:
    def model(x: Tensor) -> Tensor:
        torch.manual_seed(0)
        return x + torch.rand(3)

    refuses(model, BOTH[0])


@row(48)
def test_conditions_on_sizes_zero_and_one() -> None:
    def model(x: Tensor) -> Tensor:
        if x.shape[0] == 0:
            return torch.zeros(1)
        if x.shape[0] == 1:
            return x * 10
        return x.sum(0, keepdim=True)

    agree(model, [(torch.ones(n),) for n in (3, 0, 1, 2)], (dyn(0),), paths=3)


@row(31)
def test_literal_that_a_staged_path_writes_to_is_no_constant() -> None:
    def model(x: Tensor) -> Tensor:
        count = torch.tensor(1)
        if x.sum() > 0:
            count.add_(1)
        return x[:count]

    agree(model, BOTH, (dyn(0),))


@row(31)
def test_writes_through_what_unbind_split_and_unpacking_give() -> None:
    def unpacked(x: Tensor, pair: Tensor) -> Tensor:
        first, second = pair
        if first > 0:
            second.clamp_(min=0.25)
        else:
            pair += 1
        return x.sum() + pair

    def split(x: Tensor, pair: Tensor) -> Tensor:
        left, _ = pair.split(1)
        for number in x:
            if number > 0:
                left += number
            else:
                pair *= 2
        return left * pair

    pairs = [torch.tensor([1.0, -3.0]), torch.tensor([-1.75, -3.0])]
    inputs = [(torch.tensor(x), pair) for pair in pairs for x in ([1.0, -2.0, 3.0], [-1.0], [])]
    for model in (unpacked, split):
        agree(model, inputs, (dyn(0), None))


@row(31)
def test_in_place_on_what_is_a_tensor_on_one_path_only() -> None:
    def after_a_loop(x: Tensor, s: Tensor) -> Tensor:
        while True:
            if x[0] > 0:
                break
            s = 1
            x = x + 1
        s += 1
        return x + s

    refuses(after_a_loop, (torch.ones(1), torch.ones(())))

    def none_or_tensor(x: Tensor, s: Tensor) -> Tensor:
        kind = s if x.sum() > 0 else 2.5
        if x.sum() > 3:
            kind = torch.ones(2)
        kind *= 2
        return x + kind

    refuses(none_or_tensor, (torch.ones(2), torch.ones(())))


@row(7, 31)
def test_reversed_is_a_copy() -> None:
    def model(x: Tensor) -> Tensor:
        total = torch.zeros(())
        for value in reversed(x):
            value += 2.0  # noqa: PLW2901  in place is what is tested
            total = total * 2 + value
        return x + total

    agree(model, [(torch.arange(float(n)),) for n in (3, 0, 1, 2)], (dyn(0),), paths=2)


@row(42)
def test_index_errors_that_a_try_would_catch() -> None:
    def by_size(x: Tensor) -> Tensor:
        try:
            return x[2]
        except IndexError:
            return x.sum()

    def by_value(x: Tensor) -> Tensor:
        try:
            return x[int(x.sum())]
        except IndexError:
            return x.sum()

    for model in (by_size, by_value):
        refuses(model, (torch.ones(3),), (dyn(0),))

    def certain(x: Tensor) -> Tensor:
        try:
            for value in x:
                x = x + value
            return x[2]
        except IndexError:
            return x.sum()

    x = torch.arange(3.0)
    torch.testing.assert_close(dy2st.export(certain, (x,)).module()(x), certain(x))


@row(31)
def test_the_larger_of_two_elements_is_stored_in_place_of_one() -> None:
    def model(x: Tensor) -> Tensor:
        envelope = torch.cat([x, x.new_zeros(1)])
        for i in range(envelope.shape[0] - 1, 0, -1):
            envelope[i - 1] = max(envelope[i - 1], envelope[i])
        return envelope

    agree(model, [(torch.tensor(v),) for v in ([0.5, 0.75, 0.25], [], [0.5], [1.0, 0.5, 2.0, -1.0])], (dyn(0),))


@row(31)
def test_what_a_call_returns_is_stored_and_seen_by_nobody_else() -> None:
    def pick(m: Tensor, x: Tensor, i: int) -> Tensor:
        return m[i] if x[i] > 0 else m[i + 1]

    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        m = x.clone()
        n = m
        for i in range(x.shape[0] - 1):
            m[i + 1] = pick(m, x, i)
            n[i] = min(m[i], n[i + 1], m[i] * 2)
        return m, n

    agree(model, [(torch.tensor(v),) for v in ([1.0, 2.0, 3.0], [-2.0, 1.0, 3.0, 4.0], [3.0, -1.0])], (dyn(0),))


def held_by_a_variable(x: Tensor) -> tuple[Tensor, Tensor]:
    m = x.clone()
    larger = max(m[0], m[1])
    m[0] = larger
    m[1] = 5.0
    return m, larger


def held_by_a_walrus(x: Tensor) -> tuple[Tensor, Tensor]:
    m = x.clone()
    m[0] = (larger := max(m[0], m[1]))
    m[1] = 5.0
    return m, larger


def held_by_a_list(x: Tensor) -> tuple[Tensor, Tensor]:
    m = x.clone()
    held = [max(m[0], m[1])]
    m[0] = held[0]
    m[1] = 5.0
    return m, held[0]


def held_by_a_view(x: Tensor) -> tuple[Tensor, Tensor]:
    m = x.clone()
    views = []

    def larger() -> Tensor:
        found = max(m[0], m[1])
        views.append(found[None])
        return found

    m[0] = larger()
    m[1] = 5.0
    return m, views[0]


@row(31)
@pytest.mark.parametrize("model", [held_by_a_variable, held_by_a_walrus, held_by_a_list, held_by_a_view])
def test_what_is_stored_and_seen_elsewhere_may_be_what_is_written_to(model: Any) -> None:
    error = refuses(model, (torch.tensor([1.0, 2.0, 3.0]),))
    assert isinstance(error, dy2st.errors.AliasError)
