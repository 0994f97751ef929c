"""What code asks of the world around it has eager's answer; objects that answer anything are looked at with care."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import torch
from harness import agree, row, vectors

import dy2st

if TYPE_CHECKING:
    from torch import Tensor


@row(1)
def test_no_compiler_runs() -> None:
    def checked(x: Tensor) -> Tensor:
        if not torch.compiler.is_compiling() and x.max() > 50:
            raise ValueError("too large")
        return x

    def model(x: Tensor) -> Tensor:
        if torch.compiler.is_exporting() or torch.jit.is_tracing() or torch.onnx.is_in_onnx_export():
            return x * 100
        return checked(x) * 2 if x.sum() > 0 else x

    agree(model, vectors(3, 3, 3, 3, seed=2), paths=2, whole=False, raising=[(torch.ones(3) * 60,)])


class Fields(type):
    """Answers for an attribute of its classes."""

    @property
    def fields(cls) -> dict[str, Any]:
        return {"of": cls.__name__}


class Settings(metaclass=Fields):
    scale = 3.0

    @property
    def fields(self) -> dict[str, Any]:
        return {"of": self.scale}


class Anything:
    """Has whatever it is asked for."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_args: name

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        return 5


@row(41)
def test_objects_of_peculiar_classes() -> None:
    settings, anything = Settings(), Anything()

    def model(x: Tensor) -> Tensor:
        if x.sum() > 0 and anything is not None:
            return x * settings.scale
        return x * settings.fields["of"]

    agree(model, vectors(3, 3, 3, 3, seed=2), paths=2)
    assert Settings.fields == {"of": "Settings"}


SCALE = ContextVar("scale", default=1.0)


@row(54)
def test_a_context_variable_is_set_for_a_while() -> None:
    def model(x: Tensor) -> Tensor:
        token = SCALE.set(2.0)
        y = x * SCALE.get()
        SCALE.reset(token)
        return y if x.sum() > 0 else y + SCALE.get()

    agree(model, vectors(3, 3, 3, 3, seed=2), paths=2)
    report = dy2st.check(model, vectors(3, 3, 3, 3, seed=2))
    assert report.ok
    assert report.covered
