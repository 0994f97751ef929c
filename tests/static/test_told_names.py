"""What functions and classes say of themselves, and the attributes of a function that is static."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dy2st
from tests.static.adversary import Static
from tests.static.test_pairs import seen

X = torch.tensor([1.0, -2.0, 3.0])


def told_otherwise(model: Any, told: Any) -> Iterator[Any]:
    """What a model gives while what a function or class says of itself changes, one text after the other."""
    yield model(X)
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(told, name, "another text")
        yield model(X)
        yield model(X)
    told.__annotations__["other"] = int
    yield model(X)


def names_of_a_function(static: Static) -> Iterator[Any]:
    def told(x: Tensor, *, a: int = 1) -> Tensor:
        """Five."""
        return x * a

    def length(x: Tensor) -> Tensor:
        texts = told.__name__, told.__qualname__, told.__module__, told.__doc__ or "", told.__annotations__
        return x * sum(map(len, texts))

    yield from told_otherwise(static(length), told)


def names_of_a_class(static: Static) -> Iterator[Any]:
    class Told(nn.Module):
        """Five."""

        size: int

        def forward(self, x: Tensor) -> Tensor:
            cls = type(self)
            texts = cls.__name__, self.__class__.__qualname__, cls.__module__, cls.__doc__ or "", cls.__annotations__
            return x * sum(map(len, texts))

    yield from told_otherwise(static(Told()), Told)


def the_attributes_of_a_decorated_function(static: Static) -> Iterator[Any]:
    @static
    def step(x: Tensor) -> Any:
        """Five."""
        return x * step.factor * len(step.__doc__ or "") * len(step.__name__)

    step.factor = 2
    yield step(X)
    step.factor = 3
    yield step(X), step.factor
    step.__doc__, step.__name__ = "another text", "other"
    yield step(X), step.__name__
    del step.factor
    yield hasattr(step, "factor")
    with pytest.raises(AttributeError, match="no attribute 'factor'"):
        step(X)


def the_attributes_of_a_method(static: Static) -> Iterator[Any]:
    class Model:
        @static
        def step(self, x: Tensor) -> Any:
            return x * Model.step.factor

    Model.step.factor = 2
    model = Model()
    yield model.step(X), model.step.factor
    Model.step.factor = 3
    yield model.step(X), model.step.factor


def parameters_that_change(static: Static) -> Iterator[Any]:
    def scaled(x: Tensor, factor: float) -> Tensor:
        return x * factor

    model = static(scaled)
    yield model(X, 2.0)
    scaled.__defaults__ = (5.0,)
    yield model(X)
    scaled.__defaults__ = (X, 3.0)
    yield model()
    scaled.__defaults__ = None
    for call in (lambda: model(X), model, lambda: model(X, 1.0, 2.0), lambda: model(X, other=1)):
        with pytest.raises(TypeError) as raised:
            call()
        yield str(raised.value)


def what_a_module_does_not_take(static: Static) -> Iterator[Any]:
    model = static(nn.Linear(3, 3))
    for args in ((), (X, X)):
        with pytest.raises(TypeError) as raised:
            model(*args)
        yield str(raised.value)


def a_signature(static: Static) -> Iterator[Any]:
    def told(x: Tensor) -> Tensor:
        return x

    model = static(lambda x: x * len(inspect.signature(told).parameters))
    yield model(X)
    told.__code__ = (lambda x, y: x + y).__code__
    yield model(X)


PAIRS = [
    names_of_a_function,
    names_of_a_class,
    the_attributes_of_a_decorated_function,
    the_attributes_of_a_method,
    parameters_that_change,
    what_a_module_does_not_take,
    a_signature,
]


@pytest.mark.parametrize("pair", PAIRS, ids=[each.__name__ for each in PAIRS])
def test_what_is_told_is_what_it_is_now(pair: Callable[[Static], Iterator[Any]]) -> None:
    expected = [seen(each) for each in pair(lambda model: model)]
    assert [seen(each) for each in pair(dy2st.to_static)] == expected
