"""Products of matrices with factors: none is rounded to a single, and an addend of factor zero is not read."""

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import dy2st

A, B, V = torch.rand(3, 4) + 0.1, torch.rand(4, 5) + 0.1, torch.rand(4) + 0.1
BATCH = torch.stack([A, 2 * A]), torch.stack([B, -B])

WITH_ADDENDS: dict[str, tuple[Tensor, ...]] = {
    "addmm": (torch.rand(3, 5), A, B),
    "addmv": (torch.rand(3), A, V),
    "addr": (torch.rand(4, 4), V, V),
    "baddbmm": (torch.rand(2, 3, 5), *BATCH),
    "addbmm": (torch.rand(3, 5), *BATCH),
}


def outcome(model: Callable[..., Tensor], args: tuple[Tensor, ...]) -> str:
    report = dy2st.check(model, [args])
    return report.outcome if report.outcome == "equal" else str(report)


@pytest.mark.parametrize("name", WITH_ADDENDS)
def test_the_factors_of_a_product_and_its_addend(name: str) -> None:
    function, args = getattr(torch, name), WITH_ADDENDS[name]
    pairs = [(0.6, 0.2), (1, 0.3), (2, 1), (0, 3)]

    def model(addend: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return tuple(function(addend, x, y, beta=beta, alpha=alpha) for beta, alpha in pairs)

    whole = [(10 * each).long() for each in args]
    missing = args[0].clone()
    missing.view(-1)[0] = float("nan")
    pairs_of_ints = [(2, 3), (0, 1), (1, 1)]
    for dtype in (torch.float32, torch.float64):
        for addend in (args[0], missing):
            assert outcome(model, tuple(each.to(dtype) for each in (addend, *args[1:]))) == "equal"
    pairs = pairs_of_ints
    assert outcome(model, tuple(whole)) == "equal"


def test_the_factor_of_an_addend_beside_a_product_of_nothing() -> None:
    def model(addend: Tensor, x: Tensor, y: Tensor) -> Tensor:
        return torch.addmm(addend, x, y, beta=0.6)

    empty = torch.rand(5), torch.zeros(3, 0), torch.zeros(0, 5)
    assert outcome(model, empty) == "equal"
    report = dy2st.check(model, [(torch.rand(5), A, B), empty], dynamic_shapes=(None, {1: "k"}, {0: "k"}))
    assert report.outcome == "equal", str(report)


FACTORS: list[Callable[[Tensor, Tensor], Tensor]] = [
    lambda x, y: (x @ y) * 0.2,
    lambda x, y: 0.2 * (x @ y),
    lambda x, y: (x @ y) / 3,
    lambda x, y: (0.3 * x) @ y,
    lambda x, y: x @ (y.T * 0.3).T,
    lambda x, y: (x @ y).T * 0.1,
    lambda x, y: (x[None] @ y[None]) * 0.2,
    lambda x, y: (x[:1] @ y[:, :1]) * 0.2,
    lambda x, y: (x @ y[:, :1]) * 0.2,
]


@pytest.mark.parametrize(("model", "dynamic"), list(itertools.product(FACTORS, [False, True])))
def test_a_factor_of_a_product_of_doubles_is_no_single(model: Callable[..., Tensor], dynamic: bool) -> None:
    shapes = ({0: "rows"}, {1: "columns"}) if dynamic else None
    report = dy2st.check(model, [(A.double(), B.double())], dynamic_shapes=shapes, rtol=1e-14, atol=1e-14)
    assert report.outcome == "equal", str(report)
