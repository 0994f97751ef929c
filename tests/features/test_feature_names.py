"""Names of the user's that our code, or the code that torch writes, uses as well: they mean what the user means."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from harness import agree, dyn, row, vectors
from torch import Tensor, nn

import dy2st
from dy2st.errors import UsageError

INPUTS = [(torch.tensor(v),) for v in ([1.0, -2.0, 3.0], [-1.0, 2.0], [0.5], [-3.0, -0.5, 1.0, 0.5])]


def flag_of_a_loop(x: Tensor) -> Any:
    go = x.sum() > 100
    while x.sum() > 1:
        go = x.max() > 0
        x = x / 2
    return go


def flag_of_an_outer_loop(x: Tensor) -> tuple[Any, ...]:
    go, broke, value = x.min(), x.sum(), x.max()
    while x.max() > 1:
        for go in x:
            if go > 1:
                broke = broke + go
                break
        value = go if broke > 2 else value
        x = x / 2
    return go, broke, value


@functools.lru_cache
def cached(key: Tensor) -> Tensor:
    return key * 2


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, function: Tensor, capture: float = 2.0) -> Tensor:
        return function * capture


def given(**values: Any) -> Any:
    return sum(value * (i + 1) for i, value in enumerate(values.values()))


class Called:
    def __call__(this, **values: Any) -> Any:  # noqa: N805 - the keyword is called self
        return sum(values.values())


def keywords(x: Tensor) -> tuple[Any, ...]:
    y = x.sum()
    if y > 0:
        total = given(function=y, self=y, args=y, kwargs=y, key=y, names=y, value=y)
    else:
        total = Called()(self=y, function=y, capture=y)
    either: Any = given if x[0] > 0 else Called()
    return total, either(self=y, function=y, args=y), cached(key=y), Scaled.apply(y), len("{self}".format(self="a"))


class Key:
    """Keys that read alike."""

    def __repr__(self) -> str:
        return "key"


FIRST, SECOND = Key(), Key()


def keys_that_read_alike(x: Tensor) -> tuple[bool, Any]:
    found = {FIRST: x.sum()} if x.sum() > 0 else {SECOND: x.max()}
    return FIRST in found, found.get(SECOND, x[0])


@row(55)
@pytest.mark.parametrize(
    ("model", "paths"),
    [(flag_of_a_loop, 2), (flag_of_an_outer_loop, 3), (keywords, 3), (keys_that_read_alike, 2)],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_names_of_ours(model: Any, paths: int) -> None:
    agree(model, INPUTS, (dyn(0),), paths=paths)


PARAMETER = """\
import builtins as b

import torch as t


def model({name}, x):
    if x.sum() > 0:
        y = t.where(x > 1, {name}, float("inf"))
    else:
        y = t.zeros_like({name}) + b.max(x.shape[0], 2) * {name}.max()
    while y.min() > 1:
        y = y / 2
    return y, {name}
"""
OF_A_MODULE = """\
import torch

{name} = torch.nn.Linear(2, 2)


def model(x):
    y = {name}(x)
    return y + {name}.weight.sum() if y.sum() > 0 else y
"""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Any]:
    """Modules made of a text."""
    names: list[str] = []

    def make(text: str) -> ModuleType:
        name = f"named_{len(names)}"
        names.append(name)
        file = tmp_path / f"{name}.py"
        file.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield make
    for name in names:
        del sys.modules[name]


@row(55)
@pytest.mark.parametrize("name", ["self", "inf", "device", "torch", "pytree", "In", "cond", "max", "x_1"])
def test_parameters_that_generated_code_reads(made: Any, name: str) -> None:
    """Torch writes a program as Python code, in which these mean something else."""
    inputs = [(torch.tensor(a), torch.tensor(b)) for a, b in (([3.0, 5.0], [1.0, 2.0]), ([1.0, 9.0], [-1.0, -2.0]))]
    agree(made(PARAMETER.format(name=name)).model, inputs, (dyn(0), dyn(0)), paths=2, whole=False)


def test_a_keyword_that_generated_code_reads_is_refused(made: Any) -> None:
    model = made(PARAMETER.format(name="inf")).model
    with pytest.raises(UsageError, match="'inf' is given by keyword"):
        dy2st.export(model, (), {"inf": torch.ones(2), "x": torch.ones(2)})


@row(41)
@pytest.mark.parametrize("name", ["forward", "train", "training", "_parameters"])
def test_a_global_module_called_as_something_that_modules_have(made: Any, name: str) -> None:
    model = made(OF_A_MODULE.format(name=name)).model
    agree(model, vectors(2, 2, 2, 2, seed=3), paths=2)
    assert len(dy2st.export(model, (torch.ones(2),)).state_dict) == 2


class Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self._scale = 2.0

    @dy2st.to_static
    def forward(self, x: Tensor) -> Tensor:
        return x * self._scale if x.sum() > 0 else x


@row(61)
def test_a_private_number_is_part_of_the_signature() -> None:
    model, x = Scale(), torch.ones(2)
    first = model(x)
    model._scale = 3.0
    assert torch.equal(model(x), first * 1.5)
