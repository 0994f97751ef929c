"""Specs of arguments in all their forms: one program for all sizes of what they leave open."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st
from dy2st.errors import InputSpecError


def model(x: Tensor, k: int = 2) -> Tensor:
    return x * k if x.sum() > 0 else x


def nested(d: dict[str, Any]) -> Tensor:
    return d["a"] @ d["b"][0] if d["a"].sum() > 0 else d["a"] @ d["b"][0] * 2


@pytest.mark.parametrize(
    "spec",
    [
        "f32[n,3]",
        ["f32[n,3]"],
        {"x": "f32[n,3]"},
        ((None, 3), torch.float32),
        [((-1, 3), torch.float32)],
        [(("n", 3), torch.float32)],
        {"x": ((Dim("n", min=1, max=99), 3), torch.float32)},
    ],
)
def test_one_program_for_all_sizes(spec: Any) -> None:
    static = dy2st.to_static(model, input_spec=spec)
    for size in (4, 2, 7, 1):
        for x in (torch.ones(size, 3), -torch.ones(size, 3)):
            assert torch.equal(static(x), model(x))
    assert len(static.programs) == 1
    assert static.export().module()(x=torch.ones(5, 3)).shape == (5, 3)


def test_a_tensor_fixes_its_sizes() -> None:
    static = dy2st.to_static(model, input_spec=[torch.ones(2, 3)])
    assert static.export() is not None
    assert torch.equal(static(torch.ones(2, 3)), 2 * torch.ones(2, 3))


def test_nested_specs() -> None:
    shape = ((None, "m"), torch.float32)
    static = dy2st.to_static(nested, input_spec={"d": {"a": shape, "b": [(("m", 3), torch.float32)]}})
    for n, m in ((3, 4), (5, 6), (7, 7), (1, 9)):
        given = {"a": torch.randn(n, m), "b": [torch.randn(m, 3)]}
        torch.testing.assert_close(static(given), nested(given))
    assert len(static.programs) == 1


def test_a_second_decoration_takes_the_options_that_it_is_given() -> None:
    first = dy2st.to_static(model)
    assert dy2st.to_static(first) is first
    second = dy2st.to_static(first, input_spec=["f32[n]"])
    for size in (2, 3, 4, 1):
        second(torch.ones(size))
    assert len(second.programs) == 1
    module = torch.nn.Linear(3, 3)
    assert dy2st.to_static(dy2st.to_static(module), backend="aot_eager").weight is module.weight


def test_what_is_no_size() -> None:
    with pytest.raises(InputSpecError, match="a size is a number, a name"):
        dy2st.to_static(model, input_spec=[((2.5, 3), torch.float32)])
    with pytest.raises(InputSpecError, match="no parameter 'z'"):
        dy2st.to_static(model, input_spec={"z": "f32[3]"})(torch.ones(3))


TABLE = {"scale": 2}


def reading(x: Tensor) -> Tensor:
    return x * TABLE["scale"] if x.sum() > 0 else x


def reading_once(x: Tensor) -> Tensor:
    return x * dy2st.constant(TABLE["scale"])


@pytest.mark.parametrize(
    "static",
    [dy2st.to_static(reading, freeze={"TABLE"}), dy2st.to_static(reading, freeze=True), dy2st.to_static(reading_once)],
)
def test_what_is_declared_constant_is_read_once(static: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.ones(2)
    assert torch.equal(static(x), x * 2)
    monkeypatch.setitem(TABLE, "scale", 3)
    assert torch.equal(static(x), x * 2)
    assert torch.equal(dy2st.to_static(reading)(x), x * 3)


def test_what_is_frozen_shows() -> None:
    assert "all that it reads is constant" in repr(dy2st.to_static(reading, freeze=True))
