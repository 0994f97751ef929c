"""Rows 71 and 72: results that are not the same number of tensors in each call."""

# ruff: noqa: PERF401 - the constructs under test are written as users write them
from __future__ import annotations

from typing import Any

import pytest
import torch
from harness import agree, both_signs, dyn, refused, refuses, row, scalars, tables, vectors
from torch import Tensor, nn

import dy2st
from dy2st.errors import DtypeWarning, OnnxError


@row(71)
def test_list_that_grows_in_a_while() -> None:
    def model(x: Tensor) -> list[Tensor]:
        rows = [x]
        while x.abs().sum() > 1:
            x = x / 2
            rows.append(x)
        return rows

    agree(model, vectors(3, 2, 5, scale=4.0), (dyn(0),))


@row(71)
def test_list_that_stays_empty_on_some_inputs() -> None:
    def model(x: Tensor) -> dict[str, Any]:
        kept = []
        for value in x:
            if value > 0:
                kept.append(value * 2)
        return {"kept": kept, "sum": x.sum()}

    inputs = [(torch.tensor(values),) for values in ([1.0, -1.0, 2.0], [-1.0, -2.0], [3.0])]
    agree(model, inputs, (dyn(0),), paths=3)


@row(71)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.bool, torch.float64, torch.int16])
def test_lists_of_other_dtypes(dtype: torch.dtype) -> None:
    def model(x: Tensor) -> list[Tensor]:
        rows = []
        for line in x:
            rows.append((line > 0).to(dtype))
        return rows

    agree(model, tables((2, 3), (4, 1)), (dyn(0, 1),))


@row(71)
def test_lists_of_numbers() -> None:
    def counting(x: Tensor) -> list[int]:
        counts = []
        for line in x:
            counts.append(int(line.sum() * 10))
        return counts

    agree(counting, tables((2, 3), (4, 1)), (dyn(0, 1),))


@row(71)
def test_a_tuple_that_keeps_growing_is_refused() -> None:
    def model(x: Tensor) -> tuple[Tensor, ...]:
        steps: tuple[Tensor, ...] = ()
        for line in x:
            steps = (*steps, line)
        return steps

    refuses(model, tables((2, 3))[0], (dyn(0, 1),))


@row(71)
def test_length_that_an_arm_decides() -> None:
    def model(x: Tensor) -> list[Tensor]:
        if x.sum() > 0:
            return [x, -x]
        return [x]

    agree(model, both_signs(3, 2), (dyn(0),))


@row(71)
def test_elements_with_parts() -> None:
    def model(x: Tensor) -> dict[str, Any]:
        found = []
        for line in x:
            if line.sum() > 0:
                found.append({"line": line, "at": (line.argmax(), line.max())})
        return {"found": found}

    inputs = tables((3, 2), (1, 2), (5, 3))
    report = dy2st.check(model, inputs)
    assert report.outcome == "equal", str(report)


@row(71)
def test_tensors_of_several_sizes() -> None:
    def model(x: Tensor) -> dict[str, Any]:
        parts = [x, -x]
        for i in range(x.shape[0]):
            parts.append(x[i:] * 2)
            parts.append(x[x > i])
        return {"parts": parts, "count": len(parts)}

    agree(model, vectors(3, 1, 5, scale=3.0), (dyn(0),))


@pytest.mark.slow
@row(71)
def test_tensors_of_several_sizes_in_a_while_and_a_comprehension() -> None:
    def model(x: Tensor) -> tuple[list[Tensor], list[Tensor], Tensor]:
        shrinking = []
        while x.shape[0] > 1 and x.sum() > 0:
            x = x[x > x.min()]
            shrinking.append(x.reshape(-1, 1))
        return shrinking, [x[x >= value].to(torch.uint8) for value in x], x

    inputs = [(torch.tensor(values),) for values in ([1.0, 3.0, 2.0, 4.0], [-1.0, -2.0], [1.0, 2.0, 2.0])]
    agree(model, inputs, (dyn(0),), paths=3)


def larger(x: Tensor) -> list[Tensor]:
    parts = []
    for value in x:
        parts.append(x[x > value])
    return parts


@pytest.mark.slow
@row(71)
def test_tensors_of_several_sizes_are_picked() -> None:
    agree(lambda x: (larger(x)[0], larger(x)[::2]), vectors(3, 1, 4), (dyn(0),))


@row(71)
@pytest.mark.parametrize("use", [sum, lambda parts: torch.cat(parts, 1), lambda parts: torch.block_diag(*parts)])
def test_tensors_of_several_sizes_have_no_other_use(use: Any) -> None:
    assert refuses(lambda x: use(larger(x)), (torch.ones(3),), (dyn(0),)).code in ("D2S211", "D2S214")


@row(71)
def test_lists_without_values_are_refused() -> None:
    def model(x: Tensor) -> tuple[list[str], Tensor]:
        names = []
        for value in x:
            if value > 0:
                names.append("positive")
        return names, x

    with refused(OnnxError, "neither a tensor nor a number"):
        dy2st.onnx.export(model, (torch.tensor([1.0, -1.0]),))


@row(72)
def test_none_or_a_tensor() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor | None]:
        if x.sum() > 0:
            return x, -x
        return x, None

    agree(model, both_signs(3, 2), (dyn(0),))


@row(72)
def test_none_is_all_that_is_returned() -> None:
    def model(x: Tensor) -> Tensor | None:
        if x.sum() > 0:
            return x * 2
        return None

    agree(model, both_signs(3, 2), (dyn(0),))


@row(72)
def test_which_one_is_none() -> None:
    def model(x: Tensor) -> tuple[Tensor | None, Tensor | None]:
        up = down = None
        if x.sum() > 0:
            up = x * 2
        else:
            down = x * 2
        return up, down

    agree(model, both_signs(3, 2), (dyn(0),))


@row(72)
def test_none_until_a_loop_has_run() -> None:
    class Best(nn.Module):
        def forward(self, x: Tensor) -> dict[str, Any]:
            best = None
            for value in x:
                if value > 0 and (best is None or value > best):
                    best = value
            return {"best": best, "count": (x > 0).sum()}

    inputs = [(torch.tensor(values),) for values in ([1.0, -1.0, 2.0], [-1.0, -2.0], [3.0, 1.0])]
    agree(Best(), inputs, (dyn(0),), paths=3)


@row(72)
def test_numbers_of_dimensions_that_differ() -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() > 0:
            return x
        return x.sum()

    agree(model, both_signs(3, 2), (dyn(0),))


@row(72)
@pytest.mark.filterwarnings("default::dy2st.errors.DtypeWarning")
def test_a_number_in_place_of_a_tensor() -> None:
    def model(x: Tensor) -> Any:
        if x.sum() > 0:
            return x
        return 0

    with pytest.warns(DtypeWarning, match="a float32\\[\\?\\] tensor or the int 0"):
        program = dy2st.export(model, (torch.ones(3),), dynamic_shapes=(dyn(0),))
    run = program.module()
    assert run(torch.ones(2)).tolist() == [1, 1]
    assert run(-torch.ones(2)).item() == 0


@row(72)
def test_texts_by_path() -> None:
    def model(x: Tensor, limit: Tensor) -> tuple[Tensor, str]:
        steps = 0
        while x.abs().max() > 1:
            x = x / 2
            steps += 1
            if steps > limit:
                return x, "gave up"
        return x, "converged" if steps > 0 else "nichts zu tun: ½"

    inputs = [(x, n) for (x,), (n,) in zip(vectors(3, 2, 1, scale=40.0), scalars(9, 0, 2), strict=True)]
    agree(model, [*inputs, (torch.tensor([0.5]), torch.tensor(1))], (dyn(0), None), paths=3)


@row(72)
def test_a_text_or_none() -> None:
    def model(x: Tensor) -> tuple[Tensor, str | None]:
        if x.sum() > 1:
            return x, "many"
        if x.sum() > 0:
            return x, "some"
        return x, None

    inputs = [(torch.tensor(values),) for values in ([1.0, 1.0], [0.25, 0.25], [-1.0])]
    agree(model, inputs, (dyn(0),), paths=3)


@row(72)
def test_a_text_or_a_tensor_is_refused() -> None:
    def model(x: Tensor) -> Tensor | str:
        if x.sum() > 0:
            return x
        return "nothing"

    assert refuses(model, (torch.ones(3),)).code == "D2S202"
