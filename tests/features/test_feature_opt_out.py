"""Code that is left alone (row 58): functions, methods, classes, objects, packages."""

from __future__ import annotations

import functools
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from harness import outcomes, row
from torch import Tensor, nn

import dy2st
from dy2st.conversion import SKIPPED_MODULES
from dy2st.errors import StagingError, UsageError


def outer(x: Tensor, helper: Any) -> Tensor:
    """Calls a helper in a branch."""
    if x.sum() > 0:
        return helper(x) * 2
    return helper(x)


class Plain:
    """An object with a method and a call."""

    def method(self, x: Tensor) -> Tensor:
        return x + 1 if bool(x.sum() > 100) else x

    def __call__(self, x: Tensor) -> Tensor:
        return self.method(x)


class Inner(nn.Module):
    """A child."""

    def forward(self, x: Tensor) -> Tensor:
        return x + 1 if bool(x.sum() > 100) else x


def needs_conversion(x: Tensor) -> Tensor:
    return x + 1 if bool(x.sum() > 100) else x


def own_copy(function: Any) -> Any:
    """The same function again, so that a mark on it is nobody else's."""
    return types.FunctionType(function.__code__, globals(), function.__name__)


def left_alone(kind: str) -> Any:
    """A helper that is opted out."""
    if kind == "function":
        return dy2st.not_to_static(own_copy(needs_conversion))
    if kind == "method":
        return dy2st.not_to_static(type("Own", (), {"method": own_copy(Plain.method)})().method)
    if kind == "static":
        return dy2st.not_to_static(staticmethod(own_copy(needs_conversion))).__func__
    if kind == "class":
        return dy2st.not_to_static(type("Marked", (Plain,), {}))()
    return dy2st.not_to_static(Plain() if kind == "object" else Inner())


@row(58)
@pytest.mark.parametrize("kind", ["function", "method", "object", "class", "module", "static"])
def test_opted_out_code_runs_as_plain_python(kind: str) -> None:
    model = functools.partial(outer, helper=left_alone(kind))
    # What is left alone asks for the value of a tensor: that is refused, where converted code would stage it.
    with pytest.raises(StagingError, match=r"does not convert|known only when the graph runs"):
        dy2st.export(model, (torch.ones(2),))
    converted = {"object": Plain(), "class": Plain(), "module": Inner()}.get(kind, needs_conversion)
    program = dy2st.export(functools.partial(outer, helper=converted), (torch.ones(2),)).module()
    for x in (torch.ones(2), -torch.ones(2), 90 * torch.ones(2)):
        assert torch.equal(program(x), outer(x, converted))
    assert torch.equal(model(torch.ones(2)), 2 * torch.ones(2))
    outcomes.append("Y")


@row(58)
def test_opted_out_code_is_not_rewritten() -> None:
    @dy2st.not_to_static
    def left(x: Tensor) -> Tensor:
        return x if x.sum() > 0 else -x

    assert dy2st.convert(left) is left
    marked = dy2st.not_to_static(Inner())
    assert dy2st.convert(marked) is marked
    with pytest.raises(UsageError, match="len can't be marked"):
        dy2st.not_to_static(len)


@row(58)
def test_whole_packages_are_opted_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "user_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "parts.py").write_text("def step(x):\n    return x * 2 if x.sum() > 0 else x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import user_package
    import user_package.parts

    def model(x: Tensor) -> Tensor:
        return user_package.parts.step(x) + 1

    try:
        assert torch.equal(dy2st.export(model, (torch.ones(2),)).module()(-torch.ones(2)), model(-torch.ones(2)))
        for name in (user_package, "user_package.parts"):
            assert dy2st.not_to_static(name) is name
            with pytest.raises(StagingError):
                dy2st.export(model, (torch.ones(2),))
            SKIPPED_MODULES.clear()
        dy2st.not_to_static("user_pack")  # no prefix of a name is the name
        dy2st.export(model, (torch.ones(2),))
    finally:
        SKIPPED_MODULES.clear()
        for name in ("user_package", "user_package.parts"):
            sys.modules.pop(name, None)
