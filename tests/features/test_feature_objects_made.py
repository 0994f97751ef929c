"""Plain objects that an arm or a loop makes: joined attribute by attribute."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Self

import torch
from harness import agree, agree_or_refuse, dyn, refuses, row
from torch import Tensor, nn


class Result:
    """An object as users write it."""

    def __init__(self, x: Tensor, loss: Tensor, steps: int = 0) -> None:
        self.x = x
        self.loss = loss
        self.steps = steps
        self.name = "found"

    def better(self, other: Result) -> Tensor:
        return self.loss < other.loss


class Node:
    """One that holds others."""

    __slots__ = ("__dict__", "left", "value")

    def __init__(self, value: Tensor, left: Any = None) -> None:
        self.value = value
        self.left = left


VECTORS = [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0, 2.0], [1.0], [-1.0, -2.0])]


@row(29, 34)
def test_the_best_of_a_search() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        best = Result(x, x.abs().sum())
        for i in range(x.shape[0]):
            found = Result(best.x - 0.1 * x[i], (best.x - x[i]).abs().sum(), best.steps + 1)
            if found.better(best):
                best = found
        return best.x, best.loss, best.steps, len(best.name)

    agree(model, [*VECTORS, (torch.zeros(0),)], (dyn(0),), whole=False)


@row(17)
def test_none_or_an_object() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        best = None
        done = []
        for i in range(x.shape[0]):
            if x[i] > 0:
                found = Result(x, x[i] * 2, i)
                done.append(found)
                if best is None or found.loss > best.loss:
                    best = found
        if best is None:
            best = Result(x, x.sum(), -1)
        total = x.sum() * 0
        for each in done:
            total = total + each.loss * each.steps
        return best.loss, best.steps, total, len(done)

    agree(model, VECTORS, (dyn(0),), whole=False)


@row(4, 30)
def test_objects_that_a_callee_returns_are_changed() -> None:
    def find(x: Tensor) -> Node:
        if x.sum() > 3:
            return Node(x * 2, Node(x))
        if x.sum() > 0:
            return Node(x + 1, Node(x - 1))
        return Node(x, Node(x * 5))

    def model(x: Tensor) -> Tensor:
        found = find(x)
        if x[0] > 0:
            found.value = found.value + 1
            found.left.value = found.left.value * 3
        return found.value + found.left.value

    agree(model, VECTORS, (dyn(0),))


@row(29)
def test_an_object_from_before_beside_a_new_one() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.state: Any = Node(torch.tensor(1.0))

        def forward(self, x: Tensor) -> tuple[Any, ...]:
            first, second = Node(x), Node(x * 2)
            chosen = first if x.sum() > 0 else second
            chosen.value = chosen.value + 1
            old = self.state
            if x.sum() > 2:
                self.state = Node(x.sum())
            else:
                self.state.value = self.state.value + 1
            seen = self.state.value
            self.state = old
            while x.sum() > 0:
                chosen = Node(chosen.value * 0.5, x.sum())
                x = x - 1
            return first.value, second.value, chosen.value, seen

    agree(Model().eval(), VECTORS, (dyn(0),), whole=False)


@row(31)
def test_one_object_in_two_places_stays_one() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        if x.sum() > 0:
            new = SimpleNamespace(value=x * 2)
            held = [new]
        else:
            new = SimpleNamespace(value=x * 3)
            held = [new]
        new.value = new.value + 1
        return held[0].value, held[0] is new

    def older(x: Tensor) -> Tensor:
        first = Node(x)
        chosen = first
        if x.sum() > 0:
            chosen = Node(x * 2)
        chosen.value = x - 1
        return first.value

    agree(model, VECTORS, (dyn(0),), whole=False)
    agree(older, VECTORS, (dyn(0),), whole=False)


@row(29)
def test_objects_of_different_attributes_or_with_themselves_inside() -> None:
    def attributes(x: Tensor) -> Tensor:
        new = Node(x)
        if x.sum() > 0:
            new = Node(x * 2)
            new.right = x  # type: ignore[attr-defined]
        return new.value

    def cyclic(x: Tensor) -> Tensor:
        new = Node(x)
        if x.sum() > 0:
            new = Node(x * 2, Node(x))
            new.left.left = new
        return new.value

    agree(attributes, VECTORS, (dyn(0),))
    assert refuses(cyclic, VECTORS[0], (dyn(0),)).code == "D2S215"


@row(21, 31)
def test_an_object_of_either_arm_that_takes_the_place_of_one_in_a_loop() -> None:
    class Plain:
        def __init__(self, v: Tensor) -> None:
            self.v = v

    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        first, second = Plain(x + 2), Plain(x * 4)
        if x.sum() > 0:
            second = Plain(-x)
        i = 0
        while i < 2 and x.sum() < -1:
            i += 1
            first.v = x + 5
            first = second
        return first.v, second.v

    given = [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0], [2.0, -1.0])]
    agree_or_refuse(model, given, whole=False)


@row(30)
def test_an_object_that_one_arm_makes_is_refused_with_what_helps() -> None:
    class State:
        def __new__(cls, x: Tensor) -> Self:
            made = object.__new__(cls)
            made.x = x  # type: ignore[attr-defined]
            return made

    def model(x: Tensor) -> Any:
        state = State(x)
        if x.sum() > 3:
            state = State(x.max() + x)
        return state.x  # type: ignore[attr-defined]

    refused = refuses(model, (torch.ones(2),))
    assert refused.code == "D2S206"
    assert "plain" in str(refused)
