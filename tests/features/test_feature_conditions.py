"""Conditions (rows 20 to 23, 51, 59): operands that fail where eager does not ask, names bound in them, truths."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
from harness import agree, dyn, row
from torch import Tensor

import dy2st.onnx


@row(22)
def test_the_second_operand_may_fail_where_the_first_is_false() -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() != 0 and x.max() > 1:
            x = x + 1
        return x

    agree(model, [(torch.tensor([1.0, 2.0]),), (-torch.ones(2),), (torch.zeros(0),)], (dyn(0),))


@row(22)
def test_an_operand_in_an_operand_may_fail() -> None:
    def model(v: Tensor, y: Tensor) -> Tensor:
        if (z := y[0]) <= 0 and (v.max() > 0.5 and (v > 1.0).any()):
            v = v + z
        return v * 2

    given = [([1.0, 2.0], -1.0), ([], 1.0), ([0.2], -1.0), ([3.0], 2.0)]
    agree(model, [(torch.tensor(v), torch.tensor([y])) for v, y in given], (dyn(0), None), paths=2)


@row(22)
def test_methods_of_tensors_that_tell() -> None:
    def model(x: Tensor) -> tuple[Tensor, int, bool]:
        n = 4 if x.sum().is_nonzero() else 0
        while not x.allclose(torch.zeros_like(x), atol=0.1) and n < 20:
            halved = (x * 0.5).round()
            if halved.equal(x):
                break
            x = halved
            n += 1
        return x, n, x.equal(x + 0)

    agree(model, [(torch.tensor(v),) for v in ([1.0, 2.0], [0.0, 0.0], [0.0, 1.0, 9.0, 2.0])], (dyn(0),), whole=False)


@row(22, 28)
def test_tensors_that_differ_in_a_function_with_a_dict() -> None:
    def model(x: Tensor, y: Tensor) -> dict[str, Tensor]:
        found = {}
        differ = x != y
        if differ.any():
            found["sum"] = (x * differ).sum()
        else:
            found["sum"] = torch.where(x == y, x, y).sum() + 1
        last, first = x[-1], y[0]
        found["one"] = torch.where(last != first, last, first)
        return found

    pairs = [([1.0, 3.0], [1.0, 2.0]), ([-1.0, -3.0], [-1.0, -3.0]), ([1.0], [2.0])]
    agree(model, [(torch.tensor(a), torch.tensor(b)) for a, b in pairs], (dyn(0), dyn(0)))


@row(17, 21)
def test_numbers_compared_with_what_is_none_at_first() -> None:
    def counted(x: Tensor) -> tuple[int, int, bool]:
        previous, n, same = None, 0, 0
        for value in x.tolist():
            if value != previous:
                n += 1
            if previous == value:
                same += 1
            previous = value
        return n, same, previous == 2

    def tensors(x: Tensor) -> tuple[int, Tensor]:
        previous: Any = None
        n, kept = 0, x[:1] * 0
        for value in x:
            if value != previous:
                n += 1
            if previous == value:
                kept = kept + value
            previous = value
        return n, kept

    given = [(torch.tensor(v),) for v in ([1, 1, 2, 0, 2], [1], [2, 2, 2])]
    for model in (counted, tensors):
        agree(model, given, (dyn(0),))


@row(21, 47)
def test_numbers_beside_those_of_an_enumeration() -> None:
    class Kind(enum.IntEnum):
        A = 1
        B = 2

    def model(x: Tensor) -> tuple[int, float]:
        n, m = 0, 0.5
        for value in x.tolist():
            if value == Kind.A:
                n += Kind.B
            if value != Kind.B:
                m = m * 1.5
            if value == "a" or value == (1,):
                n += 100
        return n, m

    agree(model, [(torch.tensor(v),) for v in ([1, 1, 2, 0, 2], [1], [2, 2])], (dyn(0),), whole=False)


@row(59)
def test_a_truth_of_what_has_one_element_or_is_refused_by_eager() -> None:
    def model(x: Tensor) -> tuple[float, Tensor]:
        found = x[x > 2.0]
        value = x.sum()
        if value > 0:
            value = x[x == 3]
        total = int(found) + x.new_ones(2)[int(bool(found)) : 2].sum()
        return (2.0 if value else 0.5), total

    agree(model, [(torch.tensor(v),) for v in ([1.0, 3.0, 0.0], [-1.0, -3.0, 3.0], [-4.0, 2.0, -8.0, 5.0])], (dyn(0),))


@row(59)
@pytest.mark.parametrize("given", [[3.0, 4.0], [0.0]])
def test_a_truth_of_another_number_of_elements_fails_as_in_eager(given: list[float], tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        return x * 2 if x[x > 2.0] > 5 else x

    program = dy2st.export(model, (torch.tensor([1.0, 3.0, 0.0]),), dynamic_shapes=(dyn(0),))
    dy2st.onnx.export(program).save(str(tmp_path / "model.onnx"))
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    for run in (model, program.module(), lambda x: session.run(None, {"x": x.numpy()})):
        with pytest.raises(Exception, match=r"ambiguous|shape|Reshape|u0|Eq"):
            run(torch.tensor(given))


@row(22, 59)
def test_an_operand_that_fails_on_nothing_is_evaluated_where_it_is_asked_only() -> None:
    def model(x: Tensor) -> Tensor:
        kept = x[x > 1]
        y = x * 2 if x.sum() != 0 and 0.5 < x.max() <= x.sum() else x
        if kept.numel() > 0 and kept.max() > 2:
            y = y + 1
        if len(kept) and 0 < kept.amin() < 2:
            y = y - 3
        if kept.numel() == 0 or kept.min() < 1.5:
            y = y * 4
        return y

    inputs = [torch.tensor(v) for v in ([3.0, -1.0], [0.5, 1.25, -7.0], [-1.0], [2.0, 2.0, 3.0])]
    agree(model, [(x,) for x in (*inputs, torch.zeros(0))], (dyn(0),), whole=False)


@row(22, 51)
def test_a_name_that_an_operand_or_arm_binds_is_what_it_was_where_that_is_not_evaluated() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        kept = x[x > 1]
        y, n = x.sum(), 7
        if kept.numel() > 0 and (top := kept.max()) > 2 and (y := top + x.mean()) > 0:
            x = x - top
        first = 1 if x.sum() > 0 and (n := 5) > 4 else 2
        second = (a := n + 1) if y > 1 else (a := n) * 2
        value = n if x.mean() > 0 or (n := n * 3) > 20 else 0
        third = 1 if 0 < x.sum() < (n := n + 2) else 3
        return x, y, n, first, second, a, value, third

    inputs = [torch.tensor(v) for v in ([3.0, -1.0], [0.5, 1.25, -7.0], [-1.0], [2.0, 2.0, 3.0], [0.5])]
    agree(model, [(x,) for x in (*inputs, torch.zeros(0))], (dyn(0),), whole=False)


COUNT = 7


@row(51, 54)
def test_such_a_name_of_the_module_or_of_a_function_around() -> None:
    def model(x: Tensor) -> tuple[int, ...]:
        global COUNT  # noqa: PLW0603  # that is what is tested
        COUNT = n = 7

        def inner() -> int:
            nonlocal n
            first = 1 if x.sum() > 0 and (n := 5) > 4 else 2
            return first + ((n := n + 1) if x[0] > 1 else n * 2)

        a = inner()
        b = (COUNT := 3) if x.sum() > 1 else (COUNT := COUNT + 1)
        c = 1 if 0 < x.sum() < (n := n + 20) else 2
        return a, b, c, n, COUNT

    agree(model, [(torch.tensor(v),) for v in ([3.0, -1.0], [0.5, 0.25], [-1.0], [2.0, -3.0])], (dyn(0),))


@row(51, 54)
def test_such_a_name_that_the_test_of_a_later_clause_or_case_binds() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        a, b, c = x.sum(), x.max(), x.min()

        def double() -> None:
            nonlocal a, b
            a, b = a * 2, b * 2

        if a > 3:
            c = a
        elif (a := b) > 1:
            c = c + 1
        match (c > 0).item():
            case True:
                a = a + 1
            case False if (b := a) > 0:
                c = b
        double()
        return a, b, c

    values = ([3.0, 1.0], [0.5, 1.25, -7.0], [-1.0], [2.0, -3.0], [0.5])
    agree(model, [(torch.tensor(v),) for v in values], (dyn(0),))


@row(22, 51)
def test_a_name_that_the_test_of_a_loop_binds_behind_and() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        i, total = 0, x.new_zeros(())
        while i < x.shape[0] and (at := x[i]) < 1:
            total = total + at
            i += 1
        return i, total

    inputs = [torch.tensor(v) for v in ([0.5, -1.0, 2.0, 0.0], [0.5, 0.25], [3.0], [-1.0, -2.0, 0.5])]
    agree(model, [(x,) for x in (*inputs, torch.zeros(0))], (dyn(0),))
