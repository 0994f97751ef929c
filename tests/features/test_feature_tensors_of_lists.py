"""``torch.tensor`` of a list that is empty on some paths: eager then makes an empty tensor of one dimension."""

# ruff: noqa: PERF401 - loops are what is tested

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from harness import agree, row, run_onnx

import dy2st
import dy2st.onnx
from dy2st.errors import DtypeWarning

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

INPUTS = [(torch.tensor(x),) for x in ([1.0, -2.0, 3.0], [-1.0, -2.0], [2.0, 0.5, 4.0, -1.0], [-3.0, -0.5, -1.0, -4.0])]


def boxes_in_a_view(x: Tensor) -> Any:
    boxes = []
    for i in range(x.shape[0]):
        if x[i] > 0:
            boxes.append([i, x[i].item()])
    return torch.tensor(boxes, dtype=torch.float32).view(-1, 2)


def pairs_of_numbers(x: Tensor) -> Any:
    found = []
    for i in range(x.shape[0]):
        if x[i] > 0:
            found.append((i, i + 1))
    return torch.tensor(found).reshape(-1, 2).sum(0).float()


def rows_that_are_asked_for(x: Tensor) -> Any:
    found = []
    for value in x:
        if value > 0:
            found.append([value, value * 2])
    rows = torch.tensor(found)
    if len(rows) == 0:
        return torch.zeros(())
    return rows.max(0).values.sum()


def kept_numbers_as_an_index(x: Tensor) -> Any:
    keep = []
    for i in range(x.shape[0]):
        if x[i] > 0:
            keep.append(i)
    index = torch.tensor(keep)
    if index.numel() > 0:
        return x[index].sum()
    return x.sum()


def kept_numbers_that_are_cast(x: Tensor) -> Any:
    keep = []
    for i in range(x.shape[0]):
        if x[i] > 0:
            keep.append(i)
    return x[torch.tensor(keep).long()]


def as_tensor_of_a_list_of_numbers(x: Tensor) -> Any:
    found = []
    for value in x.tolist():
        if value > 0:
            found.append((value, value * 2))
    return torch.as_tensor(found, dtype=torch.float32).reshape(-1, 2)[:, 1].sum()


@row(24)
@pytest.mark.parametrize(
    "model",
    [
        boxes_in_a_view,
        pairs_of_numbers,
        rows_that_are_asked_for,
        kept_numbers_as_an_index,
        kept_numbers_that_are_cast,
        as_tensor_of_a_list_of_numbers,
    ],
)
def test_an_empty_list_is_another_case(model: Callable[..., Any]) -> None:
    agree(model, INPUTS, dynamic_shapes=({0: torch.export.Dim("n")},), paths=2)


@row(24)
def test_what_is_returned_has_one_dtype_and_rank() -> None:
    def model(x: Tensor) -> Tensor:
        found = []
        for i in range(x.shape[0]):
            if x[i] > 0:
                found.append([i, i])
        return torch.tensor(found)

    with pytest.warns(DtypeWarning, match="int64"):
        program = dy2st.export(model, INPUTS[0], dynamic_shapes=({0: torch.export.Dim("n")},))
    for inputs in INPUTS:  # an optional of each rank, in a file: of one dtype
        found, expected = program.module()(*inputs), model(*inputs)
        assert found.shape == expected.shape
        torch.testing.assert_close(found, expected, check_dtype=False)


@row(31)
def test_rows_are_written_for_a_number_that_is_read() -> None:
    def model(x: Tensor) -> Tensor:
        n = int((x > 0).sum())
        made = torch.zeros(n, 2)
        for i in range(n):
            made[i] = x.mean() * i
        return made

    agree(model, INPUTS, dynamic_shapes=({0: torch.export.Dim("n")},), paths=2)


@row(1)
def test_an_arm_in_which_eager_raises() -> None:
    def model(x: Tensor, limit: float = 50.0) -> Tensor:
        coefficients = torch.zeros(0)
        if x.sum() > limit:
            return x * coefficients[0]
        if x.min() < -limit:
            return torch.cat([x[None], x[None, None]])
        return x * 2

    agree(
        model,
        INPUTS,
        dynamic_shapes=({0: torch.export.Dim("n")},),
        paths=1,
        whole=False,
        raising=[(90 * INPUTS[0][0],)],
    )


@row(48)
def test_an_arm_in_which_eager_raises_for_some_sizes() -> None:
    """An index that the example's size has not, and another size has, is no reason for the graph to raise."""

    def indexed(x: Tensor) -> Tensor:
        if x.sum() > 50:
            return x[9]
        return x.sum()

    def reshaped(x: Tensor) -> Tensor:
        if x.sum() > 50:
            return x.reshape(3, 4).sum()
        return x.sum()

    def added(x: Tensor) -> Tensor:
        if x.sum() > 50:
            return (x + torch.ones(12)).sum()
        return x.sum()

    small, large = 90 * torch.ones(5), 90 * torch.ones(12)
    for model in (indexed, reshaped, added):
        agree(model, [(torch.ones(5),), (large,), (torch.ones(12),)], ({0: torch.export.Dim("n", min=2)},))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "model.onnx"
            dy2st.onnx.export(model, (torch.ones(5),), file, dynamic_shapes=({0: torch.export.Dim("n", min=2)},))
            run = run_onnx(file)
            for each in (lambda x, model=model: model(x), lambda x, run=run: run((x,))):
                with pytest.raises(Exception, match=r"."):
                    each(small)
    raising = [(90 * torch.ones(5),)]
    agree(indexed, [(torch.ones(5),), (-torch.ones(5),)], paths=1, whole=False, raising=raising)


@pytest.mark.slow
@row(4)
def test_a_tensor_of_a_range() -> None:
    def numbers(x: Tensor) -> tuple[Tensor, ...]:
        count = int((x > 0).sum()) + 1
        return (
            torch.tensor(range(count), dtype=torch.int64),
            torch.tensor(range(1, count), dtype=torch.float32),
            torch.as_tensor(range(count, 0, -1), dtype=torch.int64).sum(),
            x.new_tensor(data=range(count)),
        )

    agree(numbers, INPUTS, dynamic_shapes=({0: torch.export.Dim("n")},), paths=1)
