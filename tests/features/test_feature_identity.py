"""Objects, lists and dicts with several names (rows 27 to 31): one stays one, two stay two, on every path."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from harness import agree, agree_or_refuse, dyn, refuses, row
from torch import Tensor, nn


@row(31)
def test_a_list_that_is_returned_and_changed_by_the_caller_is_refused() -> None:
    def grown(x: Tensor, rows: list[Tensor]) -> list[Tensor]:
        while x.sum() > 1:
            x = x / 2
            if x[0] > 3:
                return rows
            rows.append(x)
        return rows

    def model(x: Tensor) -> Tensor:
        rows = [x]
        same = grown(x, rows)
        rows.append(x * 2)
        return torch.stack(same)

    refuses(model, (torch.ones(2),))


@row(27, 31)
def test_one_arm_replaces_what_the_other_changes_in_place() -> None:
    @dataclass
    class State:
        x: Tensor
        n: int

    def longer(x: Tensor) -> tuple[int, Tensor]:
        made = [x, x * 2]
        if x.sum() > 3:
            made = [x + 1, x]
        else:
            made.append(x * 3)
            made[0] = x * 4
        return len(made), sum(made)

    def nested(x: Tensor) -> Tensor:
        found = {"a": x, "b": x * 2}
        both = (x, found)
        if x.sum() > 3:
            found = {"a": x + 1, "b": x}
            both = (x * 7, found)
        else:
            found["a"] = x * 4
        return found["a"] + both[1]["a"] * 100 + both[0]

    def looping(x: Tensor) -> Tensor:
        state = State(x, 0)
        while x.sum() > 3:
            if x.max() > 4:
                state = State(x + 1, state.n + 3)
            else:
                state.x = x * 4
                state.n += 1
            x = x * 0.75
        return state.x + state.n

    def returned(x: Tensor) -> tuple[Tensor, int]:
        def either(made: list[Tensor]) -> list[Tensor]:
            if x.sum() > 3:
                made.append(x * 2)
                return made
            return [x, x]

        made = [x + 1]
        chosen = either(made)
        return chosen[0] * 2 + chosen[1], len(made)

    given = [(torch.tensor(v),) for v in ([1.0, 2.0], [0.0, 1.0, 4.0, 2.0], [0.0, 1.0, 9.0, 2.0], [])]
    for model in (longer, nested, looping, returned):
        agree(model, given, (dyn(0),))


@row(31)
def test_a_change_of_what_the_first_iteration_shares_with_another_variable() -> None:
    @dataclass
    class State:
        x: Tensor

    def shared(x: Tensor) -> Tensor:
        state = best = State(x)
        while x.sum() > 3:
            state.x = state.x * 2
            if state.x.max() > 6:
                best = State(state.x + 1)
                state = State(x)
            x = x * 0.75
        return best.x + state.x

    def swapped(x: Tensor) -> Tensor:
        a, b = [x], [x * 2]
        while x.sum() > 3:
            a[0] = a[0] + 1
            b[0] = b[0] * 0.5
            a, b = b, a
            x = x * 0.75
        return a[0] * 10 + b[0]

    def equal_ones(x: Tensor) -> Tensor:
        first, second = {"k": 1}, {"k": 1}
        chosen = first if x.sum() > 3 else second
        chosen["k"] = 5
        return x + first["k"] * 10 + second["k"] * 100

    given = [(torch.tensor(v),) for v in ([1.0, 1.0, 1.5], [0.0, 1.0, 9.0, 2.0], [1.0, 2.0])]
    for model in (shared, equal_ones, swapped):
        agree(model, given, (dyn(0),))


@row(31)
def test_one_object_under_two_names_stays_one() -> None:
    @dataclass
    class State:
        x: Tensor

    def tensors(x: Tensor) -> Tensor:
        if x.sum() > 0:
            n = x * 2
            m = n
        else:
            n = x * 3
            m = n
        n += 1
        return m

    def states(x: Tensor) -> tuple[Tensor, bool]:
        if x.sum() > 0:
            n = State(x * 2)
            held = [n]
        else:
            n = State(x * 3)
            held = [n]
        n.x = n.x + 1
        return held[0].x, held[0] is n

    def lists(x: Tensor) -> tuple[int, int]:
        if x.sum() > 0:
            n = [x, x]
            held = {"n": n}
        else:
            n = [x * 3]
            held = {"n": n}
        n.append(x)
        return len(held["n"]), len(n)

    for model in (tensors, states, lists):
        agree(model, [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0])], (dyn(0),), whole=False)


@row(31)
def test_objects_that_are_one_on_some_path_are_not_changed() -> None:
    def views(x: Tensor) -> Tensor:
        if x.sum() > 0:
            n = x * 2
            m = n[1:]
        else:
            n = x * 3
            m = x[:1] * 4
        n += 1
        return m

    def heads(x: Tensor) -> tuple[Tensor, Tensor]:
        n, m = x * 1, x * 5
        seen = x.sum()
        while n.sum() < 30:
            n += 1
            seen = seen + m.sum()
            n = x.abs() + n * 2
            m = n
        return n, seen

    def containers(x: Tensor) -> tuple[Tensor, Tensor]:
        n, m = [x * 1], [x * 5]
        seen = x.sum()
        while n[0].sum() < 30:
            n[0] = n[0] + 1
            seen = seen + m[0].sum()
            n = [x.abs() + n[0] * 2]
            m = n
        return n[0], seen

    def ends(x: Tensor) -> Tensor:
        n = m = x * 2
        while n.sum() < 30:
            n = x.abs() + n + 1
            m = n[:1]
        n += 1
        return m

    agree(containers, [(torch.tensor(v),) for v in ([1.0, 3.0], [20.0, 30.0], [1.0])], (dyn(0),))
    codes = [refuses(model, (torch.tensor([1.0, 3.0]),), (dyn(0),)).code for model in (views, ends)]
    assert codes == ["D2S221", "D2S221"]
    agree(heads, [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0], [30.0, 3.0])], (dyn(0),))


@row(31)
def test_a_list_that_is_made_for_a_call_is_born_where_it_is_made() -> None:
    @dataclass
    class State:
        items: list[Any]

    def filled(items: list[Any], value: Tensor) -> Tensor:
        items[0] = 1
        items.append(value)
        return items[1] + items[0]

    def model(x: Tensor) -> Tensor:
        if x[0] > 0:
            state = State(items=[torch.full((), 2.0)])
            state.items[0] = 1
            x = x + state.items[0]
        else:
            x = x + filled([x.sum()], x)
        return x

    agree(model, [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0])], (dyn(0),))


@row(21, 29)
def test_an_augmented_assignment_to_one_of_two_objects() -> None:
    class One:
        def __init__(self, n: int, x: Tensor) -> None:
            self.n, self.x = n, x

    class Other:
        def __init__(self, n: int, x: Tensor) -> None:
            self.n, self.x = n, x

    def model(x: Tensor) -> tuple[Any, ...]:
        one, other = One(1, x), Other(2, x * 2)
        chosen: Any = one if x.sum() > 0 else other
        chosen.n += 1
        chosen.x = chosen.x + 1
        return one.n, other.n, one.x, other.x

    agree(model, [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0])], (dyn(0),))


@row(31)
def test_a_list_from_before_a_loop_that_takes_the_place_of_another() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        a, b = [x * 1, x * 2], [x + 1, x + 2]
        for _ in range(x.shape[0]):
            a[1] = a[0] + 1
            if x.sum() > 0:
                a = b
            b[0] = x * 5
        return a[0], a[1], b[0], b[1]

    agree_or_refuse(model, [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0], [2.0])], (dyn(0),), whole=False)


@row(28, 31)
def test_a_dict_from_before_a_loop_that_an_iteration_changes_on_one_path() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        d, e = {"k": x - 1}, {"k": x * 2}
        i = 0
        while i < 3 and d["k"].sum() < 20:
            i += 1
            d = e
            if e["k"].sum() > 1:
                d["k"] = d["k"] + 2
        return d["k"], e["k"]

    given = [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0], [30.0, 1.0])]
    agree_or_refuse(model, given, (dyn(0),), whole=False)


@dataclass
class Held:
    v: Tensor


@row(31, 17)
@pytest.mark.parametrize("most", [1, 2, 5])
def test_an_object_that_a_loop_hands_on_in_place_of_one_of_another_class_and_then_changes(most: int) -> None:
    class Plain:
        def __init__(self, v: Tensor) -> None:
            self.v = v

    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        first, second = Plain(x + 2), Held(x * 4)
        i = 0
        while i < most and x.sum() > i:
            i += 1
            first = second
            second.v = second.v * 0.5
        return first.v, second.v

    agree_or_refuse(model, [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0], [2.0, -1.0], [5.0, 4.0])])


@dataclass
class Both:
    v: Any
    w: Any = None


@row(17, 31)
def test_an_object_that_is_in_one_place_on_one_path_and_in_another_on_the_other() -> None:
    class Plain:
        def __init__(self, v: Tensor, w: Any = None) -> None:
            self.v, self.w = v, w

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.held: Any = Plain(torch.tensor([0.5, 1.0]))

        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            a, b = x * 1, x + 1
            first, second = Plain(x + 2), Both(x * 4)
            old = self.held
            first.w = second
            for _ in range(2):
                if b.sum() > 2.5:
                    first = Plain(x)
                    self.held = second
                i = 0
                while i < 1 and a.sum() < 2.5:
                    i += 1
                    second = self.held
            self.held = old
            return first.v, second.v

    agree(Model(), [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0], [2.0, -1.0], [0.0, 0.0], [5.0, 4.0])])


@pytest.mark.slow
@row(31)
def test_a_list_of_which_no_path_leaves_another_name() -> None:
    def bracketed(x: Tensor) -> Tensor:
        t = x.sum()
        bracket, done, i = [0 * t, t], False, 0
        while i < 5:
            if t > 3:
                bracket = [t - 1, t]
                break
            if t < -3:
                bracket, done = [t], True
                break
            t = t * 2
            i += 1
        if i == 5:
            bracket = [t * 0, t]
        while not done and i < 8:
            bracket[0] = bracket[0] + 1
            i += 1
            if bracket[0] > bracket[-1]:
                break
        return bracket[0] + bracket[-1]

    def taken_back(x: Tensor) -> tuple[Tensor, int]:
        found = []
        if x.sum() > 1:
            found = [x]
        found.append(x * 2)
        if x.sum() > 2:
            found.append(x * 3)
        return found[-1], len(found)

    given = [(torch.tensor(v),) for v in ([1.0, 2.5], [-1.0, -2.0], [0.1, 0.2], [0.0, 0.0], [0.5, 0.75])]
    agree(bracketed, given)
    agree(taken_back, given)


class _Holder:
    def __init__(self, kept: list[Tensor]) -> None:
        self.kept = kept


def _by_variable(x: Tensor, kept: list[Tensor]) -> Any:
    return kept


def _by_attribute(x: Tensor, kept: list[Tensor]) -> Any:
    return _Holder(kept)


def _by_closure(x: Tensor, kept: list[Tensor]) -> Any:
    return lambda: kept


def _by_container(x: Tensor, kept: list[Tensor]) -> Any:
    return {"a": (x, [kept])}


def _by_iterator(x: Tensor, kept: list[Tensor]) -> Any:
    return iter(kept)


def _by_generator(x: Tensor, kept: list[Tensor]) -> Any:
    return (each for each in kept)


def _last(held: Any) -> Tensor:
    if isinstance(held, _Holder):
        held = held.kept
    elif isinstance(held, dict):
        held = held["a"][1][0]
    elif callable(held):
        held = held()
    return list(held)[-1]


@row(31)
@pytest.mark.parametrize("held", [_by_variable, _by_attribute, _by_closure, _by_container, _by_iterator, _by_generator])
def test_a_list_that_something_else_leads_to_on_one_path(held: Any) -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        found = [x, x * 3]
        other = held(x, found)
        if x.sum() > 1:
            found = [x * 2]
        found.append(x - 1)
        return found[-1], _last(other)

    def by_caller(x: Tensor) -> tuple[Tensor, Tensor]:
        def changed(found: list[Tensor]) -> Tensor:
            if x.sum() > 1:
                found = [x * 2]
            found.append(x - 1)
            return found[-1]

        kept = [x, x * 3]
        return changed(kept), kept[-1]

    given = [(torch.tensor(v),) for v in ([1.0, 2.5], [-1.0, -2.0])]
    agree_or_refuse(model, given, whole=False)
    agree_or_refuse(by_caller, given)


@row(31)
def test_a_list_that_a_later_iteration_finds_in_another_variable() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        a, b, i = [x], [x * 2], 0
        while i < 4 and a[0].sum() < 20:
            if x.sum() > 1:
                a = b
            a[0] = a[0] + 1
            if i == 2:
                b = [x * 3]
            i += 1
        return a[0], b[0]

    def rotated(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        a, b, c, i = [x], [x * 2], [x * 3], 0
        while i < 4 and a[0].sum() < 20:
            kept = a if a[0].sum() > b[0].sum() else b
            a, b, c = b, c, kept
            a[0] = a[0] + 1
            i += 1
        return a[0], b[0], c[0]

    given = [(torch.tensor(v),) for v in ([1.0, 2.5], [-1.0, -2.0], [30.0, 1.0])]
    agree_or_refuse(model, given)
    agree_or_refuse(rotated, given, whole=False)


def _iterated(x: Tensor) -> tuple[Tensor, Tensor]:
    found, total, n = [x, x * 3], x * 0, 0
    for each in found:
        n = n + 1
        total = total + each
        if n == 1:
            if x.sum() > 1:
                found = [x * 2]
            found.append(x - 1)
    return total, found[-1]


def _viewed(x: Tensor) -> Tensor:
    found = {"a": x}
    values = found.values()
    if x.sum() > 1:
        found = {"b": x * 2}
    found["a"] = x - 1
    return list(values)[-1]


def _managed(x: Tensor) -> Tensor:
    taken = []

    @contextlib.contextmanager
    def last_of(values: list[Tensor]) -> Any:
        yield
        taken.append(values[-1])

    found = [x, x * 3]
    with last_of(found):
        if x.sum() > 1:
            found = [x * 2]
        found.append(x - 1)
    return taken[0]


def _by_method(x: Tensor) -> Tensor:
    found = [x, x * 3]
    append = found.append
    if x.sum() > 1:
        found = [x * 2]
    append(x - 1)
    return found[-1]


def _mapped(x: Tensor) -> Tensor:
    found = [x, x * 3]
    later = map(torch.neg, found)
    if x.sum() > 1:
        found = [x * 2]
    found.append(x - 1)
    return list(later)[-1]


@row(31)
@pytest.mark.parametrize("model", [_iterated, _viewed, _managed, _by_method, _mapped])
def test_a_container_that_something_is_in_the_middle_of_on_one_path(model: Any) -> None:
    agree_or_refuse(model, [(torch.tensor(v),) for v in ([1.0, 2.5], [-1.0, -2.0])])


class _HoldsAConstant(nn.Module):
    """Its tensor is no buffer: a program has a copy of it, which nobody else sees."""

    def __init__(self, *, loops: bool, returns: bool) -> None:
        super().__init__()
        self.loops, self.returns = loops, returns
        self.held = Held(torch.tensor([0.5, 1.0]))

    def forward(self, x: Tensor) -> Tensor:
        a, held, i = x * 1, Held(x * 2), 0
        if self.loops:
            while i < 3 and x.sum() > i:
                i += 1
                held = self.held
                a = held.v
        elif x.sum() > 0:
            held = self.held
            a = held.v
        a[0] = 1
        return a if self.returns else held.v


class _TakesItInAnArm(_HoldsAConstant):
    def forward(self, x: Tensor) -> Tensor:
        a, i = x * 1, 0
        while i < 3 and x.sum() > 0:
            i += 1
            if a.sum() > 1:
                a = self.held.v
        a[0] = 1
        return a


@row(31)
def test_a_write_to_what_may_be_a_constant_of_an_arm_in_a_loop() -> None:
    assert refuses(_TakesItInAnArm(loops=True, returns=True), (torch.ones(2),)).code == "D2S221"


@row(31)
@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("returns", [False, True])
def test_a_write_to_what_may_be_a_constant(loops: bool, returns: bool) -> None:
    assert refuses(_HoldsAConstant(loops=loops, returns=returns), (torch.ones(2),)).code == "D2S221"
