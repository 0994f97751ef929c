"""Rows 34 to 42: functions, methods and classes that are called, recursion, and ``try``."""

# ruff: noqa: PLC3002, SIM108, UP008, UP033 - the constructs under test are written as users write them
from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING

import pytest
import torch
from harness import agree, agree_or_refuse, both_signs, dyn, refuses, row, scalars
from torch import Tensor, nn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def leaky(x: Tensor, slope: float = 0.1) -> Tensor:
    """A helper with control flow of its own."""
    if x.sum() > 0:
        return x
    return x * slope


@row(34)
def test_lambdas() -> None:
    shrink = lambda x: x * 0.5 if x.abs().max() > 1 else x  # noqa: E731

    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        clip = lambda v, top=2.0: v.clamp(max=top) if (v > top).any() else v + 1  # noqa: E731
        either = (lambda v: v.sum() > 0 and v.max() < 5)(x)
        y = shrink(clip(x))
        for f in (lambda v: v * 2, lambda v: leaky(v, 0.5), shrink):
            y = f(y)
        return y, torch.where(either, y, -y)

    agree(model, [*both_signs(3, 1), (torch.tensor([9.0, 1.0]),)], (dyn(0),), paths=4)


@row(35)
def test_nested_functions_and_closures() -> None:
    def scaled(scale: Tensor) -> Callable[[Tensor], Tensor]:
        def apply(x: Tensor) -> Tensor:
            if x.mean() > scale:
                return x / scale
            return x * scale

        return apply

    def model(x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
        offset = x.max()
        half = scaled(torch.tensor(0.5))

        def step(y: Tensor) -> Tensor:
            if y.sum() > offset:
                return half(y) - offset
            return y + offset

        own = scaled(offset.abs() + 1)
        y = x
        for _ in range(int(n)):
            y = step(y)
        offset = offset * 2
        return own(y), step(y)

    inputs = [(x, n) for (x,), (n,) in zip(both_signs(3, 1), scalars(3, 0, 1, 6), strict=True)]
    agree(model, inputs, (dyn(0), None), paths=4)


@row(35, 37)
def test_functions_that_a_loop_defines() -> None:
    def recursive(x: Tensor) -> Tensor:
        for _ in range(x.shape[0]):

            def again(y: Tensor, n: int) -> Tensor:
                return y if n == 0 else again(y * 2 + 1, n - 1)

            x = again(x, 2)
        return x

    def rebound(x: Tensor) -> Tensor:
        def f(n: int) -> int:
            return n if n <= 0 else f(n - 1)

        g = f
        if x.sum() > 0:
            f = abs
        return x + g(3)

    def kept(x: Tensor) -> Tensor:
        for i in range(x.shape[0]):

            def last(y: Tensor) -> Tensor:
                return y * 2

            x = last(x) + i
        return x

    for model in (recursive, rebound, kept):
        agree(model, [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0, 0.5])], (dyn(0),))


@row(36)
def test_partials_and_bound_methods_as_values() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)
            self.activation = functools.partial(leaky, slope=0.25)
            self.table = {"halve": self.halve, "shift": functools.partial(self.shift, by=2.0)}

        def halve(self, x: Tensor) -> Tensor:
            while x.norm() > 1:
                x = x / 2
            return x

        def shift(self, x: Tensor, by: float) -> Tensor:
            return x + by if x.min() < 0 else x - by

        def forward(self, x: Tensor) -> Tensor:
            step = self.halve
            x = self.activation(self.linear(x))
            for name in ("shift", "halve"):
                x = self.table[name](x)
            return functools.reduce(torch.add, map(step, (x, x * 3)))

    agree(
        Model(),
        [(scale * torch.randn(n, 3),) for n, scale in ((2, 1.0), (1, 9.0), (3, -3.0), (4, 0.1))],
        (dyn(0),),
        paths=3,
    )


@row(36)
def test_partial_bound_method_and_callable_object_as_models() -> None:
    class Scaler:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        def __call__(self, x: Tensor) -> Tensor:
            return self.scaled(x) + 1

        def scaled(self, x: Tensor) -> Tensor:
            if x.sum() > 0:
                return x * self.scale
            return x / self.scale

    scaler = Scaler(3.0)
    agree(scaler, both_signs(3), (dyn(0),))
    agree(scaler.scaled, both_signs(3), (dyn(0),))
    agree(functools.partial(leaky, slope=0.2), both_signs(3), (dyn(0),))


@row(37)
def test_recursion_of_static_depth() -> None:
    def power(x: Tensor, n: int) -> Tensor:
        if n == 0:
            return torch.ones_like(x)
        if n % 2:
            return x * power(x, n - 1)
        half = power(x, n // 2)
        return half * half if half.sum() < 100 else half

    def tree(nested: list[object] | Tensor) -> Tensor:
        if isinstance(nested, Tensor):
            return nested.sum() if nested.min() > 0 else nested.max()
        return sum((tree(child) for child in nested), torch.zeros(()))

    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        return power(x, 6), tree([x, [x + 1, [x * 2]], x - 1])

    agree(model, [*both_signs(3, 1), (torch.tensor([7.0, 2.0]),)], (dyn(0),), paths=3)


@row(38)
def test_recursion_on_a_tensor_is_refused() -> None:
    def halve(x: Tensor) -> Tensor:
        if x.norm() > 1:
            return halve(x / 2)
        return x

    def model(x: Tensor) -> Tensor:
        return halve(x) + 1

    refuses(model, (torch.tensor([3.0, 4.0]),), (dyn(0),))


def sums(x: Tensor) -> Tensor:
    """Sums of neighbours, of their sums, and so on."""
    if x.shape[0] < 2:
        return x
    return torch.cat([x[:1], sums(x[:-1:2] + x[1::2])])


def products(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The same of two tensors of one size."""
    if x.shape[0] < 2:
        return x, y
    rest, more = products(x[:-1:2] * y[1::2], y[:-1:2] + y[1::2])
    return torch.cat([x[:1], rest]), torch.cat([y[:1], more])


@pytest.mark.slow
@row(37)
def test_recursion_on_halves_of_a_bounded_size() -> None:
    inputs = [(torch.arange(float(n)),) for n in (1, 2, 3, 7, 33, 300)]
    size = {0: torch.export.Dim("n", min=1, max=1000)}
    agree(sums, inputs, (size,))
    agree(products, [(x, x / 300) for (x,) in inputs], (size, size))


@pytest.mark.slow
@row(38)
def test_recursion_on_a_size_without_a_bound_is_refused() -> None:
    size = {0: torch.export.Dim("n")}
    errors = [refuses(sums, (torch.ones(4),), (dyn(0),)), refuses(products, (torch.ones(4),) * 2, (size, size))]
    for error in errors:
        assert error.code == "D2S231"
        assert "Dim(" in str(error)


class Base(nn.Module):
    """The first of several levels."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return self.linear(x)
        return x


class Loud(nn.Module):
    """A mixin."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y * 2 if y.max() > 0.5 else y


class Middle(Base):
    """A level in between; its class is used as ``__class__`` too."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        while y.norm() > 1:
            y = y / 2
        assert __class__ is Middle
        return y + 1


class Top(Loud, Middle):
    """The last level."""

    def forward(self, x: Tensor) -> Tensor:
        y = super(Top, self).forward(x)
        return self.post(y)

    def post(self, y: Tensor) -> Tensor:
        """Called by name on the instance."""
        if (y > 0).all():
            y = y - 1
        return y


class Last(Top):
    """A subclass that changes only a helper."""

    def post(self, y: Tensor) -> Tensor:
        return super().post(y) * 3 if y.sum() > 0 else y


@row(39)
def test_super_over_several_levels_and_mixins() -> None:
    inputs = [(scale * torch.randn(n, 2),) for n, scale in ((2, 1.0), (1, 5.0), (3, -5.0), (2, 0.1), (2, -0.1))]
    agree(Last(), inputs, (dyn(0),), paths=3, whole=False)


def logged(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A decorator as users write it."""

    @functools.wraps(function)
    def wrapper(*args: object, **kwargs: object) -> Tensor:
        result = function(*args, **kwargs)
        return result + 1 if result.mean() > 0 else result

    return wrapper


@row(40)
def test_decorated_callees() -> None:
    @contextlib.contextmanager
    def tagged(names: list[str]) -> Iterator[None]:
        names.append("in")
        yield
        names.append("out")

    @functools.lru_cache(maxsize=None)
    def constant(k: int) -> float:
        return 0.5**k

    @logged
    def first(x: Tensor) -> Tensor:
        return x * 2 if x.sum() > 0 else -x

    @torch.no_grad()
    def second(x: Tensor) -> Tensor:
        if x.max() > 2:
            return x * constant(2)
        return x

    def model(x: Tensor) -> Tensor:
        names: list[str] = []
        with tagged(names):
            y = second(first(x))
        return y + len(names)

    agree_or_refuse(model, [*both_signs(3, 1), (torch.tensor([0.1, -0.9]),)], (dyn(0),))


class Gate(nn.Module):
    """Static and class methods, a property, a module called through ``__call__``."""

    threshold = 0.5

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    @staticmethod
    def is_large(x: Tensor) -> Tensor:
        return x.abs().mean() > 1

    @classmethod
    def cut(cls, x: Tensor) -> Tensor:
        if x.max() > cls.threshold:
            return x - cls.threshold
        return x

    @property
    def strength(self) -> Tensor:
        norm = self.linear.weight.norm()
        return norm if norm < 1 else norm / 2

    def forward(self, x: Tensor) -> Tensor:
        if self.is_large(x):
            x = Gate.is_large(x / 4) * x
        return self.linear.__call__(self.cut(x)) * self.strength


@row(41)
def test_static_and_class_methods_properties_and_call() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gates = nn.Sequential(Gate(), nn.ReLU(), Gate())

        def __call__(self, x: Tensor) -> Tensor:
            return super().__call__(x * 2)

        def forward(self, x: Tensor) -> Tensor:
            y = self.gates(x)
            return y if y.sum() > 0 else self.gates[0](x)

    inputs = [(scale * torch.randn(n, 2),) for n, scale in ((2, 1.0), (1, 5.0), (3, -9.0), (2, 0.1), (2, -0.1))]
    agree(Model(), inputs, (dyn(0),), paths=3, whole=False)


@row(42)
def test_try_statements() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        count = 0
        try:
            if x.sum() > 0:
                y = x * 2
            else:
                y = -x
            count += 1
        finally:
            count += 1
        try:
            scale = x.missing
        except AttributeError:
            scale = 3
        else:
            scale = 4
        for element in y:
            try:
                if element > 1:
                    continue
                y = y + element
            finally:
                count += 1
        return y * scale, count

    agree_or_refuse(model, both_signs(3, 1), (dyn(0),), whole=False)


@row(42, 10)
def test_return_in_try_and_finally() -> None:
    def model(x: Tensor) -> Tensor:
        log = torch.zeros(2)
        try:
            if x.sum() > 0:
                return x + log.sum()
            x = x * 2
        finally:
            log += 1
        return x + log.sum()

    agree_or_refuse(model, both_signs(3, 1), (dyn(0),))
