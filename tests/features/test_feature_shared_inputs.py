"""Two parameters are two inputs, whatever the example call gives for them (row 31, row 55)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from harness import call as called
from harness import compare, row, run_onnx
from torch import Tensor, nn
from torch.utils import _pytree as pytree

import dy2st
import dy2st.onnx
from dy2st.errors import AliasError, IdentityError

SHARED = torch.tensor([1.0, 2.0])
LONG = torch.arange(4.0)


def difference(a: Tensor, b: Tensor) -> Tensor:
    return a - 2 * b


def on_one_path(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    if a.sum() > 0:
        a = a - 2 * b
    return a, b


def of_containers(pair: list[Tensor], named: dict[str, Tensor]) -> Tensor:
    return pair[0] - 2 * pair[1] + 3 * named["x"]


def of_a_constant(a: Tensor) -> Tensor:
    return a - 2 * SHARED


class Weighted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([3.0, -1.0]))
        self.register_buffer("seen", torch.tensor([1.0, 1.0]))

    def forward(self, x: Tensor) -> Tensor:
        return x - 2 * self.weight + 3 * self.seen


OTHERS = [torch.tensor([5.0, 7.0]), torch.tensor([-1.0, 0.5]), torch.tensor([0.25, 3.0])]
WEIGHTED = Weighted().eval()
CASES: list[tuple[str, Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]] = [
    ("one tensor", difference, (SHARED, SHARED), tuple(OTHERS[:2])),
    ("views", difference, (LONG[:2], LONG[1:3]), tuple(OTHERS[:2])),
    ("on one path", on_one_path, (SHARED, SHARED), tuple(OTHERS[:2])),
    ("containers", of_containers, ([SHARED, SHARED], {"x": SHARED}), (OTHERS[:2], {"x": OTHERS[2]})),
    ("a constant", of_a_constant, (SHARED,), (OTHERS[0],)),
    ("a parameter", WEIGHTED, (WEIGHTED.weight,), (OTHERS[0],)),
    ("a buffer", WEIGHTED, (WEIGHTED.seen,), (OTHERS[0],)),
]


@row(31, 55)
@pytest.mark.parametrize(("model", "example", "others"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_each_parameter_is_an_input(model: Any, example: tuple[Any, ...], others: tuple[Any, ...]) -> None:
    program = dy2st.export(model, example)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        dy2st.onnx.export(model, example, file)
        run_file = run_onnx(file)
        for given in (pytree.tree_map_only(Tensor, Tensor.detach, example), others):
            want = called(model, given)
            compare(want, called(program.module(), given), "program", state=False)
            compare(want, run_file(given), "onnxruntime", state=False)


def written(a: Tensor, b: Tensor) -> Tensor:
    a += 1
    return b


def written_in_an_arm(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    if a.sum() > 0:
        b[0] = 5
    return a, b


def same(a: Tensor, b: Tensor) -> Tensor:
    return a - b if a is b else a + b


def beside_a_constant(a: Tensor) -> Tensor:
    a += 1
    return SHARED * 2


def is_a_constant(a: Tensor) -> Tensor:
    return a * 2 if a is SHARED else a


class Counting(Weighted):
    def forward(self, x: Tensor) -> Tensor:
        self.seen += 1
        return x * 2


COUNTING = Counting().eval()


@row(31, 55)
@pytest.mark.parametrize(
    ("model", "example", "error"),
    [
        (written, (SHARED, SHARED), AliasError),
        (written, (LONG[:2], LONG[1:3]), AliasError),
        (written, (LONG[1:3], LONG[:2]), AliasError),
        (written_in_an_arm, (SHARED, SHARED), AliasError),
        (beside_a_constant, (SHARED,), AliasError),
        (COUNTING, (COUNTING.seen,), AliasError),
        (same, (SHARED, SHARED), IdentityError),
        (is_a_constant, (SHARED,), IdentityError),
    ],
)
def test_what_holds_for_one_tensor_alone_is_refused(model: Any, example: tuple[Any, ...], error: Any) -> None:
    with pytest.raises(error) as caught:
        dy2st.export(model, example)
    assert caught.value.location.filename == __file__
    with pytest.raises(error):
        dy2st.onnx.export(model, example)


def test_parts_that_do_not_overlap_are_written_to() -> None:
    program = dy2st.export(written, (LONG[:2], LONG[2:]))
    a, b = torch.ones(2), torch.zeros(2)
    assert torch.equal(program.module()(a, b), torch.zeros(2))
    assert torch.equal(a, torch.full((2,), 2.0))


@row(61)
def test_to_static_knows_which_arguments_share_memory() -> None:
    model = dy2st.to_static(written)
    assert torch.equal(model(torch.ones(2), torch.zeros(2)), torch.zeros(2))
    with pytest.raises(AliasError):
        model(SHARED, SHARED)
    with pytest.raises(AliasError):
        model(LONG[:2], LONG[1:3])
    assert torch.equal(dy2st.to_static(difference)(SHARED, SHARED), -SHARED)


def test_check_takes_one_tensor_twice() -> None:
    dy2st.check(difference, [(SHARED, SHARED), (OTHERS[0], OTHERS[1])]).raise_if_different()
