"""Code that was rewritten by hand with ``torch.cond`` and ``torch.while_loop`` converts like what it was made of."""

from __future__ import annotations

import pytest
import torch
from harness import agree, row
from torch import Tensor, nn

import dy2st
from dy2st.operators.calls import EAGER_FORMS

pytestmark = pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace:UserWarning")  # eager's own


def doubled(x: Tensor) -> Tensor:
    return x * 2


def lowered(x: Tensor) -> Tensor:
    return x - 1


class Chosen(nn.Module):
    """A condition inside of a method, with parameters in both arms."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        def then(x: Tensor) -> Tensor:
            return self.first(x)

        def orelse(x: Tensor) -> Tensor:
            return self.second(x) * 2

        return torch.cond(x.sum() > 0, then, orelse, [x])


@row(1)
def test_a_condition() -> None:
    def model(x: Tensor) -> Tensor:
        y = torch.cond(x.sum() > 0, doubled, lowered, (x,))
        if y.sum() > 9:
            y = torch.cond(y[0] > 6, lowered, doubled, (y,))
        return y

    agree(model, [(torch.ones(3),), (-torch.ones(3),), (2 * torch.ones(3),), (4 * torch.ones(3),)], whole=False)


@row(1)
def test_a_condition_in_a_module() -> None:
    agree(Chosen(), [(torch.ones(3),), (-torch.ones(3),)], paths=1)


@row(2)
def test_a_loop() -> None:
    def model(x: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
        def goes_on(_: Tensor, x: Tensor) -> Tensor:
            return x.sum() < limit

        def step(count: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            return count + 1, x * 2 + 1

        count, x = torch.while_loop(goes_on, step, (torch.tensor(0), x))
        return x, count

    ones, limit = torch.ones(3), torch.tensor(50.0)
    agree(model, [(ones, limit), (50 * ones, limit), (ones, 2 * limit)], paths=1)


@row(64)
def test_their_arms_and_trips_are_covered_at_the_users_line() -> None:
    EAGER_FORMS.clear()  # as where nothing was converted before

    def model(x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, doubled, lowered, (x,))

    report = dy2st.check(model, [(torch.ones(3),)])
    assert not report.covered
    (site,) = report.paths
    assert (site.file, site.taken) == (__file__, ("then",))
    assert dy2st.check(model, [(torch.ones(3),), (-torch.ones(3),)]).covered


@row(1)
def test_static_functions_run_them() -> None:
    @dy2st.to_static
    def model(x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, doubled, lowered, (x,))

    for x in (torch.ones(3), -torch.ones(3)):
        assert torch.equal(model(x), doubled(x) if x.sum() > 0 else lowered(x))
    assert len(model.programs) == 1
