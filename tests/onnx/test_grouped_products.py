"""``grouped_mm``: the groups of rows of a mixture of experts, each with a matrix of its own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

import dy2st


def ends(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.int32)


def product(a: Tensor, b: Tensor, offs: Tensor) -> Tensor:
    return F.grouped_mm(a, b, offs=offs)


def routed(a: Tensor, b: Tensor, chosen: Tensor) -> Tensor:
    """Rows in the order of their experts, and back, as in a mixture of experts."""
    order = torch.argsort(chosen)
    counts = torch.bincount(chosen, minlength=3)
    found = torch._grouped_mm(a[order], b, offs=counts.cumsum(0).to(torch.int32))
    return torch.empty_like(found).index_copy_(0, order, found)


WEIGHTS = torch.randn(3, 4, 8)
ROWS = ({0: torch.export.Dim("t")}, None, None)


def test_rows_that_are_data() -> None:
    inputs = [(torch.randn(n, 4), WEIGHTS, ends(*e)) for n, e in ((6, (2, 2, 6)), (5, (1, 4, 5)), (9, (0, 0, 9)))]
    assert dy2st.check(product, inputs, dynamic_shapes=ROWS).outcome == "equal"


def test_rows_of_experts() -> None:
    inputs = [(torch.randn(4, 4), WEIGHTS, torch.tensor(c)) for c in ([2, 0, 1, 0], [1, 1, 1, 1], [0, 2, 2, 0])]
    assert dy2st.check(routed, inputs).outcome == "equal"


@pytest.mark.parametrize("shapes", [((3, 4, 4), (4, 8)), ((4, 8), (8, 4))])
def test_columns_and_parts(shapes: Any) -> None:
    inputs = [(torch.randn(shapes[0]), torch.randn(shapes[1]), ends(*e)) for e in ((1, 3, 8), (4, 4, 8))]
    assert dy2st.check(product, inputs).outcome == "equal"


def test_stacks() -> None:
    def model(a: Tensor, b: Tensor) -> Tensor:
        return F.grouped_mm(a, b)

    assert dy2st.check(model, [(torch.randn(3, 4, 4), torch.randn(3, 4, 8))]).outcome == "equal"
