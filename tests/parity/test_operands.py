"""Each side of an ``and`` or ``or`` decides on some input, or the check says that it never did."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
import torch
from onnx import numpy_helper
from torch import Tensor

import dy2st
import dy2st.onnx


def limited(x: Tensor) -> Tensor:
    n = 0
    while x.sum() < 20 and n < 3:
        x = x + 1
        n += 1
    return x


def within(x: Tensor) -> Tensor:
    if 0 < x.max() < 5:
        return x * 2
    return x


def mixed(x: Tensor) -> Tensor:
    y = x - 1 if x.min() < -3 or (x.max() > 2 and x[0] > 1) else x + 1
    return y if not (x[0] > 0 and x[1] > 0) else y * 2


def chained(x: Tensor) -> Tensor:
    if x[0] > 0 and x[1] > 0 and x[2] > 0:
        return x * 2
    return x


def ready(x: Tensor) -> bool:
    return x.sum() > 0 and x[0] < 3


def asked(x: Tensor) -> Tensor:
    if ready(x):
        return x * 2
    return x


def configured(x: Tensor, flag: bool = True, depth: int = 3) -> Tensor:
    if x.sum() > 0 and flag:
        return x * 2
    if depth > 2 and x.sum() < -5:
        return x * 3
    return x


ONES = torch.ones(3)
# The sides that decide, by line from the model's own; what the given input shows of them.
SIDES = [
    (limited, {(2, "and", ("left false", "right false"))}, {(2, "right false")}),
    (within, {(1, "and", ("left false", "right false"))}, set()),
    (
        mixed,
        {(1, "or", ("left true", "right true")), (1, "and", ("left false", "right false")),
         (2, "and", ("left false", "right false"))},
        {(1, "left false")},
    ),
    (chained, {(1, "and", ("left false", "right false"))}, set()),
    (asked, {(-3, "and", ("left false", "right false"))}, set()),
    (configured, {(1, "and", ("left false",))}, set()),
]  # fmt: skip


@pytest.mark.slow_but_for("within-sides1-shown1")
@pytest.mark.parametrize(("model", "sides", "shown"), SIDES)
def test_sides(
    model: Callable[[Tensor], Tensor], sides: set[tuple[int, str, tuple[str, ...]]], shown: set[tuple[int, str]]
) -> None:
    first = model.__code__.co_firstlineno
    report = dy2st.check(model, [(ONES,)])
    found = [site for site in report.paths if site.kind in ("and", "or")]
    assert {(site.line - first, site.kind, site.ways) for site in found} == sides
    assert {(site.line - first, way) for site in found for way in site.taken} == shown
    assert dy2st.check(model, [(ONES,)], search=20).covered


def test_what_is_not_covered_is_told() -> None:
    report = dy2st.check(limited, [(ONES,), (30 * ONES,), (6.5 * ONES,)])
    line = limited.__code__.co_firstlineno + 2
    assert [each.partition(f":{line}: ")[2] for each in report.uncovered] == []
    report = dy2st.check(limited, [(7 * ONES,), (6.5 * ONES,), (4.5 * ONES,)])
    told = "the right side of its 'and' at column 11 was never what makes it false"
    assert [each.rpartition(": ")[2] for each in report.uncovered] == [told]
    assert "'and' at column 11" in str(report)


def test_a_comment_takes_a_side_out() -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() > 0 and x.sum() > -1:  # dy2st: uncovered ok (right false)
            return x * 2
        return x

    assert dy2st.check(model, [(ONES,), (-ONES,)]).covered


def test_a_pattern_is_no_expression() -> None:
    def model(x: Tensor) -> Tensor:
        match (x.sum() > 0, x[0] > 0):
            case (True, True):
                return x * 2
            case _:
                return x

    assert not [site for site in dy2st.check(model, [(ONES,)]).paths if site.kind in ("and", "or")]


def test_a_file_with_a_wrong_limit_of_a_counter_is_found(tmp_path: Path) -> None:
    """An input that leaves the loop on the other side is equal; a covered check has one that does not."""
    file = tmp_path / "limited.onnx"
    dy2st.onnx.export(limited, (ONES,), file)
    model = onnx.load(file)
    changed = 0
    for constant in model.graph.initializer:
        if constant.dims == [] and numpy_helper.to_array(constant) == 3:
            constant.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(constant) + 1, constant.name))
            changed += 1
    assert changed == 1
    onnx.save(model, file)
    few, last = [(7 * ONES,), (6.5 * ONES,), (4.7 * ONES,)], (ONES,)
    program = dy2st.export(limited, (ONES,))
    report = dy2st.check(limited, few, program=program, onnx_file=file)
    assert report.ok
    assert [each.rpartition(": ")[2] for each in report.uncovered] == [
        "the right side of its 'and' at column 11 was never what makes it false"
    ]
    assert not dy2st.check(limited, [*few, last], program=program, onnx_file=file).ok
