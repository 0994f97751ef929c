"""Rows 27 to 31, 53 and 54: dictionaries, attributes, changes in place, deleted and outer variables."""

# ruff: noqa: PLW0603, PYI024 - the constructs under test are written as users write them
from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, replace
from typing import NamedTuple

import pytest
import torch
from harness import agree, agree_or_refuse, dyn, row, scalars, vectors
from torch import Tensor, nn

COUNTER = torch.zeros(())


class State(NamedTuple):
    """A state as users of functional code write it."""

    value: Tensor
    count: int


@dataclass
class Mutable:
    """A state that is changed in place."""

    value: Tensor
    best: float = 0.0
    steps: int = 0


def both_signs(*sizes: int) -> list[tuple[Tensor]]:
    """Vectors of these lengths with a positive and with a negative sum."""
    return [(sign * (x.abs() + 0.1),) for (x,) in vectors(*sizes) for sign in (1.0, -1.0)]


@row(27)
def test_dict_in_branches_and_loops() -> None:
    def model(x: Tensor) -> dict[str, Tensor]:
        state = {"sum": torch.zeros(()), "largest": x.new_full((), -9.0), "count": 0}
        for element in x:
            state["sum"] += element
            if element > state["largest"]:
                state["largest"] = element
                state["count"] += 1
        if state["sum"] > 0:
            state.update(sum=state["sum"] * 2)
        return state

    agree_or_refuse(model, [*vectors(3, 0, 1, 6), *both_signs(2)], (dyn(0),), paths=4)


@row(27, 31)
def test_dict_of_lists_and_aliases() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        table = {"a": [x, x + 1], "b": {"c": x * 2}}
        inner = table["b"]
        if x.sum() > 0:
            table["a"][0] = x - 1
            inner["c"] = inner["c"] + table["a"][0]
        return table["a"][0], table["a"][1], table["b"]["c"]

    agree_or_refuse(model, both_signs(3, 1), (dyn(0),))


@row(28)
def test_dict_with_new_keys() -> None:
    def model(x: Tensor) -> Tensor:
        cache = {}
        for name in ("low", "high"):
            cache[name] = x.min() if name == "low" else x.max()
        if cache["low"] > 0:
            cache["extra"] = x.mean()
            y = x - cache["extra"]
        else:
            cache["other"] = x.sum()
            y = x * cache["other"]
        counts = {}
        for element in x:
            counts["last"] = element
            y = y + counts["last"]
        return y + cache["high"]

    agree_or_refuse(model, both_signs(3, 1, 2), (dyn(0),), paths=4)


@row(29)
def test_attributes_changed_in_branches_and_loops() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.GRUCell(2, 2)
            self.register_buffer("seen", torch.zeros((), dtype=torch.int64))
            self.register_buffer("mean", torch.zeros(2))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            self.h = torch.zeros(2)
            for line in x:
                self.h = self.cell(line, self.h)
                self.seen += 1
                if line.sum() > 0:
                    self.mean = self.mean * 0.9 + line * 0.1
            return self.h, self.mean * self.seen

    agree_or_refuse(Model(), [(torch.randn(n, 2),) for n in (3, 0, 1, 2, 6)], (dyn(0),), paths=4)


@row(29, 21)
def test_python_numbers_as_attributes() -> None:
    class Model(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, int]:
            self.steps, self.scale = 0, 1.0
            while x.norm() > 1:
                x = x / 2
                self.steps += 1
                if self.steps > 2:
                    self.scale = self.scale * 3
            return x * self.scale, self.steps

    agree_or_refuse(
        Model(), [(torch.full((n,), v),) for n, v in ((2, 5.0), (3, 0.1), (1, 1.5), (2, 99.0))], (dyn(0),), paths=4
    )


@row(30)
def test_state_changed_in_a_callee() -> None:
    class Meter:
        def __init__(self) -> None:
            self.total, self.count, self.log = torch.zeros(()), 0, []

        def update(self, x: Tensor) -> None:
            self.total = self.total + x
            if x > 0:
                self.count += 1
            self.log.append(self.total)

    def model(x: Tensor) -> tuple[Tensor, int, Tensor]:
        meter = Meter()
        meter.update(x.max())
        for element in x:
            meter.update(element)
        if meter.total > 1:
            meter.update(-meter.total)
        return meter.total, meter.count, torch.stack(meter.log)

    agree_or_refuse(
        model, [(torch.tensor(v),) for v in ([1.0, -1.0, 2.0], [-1.0, -2.0], [0.5], [0.5, 0.25])], (dyn(0),), paths=4
    )


@row(30)
def test_attribute_of_a_submodule_changed_by_its_forward() -> None:
    class Norm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.zeros(()))
            self.last: Tensor | None = None

        def forward(self, x: Tensor) -> Tensor:
            if x.mean() > self.mean:
                self.mean.copy_(x.mean())
            self.last = x - self.mean
            return self.last

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = Norm()

        def forward(self, x: Tensor) -> Tensor:
            y = self.norm(self.norm(x) + 1)
            if y.sum() > -2:
                self.norm(y * 3)
            return y + self.norm.mean + self.norm.last.sum()

    agree_or_refuse(Model(), [*both_signs(3, 1), (torch.full((4,), -5.0),)], (dyn(0),), paths=2)


@pytest.mark.slow
@row(31)
def test_rows_written_one_by_one() -> None:
    def model(x: Tensor, n: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        out = torch.zeros_like(x)
        h = torch.zeros(x.shape[1])
        for t in range(x.shape[0]):
            h = h * 0.5 + x[t]
            out[t] = h
        back = x.new_zeros(x.shape[0], x.shape[1])
        for t in reversed(range(len(x))):
            back[t, 0] = x[t].sum()
            back[t, 1:] += out[t, 1:] * t
        table = torch.zeros(4)
        while n > 0:
            n = n - 1
            table[n] = table[n] + table.sum() + 1
        return out, back, table

    sizes = ((3, 2), (0, 3), (1, 2), (2, 1), (6, 4))
    inputs = [(torch.randn(size), n) for size, (n,) in zip(sizes, scalars(3, 0, 1, 2, 4), strict=True)]
    agree(model, inputs, (dyn(0, 1), None), paths=5)


@row(31, 48)
def test_rows_written_in_a_loop_inside_a_loop() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        rows = torch.zeros(x.shape[0])
        total = torch.zeros(())
        for _ in range(4):
            for j in range(x.shape[0]):
                rows[j] = x[j].abs() + total
            total = total + rows.sum()
            if total > 3:
                break
        return rows, total

    agree(model, [(torch.tensor(v),) for v in ([1.0, 3.0, 2.0, 0.0], [0.2], [0.5, 0.1, -0.3])], (dyn(0),))


@row(31)
def test_slice_index_and_mask_assignment_in_arms() -> None:
    def model(x: Tensor, k: Tensor) -> Tensor:
        y = x.clone()
        if x.sum() > 0:
            y[1:] = y[:-1] * 2
            y[-1] += 1
            if k > 0:
                y[k] = -7.0
        else:
            y[y < -1] = 0
            y[:, 0] = k
            y[..., -1:] -= 1
        y[0, 1] = y.max()
        y[x > 1] *= 2
        return y

    sizes = ((3, 2), (2, 2), (4, 3), (2, 5))
    inputs = [
        (sign * torch.rand(size) * 2, torch.tensor(k)) for size in sizes[:3] for sign, k in ((1, 0), (1, 1), (-1, 1))
    ]
    agree(model, inputs, (dyn(0, 1), None), paths=3)


@row(31)
def test_in_place_operators_and_methods_and_their_aliases() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y = x * 2
        alias, view = y, y[1:]
        if x.sum() > 0:
            y += 1
            y.mul_(2)
            alias -= x
        else:
            view.zero_()
            y.clamp_(min=-3)
        for i in range(x.shape[0]):
            alias[i] *= i
            if alias[i] > 2:
                y.sub_(1)
        return y, alias + 1, view * 1

    agree(model, both_signs(3, 1, 2, 5), (dyn(0),), paths=6)


@row(31)
def test_argument_and_buffer_changed_in_place() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(2))
            self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

        def forward(self, x: Tensor) -> Tensor:
            if x.sum() > 0:
                self.total.add_(x.sum(0))
                self.calls += 1
            for line in x:
                if line[0] > 0:
                    self.total[0] += line[0]
                    self.total[1:].mul_(0.5)
            return x * self.total + self.calls

    agree(
        Model(),
        [(sign * torch.rand(n, 2),) for n, sign in ((3, 1), (2, -1), (0, 1), (1, 1), (5, 1))],
        (dyn(0),),
        paths=4,
    )

    def function(x: Tensor) -> Tensor:
        if x.sum() > 0:
            x.mul_(2)
        x[0] = 0
        return x + 1

    agree(function, both_signs(3, 1), (dyn(0),))


@row(31, 56)
def test_named_tuples_and_dataclasses_as_state() -> None:
    def model(x: Tensor) -> tuple[State, Tensor, float, int]:
        state = State(torch.zeros(()), 0)
        for element in x:
            if element > 0:
                state = State(state.value + element, state.count + 1)
            else:
                state = state._replace(value=state.value * 0.5)
        record = Mutable(x.mean())
        while record.value > 0.1:
            record = replace(record, value=record.value / 2, steps=record.steps + 1)
            if record.steps > 2:
                record.best += 0.5
        return state, record.value, record.best, record.steps

    agree(model, [*both_signs(3, 1), *vectors(4, 2, scale=3)], (dyn(0),), paths=4)


@row(31, 56)
def test_tuples_and_nested_state_in_loops() -> None:
    Pair = namedtuple("Pair", "left right")

    def model(x: Tensor, n: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        state = Pair(x, {"h": (x + 1, [x * 2])})
        a, b = x.sum(), x.prod()
        while n > 0:
            h, (extra,) = state.right["h"]
            state = Pair(h, {"h": (state.left + extra, [h - 1])})
            a, b = b, a + 1
            n = n - 1
        return state.left + state.right["h"][1][0], a, b

    agree(
        model,
        [(x, n) for (x,), (n,) in zip(vectors(3, 2, 1, 4), scalars(3, 0, 1, 6), strict=True)],
        (dyn(0), None),
        paths=4,
    )


@row(53)
def test_del_of_variables_items_and_attributes() -> None:
    class Model(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            self.cache = x + 1
            parts = {"a": x, "b": x * 2}
            if x.sum() > 0:
                y = self.cache * 2
                temporary = y.max()
                y = y - temporary
                del temporary
            else:
                y = x
            del parts["a"], self.cache
            for name in list(parts):
                y = y + parts[name]
            total = torch.zeros(())
            for element in x:
                square = element * element
                total = total + square
                del square
            return y + total

    agree(Model(), both_signs(3, 1, 2), (dyn(0),), paths=4)


@row(53, 14)
def test_variable_deleted_on_one_path_fails_where_eager_raises() -> None:
    def model(x: Tensor) -> Tensor:
        y = x + 1
        if x.sum() > 0:
            del y
        return y

    agree(model, [(-torch.ones(2),)], (dyn(0),), whole=False, raising=[(torch.ones(2),)])


@row(54, 35)
def test_nonlocal() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        total, count = torch.zeros(()), 0

        def add(value: Tensor) -> None:
            nonlocal total, count
            total = total + value
            if value > 0:
                count += 1

        for element in x:
            if element < 2:
                add(element)
        if total > 0:
            add(total)
        return total, count

    agree(
        model, [(torch.tensor(v),) for v in ([1.0, -2.0, 3.0], [-1.0, 0.5], [], [0.5], [1.0, 1.5])], (dyn(0),), paths=5
    )


@row(54, 52)
@pytest.mark.parametrize(("found", "code"), [(5, 1), (2, 1), (5, 0)])
def test_nonlocals_that_patterns_bind(found: int, code: int) -> None:
    def model(x: Tensor) -> tuple[Tensor, int, int]:
        n, m, y = 1, 0, x * 0

        def add() -> None:
            nonlocal n, m, y
            n, m, y = n + 1, m + n, y + 1

        if x.sum() > 0:
            match (x * 2, found, code):
                case (_, k, 1) if (n := k) > 3:
                    m = 7
                case (y, m, 1):
                    pass
                case _:
                    y = x
        else:
            add()
        add()
        return y, n, m

    agree(model, both_signs(3), whole=False)


@row(54, 42)
def test_a_nonlocal_that_a_handler_binds() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        n = 1

        def add() -> None:
            nonlocal n
            n = n + 1

        if x.sum() > 0:
            try:
                int("no number")
            except ValueError as n:
                x = x + len(n.args)
            n = 3
        add()
        return x, n

    agree(model, both_signs(3))


@row(54)
def test_global() -> None:
    def model(x: Tensor) -> Tensor:
        global COUNTER
        COUNTER = torch.zeros(())
        for element in x:
            if element > 0:
                COUNTER = COUNTER + element
        if COUNTER > 1:
            COUNTER = COUNTER * 2
        return x + COUNTER

    agree(model, [(torch.tensor(v),) for v in ([1.0, -2.0, 3.0], [-1.0, 0.5], [], [0.5])], (dyn(0),), paths=4)
