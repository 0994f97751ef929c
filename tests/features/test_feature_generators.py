"""Generator functions (row 33): what Python can run alone converts; what a tensor decides about is refused."""

# ruff: noqa: SIM108 - the constructs under test are written as users write them
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from harness import agree, agree_or_refuse, both_signs, dyn, refuses, row, vectors
from torch import Tensor, nn

from dy2st.errors import GeneratorError


@row(33)
def test_generator_functions() -> None:
    def pieces(x: Tensor, size: int) -> Iterator[Tensor]:
        for start in range(0, 4, size):
            yield x[start : start + size]

    def plain(x: Tensor) -> Tensor:
        total = torch.zeros(2)
        for piece in pieces(x, 2):
            if piece.sum() > 0:
                total = total + piece
        return total

    agree_or_refuse(plain, both_signs(4))

    def positive(x: Tensor) -> Iterator[Tensor]:
        for element in x:
            if element > 0:
                yield element

    def staged(x: Tensor) -> Tensor:
        total = torch.zeros(())
        for element in positive(x):
            total = total * 0.5 + element
        return total

    agree_or_refuse(staged, vectors(3, 1, 2, 5), (dyn(0),))


SIGNS = [(torch.tensor(v),) for v in ([1.0, 2.0, -0.5], [-1.0, -2.0], [0.1], [4.0, -3.5])]


@row(33)
def test_generators_that_python_can_run() -> None:
    def pieces(x: Tensor, size: int) -> Iterator[Tensor]:
        for start in range(0, 4, size):
            piece = x[start : start + size]
            yield piece * 2 if piece.sum() > 0 else piece

    def running(values: Any) -> Any:
        total = torch.zeros(2)
        for value in values:
            if value.sum() > 0:
                total = total + value
            got = yield total
            if got is not None:
                total = total * got
        return total

    def both(x: Tensor) -> Any:
        yield from pieces(x, 2)
        last = yield from running(pieces(x, 2))
        yield last - 1

    def model(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        total = torch.zeros(2)
        for piece in both(x):
            if piece.sum() > 1:
                total = total + piece
        stacked = torch.stack(list(pieces(x, 2))) + sum(p.mean() for p in pieces(x, 1))
        steps = running(pieces(x, 2))
        first = next(steps)
        return total, stacked, first + steps.send(3.0)

    agree(model, vectors(4, 4, 4, 4, scale=2.0), paths=3, whole=False)


@row(33, 29)
def test_generators_that_change_state() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(()))

        def lines(self, x: Tensor, n: int) -> Iterator[Tensor]:
            """Yields, and counts in a buffer, also where the consumer leaves early."""
            for i in range(n):
                self.seen = self.seen + x[i].sum()
                yield x[i] * self.seen

        def forward(self, x: Tensor) -> Tensor:
            total = torch.zeros(3)
            for line in self.lines(x, 3):
                total = total + line
                if total.sum() > 4:
                    break
            if x.sum() > 0:
                for line in self.lines(x, 2):
                    total = total - line
            return total

    agree(Model(), [(scale * torch.randn(3, 3),) for scale in (1.0, 4.0, -2.0, 0.1)] + [(torch.ones(3, 3),)], paths=3)


@row(33)
def test_generators_whose_steps_depend_on_a_tensor_are_refused() -> None:
    def positive(x: Tensor) -> Iterator[Tensor]:
        for element in x:
            if element > 0:
                yield element

    def until(x: Tensor) -> Iterator[Tensor]:
        while x.sum() < 9:
            x = x + 1
            yield x

    def early(x: Tensor) -> Iterator[Tensor]:
        if x.sum() > 0:
            return
        yield x

    for generator in (positive, until, early):

        def model(x: Tensor, generator: Any = generator) -> Tensor:
            total = torch.zeros(())
            for element in generator(x):
                total = total * 0.5 + element.sum()
            return total

        assert isinstance(refuses(model, (torch.ones(3),)), GeneratorError)


@row(33)
def test_iterators_advance_on_one_path_only() -> None:  # noqa: C901
    def whole(x: Tensor) -> Tensor:
        steps = iter([1.0, 2.0, 3.0])
        if x.sum() > 0:
            for step in steps:
                x = x * step
        return x + 1

    agree(whole, SIGNS, (dyn(0),))

    def arm_and_after(x: Tensor) -> Tensor:
        steps = iter([1.0, 2.0, 3.0])
        if x.sum() > 0:
            x = x * next(steps)
        return x + next(steps)

    def both_arms(x: Tensor) -> Tensor:
        steps = zip([1.0, 2.0], [3.0, 4.0], strict=True)
        if x.sum() > 0:
            x = x + list(steps)[0][1]  # noqa: RUF015
        return x + len(list(steps))

    def trips(x: Tensor) -> Tensor:
        steps = (k * 2 for k in range(9))
        while x.sum() < 10:
            for step in steps:
                x = x + step
                break
        return x

    def generator_in_arms(x: Tensor) -> Tensor:
        def values() -> Iterator[float]:
            yield 1.0
            yield 2.0

        steps = values()
        if x.sum() > 0:
            x = x * next(steps)
        else:
            x = x - next(steps)
        return x

    for model in (arm_and_after, both_arms, trips, generator_in_arms):
        assert isinstance(refuses(model, SIGNS[0]), GeneratorError)
