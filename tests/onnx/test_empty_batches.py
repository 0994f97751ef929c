"""Products of one matrix with a batch that may be none, which onnxruntime 1.31 refuses as they are."""

from __future__ import annotations

from typing import Any

import onnxruntime
import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st

N = {0: Dim.DYNAMIC}
BOTH = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}


def product(a: Tensor, b: Tensor) -> Tensor:
    """The model."""
    return torch.matmul(a, b)


def exported(a: tuple[int, ...], b: tuple[int, ...], shapes: Any) -> tuple[list[str], Any]:
    """The operators that are written for sizes, and what runs the file."""
    program = dy2st.onnx.export(product, (torch.ones(a), torch.ones(b)), dynamic_shapes=shapes)
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    return [node.op_type for node in program.model_proto.graph.node if node.op_type != "Constant"], session


def agree(session: Any, a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """The file computes what eager does."""
    left, right = torch.randn(a), torch.randn(b)
    (found,) = session.run(None, {"a": left.numpy(), "b": right.numpy()})
    torch.testing.assert_close(torch.from_numpy(found), product(left, right))


@pytest.mark.parametrize(
    ("a", "b", "shapes"),
    [
        ((1, 2, 3), (None, 3, 4), (None, N)),
        ((2, 3), (None, 3, 4), (None, N)),
        ((3,), (None, 3, 4), (None, N)),
        ((2, 3), (None, 6, 3, 4), (None, N)),
        ((None, 3, 4), (1, 4, 2), (N, None)),
        ((None, 3, 4), (4, 2), (N, None)),
        ((1, 1, 2, 3), (None, None, 3, 4), (None, BOTH)),
        ((None, 1, 2, 3), (1, None, 3, 4), (N, {1: Dim.DYNAMIC})),
    ],
)
def test_a_batch_of_none_one_and_many(a: tuple[Any, ...], b: tuple[Any, ...], shapes: Any) -> None:
    """One file is right for all of them."""

    def sized(given: tuple[Any, ...], n: int) -> tuple[int, ...]:
        return tuple(n if size is None else size for size in given)

    _, session = exported(sized(a, 5), sized(b, 5), shapes)
    for n in (0, 1, 5):
        agree(session, sized(a, n), sized(b, n))


@pytest.mark.parametrize(
    ("b", "shapes"),
    [
        ((5, 3, 4), None),
        ((5, 3, 4), (None, {0: Dim("n", min=1)})),
        ((5, 3, 4), ({1: Dim.DYNAMIC}, {2: Dim.DYNAMIC})),
    ],
)
def test_a_batch_that_is_never_none_is_one_node(b: tuple[int, ...], shapes: Any) -> None:
    """Nothing is written beside the product."""
    kinds, session = exported((1, 2, 3), b, shapes)
    assert kinds == ["MatMul"]
    agree(session, (1, 2, 3), b)
