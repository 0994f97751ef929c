"""Tensors changed in place (row 31): where others may have the same memory, all of them see it, or it is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from harness import agree, dyn, refuses, row
from torch import Tensor, nn
from torch.nn import functional


@row(31)
def test_a_plain_tensor_of_the_module_is_not_changed_in_place() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.state = torch.tensor(0.5)

        def forward(self, x: Tensor) -> Tensor:
            if x.sum() > 0:
                self.state.copy_(x.sum())
            return self.state + 1

    refuses(Model(), (torch.ones(3),))


@row(31)
def test_an_arm_that_is_a_view_of_what_changes_later() -> None:
    def model(x: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
        chosen = torch.zeros(()) if x.sum() > 0.5 else r[0]
        r += 1
        return r, chosen * 2

    refuses(model, (torch.ones(3), torch.tensor([1.0, 2.0])))


@row(29, 31)
def test_constants_are_not_written_to_in_loops() -> None:
    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.h = torch.zeros(2)

        def forward(self, x: Tensor) -> Tensor:
            for _ in range(len(x)):
                self.h[1] = 2.0
            return self.h

    refuses(Constant(), (torch.ones(3),), (dyn(0),))


@row(31, 47)
def test_the_sum_of_nothing_is_its_start() -> None:
    def model(x: Tensor, s: Tensor) -> Tensor:
        total = sum([1 for _ in x], s)
        total -= 1
        return s

    refuses(model, (torch.ones(3), torch.ones(())), (dyn(0), None))

    def read(x: Tensor, s: Tensor) -> Tensor:
        return sum([1 for _ in x], s) + sum(x, s)

    agree(read, [(torch.rand(n), torch.tensor(2.0)) for n in (3, 0, 1)], (dyn(0), None), paths=1)


@row(31)
def test_what_only_one_path_needs_is_itself() -> None:
    def model(v: Tensor, s: Tensor) -> Tensor:
        for e in [s, s]:
            if e > 0.25:
                return v + 1
        e.copy_(s * s)
        return v * 2

    agree(model, [(torch.ones(2), torch.tensor(value)) for value in (-1.25, 2.0)], paths=2)


@row(31)
def test_a_part_of_a_parameter_is_changed_in_place() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.tensor([0.5, -1.5]))

        def forward(self, v: Tensor) -> tuple[Tensor, Tensor]:
            a, b = self.scale
            b += v.sum()
            result = v + self.scale
            b -= v.sum()
            if v.sum() > 0:
                a = a + 1
            return result, a

    with torch.no_grad():
        agree(Model(), [(torch.ones(2),), (-torch.ones(2),)], paths=2)


@row(31)
def test_elements_of_a_list_in_an_order_that_the_graph_finds_are_not_changed() -> None:
    def in_order(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        least, _ = sorted([x.sum(), y], key=lambda each: -each)
        least.add_(5)
        return least, y

    def in_place(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        total = x.sum()
        both = [total, y]
        both.sort(key=lambda each: -each)
        total.add_(5)
        return both[0], both[1]

    for model in (in_order, in_place):
        assert refuses(model, (torch.ones(2), torch.tensor(9.0))).code == "D2S221"


@row(31)
def test_a_value_after_a_loop_that_was_another_one_before_it_is_not_changed_in_place() -> None:
    def swapped(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        a, b = x[0], x.sum(0) * 2
        for _ in range(x.shape[0]):
            a, b = b, a
        b -= 5
        return x, a, b

    def fresh(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        a, b = x.sum(0), x.sum(0) * 2
        for _ in range(x.shape[0]):
            a, b = b, a * 0.5
        a = a * 3
        a -= 5
        return x, a, b

    assert refuses(swapped, (torch.ones(2, 2),), (dyn(0),)).code == "D2S221"
    agree(fresh, [(torch.rand(n, 2),) for n in (2, 3, 1)], (dyn(0),), paths=1)


@row(31, 47)
def test_the_greatest_of_the_greatest_may_be_an_input() -> None:
    def model(x: Tensor) -> Tensor:
        for row_ in x:
            least = min(max(x.sum(), x.max()), max(torch.zeros(()), row_[0]))
            least.clamp_(min=1.0)
        return x

    assert refuses(model, (torch.tensor([[1.75, 1.5], [0.5, 1.25]]),), (dyn(0),)).code == "D2S221"


@row(5, 8, 31)
def test_a_tensor_that_nobody_else_refers_to_is_changed_in_place() -> None:
    def model(g: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        q = g.clone()
        if c > 0:
            q = q * 2
        q += 1
        for i in range(g.shape[0]):
            q = q + i
        q *= 2
        while q.sum() < 30 and c > 1:
            q = q + 1
            if c > 2:
                q = q * 2
            q += 1
        q[0] = 5
        r = q * 1 if c > 0 else q + 1
        r += 1
        for _ in range(2):
            if r.sum() > 10:
                r = r - 1
                continue
            r = r.clone()
            if c < 0:
                break
        r -= 1
        return q, r

    vectors_ = ([1.0, 3.0], [-1.0, -3.0], [2.0, -1.0, 3.0])
    given = [(torch.tensor(v), torch.tensor(w)) for v in vectors_ for w in (1.0, -1.0, 3.0, 2.0)]
    agree(model, given, (dyn(0), None))


@row(31)
@pytest.mark.parametrize(
    "shown",
    [
        lambda q: q.detach(),
        lambda q: q.data,
        lambda q: q.detach().view(-1)[1:],
        lambda q: nn.Parameter(q, requires_grad=False),
        lambda q: functional.dropout(q, 0.5, training=False),
        lambda q: functional.dropout1d(q[None], 0.5, training=False)[0],
        lambda q: functional.alpha_dropout(q, 0.5),
        lambda q: torch.dropout(q, 0.5, False),
    ],
)
def test_a_tensor_that_something_shows_without_being_a_view_of_it(shown: Callable[[Tensor], Tensor]) -> None:
    def model(g: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        q = g.clone()
        seen = shown(q)
        if c > 0:
            q = q * 2
        q += 1
        return q, seen

    assert refuses(model, (torch.tensor([1.0, 3.0]), torch.tensor(1.0)), (dyn(0), None)).code == "D2S221"
