"""Special methods, descriptors and what stores by other means than a statement (rows 29 and 41)."""

from __future__ import annotations

import array
import collections
import functools
import queue
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import pytest
import torch
from harness import agree, dyn, refuses, row, vectors
from torch import Tensor, nn

INPUTS = [(torch.tensor(v),) for v in ([-2.0, 2.5, -2.25], [2.75, -0.25], [-1.75], [0.0, 1.0, 2.0, 3.0])]


class Stack:
    """Its truth and its length are those of a list that grows."""

    def __init__(self) -> None:
        self.held: list[Any] = []
        self.asked = 0

    def __len__(self) -> int:
        self.asked += 1
        return len(self.held)

    def __bool__(self) -> bool:
        return len(self.held) > 0

    def __contains__(self, size: int) -> bool:
        return size == len(self.held)

    def __int__(self) -> int:
        return self.asked * 2


def worked_off(x: Tensor) -> tuple[Any, ...]:
    stack, steps = Stack(), 0
    stack.held.append(x[0])
    while stack and steps < 7:
        top = stack.held.pop()
        steps += 1
        if top > 0.5:
            stack.held.append(top - 1)
            stack.held.append(top / 2)
    if not stack:
        steps += 10
    if 2 in stack:
        steps += 20
    return steps, len(stack), stack.asked, int(stack)


class Options(dict[str, Any]):
    """Attributes that are keys."""

    def __getattr__(self, name: str) -> Any:
        return self[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class Doubled:
    """Stores by the method of its base."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "plain":
            value = value * 2 if value.sum() > 1 else value
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)


class DoubledModule(nn.Module):
    """A module that does so."""

    gain: Any

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value * 2 if name == "gain" else value)

    def forward(self, x: Tensor) -> Tensor:
        self.gain = self.weight * 1
        if x.sum() > 0:
            self.gain = self.weight + 1
        return x * self.gain


def stored_elsewhere(x: Tensor) -> tuple[Any, ...]:
    options, doubled = Options(gain=1.0, last=x), Doubled()
    doubled.x, doubled.plain, doubled.gone = x, x, x
    if x.sum() > 0:
        options.gain = 2.0
        options["last"] = x * 2
        doubled.x = doubled.plain = x + 1
        doubled.y = x
        object.__setattr__(doubled, "z", x * 3)
    else:
        doubled.y = x - 1
        doubled.z = x
        options.__setattr__("last", -x)
    if x[0] < 0:
        doubled.gone = x * 5
        del doubled.plain
        doubled.plain = x * 7
    return options.last * options.gain, doubled.x, doubled.y, doubled.z, doubled.plain, doubled.gone, len(options)


class Clamped:
    """A descriptor that decides what it stores."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"_{name}"

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return getattr(owner, self.name)

    def __set__(self, owner: Any, value: Tensor) -> None:
        setattr(owner, self.name, value.clamp(0, 1) if value.sum() > 0 else value)


class WithDescriptor:
    weight = Clamped()
    kept = 1.0

    @property
    def gain(self) -> float:
        return self.kept

    @gain.setter
    def gain(self, value: float) -> None:
        self.kept = value * 2

    @gain.deleter
    def gain(self) -> None:
        self.kept = 0.0


@dataclass
class Derived:  # noqa: PLW1641 - nobody hashes it
    x: Tensor
    kind: int = 0

    def __post_init__(self) -> None:
        if self.x.sum() > 0:
            self.kind = 3
            self.x = self.x * 2

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Derived)
        return bool((self.x == other.x).all())

    def __int__(self) -> int:
        return int(self.x.sum())

    def __float__(self) -> float:
        return float(self.x.mean())

    def __round__(self, digits: int = 0) -> int:
        return round(self.x.sum().item())

    def __ior__(self, other: Derived) -> Self:
        self.x = torch.maximum(self.x, other.x)
        return self

    def __lshift__(self, bits: int) -> Tensor:
        return self.x * 2**bits


def computed(x: Tensor) -> tuple[Any, ...]:
    holder = WithDescriptor()
    holder.weight = x
    first, second = Derived(x), Derived(x * 1, 5)
    if x.max() > 1:
        holder.weight = x * 2
        first = Derived(-x, 7)
        holder.gain = 3.0
    same = 1 if first == second else 0
    if x[0] > 0:
        second |= Derived(x + 1)
        del holder.gain
    return holder.weight, holder.gain, first.x, first.kind, same, int(first), float(second), round(first), first << 1


class Sequences(collections.UserList[Any]):
    def top(self) -> Any:
        return self[-1] if self else None


def of_the_library(x: Tensor) -> tuple[Any, ...]:
    found, named = Sequences(), collections.UserDict(a=x)
    for value in x:
        if value > 0:
            found.append(value)
        elif found:
            found.pop()
    if x.sum() > 0:
        named["a"] = x * 2
        named.update(b=1)
    return len(found), named["a"], len(named)


class Kinds:
    @functools.singledispatchmethod
    def of(self, value: Any) -> Any:
        return value * 1.0

    @of.register
    def _(self, value: int) -> Any:
        return value * 2


@functools.singledispatch
def kind_of(value: Any) -> Any:
    return 1.5


@kind_of.register(float)
def _(value: float) -> Any:
    return value * 2


@kind_of.register(int)
def _(value: int) -> Any:
    return value + 3


def dispatched(x: Tensor) -> tuple[Any, ...]:
    kinds = Kinds()
    total, count = x.sum().item(), int((x > 0).sum())
    return kinds.of(x), kinds.of(x.shape[0]), kinds.of(count), kind_of(total), kind_of(count), kind_of(x)


@row(29, 41)
@pytest.mark.parametrize("model", [worked_off, stored_elsewhere, computed, of_the_library, DoubledModule()])
def test_what_python_calls_itself(model: Callable[..., Any]) -> None:
    agree(model, INPUTS, (dyn(0),), whole=False)


@row(41)
def test_dispatch_on_the_type_of_a_staged_number() -> None:
    agree(dispatched, vectors(3, 1, 5), (dyn(0),), paths=1)


class Fallback:
    def __init__(self) -> None:
        self.held: dict[str, float] = {}

    def __getattr__(self, name: str) -> float:
        return self.held.get(name, 1.0)


def found_elsewhere(x: Tensor) -> Tensor:
    fallback: Any = Fallback()
    if x.sum() > 0:
        fallback.gain = 2.0
    return x * fallback.gain


def counted_by_the_library(x: Tensor) -> int:
    waiting: queue.Queue[Any] = queue.Queue()
    if x.sum() > 0:
        waiting.put(1)
    return waiting.qsize()


def in_bytes(x: Tensor) -> int:
    found = bytearray(b"ab")
    if x.sum() > 0:
        found.extend(b"c")
    return len(found)


def of_another_class(x: Tensor) -> Tensor:
    doubled = Doubled()
    if x.sum() > 0:
        doubled.__class__ = Fallback  # type: ignore[assignment]
    return x if isinstance(doubled, Doubled) else -x


def in_an_array(x: Tensor) -> Tensor:
    numbers = array.array("d", [1.0, 2.0])
    if x.sum() > 0:
        numbers[0] = 5.0
    return x * numbers[0]


@row(29, 41)
@pytest.mark.parametrize(
    ("model", "code"),
    [
        (found_elsewhere, "D2S205"),
        (counted_by_the_library, "D2S214"),
        (in_bytes, "D2S214"),
        (of_another_class, "D2S226"),
        (in_an_array, "D2S226"),
    ],
)
def test_what_other_code_would_look_at_is_refused(model: Callable[..., Any], code: str) -> None:
    assert refuses(model, (torch.ones(2),)).code == code


SIGNS = [(torch.tensor(v),) for v in ([1.0, 2.0, -0.5], [-1.0, -2.0], [0.1], [4.0, -3.5])]


class Vector:
    """What Python calls of a class by itself."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    def __add__(self, other: float) -> Vector:
        return Vector(self.x + other if self.x.sum() > 0 else self.x - other)

    def __neg__(self) -> Vector:
        return Vector(-self.x if self.x.sum() > 0 else self.x)

    def __lt__(self, other: float) -> Tensor:
        return self.x.sum() < other if self.x.max() > 1 else self.x.max() < other

    def __getitem__(self, key: int) -> Tensor:
        return self.x[key] if self.x.sum() > 0 else self.x[0]

    def __getattr__(self, name: str) -> Tensor:
        if name == "twice":
            return self.x * 2 if self.x.sum() > 0 else self.x
        raise AttributeError(name)

    def __enter__(self) -> Tensor:
        return self.x if self.x.sum() > 0 else self.x + 1

    def __exit__(self, *error: object) -> None:
        pass

    def __call__(self, k: float) -> Tensor:
        return self.x + k if self.x.sum() > 0 else self.x

    @property
    def value(self) -> Tensor:
        """A property with a setter and a deleter."""
        return self.x if self.x.sum() > 0 else self.x * 2

    @value.setter
    def value(self, new: Tensor) -> None:
        self.x = new if new.sum() > 0 else new + 1

    @value.deleter
    def value(self) -> None:
        self.x = self.x * 0


@row(41)
def test_special_methods_and_properties() -> None:
    def model(x: Tensor) -> tuple[Tensor, ...]:
        vector = Vector(x)
        y = (-(vector + 1)).value
        with Vector(x * 2) as z:
            z = z + vector(3.0)  # noqa: PLW2901
        if vector < 2:
            z = z + vector[-1]
        vector.value = x - 1
        twice = vector.twice + vector.value
        del vector.value
        return y, z, twice, vector.x

    agree(model, SIGNS, (dyn(0),), paths=2, whole=False)
