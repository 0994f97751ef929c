"""Rows 42, 45 and 59: data-dependent sizes meet static ones, or those of another tensor, in a function of torch."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import onnxruntime
import pytest
import torch
from harness import agree, dyn, refuses, row
from onnxruntime.capi import onnxruntime_pybind11_state
from torch import Tensor
from torch.nn import functional

import dy2st.onnx
from dy2st.calls.torch_functions.broadcasting import TOGETHER

FAILURES = tuple(getattr(onnxruntime_pybind11_state, name) for name in ("Fail", "InvalidArgument", "RuntimeException"))


def difference(x: Tensor) -> Tensor:
    return x[x > 0] - torch.tensor([1.0, 2.0, 3.0])


def filled(x: Tensor) -> Tensor:
    return x[x > 0].masked_fill(x[x > -2] > 1.5, 7.0)


INPUTS = [
    torch.tensor(v)
    for v in (
        [1.0, 2.0, 3.0, -5.0],
        [4.0, -5.0, 2.0, 3.0, -6.0],
        [1.0, -2.0, -3.0],
        [1.0, 2.0, 3.0, 4.0],
        [3.0, -1.0, 4.0],
        [-3.0],
    )
]


@row(59)
@pytest.mark.parametrize("model", [difference, filled])
def test_sizes_that_an_operator_takes_to_be_equal_are_compared_when_the_graph_runs(
    model: Callable[[Tensor], Tensor], tmp_path: Any
) -> None:
    file = tmp_path / "model.onnx"
    dy2st.onnx.export(model, (INPUTS[0],), file, dynamic_shapes=(dyn(0),))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(file, options)
    same = 0
    for given in INPUTS:
        try:
            (found,) = session.run(None, {session.get_inputs()[0].name: given.numpy()})
        except FAILURES:
            continue
        # What the file gives is what eager gives: where sizes do not fit, it fails, as eager does.
        torch.testing.assert_close(torch.from_numpy(found), model(given), rtol=0, atol=0)
        same += 1
    assert same >= 2


@row(42)
def test_a_try_for_exceptions_that_no_size_raises_does_not_matter() -> None:
    def model(x: Tensor) -> Tensor:
        kept = torch.zeros(5)
        rows = x[x > 0]
        at = torch.arange(rows.shape[0])
        try:
            kept.index_copy_(0, at, rows)
        except NotImplementedError:
            kept[at] = rows
        return kept

    agree(model, [(each,) for each in INPUTS], (dyn(0),), whole=False, paths=1)


@row(42)
def test_a_try_that_takes_what_a_size_raises_is_refused() -> None:
    def model(x: Tensor) -> Tensor:
        try:
            return x[x > 0].view(2, -1).sum(1)
        except RuntimeError:
            return x[:2]

    assert refuses(model, (INPUTS[0],), (dyn(0),)).code == "D2S236"


@pytest.mark.slow
@row(59)
def test_attention_is_causal_by_a_size() -> None:
    def model(x: Tensor) -> Tensor:
        query = x[None, None, :, None] * torch.ones(4)
        keys = torch.cat([query, query * 2], 2)
        for _ in range(2):
            rows = query[:, :, : int((x > 0).sum())]
            causal = rows.shape[2] > 1
            query = query + functional.scaled_dot_product_attention(rows, keys, keys, is_causal=causal).sum()
        return query

    agree(model, [(torch.tensor(v),) for v in ([1.0, 2.0, 3.0], [1.0, -2.0, -3.0])], (dyn(0),), whole=False, paths=1)


@row(45)
def test_a_case_for_which_eager_raises_is_left_out() -> None:
    class Reduced:
        def sizes(self, losses: Any) -> None:
            assert torch.is_tensor(losses)
            assert len(losses) > 0

        def known(self, losses: Any) -> int:
            self.sizes(losses)
            return len(losses)

    def model(x: Tensor) -> Any:
        losses = 0 if x.max() < 1 else x * 2
        reduced = Reduced()
        if (not torch.is_tensor(losses)) and losses == 0:
            return x.sum() * 0
        return (losses / reduced.known(losses)).sum()

    agree(model, [(torch.tensor(v),) for v in ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0])], (dyn(0),), whole=False)


def one_of_data(x: Tensor) -> Any:
    found = x[x > 0]
    return torch.minimum(torch.arange(4.0), found[-1:]), found[:1] * torch.ones(3), torch.ones(2, 4) + found[None, -1:]


def one_of_a_size(x: Tensor) -> Any:
    return torch.minimum(torch.arange(4.0), x[-1:]), x[:1] * torch.ones(3), x[:1].expand(5), x[None, :1].expand(3, 2)


@row(59)
@pytest.mark.parametrize("model", [one_of_data, one_of_a_size])
def test_a_size_of_none_or_one_beside_more(model: Callable[[Tensor], Any]) -> None:
    agree(model, [(torch.ones(3),), (torch.tensor([9.0]),), (torch.arange(4.0),)], (dyn(0),), paths=1)


@row(42)
def test_a_cut_beside_the_whole() -> None:
    def rows(x: Tensor) -> Any:
        y = x - x[:1]
        joined = torch.where(x > x[:1], x, x[-1:])
        return y, y / x[-1:], x.narrow(0, 0, 0) * x[:1], x[None] - x[-1:][:, None], joined, x.clone().add_(x[:1])

    agree(rows, [(torch.arange(3.0) + 1,), (torch.tensor([9.0]),), (torch.ones(0),)], (dyn(0),), paths=1)

    def columns(x: Tensor) -> Any:
        return (x - x[:1]) * 2, x[:, :1] * x, x[:, -1:].expand(-1, 3)

    given = [(torch.arange(float(n * m)).view(n, m),) for n, m in ((3, 3), (1, 4), (0, 3), (2, 1))]
    agree(columns, given, (dyn(0, 1),), paths=1)


FEW: dict[str, Callable[[Tensor], Tensor]] = {
    "a hundredth": lambda x: x[: x.shape[0] // 100],
    "a remainder": lambda x: x[: x.shape[0] % 7],
    "what is beyond": lambda x: x[60:],
    "two": lambda x: x[:2],
    "all but one": lambda x: x[1:],
    "of data": lambda x: x[: int(x.max())],
}


@row(42)
@pytest.mark.parametrize("few", FEW.values(), ids=FEW.keys())
def test_a_size_that_is_small_for_small_sizes_is_not_taken_for_one(few: Callable[[Tensor], Tensor]) -> None:
    """A file gives what eager gives, or fails: for sizes, too, that nobody would try."""

    def model(x: Tensor) -> Tensor:
        return few(x) * torch.arange(1.0, 4.0) + few(x)[:1]

    try:
        program = dy2st.onnx.export(model, (torch.ones(5),), dynamic_shapes=(dyn(0),))
    except dy2st.errors.Dy2stError:
        return
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString(), options)
    for n in (0, 1, 2, 3, 5, 8, 61, 63, 100, 150, 300, 350):
        x = torch.arange(float(n)) % 4
        try:
            (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        except FAILURES:
            continue
        torch.testing.assert_close(torch.from_numpy(found), model(x))


@row(42)
def test_a_view_of_one_element_stays_a_view() -> None:
    def model(x: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
        x = x * 2
        first = x[:1].expand(3)
        x += 1
        return first, x

    agree(model, [(torch.ones(n), torch.ones(3)) for n in (4, 1, 2)], (dyn(0), None), paths=1)

    def beside(x: Tensor) -> tuple[Tensor, Tensor]:
        x = x * 2
        first = x[:1].expand_as(x)
        x += 1
        return first + 0, x

    try:
        agree(beside, [(torch.ones(n),) for n in (4, 1, 2)], (dyn(0),), paths=1)
    except dy2st.errors.Dy2stError as refused:
        assert refused.code == "D2S303"  # noqa: PT017


OPERANDS: list[list[tuple[int, ...]]] = [
    *([(3, 1), (1, 4)], [(3, 4), (1, 4)], [(4,), (1,)], [(1,), (4,)]),
    *([(3, 1), (1, 4), (3, 4)], [(3, 4), (1, 4), (3, 1)]),
]


def broadcasts(name: str) -> set[bool]:
    """Whether what a function gives has the shape of its operands together; empty if it takes none of these."""
    homes: tuple[Any, ...] = (torch, Tensor, torch.special)
    function: Any = next(getattr(each, name) for each in homes if hasattr(each, name))
    found = set()
    for shapes, dtype in itertools.product(OPERANDS, (torch.float32, torch.int64, torch.bool)):
        try:
            result = function(*(torch.ones(shape, dtype=dtype) for shape in shapes))
        except (TypeError, RuntimeError, IndexError):
            continue
        together = torch.broadcast_shapes(*shapes)
        found |= {each.shape == together for each in ([result] if torch.is_tensor(result) else ())}
    return found


def test_what_is_said_to_broadcast_does() -> None:
    tried = {name: found for name in TOGETHER if (found := broadcasts(name))}
    assert [name for name, found in tried.items() if found != {True}] == []
    assert len(tried) > 0.8 * len(TOGETHER)
    assert False in broadcasts("quantile")


@row(42)
def test_quantiles_are_not_broadcast() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        return torch.quantile(x, x[:1].clamp(0, 1)), x.nanquantile(x[-1:].clamp(0, 1))

    agree(model, [(torch.linspace(0.1, 0.9, n),) for n in (4, 1, 7)], (dyn(0),), paths=1)
