"""What a loop carries may be a tensor from outside of it, which the loop changes in place."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from harness import agree, agree_or_refuse, dyn, refuses, row
from torch import Tensor

GIVEN = [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0], [2.0, -1.0], [0.0, 0.0], [0.5, 0.4])]


def becomes(x: Tensor) -> tuple[Tensor, ...]:
    a, b, s = x + 2, x * 3, x * 0
    i = 0
    while i < 3 and a.sum() > 1:
        i += 1
        a *= 2
        s = s + b
        b = a
    return a, b, s


def is_at_first(x: Tensor) -> tuple[Tensor, ...]:
    a, s = x + 2, x * 0
    b = a
    i = 0
    while i < 3 and a.sum() > 1:
        i += 1
        a *= 2
        s = s + b
        b = b * 1
    return a, b, s


def is_a_view_at_first(x: Tensor) -> tuple[Tensor, ...]:
    a, s = x + 2, x * 0
    b = a[:1]
    i = 0
    while i < 3 and a.sum() > 1:
        i += 1
        a[0] = a[1] + i
        s = s + b
        b = b * 1
    return a, b, s


def in_a_list(x: Tensor) -> tuple[Tensor, ...]:
    a, held, s = x + 2, [x * 3], x * 0
    i = 0
    while i < 3 and a.sum() > 1:
        i += 1
        a *= 2
        s = s + held[0]
        held[0] = a
    return a, held[0], s


def in_an_object(x: Tensor) -> tuple[Tensor, ...]:
    a, s = x + 2, x * 0
    held = SimpleNamespace(v=x * 3)
    i = 0
    while i < 3 and a.sum() > 1:
        i += 1
        a *= 2
        s = s + held.v
        held.v = a
    return a, held.v, s


def by_way_of_another(x: Tensor) -> tuple[Tensor, ...]:
    a, b, c, s = x + 2, x * 3, x * 5, x * 0
    i = 0
    while i < 4 and a.sum() > 1:
        i += 1
        a *= 2
        s = s + c
        c = b
        b = a
    return a, b, c, s


def in_an_inner_loop(x: Tensor) -> tuple[Tensor, ...]:
    a, b = x + 2, x * 3
    i = 0
    while i < 3 and a.sum() > 1:
        i += 1
        for _ in range(2):
            a *= b
        b = a
    return a, b


def in_a_staged_inner_loop(x: Tensor) -> tuple[Tensor, ...]:
    a, b = x * 0.1 + 1, x * 3
    i = 0
    while i < 3 and a.sum() > 1:
        i += 1
        j = torch.tensor(0)
        while j < i and a.sum() < 50:
            j = j + 1
            a += b
        b = a
    return a, b


def in_an_arm(x: Tensor) -> tuple[Tensor, ...]:
    a, b, s = x + 2, x * 3, x * 0
    i = 0
    while i < 3 and a.sum() > 1:
        i += 1
        if s.sum() < 20:
            a *= 2
            s = s + b
        b = a
    return a, b, s


def born_in_the_loop(x: Tensor) -> tuple[Tensor, ...]:
    a, s = x + 2, x * 0
    for i, _ in enumerate(x):
        a *= 2
        if i > 0:
            s = s + last  # noqa: F821  it is there from the second iteration on
        last = a  # noqa: F841  used above
    return a, s


def in_both_of_two(x: Tensor) -> tuple[Tensor, ...]:
    b, c = x * 0.5 - 0.5, x * 2
    a = b.view(2)
    i = 0
    while i < 2 and x.sum() > 3:
        i += 1
        b[0] = x[1]
        if c[0] > 3:
            b = b * 2
        else:
            b = x * -1
            a = x + 1
    return a, b


def handed_round(x: Tensor) -> tuple[Tensor, ...]:
    a, b = x + 1, x * 2
    c, i = a, 0
    while i < 4 and x.sum() > i:
        i += 1
        a += 1
        a, b, c = b, c, a
    return a, b, c


# From the second iteration on they are one tensor on all paths alike, or from the first one.
ONE = [
    becomes,
    is_at_first,
    is_a_view_at_first,
    in_a_list,
    in_an_object,
    in_an_inner_loop,
    in_a_staged_inner_loop,
    in_an_arm,
]
UNSURE = [by_way_of_another, handed_round]


@row(31)
@pytest.mark.parametrize("model", ONE)
def test_is_one_tensor_with_two_names(model: Callable[..., Any]) -> None:
    agree(model, GIVEN)


@row(31)
@pytest.mark.parametrize("model", UNSURE)
def test_is_refused(model: Callable[..., Any]) -> None:
    assert refuses(model, GIVEN[0]).code == "D2S221"


@row(31)
def test_a_view_that_one_arm_assigns() -> None:
    agree_or_refuse(in_both_of_two, [*GIVEN, (torch.tensor([5.0, 4.0]),)])


@row(31)
def test_two_that_change_places() -> None:
    def model(x: Tensor) -> tuple[Tensor, ...]:
        a, b = x + 1, x * 2
        i = 0
        while i < 4 and x.sum() > i:
            i += 1
            a += 1
            a, b = b, a
        return a, b

    agree(model, GIVEN)


@row(31)
def test_what_a_branch_before_the_loop_gives_is_written_into_an_input() -> None:
    def model(v: Tensor, r: Tensor) -> tuple[Tensor, ...]:
        first, last = r[0] * 2, r * 1
        if first >= -0.5:
            first = first + 2
        for _ in range(len(v)):
            r[1] = first
            last = last + r
        return first, last, r

    inputs = [(torch.zeros(n), torch.tensor([s, 1.5])) for n in (3, 0, 1) for s in (3.0, -3.0)]
    agree(model, inputs, (dyn(0), None))


@row(31)
def test_a_variable_of_the_loop() -> None:
    agree_or_refuse(born_in_the_loop, [(torch.ones(n) * s,) for n in (0, 1, 2, 5) for s in (1, -3)], (dyn(0),))


@row(31)
def test_the_message_names_both_and_the_change() -> None:
    error = refuses(by_way_of_another, GIVEN[0])
    assert "'a' is changed in place, and 'c' is used again afterwards" in str(error)
    assert "a *= 2" in str(error)
    assert "clone() it on every path" in str(error)


@row(31)
def test_a_copy_is_none() -> None:
    def model(x: Tensor) -> tuple[Tensor, ...]:
        a, s = x + 2, x * 0
        b = a.clone()
        i = 0
        while i < 3 and a.sum() > 1:
            i += 1
            a *= 2
            s = s + b
            b = a.clone()
        return a, b, s

    agree(model, GIVEN)


@row(31)
def test_what_is_read_before_the_change_only() -> None:
    def model(x: Tensor) -> tuple[Tensor, ...]:
        a, b, s = x + 2, x * 3, x * 0
        i = 0
        while i < 3 and a.sum() > 1:
            i += 1
            s = s + b
            a *= b
            b = a
        return a, b, s

    agree(model, GIVEN)


@row(31)
def test_what_is_assigned_anew_before_it_is_read() -> None:
    def model(x: Tensor) -> tuple[Tensor, ...]:
        a, s = x + 2, x * 0
        b = a
        i = 0
        while i < 3 and a.sum() > 1:
            i += 1
            a *= 2
            b = a + i
            s = s + b
        return a, b, s

    agree(model, GIVEN)


@row(31)
def test_a_carried_tensor_that_is_an_argument_at_first() -> None:
    def model(x: Tensor, n: Tensor) -> Tensor:
        count = torch.tensor(3)
        while count > 0:
            count = count - 1
            n -= 1
            n = n * 2
        return x + 1

    agree(model, [(torch.ones(3), torch.tensor(4)), (torch.ones(3), torch.tensor(7))], paths=1)

    def several(x: Tensor, n: Tensor) -> Tensor:
        m = n * 1
        while x.sum() > 0:
            n, m = m, n
            n -= 1
            x = x - 1
        return m

    refuses(several, (torch.ones(3), torch.tensor(4)))

    def own(x: Tensor) -> Tensor:
        y = x.clone()
        while y.sum() < 20:
            y += 1
            y = y * 2
        return y - x

    agree(own, [(torch.ones(3),), (torch.full((3,), 9.0),)])


@row(31)
def test_views_of_what_a_region_around_changes() -> None:
    def model(m: Tensor) -> Tensor:
        c = torch.tensor(2)
        m -= 1
        m -= 1
        while c > 0:
            c = c - 1
            for e in m:
                if m.sum() >= 0:
                    m -= 1
                else:
                    m -= e.sum()
        return m

    given = [[[1.25, 1.5], [2.0, 1.25]], [[9.0, 8.0]], [[4.0, 4.0], [1.0, 1.0], [2.0, 2.0]]]
    agree(model, [(torch.tensor(value),) for value in given], (dyn(0),), paths=2)


@row(31)
def test_tensors_that_change_places_in_a_loop() -> None:
    def model(v: Tensor) -> tuple[Tensor, Tensor]:
        a, b = v[0] * 2, v[-1] * 3
        state = {"a": v[0] * 5, "b": v[0] * 7}
        for e in v:
            a, b = b, a
            state["a"], state["b"] = state["b"], state["a"]
            a += e
            state["a"] += e
        return a - b, state["a"] - state["b"]

    agree(model, [(torch.rand(n),) for n in (1, 2, 5)], (dyn(0),))


@row(31)
def test_an_input_that_a_later_iteration_changes() -> None:
    class State:
        pass

    def swapped(v: Tensor, s: Tensor) -> Tensor:
        y = v[-1] * s
        for _ in v:
            s, y = y, s
            s.add_(1)
        return s + y

    def attributes(v: Tensor, s: Tensor) -> Tensor:
        state = State()
        state.h, state.g = s, s * 2
        for _ in v:
            state.h, state.g = state.g, state.h
            state.h.add_(1)
        return state.h

    def items(v: Tensor, s: Tensor) -> Tensor:
        first = s * 2
        state = [first, s * 3]
        for _ in v:
            state[1].add_(1)
            state[0], state[1] = state[1], state[0]
        return state[0] + first

    for model in (swapped, attributes, items):
        refuses(model, (torch.ones(3), torch.tensor(2.0)), (dyn(0), None))


@row(31)
def test_a_loop_that_takes_a_tensor_from_outside_and_changes_it() -> None:
    def tensors(x: Tensor) -> tuple[Tensor, Tensor]:
        a, b = x * 1, x + 1
        held = {"b": b}
        while a.sum() < 20:
            a += 1
            x = a * 2
            a = held["b"]
        return a, b

    def lists(x: Tensor) -> tuple[Any, ...]:
        a, b = [x * 1, 0], [x + 1, 0]
        for _ in range(x.shape[0]):
            a[1] += 1
            a[0] = a[0] + 1
            a = b
        return a[0], a[1], b[0], b[1]

    given = [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0], [2.0, -1.0, 1.0])]
    agree(tensors, given, (dyn(0),), whole=False)
    agree_or_refuse(lists, given, (dyn(0),), whole=False)


@row(31)
def test_what_a_loop_takes_from_a_container_without_a_look_at_it_is_changed_behind_the_loop() -> None:
    class Held:
        pass

    def of_a_list(x: Tensor) -> tuple[Tensor, Tensor]:
        a, kept = x + 1, [x * 2]
        while x.sum() < 0:
            x = x + 1
            a = kept[0]
        a[0] = 7.0
        return a, kept[0]

    def of_an_object(x: Tensor) -> tuple[Tensor, Tensor]:
        a, kept = x + 1, Held()
        kept.v = x * 2
        while x.sum() < 0:
            x = x + 1
            if x.max() > -1:
                a = kept.v
        a += 1
        return a, kept.v

    def of_a_variable(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        a, b = x + 1, x * 2
        c = b.view(-1)
        for _ in x:
            a = c
        a += 1
        return a, b, c

    for model in (of_a_list, of_an_object, of_a_variable):
        assert refuses(model, (torch.tensor([-1.0, -3.0]),), (dyn(0),)).code == "D2S221"

    def not_read_again(x: Tensor) -> Tensor:
        a, kept = x + 1, [x * 2]
        while x.sum() < 0:
            x = x + 1
            a = kept[0]
        a[0] = 7.0
        return a

    agree(not_read_again, [(torch.tensor(v),) for v in ([-1.0, -3.0], [1.0, 3.0], [-0.5, 0.0])], (dyn(0),))


@row(31)
def test_what_only_the_last_iteration_stores_is_not_at_the_head_of_another() -> None:
    def counted(x: Tensor) -> tuple[Tensor, Tensor]:
        count, found = torch.zeros(2), {}
        while True:
            count.add_(1)
            x = x / 2
            if x.abs().max() > 1:
                continue
            found["count"] = count
            return found["count"], x

    def one_of_two(x: Tensor) -> tuple[Tensor, Tensor]:
        count, kept = torch.zeros(2), torch.zeros(2)
        while True:
            count.add_(1)
            x = x / 2
            if x.abs().max() < 1:
                kept = count if x.sum() > 0 else x
                break
            kept.add_(1)
        return kept, count

    given = [(torch.tensor(v),) for v in ([3.0, -4.0], [0.3, 0.4], [5.0, 1.0], [-50.0, 1.0])]
    agree(counted, given, None, whole=False)
    agree(one_of_two, given, None, whole=False)


@row(31)
def test_what_an_iteration_stores_and_another_follows_is_at_its_head() -> None:
    def goes_on(x: Tensor) -> tuple[Tensor, Tensor]:
        count, found = torch.zeros(2), {"count": torch.zeros(2)}
        while True:
            count.add_(1)
            x = x / 2
            if x.abs().max() > 1:
                found["count"] = count
                continue
            return found["count"], x

    def leaves_an_inner_loop(x: Tensor) -> tuple[Tensor, Tensor]:
        count, kept, total = torch.zeros(2), torch.zeros(2), torch.zeros(2)
        while x.abs().max() > 0.3:
            count.add_(1)
            total = total + kept
            y = x * 1
            while True:
                y = y / 2
                if y.abs().max() < 1:
                    kept = count
                    break
            x = x / 2
        return kept, total

    def leaves_a_function(x: Tensor) -> tuple[Tensor, Tensor]:
        count, found, total = torch.zeros(2), {"kept": torch.zeros(2)}, torch.zeros(2)

        def smaller(x: Tensor) -> Tensor:
            if x.sum() > 1:
                found["kept"] = count
                return x * 0.5
            return x * 0.25

        while x.abs().max() > 0.3:
            count.add_(1)
            x = smaller(x)
            total = total + found["kept"]
        return found["kept"], total

    for model in (goes_on, leaves_an_inner_loop, leaves_a_function):
        assert refuses(model, (torch.tensor([3.0, -4.0]),), None).code == "D2S221"


@row(31)
def test_an_input_is_changed_in_the_first_iteration_only() -> None:
    def model(x: Tensor) -> Tensor:
        for _ in range(6):
            x[x < 0] = 0
            before = x.clone()
            x = x * 0.5 + 0.1
            if (x - before).abs().max() < 0.2:
                break
        return x

    agree(model, [(torch.tensor(v),) for v in ([3.0, -4.0], [0.3, 0.4], [-5.0, -1.0])], None, whole=False)
