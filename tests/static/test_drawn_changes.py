"""Random models and random changes to what they read: a static function does what eager does, or is refused."""

from __future__ import annotations

import importlib.util
import os
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from torch import Tensor

import dy2st
from dy2st.errors import Dy2stError
from tests.static.drawn_worlds import World, worlds

X = torch.tensor([1.0, -2.0, 3.0])
VARIABLE = "DRAWN"


class Twin:
    """The module of a world, and what of the process belongs to it: two of them do not see each other."""

    count = 0

    def __init__(self, text: str, folder: Path) -> None:
        Twin.count += 1
        self._name = f"drawn_{Twin.count}"
        file = folder / f"{self._name}.py"
        file.write_text(text)
        spec = importlib.util.spec_from_file_location(self._name, file)
        assert spec is not None
        assert spec.loader is not None
        self.module: Any = importlib.util.module_from_spec(spec)
        sys.modules[self._name] = self.module
        spec.loader.exec_module(self.module)
        self._process: tuple[Any, ...] = (torch.float32, True, None)

    @contextmanager
    def current(self) -> Iterator[Any]:
        dtype, gradients, variable = self._process
        torch.set_default_dtype(dtype)
        torch.set_grad_enabled(gradients)
        if variable is not None:
            os.environ[VARIABLE] = variable
        try:
            yield self.module
        finally:
            variable = os.environ.pop(VARIABLE, None)
            self._process = torch.get_default_dtype(), torch.is_grad_enabled(), variable
            torch.set_default_dtype(torch.float32)
            torch.set_grad_enabled(True)

    def change(self, statement: str) -> str | None:
        """Make a change; the type of what it raises."""
        with self.current():
            try:
                exec(statement, vars(self.module))
            except Exception as error:  # noqa: BLE001  it may be of any kind
                return type(error).__name__
        return None

    def result(self, of: Callable[[Any], Any]) -> tuple[Any, Tensor, BaseException | None]:
        """What a call gives or raises, and its input after it."""
        x = X.clone()
        torch.manual_seed(0)
        random.seed(0)
        np.random.seed(0)  # noqa: NPY002  the models draw from it
        with self.current() as module:
            try:
                return of(module)(x, *module.arguments()), x, None
            except Exception as error:  # noqa: BLE001  it may be of any kind
                return None, x, error

    def close(self) -> None:
        del sys.modules[self._name]


def same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if not isinstance(one, Tensor):
        return bool(one == other)
    alike = one.dtype is other.dtype and one.shape == other.shape and one.requires_grad is other.requires_grad
    return alike and torch.allclose(one, other, rtol=1e-6, atol=1e-7, equal_nan=True)


def agree(world: World, folder: Path) -> bool:
    """Eager in one copy of the world and static in the other, before and after each change; False if it is refused."""
    eager, twin = Twin(world.text, folder), Twin(world.text, folder)
    try:
        static = dy2st.to_static(twin.module.model)
        for statement in ("", *world.changes):
            assert eager.change(statement) == twin.change(statement)
            for _ in range(2):  # the second call may find its program without a look at the world
                expected, x, error = eager.result(lambda module: module.model)
                actual, own, failed = twin.result(lambda _: static)
                if isinstance(failed, Dy2stError):
                    assert failed.code
                    return False
                assert type(failed) is type(error)
                assert same(actual, expected)
                assert same(own, x)
    finally:
        eager.close()
        twin.close()
    return True


@pytest.mark.filterwarnings("ignore::dy2st.errors.RetracingWarning")  # most changes make another program
@pytest.mark.parametrize("examples", [25, pytest.param(120, marks=pytest.mark.slow)])
def test_eager_and_static_agree(examples: int, tmp_path: Path) -> None:
    found = []

    @settings(max_examples=examples, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(worlds())
    def run(world: World) -> None:
        found.append(agree(world, tmp_path))

    run()
    # Half of the models change what was there before the call; most others can be compared.
    assert sum(found) > examples / 2
