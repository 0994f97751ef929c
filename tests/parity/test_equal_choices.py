"""torch has no order of equal elements: which of them a file names is no difference, and all else is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import dy2st
from dy2st.parity.causes import Causes
from dy2st.parity.equal_choices import FirstOfEquals, chooses_among_equals
from dy2st.parity.exact_runs import ExactDecisions
from dy2st.parity.inputs import InputSet
from dy2st.parity.outputs import flat_outputs
from dy2st.parity.stages import eager_reference

CALLS: dict[str, Callable[[Tensor, int], Any]] = {
    "topk": lambda x, d: x.topk(2, d),
    "least": lambda x, d: x.topk(3, d, largest=False),
    "unsorted": lambda x, d: x.topk(3, d, sorted=False),
    "sort": lambda x, d: x.sort(d),
    "descending": lambda x, d: x.sort(d, descending=True),
    "kthvalue": lambda x, d: x.kthvalue(2, d),
    "kthvalue kept": lambda x, d: x.kthvalue(3, d, keepdim=True),
    "mode": lambda x, d: x.mode(d),
    "mode kept": lambda x, d: x.mode(d, keepdim=True),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("shape", [(5,), (40,), (4, 20), (20, 3)])
def test_what_is_named_instead_is_as_right(name, shape):
    x = torch.randint(0, 3, shape, generator=torch.Generator().manual_seed(7)).float()
    x[x == 1] = torch.nan
    for dim in range(-x.dim(), x.dim()):
        values, places = CALLS[name](x, dim)
        with FirstOfEquals():
            others, found = CALLS[name](x, dim)
        if values.dim() < x.dim():
            values, others, found = (each.unsqueeze(dim) for each in (values, others, found))
        assert places.dtype == found.dtype
        assert torch.equal(x.gather(dim, found).nan_to_num(9), others.nan_to_num(9))
        if name == "unsorted":
            values, others = values.sort(dim).values, others.sort(dim).values
        assert torch.equal(values.nan_to_num(9), others.nan_to_num(9))
        rows = found.movedim(dim, -1).reshape(-1, found.shape[dim])
        assert all(len(set(row.tolist())) == row.numel() for row in rows)


def test_the_first_of_equals():
    x = torch.tensor([2.0, 3.0, 3.0, 1.0, 3.0])
    with FirstOfEquals():
        assert x.topk(2).indices.tolist() == [1, 2]
        assert x.sort(descending=True).indices.tolist() == [1, 2, 4, 0, 3]
        assert x.kthvalue(4).indices.item() == 2
        assert x.mode().indices.item() == 4
        assert x.argsort().tolist() == [3, 0, 1, 2, 4]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: torch.ones(3).topk(1), True),
        (lambda: torch.tensor([3.0, 1.0, 1.0]).topk(1), False),  # what is equal is not among the best
        (lambda: torch.tensor([3.0, 1.0, 1.0]).topk(2), True),
        (lambda: torch.tensor([3.0, 1.0, 1.0]).topk(1, largest=False), True),
        (lambda: torch.tensor([[1.0, 2.0], [1.0, 3.0]]).topk(1, 1), False),  # equal elements of other rows
        (lambda: torch.tensor([[1.0, 2.0], [1.0, 3.0]]).topk(1, 0, largest=False), True),
        (lambda: torch.tensor([3.0, 1.0, 2.0]).topk(2, sorted=False), True),
        (lambda: torch.tensor([1, 2, 1]).sort(), True),
        (lambda: torch.tensor([1, 2, 1]).sort(stable=True), False),
        (lambda: torch.tensor([1, 2, 3]).sort(), False),
        (lambda: torch.tensor([torch.nan, torch.nan, 1.0]).sort(), True),
        (lambda: torch.tensor([1.0, 1.0, 2.0]).kthvalue(3), False),
        (lambda: torch.tensor([1.0, 1.0, 2.0]).kthvalue(2), True),
        (lambda: torch.tensor(1.0).topk(1), False),
        (lambda: torch.empty(0).sort(), False),
        (lambda: torch.ones(3).max(0), False),
        (lambda: torch.ones(3).argmax(), False),
    ],
)
def test_where_others_are_as_right(call, expected):
    class Asked(ExactDecisions):
        found = False

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            self.found |= chooses_among_equals(func, args, kwargs or {}, result)
            return result

    with Asked() as asked:
        call()
    assert asked.found is expected


def best(x: Tensor) -> tuple[Tensor, Tensor]:
    values, places = x.topk(2)
    while values[0] > 1.0:
        values = values / 2
    return values, places


def test_a_search_takes_no_order_of_equals_for_a_difference():
    n = torch.export.Dim("n", min=2)
    report = dy2st.check(best, [(torch.tensor([3.0, 1.0, 2.0, 0.5]),)], dynamic_shapes=({0: n},), search=5)
    assert report.ok, str(report)


def test_a_given_input_with_equals_says_why_it_differs():
    given = torch.tensor([1.0, 0.5, 1.0, 1.0, 0.5])
    values, places = best(given)
    first = torch.tensor([0, 2])
    causes, reference = Causes(best), eager_reference(best, InputSet("0", (given,)))
    if not torch.equal(places, first):
        said = causes.explain(reference, flat_outputs((values, first)))
        assert "where it takes the first of equal elements; torch's topk" in said
    assert causes.may_be_rounding(reference, flat_outputs((values, first)))
    for wrong in ([0, 1], [0, 0], [1, 3]):
        assert causes.explain(reference, flat_outputs((values, torch.tensor(wrong)))) == "", wrong
