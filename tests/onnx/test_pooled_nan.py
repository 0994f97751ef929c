"""Max pooling of NaN and of windows without a number, values and places, as eager has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import dy2st

if TYPE_CHECKING:
    from collections.abc import Callable

nan, inf = float("nan"), float("inf")
PLAIN = torch.arange(72.0).sin().reshape(1, 2, 6, 6)


def with_some(*changes: tuple[tuple[Any, ...], float]) -> Tensor:
    x = PLAIN.clone()
    for place, value in changes:
        x[place] = value
    return x


SETS = [
    (PLAIN,),
    (with_some(((0, 0, 2, 3), nan), ((0, 0, 3, 3), nan)),),
    (with_some(((0, 1), -inf), ((0, 0, 1, 1), inf)),),
    (with_some(((0, 1), -inf), ((0, 1, 5, 5), nan), ((0, 0, 0), -3e38)),),
]

FORMS: dict[str, Callable[[Tensor], Any]] = {
    "images": lambda x: (functional.max_pool2d(x, 2), functional.max_pool2d(x, 3, 2, 1)),
    "beyond the end": lambda x: functional.max_pool2d(x, 3, 2, ceil_mode=True),
    "dilated": lambda x: functional.max_pool2d(x, 2, 1, dilation=2),
    "rows": lambda x: functional.max_pool1d(x[0], 2),
    "volumes": lambda x: functional.max_pool3d(x, 2, 1),
    "adaptive": lambda x: functional.adaptive_max_pool2d(x, 3),
    "places": lambda x: functional.max_pool2d(x, 3, 2, 1, return_indices=True),
    "places of rows": lambda x: functional.max_pool1d(x[0], 2, return_indices=True),
    "places in volumes": lambda x: functional.max_pool3d(x, 2, return_indices=True),
    "places in windows beyond the end": lambda x: functional.max_pool3d(x[:, :, :, :5], 2, 2, 1, 1, True, True),
    "doubles": lambda x: functional.max_pool2d(x.double(), 3, 1, 1),
    "halves": lambda x: functional.max_pool2d(x.half(), 3, 1, 1),
}


@pytest.mark.parametrize("name", FORMS)
def test_what_is_not_finite(name: str) -> None:
    report = dy2st.check(FORMS[name], SETS)
    assert report.ok, str(report)


def test_in_a_branch_and_a_loop() -> None:
    def model(x: Tensor) -> Tensor:
        if x[0, 0, 0, 0] > 0.5:
            return functional.max_pool2d(x, 2)
        steps = 0
        while steps < 3 and x.isfinite().sum() > 30:
            x = functional.max_pool2d(x, 3, 1, 1) - 0.1
            steps += 1
        return x

    changed = [each[0].clone() for each in SETS]
    for each in changed:
        each[0, 0, 0, 0] = 1.0
    report = dy2st.check(model, [*SETS, *((each,) for each in changed)])
    assert report.ok, str(report)


def test_what_is_finite_is_pooled_at_once() -> None:
    """A table of weights has no NaN."""

    class Table(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("table", PLAIN)

        def forward(self, i: Tensor) -> Tensor:
            return functional.max_pool2d(self.table[:, i], 2)

    program = dy2st.onnx.export(Table(), (torch.tensor([1, 0]),))
    found = [node.op_type for node in program.model.graph.all_nodes()]
    assert found.count("MaxPool") == 1
    assert "If" not in found


def test_no_branch_of_the_model_is_meant() -> None:
    """The report has no path for it, and the file no arm that an input has to take."""
    report = dy2st.check(FORMS["images"], SETS[:1])
    assert report.covered
    assert not report.paths
    assert not any(arm.demanded for arm in report.arms)
