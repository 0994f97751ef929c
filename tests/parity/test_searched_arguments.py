"""A search tries the tensors of any arguments: in containers, behind ``*args``, beside Python values that stay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence

import dy2st
from dy2st.parity.call_form import CallForm
from dy2st.parity.inputs import input_sets

TWO = torch.tensor([1.0, 2.0])
MORE = torch.tensor([-1.0, 2.0, 0.5])


@dataclass
class Options:
    """A value, and a tensor."""

    scale: float
    shift: Tensor


def values(x: Tensor, k: int = 2, *, mode: str = "sum", mask: Tensor | None = None) -> Tensor:
    if x.sum() > 40 * k:
        x = x / k
    return x.amax() if mode == "max" else x if mask is None else x * mask


def nested(state: tuple[Tensor, Any], opts: dict[str, Any]) -> Tensor:
    x, inner = state
    if (x * opts["w"]).sum() > 30:
        x = x - inner[0]
    return x * opts["k"]


def several(first: Tensor, *rest: Tensor) -> Tensor:
    for each in rest:
        if each.sum() > 25:
            first = first + each
    return first


def of_options(x: Tensor, options: Options) -> Tensor:
    if (x + options.shift).sum() > 20:
        x = x * options.scale
    return x


CASES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "values": (values, [(TWO,), (MORE,)]),
    "values_by_name": (values, [{"x": TWO, "k": 3, "mode": "max"}, {"mode": "max", "x": MORE, "k": 3}]),
    "none": (values, [(TWO, 2), (MORE, 2)]),
    "nested": (nested, [((TWO, [TWO * 2, None]), {"w": TWO, "k": 3}), ((MORE, [MORE, None]), {"w": MORE, "k": 3})]),
    "several": (several, [(TWO, TWO, TWO), (MORE, MORE, MORE)]),
    "dataclass": (of_options, [(TWO, Options(2.0, TWO)), (TWO * 3, Options(2.0, TWO))]),
}


@pytest.mark.parametrize("name", CASES)
def test_missing_paths_are_found_whatever_the_arguments_are(name):
    model, sets = CASES[name]
    report = dy2st.check(model, sets, search=3)
    assert report.ok, str(report)
    assert not [line for site in report.paths for _, line in site.missed()], str(report)
    assert len(report.inputs) > len(sets)


class Mean(nn.Module):
    """A state, and what it is called with in several forms."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(2))

    def forward(self, rate: float, *rows: Tensor) -> Tensor:
        for row in rows:
            self.mean = self.mean + rate * (row - self.mean)
        if self.mean.sum() > 9:
            self.mean = self.mean * 0.5
        return self.mean


@pytest.mark.slow
def test_calls_in_a_row_have_their_values_too():
    report = dy2st.check(Mean(), [(0.5, TWO, TWO)], search=3)
    assert report.ok, str(report)
    assert not [line for site in report.paths for _, line in site.missed()], str(report)


def test_a_form_takes_what_is_alike_and_gives_it_back():
    first, second, other = input_sets([(TWO, 2), (MORE, 2), (MORE, 3)])
    form = CallForm.of(values, first)
    assert form.tensor_names == ["x"]
    assert form.tensors(other) is None
    found = form.tensors(second)
    assert found is not None
    assert form.filled("0", found).args == second.args


def test_a_packed_sequence_stays_as_it_is():
    packed = pack_sequence([torch.ones(3, 2), torch.ones(1, 2)])

    def model(packed: PackedSequence, x: Tensor) -> Tensor:
        return packed.data.sum() * x

    form = CallForm.of(model, input_sets([(packed, TWO)])[0])
    assert form.tensor_names == ["x"]
    assert form.filled("0", {"x": MORE}).args[0] is packed
