"""A construct that is several branches of the program is covered where each of them is, and searched for one by one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dy2st
from dy2st.report import PathSite
from dy2st.report.coverage import counted, merged


class Stage(nn.Module):
    def __init__(self, limit: float) -> None:
        super().__init__()
        self.limit = limit

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > self.limit:
            return x * 2
        return x - 1


class Cascade(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleList([Stage(0.0), Stage(3.0), Stage(50.0)])

    def forward(self, x: Tensor) -> Tensor:
        for stage in self.stages:
            x = stage(x)
        return x


def clipped(x: Tensor, limit: float) -> Tensor:
    if x.max() > limit:
        return x * (limit / x.max())
    return x


def twice(x: Tensor) -> Tensor:
    x = clipped(x, 10.0)
    return clipped(x * 3, 20.0)


def in_a_loop(x: Tensor) -> Tensor:
    n = 0
    while x.sum() < 20 and n < 5:
        for i in range(2):
            if x[0] > i:
                x = x + 1
        x = x + 2
        n += 1
    return x


def elements(x: Tensor) -> Tensor:
    parts = [clipped(x * k, 5.0) for k in (1, 2)]
    return parts[0] + parts[1]


def reduced(x: Tensor) -> Tensor:
    return functools.reduce(lambda y, limit: clipped(y + 1, limit), (3.0, 5.0), x)


def asked(x: Tensor) -> Tensor:
    n = 0
    while positive(x) and n < 3:
        x = x - 1
        n += 1
    return x


def positive(x: Tensor) -> bool:
    answer = False
    if x.sum() > 2:
        answer = True
    return answer


def jumping(x: Tensor) -> Tensor:
    for i in range(3):
        if x.sum() > 10 * i + 5:
            continue
        if x.min() < i:
            x = x + 2
    return x


MODELS: list[tuple[Any, int, set[str]]] = [
    (Cascade(), 3, {"stage 0", "stage 1", "stage 2"}),
    (twice, 2, {"called at line 47", "called at line 48"}),
    (in_a_loop, 2, {"i 0", "i 1"}),
    (elements, 2, {"element 0", "element 1"}),
    (reduced, 2, {"element 0", "element 1"}),
    (asked, 2, {"first time", "further iterations of line 73"}),
    (jumping, 3, {"i 0", "i 1", "i 2"}),
]


def constructs(model: Any, inputs: list[Any], **options: Any) -> list[PathSite]:
    report = dy2st.check(model, inputs, **options)
    assert report.ok, str(report)
    return [site for site in report.paths if site.kind == "if"]


@pytest.mark.parametrize(("model", "count", "names"), MODELS, ids=lambda given: getattr(given, "__name__", None))
def test_each_has_a_name(model: Any, count: int, names: set[str]) -> None:
    for site in constructs(model, [(torch.tensor([1.0, 2.0, 3.0]),)]):
        assert len(site.copies) == count
        assert {copy.name for copy in site.copies} == names


@pytest.mark.slow_but_for("elements")
@pytest.mark.parametrize(
    "model",
    [pytest.param(model, marks=[pytest.mark.slow] * (model not in (twice, elements))) for model, _, _ in MODELS],
    ids=lambda given: getattr(given, "__name__", None),
)
def test_what_is_taken_in_each_is_what_eager_takes(model: Callable[[Tensor], Tensor]) -> None:
    """The ways of all copies together are those that eager has gone; a search leaves nothing that can be reached."""
    sites = constructs(model, [(torch.tensor([1.0, 2.0, 3.0]),)], search=30)
    missing = {(copy.name, way) for site in sites for copy in site.copies for way in copy.ways if way not in copy.taken}
    assert missing == IMPOSSIBLE.get(getattr(model, "__name__", ""), set())


# What no input takes: what is clipped at 3 is no more than 4 when 1 is added.
IMPOSSIBLE = {"reduced": {("element 1", "then")}}


def test_one_that_was_not_taken_is_not_covered() -> None:
    report = dy2st.check(Cascade(), [(torch.tensor([1.0, 2.0, 3.0]),), (torch.tensor([-1.0, 1.0, -1.0]),)])
    assert report.ok
    assert not report.covered
    assert [line.partition(": ")[2] for line in report.uncovered] == [
        "if x.sum() > self.limit, stage 2: its then-arm never ran"
    ]
    assert "never: then (stage 2)" in str(report)


def test_an_iteration_of_a_staged_loop_is_none() -> None:
    def model(x: Tensor) -> Tensor:
        for row in x:
            if row.sum() > 0:
                x = x + 1
        return x

    sites = constructs(model, [(torch.ones(4, 2),), (torch.ones(3, 2),)])
    assert [site.copies for site in sites] == [()]


def test_an_iteration_that_was_tried_in_vain_is_none() -> None:
    """A first iteration that Python carries out is undone where its jump turns out to be staged."""

    def model(x: Tensor) -> tuple[Tensor, int]:
        bound = 1
        for k in range(9):  # noqa: B007 - used after the loop
            while x.sum() > bound:
                x = x / 2
                bound = bound + 1
            if x.max() < 1:
                break
            x = x - 1
        return x, k

    report = dy2st.check(model, [(torch.ones(4),), (9 * torch.ones(3),), (-torch.ones(3),)])
    assert report.ok
    assert [(site.kind, site.copies) for site in report.paths] == [("loop", ()), ("loop", ()), ("if", ())]


def test_reports_are_joined_copy_by_copy() -> None:
    first = constructs(Cascade(), [(torch.tensor([1.0, 2.0, 3.0]),)])
    second = constructs(Cascade(), [(torch.tensor([-1.0, 1.0, -1.0]),)])
    (site,) = merged([*first, *second])
    assert site.uncovered == ("then",)
    assert site.missed_in("then") == ["stage 2"]
    assert counted([site]) == (5, 6)
