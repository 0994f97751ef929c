"""A static function in calls with gradients, without them, and in inference mode: its code switches them itself."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dy2st
from dy2st.errors import UnsavableError

torch.manual_seed(0)
LINEAR = nn.Linear(3, 3, dtype=torch.float64)
NORM = nn.BatchNorm1d(3, dtype=torch.float64)
X = torch.randn(4, 3, dtype=torch.float64)


def on(x: Tensor) -> Tensor:
    with torch.enable_grad():
        y = LINEAR(x)
        return y * 2 if y.sum() > 0 else y


def on_between(x: Tensor) -> Any:
    before = LINEAR(x) * 2
    with torch.enable_grad():
        y = LINEAR(before) if before.sum() > 0 else before * LINEAR.weight[0]
    return before, y, y * 2, torch.is_grad_enabled()


@torch.enable_grad()
def on_all_over(x: Tensor) -> Any:
    return LINEAR(x) if x.sum() > 0 else LINEAR(-x), torch.is_grad_enabled()


def switched(x: Tensor) -> Any:
    torch.set_grad_enabled(True)
    y = LINEAR(x)
    torch.set_grad_enabled(False)
    return (y if x.sum() > 0 else -y), LINEAR(y)


def asked(x: Tensor) -> Any:
    with torch.enable_grad():
        y = LINEAR(x)
        wants = y.requires_grad
    z = LINEAR(x)
    return y * (2 if wants else 3), z * (2 if z.requires_grad else 3), y if x.sum() > 0 else z


def beside_statistics(x: Tensor) -> Tensor:
    y = NORM(x)
    with torch.enable_grad():
        z = LINEAR(y)
    return z if x.sum() > 0 else z + 1


def on_inside_off(x: Tensor) -> Any:
    with torch.no_grad():
        a = LINEAR(x)
        with torch.enable_grad():
            b = LINEAR(a)
    return a, b, LINEAR(b) if x.sum() > 0 else b


def off_and_back(x: Tensor) -> Any:
    with torch.no_grad():
        a = LINEAR(x)
    return a, LINEAR(a) if x.sum() > 0 else x * 1


def in_a_loop(x: Tensor) -> Tensor:
    with torch.enable_grad():
        while x.norm() < 5:
            x = LINEAR(x) + x * 1.5
    return x


MODELS = [on, on_between, on_all_over, switched, asked, beside_statistics, on_inside_off, off_and_back, in_a_loop]
CALLS = [contextlib.nullcontext, torch.no_grad, torch.inference_mode]


@pytest.fixture(autouse=True)
def _mode() -> Iterator[None]:
    yield
    torch.set_grad_enabled(True)


def results(function: Callable[[Tensor], Any], call: Any, x: Tensor) -> list[Any]:
    """What a call gives: values, and the gradients of the parameters where there are some."""
    with call():
        found = function(x.clone())
    torch.set_grad_enabled(True)
    made: list[Any] = []
    for value in found if isinstance(found, tuple) else (found,):
        if not isinstance(value, Tensor):
            made.append(value)
            continue
        made.append((value.detach().clone(), value.requires_grad))
        if value.requires_grad:
            parameters = list(LINEAR.parameters())
            made += torch.autograd.grad(value.sum(), parameters, allow_unused=True, retain_graph=True)
    return made


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("calls", [*itertools.permutations(CALLS, 2)])
def test_gradients_are_on_where_they_are_in_eager(model: Any, calls: Any) -> None:
    static = dy2st.to_static(model)
    for call, x in itertools.product(calls, (X, -X)):
        torch.testing.assert_close(results(static, call, x), results(model, call, x), rtol=1e-12, atol=1e-12)


def test_what_switches_them_on_is_saved_with_gradients_only(tmp_path: Any) -> None:
    static = dy2st.to_static(on)
    with torch.no_grad():
        static(X)
        with pytest.raises(UnsavableError, match="on switches gradients on"):
            dy2st.save(static, tmp_path / "on.dy2st")
