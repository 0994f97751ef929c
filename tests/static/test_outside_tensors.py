"""Gradients by tensors that code comes by on its own, and by tensors that a call is given twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dy2st
from dy2st.errors import Dy2stError

GLOBAL = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
PARAMETER = nn.Parameter(torch.tensor([3.0, 2.0, 1.0]))
COMPUTED = GLOBAL * 2
SEVERAL = [GLOBAL, PARAMETER, GLOBAL]


class Hundredfold(torch.autograd.Function):
    """Its backward is no derivative of its forward."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor) -> Tensor:
        return weight * 2

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return gradient * 100


def _grad(value: Tensor, by: Any, **options: Any) -> Any:
    return torch.autograd.grad(value.sum(), by, **options)


def in_a_branch(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return _grad(x * GLOBAL * GLOBAL, GLOBAL)[0]  # type: ignore[no-any-return]
    return x * GLOBAL


def in_a_loop(x: Tensor) -> Tensor:
    weight: Tensor = GLOBAL
    while x.sum() > 0.5:
        (gradient,) = _grad(x * weight * weight, weight, create_graph=True)
        x = x * 0.5
        weight = weight - 0.1 * gradient
    return weight


def twice(x: Tensor) -> Tensor:
    (first,) = _grad(PARAMETER**3 * x, PARAMETER, create_graph=True)
    return _grad(first, PARAMETER)[0]  # type: ignore[no-any-return]


def of_a_closure() -> Callable[[Tensor], Any]:
    weight = nn.Parameter(torch.ones(3) * 5)
    return lambda x: _grad(weight * weight * x + PARAMETER, [weight, PARAMETER])


def asked(x: Tensor) -> Tensor:
    y = GLOBAL * x
    return y * 2 if y.requires_grad and y.grad_fn is not None and GLOBAL.is_leaf and not COMPUTED.is_leaf else y


MODELS: dict[str, Callable[..., Any]] = {
    "a global": lambda x: _grad(x * GLOBAL * GLOBAL, [GLOBAL]),
    "a parameter that is used thrice": lambda x: _grad(PARAMETER * PARAMETER * PARAMETER * x, PARAMETER),
    "a list": lambda x: _grad(x * SEVERAL[0] * SEVERAL[1], SEVERAL),
    "one that was computed": lambda x: _grad(x * COMPUTED * COMPUTED, COMPUTED),
    "one that is not used": lambda x: _grad(x * GLOBAL, [GLOBAL, PARAMETER], allow_unused=True),
    "a closure": of_a_closure(),
    "a branch": in_a_branch,
    "a loop": in_a_loop,
    "a gradient of a gradient": twice,
    "functional": lambda x: torch.func.grad(lambda weight: (weight * PARAMETER * x).sum())(PARAMETER),
    "what it wants": asked,
    "itself": lambda x: (GLOBAL, x * GLOBAL.detach()),
    "a function with a backward of its own": lambda x: Hundredfold.apply(PARAMETER) * x,  # type: ignore[no-untyped-call]
}


def _same(actual: Any, expected: Any) -> None:
    for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (actual, expected)), strict=True):
        if other is None:
            assert one is None
            continue
        torch.testing.assert_close(one, other)
        assert one.requires_grad == other.requires_grad
        if other.requires_grad:
            weights = [GLOBAL, PARAMETER]
            found = [_grad(each, weights, allow_unused=True, retain_graph=True) for each in (one, other)]
            torch.testing.assert_close(*found)


@pytest.mark.parametrize("name", MODELS)
def test_gradients_by_tensors_from_outside(name: str) -> None:
    model = MODELS[name]
    static = dy2st.to_static(model)
    for x in (torch.ones(3), -torch.ones(3), torch.full((3,), 2.0)):
        _same(static(x), model(x))


def test_a_tensor_in_the_place_of_another() -> None:
    held = [torch.ones(3, requires_grad=True)]
    model = lambda x: _grad(x * held[0] * held[0], held[0])  # noqa: E731
    static = dy2st.to_static(model)
    for each in (held[0], torch.full((3,), 5.0, requires_grad=True), held[0]):
        held[0] = each
        for _ in range(2):
            _same(static(torch.ones(3)), model(torch.ones(3)))


GIVEN_TWICE: dict[str, Callable[..., Any]] = {
    "two arguments": lambda x, y: _grad(x * y, x),
    "both of them": lambda x, y: _grad(x * y * y, [x, y]),
    "an argument and a global": lambda x, y: _grad(x * GLOBAL + y, GLOBAL),
    "a global and an argument": lambda x, y: _grad(x * GLOBAL + y, x),
}


@pytest.mark.parametrize("name", GIVEN_TWICE)
def test_gradients_by_a_tensor_that_is_given_twice(name: str) -> None:
    model = GIVEN_TWICE[name]
    static = dy2st.to_static(model)
    one, other = (torch.full((3,), value, requires_grad=True) for value in (2.0, 7.0))
    for given in ((one, other), (one, one), (GLOBAL, other), (GLOBAL, GLOBAL), (one, other)):
        for _ in range(2):
            _same(static(*given), model(*given))


def test_which_tensor_it_is() -> None:
    static = dy2st.to_static(lambda x: x * 2 if x is GLOBAL else x)
    assert torch.equal(static(torch.ones(3)), torch.ones(3))
    with pytest.raises(Dy2stError, match="D2S223"):
        static(GLOBAL)
    assert torch.equal(static(torch.ones(3)), torch.ones(3))
