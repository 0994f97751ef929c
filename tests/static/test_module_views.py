"""A static module is a view of the user's module, whichever class that has by now."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize

import dy2st
from dy2st.errors import UsageError

X = torch.tensor([1.0, -2.0, 3.0])


class Doubled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class Other(nn.Linear):
    factor = 3

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * self.factor if x.sum() > 0 else x


def scaled(module: nn.Module) -> None:
    parametrize.register_parametrization(module, "weight", Doubled())


def normed(module: nn.Module) -> None:
    parametrizations.weight_norm(module)


def replaced(module: nn.Module) -> None:
    module.__class__ = Other


def seen(static: bool, through_view: bool, change: Callable[[Any], None]) -> list[Any]:
    torch.manual_seed(0)
    net: Any = nn.Linear(3, 3)
    view = dy2st.to_static(net) if static else net
    found = [view(X)]
    change(view if through_view else net)
    for each in (view, net):
        found += [each(X), each.weight, type(each).__name__, each.__class__.__name__, isinstance(each, type(net))]
        each(X).sum().backward()
        found += [parameter.grad for parameter in net.parameters()]
        net.zero_grad()
    found += [sorted(net.state_dict()), sorted(view.state_dict())]
    return found


@pytest.mark.parametrize("change", [scaled, normed, replaced])
@pytest.mark.parametrize("through_view", [False, True])
def test_a_class_that_the_module_gets_is_the_views_as_well(change: Any, through_view: bool) -> None:
    expected, actual = (seen(static, through_view, change) for static in (False, True))
    assert len(expected) == len(actual)
    for one, two in zip(expected, actual, strict=True):
        if isinstance(one, Tensor):
            torch.testing.assert_close(two, one, rtol=0, atol=0)
        else:
            assert two == one


def test_an_attribute_of_a_class_that_the_module_has_got() -> None:
    net = nn.Linear(3, 3)
    view = dy2st.to_static(net)
    scaled(net)
    torch.testing.assert_close(view.weight, net.weight)
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        _ = view.other


def test_a_lazy_module_becomes_what_it_is_to_become() -> None:
    net: nn.Module = nn.LazyLinear(4)
    view = dy2st.to_static(net)
    view(torch.ones(2, 3))
    assert type(net) is nn.Linear
    assert isinstance(view, nn.Linear)
    torch.testing.assert_close(view(torch.ones(2, 3)), net(torch.ones(2, 3)))


def test_a_view_whose_module_is_gone() -> None:
    view: Any = dy2st.to_static(nn.Linear(3, 3))
    view(X)
    scaled(view)
    expected = torch.nn.functional.linear(X, view.weight, view.bias)
    torch.testing.assert_close(view(X), expected)
    copied = copy.deepcopy(view)
    torch.testing.assert_close(copied(X), expected)


def test_a_view_is_written_and_read() -> None:
    net: Any = nn.Linear(3, 3)
    view = dy2st.to_static(net)
    net.__class__ = Other
    written = io.BytesIO()
    torch.save(view, written)
    written.seek(0)
    read = torch.load(written, weights_only=False)
    torch.testing.assert_close(read(X), net(X))
    assert isinstance(read, Other)


def test_a_view_of_a_view_is_one_of_the_module() -> None:
    net = nn.Linear(3, 3)
    view = dy2st.to_static(dy2st.to_static(net), freeze=True)
    net.weight = nn.Parameter(torch.zeros(3, 3))
    torch.testing.assert_close(view(X), net(X))
    view.bias = None
    assert net.bias is None


def test_a_class_whose_calls_begin_otherwise() -> None:
    class Called(nn.Linear):
        def __call__(self, x: Tensor) -> Any:
            return super().__call__(x) + 1

    net: Any = nn.Linear(3, 3)
    view = dy2st.to_static(net)
    net.__class__ = Called
    with pytest.raises(UsageError, match=r"is of class .*Called by now"):
        view(X)
    torch.testing.assert_close(view(X), net(X))
