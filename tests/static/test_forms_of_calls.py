"""A decorator that takes ``*args`` and ``**kwargs`` sees in which form each argument is given, and which are not."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dy2st
from dy2st.errors import SavedCallError

X = torch.ones(2)


def counting(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Tensor:
        by = 10.0 if "scale" in kwargs else 1.0
        positional = sum(isinstance(each, float) for each in args)
        if not positional:
            kwargs.setdefault("scale", 2.0)
        return function(*args, **kwargs) * by * (1 + positional)

    return wrapper


@counting
def of_a_function(x: Tensor, scale: float = 2.0) -> Tensor:
    return x * scale if x.sum() > 0 else x - scale


class Model(nn.Module):
    @counting
    def forward(self, x: Tensor, scale: float = 2.0) -> Tensor:
        return x * scale if x.sum() > 0 else x - scale


class Owner:
    @dy2st.to_static
    @counting
    def method(self, x: Tensor, scale: float = 2.0) -> Tensor:
        return x * scale if x.sum() > 0 else x - scale


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((X,), {}),
    ((X,), {"scale": 2.0}),
    ((X, 2.0), {}),
    ((X, 3.0), {}),
    ((-X,), {"scale": 3.0}),
    ((), {"x": X}),
]


@pytest.mark.parametrize(
    ("eager", "static"),
    [
        (of_a_function, dy2st.to_static(of_a_function)),
        (Model(), dy2st.to_static(Model())),
        (functools.partial(of_a_function), Owner().method),
    ],
    ids=["function", "module", "method"],
)
def test_each_call_is_as_in_eager(eager: Callable[..., Tensor], static: Callable[..., Tensor]) -> None:
    for _ in range(2):
        for args, kwargs in CALLS:
            torch.testing.assert_close(static(*args, **kwargs), eager(*args, **kwargs))
    with pytest.raises(TypeError):
        static(X, 2.0, scale=3.0)


def test_saved_programs_are_for_calls_of_their_form(tmp_path: Path) -> None:
    static = dy2st.to_static(of_a_function)
    for args, kwargs in CALLS[:3]:
        static(*args, **kwargs)
    dy2st.save(static, tmp_path / "saved.d2s")
    loaded = dy2st.load(tmp_path / "saved.d2s")
    for args, kwargs in CALLS[:3]:
        torch.testing.assert_close(loaded(*args, **kwargs), of_a_function(*args, **kwargs))
    with pytest.raises(SavedCallError):
        loaded(X, scale=5.0)


def test_specs_are_of_what_is_decorated() -> None:
    static = dy2st.to_static(of_a_function, input_spec={"x": (("n",), torch.float32)})
    for n in (2, 5):
        torch.testing.assert_close(static(torch.ones(n)), of_a_function(torch.ones(n)))
