"""Row 31: an attribute of an object that may be another one is stored, and then read of either."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from harness import agree, refuses, row
from torch import Tensor

VECTORS = [(torch.tensor(v),) for v in ([3.0, -4.0], [0.3, 0.4], [5.0, 1.0], [-5.0, 1.0], [1.5, 0.7])]


class Point:
    """Keeps what it has computed, as solvers do."""

    def __init__(self, x: Tensor) -> None:
        self.x = x
        self._step: Tensor | None = None
        self._size: Tensor | None = None

    @property
    def size(self) -> Tensor:
        if self._size is None:
            self._size = self.x.norm()
        return self._size

    def step(self, radius: Tensor) -> tuple[Tensor, bool]:
        if self._step is None:
            self._step = -self.x * 2
        step = self._step
        if step.norm() < radius:
            return step, False
        return step * (radius / step.norm()), True


@dataclasses.dataclass
class Held:
    x: Any
    n: int


def either(x: Tensor) -> tuple[Held, Held]:
    """An object that is the second one on some path, and that one."""
    one, other = Held(x, 1), Held(x + 1, 2)
    chosen = one if x.sum() > 0 else other
    return chosen, other


@row(31)
def test_what_is_accepted_in_a_round_keeps_what_it_computes() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        point, radius, rounds, found = Point(x), torch.ones(()), 0, 1
        while rounds < 10:
            step, far = point.step(radius)
            next_point = Point(point.x + 0.3 * step)
            if next_point.x.norm() > 100:
                found = 2
                break
            ratio = next_point.x.norm() / point.x.norm()
            if ratio > 0.5 and far:
                radius = radius * 2
            if ratio < 0.9:
                point = next_point
            rounds += 1
            if point.size < 0.05:
                found = 0
                break
        return point.x, rounds, found

    agree(model, [*VECTORS, (torch.tensor([400.0, 300.0]),)], None, whole=False)


@row(31)
def test_what_is_kept_in_a_suite_that_may_fail() -> None:
    class Factored(Point):
        def step(self, radius: Tensor) -> tuple[Tensor, bool]:
            if self._step is None:
                factor = torch.linalg.cholesky(torch.diag(self.x.abs() + 1))
                self._step = -torch.cholesky_solve(self.x.view(-1, 1), factor).view(-1)
            step = self._step
            if step.norm() < radius:
                far = False
                return step, far
            far = True
            return step * (radius / step.norm()), far

    def model(x: Tensor) -> tuple[Any, ...]:
        point, radius, rounds = Factored(x), torch.ones(()), 0
        while rounds < 6:
            try:
                step, far = point.step(radius)
            except RuntimeError:
                rounds = 100
                break
            if far:
                radius = radius * 1.5
            next_point = Factored(point.x + 0.3 * step)
            if next_point.x.norm() < 0.9 * point.x.norm():
                point = next_point
            rounds += 1
            if point.size < 0.3:
                break
        return point.x, rounds

    agree(model, VECTORS, None, whole=False)


@row(31)
def test_the_object_itself_has_what_was_stored() -> None:
    def stored(x: Tensor) -> Tensor:
        chosen, _ = either(x)
        chosen.n = 5
        return x + chosen.n

    def stored_on_a_path(x: Tensor) -> tuple[Tensor, Tensor]:
        chosen, other = either(x)
        if x.max() > 2:
            chosen.n = 5
        return x + chosen.n, other.x

    def stored_in_a_loop(x: Tensor) -> tuple[Tensor, Tensor]:
        chosen, other = either(x)
        while x.max() > 1:
            x = x / 2
            chosen.n = chosen.n + 1
        return x + chosen.n, other.x

    def stored_again(x: Tensor) -> Tensor:
        chosen, other = either(x)
        chosen.n = 5
        other.n = 7
        return x + other.n

    for model in (stored, stored_on_a_path, stored_in_a_loop, stored_again):
        agree(model, VECTORS, None, whole=False)


@row(31)
def test_the_other_one_is_read() -> None:
    def read(x: Tensor) -> Tensor:
        chosen, other = either(x)
        chosen.n = 5
        return x + other.n

    def read_behind_an_arm(x: Tensor) -> Tensor:
        chosen, other = either(x)
        if x.max() > 2:
            chosen.n = 5
        return x + other.n

    def read_in_the_loop(x: Tensor) -> Tensor:
        chosen, other = either(x)
        while x.max() > 1:
            x = x / 2 + other.n * 0
            chosen.n = chosen.n + 1
        return x

    def read_after_the_other_store(x: Tensor) -> Tensor:
        chosen, other = either(x)
        chosen.n = 5
        other.n = 7
        return x + chosen.n

    def read_by_library_code(x: Tensor) -> Tensor:
        chosen, other = either(x)
        chosen.n = 5
        return x + dataclasses.replace(other, x=x).n

    def asked_whether_it_can_be_called(x: Tensor) -> Tensor:
        chosen, other = either(x)
        chosen.n = 5
        return x + callable(other.n)

    for model in (
        read,
        read_behind_an_arm,
        read_in_the_loop,
        read_after_the_other_store,
        read_by_library_code,
        asked_whether_it_can_be_called,
    ):
        agree(model, VECTORS, None, paths=1, whole=False)


@row(31)
def test_what_the_objects_do_not_have_in_common_is_refused() -> None:
    def read_as_a_text(x: Tensor) -> Tensor:
        chosen, other = either(x)
        chosen.n = 5
        return x + len(repr(other))

    def asked_for_its_kind(x: Tensor) -> Tensor:
        chosen, other = either(x)
        chosen.n = x * 2  # type: ignore[assignment]
        return x + torch.is_tensor(other.n)

    def stored(x: Tensor) -> Tensor:
        chosen, other = either(x)
        chosen.more = 5  # type: ignore[attr-defined]
        return x + hasattr(other, "more") + len(vars(other))

    def deleted(x: Tensor) -> Tensor:
        chosen, other = either(x)
        del chosen.n
        return x + hasattr(other, "n")

    models = (read_as_a_text, asked_for_its_kind, stored, deleted)
    errors = [refuses(model, VECTORS[0], None) for model in models]
    assert [error.code for error in errors] == ["D2S241", "D2S211", "D2S205", "D2S222"]
    assert "'n' of objects of class Held" in errors[1].what


KEPT = Held(torch.ones(2), 1)


@row(31)
def test_what_outlives_the_call_is_not_left_unknown() -> None:
    def model(x: Tensor) -> Tensor:
        chosen = Held(x, 2)
        if x.sum() > 0:
            chosen = KEPT
        chosen.n = 5
        return x + chosen.n

    assert refuses(model, VECTORS[0], None).code == "D2S222"
