"""What is counted or gathered by index, distances of pairs and exponentials of matrices in ONNX, against eager."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import onnxruntime
import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st

D = {0: Dim.DYNAMIC}
NUMBERS = [torch.tensor(values, dtype=torch.int64) for values in ([1, 3, 3, 0, 2], [2], [], [0, 7])]


def run_all(model: Callable[..., Any], *calls: Sequence[Tensor], shapes: Any) -> list[Tensor | Exception]:
    """What the exported model (of the first call) gives for each call, or how it fails."""
    program = dy2st.onnx.export(model, tuple(calls[0]), dynamic_shapes=shapes)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString(), options)
    found: list[Tensor | Exception] = []
    for args in calls:
        feeds = {i.name: a.numpy() for i, a in zip(session.get_inputs(), args, strict=True)}
        try:
            found.append(torch.from_numpy(session.run(None, feeds)[0]))
        except Exception as error:  # noqa: BLE001 - whatever onnxruntime raises
            found.append(error)
    return found


def agree(
    model: Callable[..., Any], *calls: Sequence[Tensor], shapes: Any, rtol: float = 1e-5, atol: float = 1e-6
) -> None:
    """The exported model computes what eager does, and fails where eager raises."""
    for args, found in zip(calls, run_all(model, *calls, shapes=shapes), strict=True):
        try:
            wanted = model(*args)
        except RuntimeError:
            assert isinstance(found, Exception)
            continue
        torch.testing.assert_close(found, wanted, rtol=rtol, atol=atol, equal_nan=True)


def test_counts() -> None:
    def model(n: Tensor) -> Tensor:
        return torch.bincount(n)

    agree(model, *[(n,) for n in NUMBERS], (torch.tensor([1, -1]),), shapes=(D,))
    agree(lambda n: torch.bincount(n.to(torch.uint8), minlength=3), *[(n,) for n in NUMBERS], shapes=(D,))


def test_counts_with_as_many_bins_as_something_has() -> None:
    def model(n: Tensor, x: Tensor) -> Tensor:
        return torch.bincount(n, minlength=x.shape[0])

    agree(model, *[(n, torch.ones(k)) for n in NUMBERS for k in (3, 9, 0)], shapes=(D, D))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32])
def test_sums_of_weights(dtype: torch.dtype) -> None:
    def model(n: Tensor, w: Tensor) -> Tensor:
        return torch.bincount(n, w, minlength=2)

    calls = [(n, (torch.arange(len(n)) * 3 - 1).to(dtype)) for n in NUMBERS if len(n)]
    agree(model, *calls, shapes=(D, D))
    nothing = run_all(model, *calls, (NUMBERS[2], torch.zeros(0, dtype=dtype)), shapes=(D, D))[-1]
    assert isinstance(nothing, Exception)  # eager gives integers


def test_histograms_of_the_range_of_the_data() -> None:
    rows: tuple[list[float], ...] = ([1.0, 2.0, -1.0, 0.3], [2.0, 2.0], [], [1.0, math.inf], [1.0, math.nan])
    agree(lambda x: torch.histc(x, 4), *[(torch.tensor(r),) for r in rows], shapes=(D,))
    agree(lambda x: torch.histc(x, 5, -1, 1), *[(torch.tensor(r),) for r in rows], shapes=(D,))


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_reductions_by_index(reduce: str, include_self: bool) -> None:
    calls = [
        (torch.tensor([0.5, -2.0, 3.0, 1.5]), torch.tensor([1, 1, 4, 0])),
        (torch.tensor([math.nan, 1.0]), torch.tensor([2, 2])),
        (torch.zeros(0), torch.zeros(0, dtype=torch.int64)),
    ]

    def floats(x: Tensor, i: Tensor) -> Tensor:
        return torch.ones(5).scatter_reduce(0, i, x, reduce, include_self=include_self)

    def numbers(x: Tensor, i: Tensor) -> Tensor:
        values = (4 * x).nan_to_num().to(torch.int64)
        return torch.full((5,), -3).scatter_reduce(0, i, values, reduce, include_self=include_self)

    agree(floats, *calls, shapes=(D, D))
    agree(numbers, *calls, shapes=(D, D))


def test_reductions_by_an_index_that_is_smaller_than_the_source() -> None:
    def model(x: Tensor, i: Tensor) -> Tensor:
        return torch.ones(3, 5).scatter_reduce(1, i, x, "mean")

    calls = [(torch.arange(18.0).reshape(3, 6), torch.tensor([[1, 1, 4], [0, 1, 0]]))]
    calls.append((torch.arange(9.0).reshape(3, 3), torch.tensor([[2], [3]])))
    agree(model, *calls, shapes=({1: Dim.DYNAMIC}, {1: Dim.DYNAMIC}))
    agree(lambda x, i: x.scatter_reduce(0, i, x + 1, "amax"), (torch.tensor(2.0), torch.tensor(0)), shapes=None)


@pytest.mark.filterwarnings("ignore:index_reduce")
def test_reductions_of_slices_by_index() -> None:
    def model(x: Tensor, i: Tensor) -> Tensor:
        kept = torch.ones(3, 5).index_reduce(1, i, x, "prod")
        return kept.index_reduce_(1, i, x, "mean", include_self=False)

    calls = [(torch.arange(3.0 * n).reshape(3, n), torch.arange(n) % 3) for n in (4, 7, 1)]
    agree(model, *calls, shapes=({1: Dim.DYNAMIC}, D))


def test_distances_of_pairs() -> None:
    calls = [(torch.arange(2.0 * n).reshape(n, 2).sin(),) for n in (4, 2, 1, 0)]
    for p in (2.0, 1.0, 3.0):
        agree(lambda x, p=p: torch.pdist(x, p), *calls, shapes=(D,))


def test_exponentials_of_matrices() -> None:
    def square(n: int, scale: float) -> tuple[Tensor]:
        return (scale * torch.arange(2.0 * n * n).reshape(2, n, n).sin(),)

    def exponential(x: Tensor) -> Tensor:
        return torch.linalg.matrix_exp(x)

    both = ({1: Dim.DYNAMIC, 2: Dim.DYNAMIC},)
    calls = [square(3, 1.0), square(2, 20.0), square(5, 0.01), square(1, 3.0)]
    agree(exponential, *calls, shapes=both, rtol=1e-3, atol=1e-4)
    agree(lambda x: torch.matrix_exp(x.double()), *calls, shapes=both, rtol=1e-9, atol=1e-9)


def test_flags_are_chosen() -> None:
    def model(x: Tensor) -> Tensor:
        seen = [False] * len(x)
        for i in range(len(x)):
            if x[i] >= x[0]:
                seen[i] = True
        return torch.tensor(sum(seen))

    agree(model, (torch.tensor([1.0, 2.0, 0.0]),), (torch.tensor([3.0]),), shapes=(D,))


def test_places_of_what_is_not_zero() -> None:
    """A number has no dimensions, so its place has no coordinates."""

    def model(x: Tensor) -> Any:
        return x.nonzero(), torch.argwhere(x.sum()), x.max().nonzero(as_tuple=True)

    report = dy2st.check(model, [(torch.tensor([[0.0, 2.0], [math.nan, 0.0]]),), (torch.zeros(2, 2),)])
    assert report.ok, str(report)


def test_nan_where_something_is_gathered_and_in_distances() -> None:
    index = torch.tensor([0, 0, 1, 1])

    def model(x: Tensor) -> Any:
        finite = x.nan_to_num()
        return (
            x.scatter_reduce(0, index, finite, "amax"),
            x.index_reduce(0, index, finite, "amin"),
            x.scatter_reduce(0, index, finite, "amin", include_self=False),
            torch.cdist(x[:, None], x[:, None], 0),
        )

    report = dy2st.check(
        model, [(torch.tensor([1.0, math.nan, 3.0, 3.0]),), (torch.tensor([1e-42, 2.0, 3.0, math.nan]),)]
    )
    assert report.ok, str(report)
