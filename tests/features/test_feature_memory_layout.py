"""Row 31: code that rests on how a tensor lies in memory. A file has values in their order, and nothing else.

What no path hands on lies as in eager, so that its answers are right. Behind a branch or in a loop it may lie
otherwise on each path: such code is refused.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from harness import agree, refuses, row
from torch import Tensor

import dy2st

INPUTS = [(torch.randn(4, 4),), (torch.randn(4, 4) + 3,), (torch.randn(4, 4) - 3,)]


def of_a_transposed(x: Tensor) -> Tensor:
    return x.transpose(0, 1).as_strided((3, 4), (2, 1)) * 2


def of_rows(x: Tensor) -> Tensor:
    return x[1:].as_strided((3,), (2,)) * 2


def with_an_offset(x: Tensor) -> Tensor:
    return torch.as_strided(x, (2, 3), (1, 2), 3)


def of_an_offset_and_more(x: Tensor) -> Tensor:
    return x[1:].as_strided((2, 2), (4, 1), 6)


def windows(x: Tensor) -> Tensor:
    y = x.view(2, 2, 4).transpose(1, 2)
    size, stride = list(y.size()), list(y.stride())
    size[0], stride[0] = size[0] * 2 - 1, stride[0] // 2
    return y.as_strided(size=size, stride=stride)


def of_one_column(x: Tensor) -> Tensor:
    return x[:1].permute(1, 0).as_strided((4,), (1,))


def after_a_product(x: Tensor) -> Tensor:
    y = x.t() * 2 if x.sum() > 0 else x + 1
    return (y @ y).t().as_strided((8,), (2,))


def first_behind_a_branch(x: Tensor) -> Tensor:
    y = x.t() * 2 if x.sum() > 0 else x + 1
    return torch.as_strided(y, (), ()) + y.as_strided((1, 1), (7, 9))


@row(31)
@pytest.mark.parametrize(
    "model",
    [
        *(of_a_transposed, of_rows, with_an_offset, of_an_offset_and_more, windows, of_one_column, after_a_product),
        first_behind_a_branch,
    ],
)
def test_elements_are_taken_as_they_lie(model: Callable[[Tensor], Tensor]) -> None:
    agree(model, INPUTS, paths=1)


def of_columns(x: Tensor) -> Tensor:
    return x[:, 1:].as_strided((3,), (2,))


def beyond_its_own(x: Tensor) -> Tensor:
    return x[:1].as_strided((8,), (2,))


def before_its_own(x: Tensor) -> Tensor:
    return x[1:].as_strided((2,), (1,), 0)


def of_equal_elements(x: Tensor) -> Tensor:
    return x.expand(3, 4, 4).as_strided((3,), (1,))


def behind_a_branch(x: Tensor) -> Tensor:
    y = x.t() * 2 if x.sum() > 0 else x + 1
    return y.as_strided((8,), (2,))


def asked_behind_a_branch(x: Tensor) -> Tensor:
    y = x.t() * 2 if x.sum() > 0 else x + 1
    return y * 2 if y.is_contiguous() else y * 3


def strides_in_a_loop(x: Tensor) -> Tensor:
    y = x
    while y.sum() > 1:
        y = (y / 2).t() if y.stride(0) == 4 else y / 3
    return y


@row(31)
@pytest.mark.parametrize(
    "model",
    [
        *(of_columns, beyond_its_own, before_its_own, of_equal_elements),
        *(behind_a_branch, asked_behind_a_branch, strides_in_a_loop),
    ],
)
def test_what_a_file_does_not_have_is_refused(model: Callable[[Tensor], Tensor]) -> None:
    assert refuses(model, INPUTS[0]).code == "D2S241"


def written_and_left(x: Tensor) -> Tensor:
    y = (x * 2).t() if x.sum() > 0 else x + 1
    z = y.reshape(-1)
    z[0] = 7
    return z


def written_in_an_arm(x: Tensor) -> Tensor:
    y = (x * 2).t() if x.sum() > 0 else x + 1
    z = y.transpose(0, 1).contiguous().flatten()
    if x.sum() > 5:
        z[1:3] += x[0, 0]
    return z.relu()


def one_layout_on_all_paths(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2 if x.sum() > 0 else x + 1
    z = y.reshape(-1)
    z[0] = 7
    return y * 1, z


def in_a_loop(x: Tensor) -> Tensor:
    y = x * 1
    for i in range(4):
        y = y.t() + 1 if x.sum() > i else y * 2
        z = y.reshape(-1)
        z[i] = 0
        y = z.reshape(4, 4)
    return y


@row(31)
@pytest.mark.parametrize("model", [written_and_left, written_in_an_arm, one_layout_on_all_paths, in_a_loop])
def test_a_view_on_some_paths_is_written_to(model: Callable[[Tensor], object]) -> None:
    agree(model, [*INPUTS, (torch.full((4, 4), 0.1),)])
    static = dy2st.to_static(model)
    for inputs in INPUTS:
        torch.testing.assert_close(static(*inputs), model(*inputs))


def read_after_its_view(x: Tensor) -> tuple[Tensor, Tensor]:
    y = (x * 2).t() if x.sum() > 0 else x + 1
    z = y.reshape(-1)
    z[0] = 7
    return y * 1, z


def view_read_after_a_write(x: Tensor) -> Tensor:
    y = (x * 2).t() if x.sum() > 0 else x + 1
    z = y.t().contiguous()
    y += 1
    return z


@row(31)
@pytest.mark.parametrize("model", [read_after_its_view, view_read_after_a_write])
def test_what_is_the_other_one_s_memory_on_some_paths_is_refused(model: Callable[[Tensor], object]) -> None:
    assert refuses(model, INPUTS[0]).code == "D2S221"
