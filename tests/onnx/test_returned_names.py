"""Outputs that have no key or field are called what the model's source calls them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import dy2st.onnx
from dy2st.errors import StateWarning


def pair(x: Tensor) -> Any:
    logits = x * 2
    if x.sum() > 100:
        return torch.zeros_like(x), 0
    steps = 3
    return logits, steps


def argument(x: Tensor) -> Any:
    x = x + 1
    return x  # noqa: RET504


def differing(x: Tensor) -> Any:
    a, b = x + 1, x - 1
    if x.sum() > 0:
        return a, b
    return b, a


def nested(x: Tensor) -> Any:
    cache = [x + 1, (x + 2, x + 3)]
    total = x.sum()
    return total, cache


def expression(x: Tensor) -> Any:
    return x * 2


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (pair, ["logits", "steps"]),
        (argument, ["x_out"]),
        (nested, ["total", "cache.0", "cache.1.0", "cache.1.1"]),
        (expression, ["mul"]),
    ],
)
def test_outputs_have_the_names_of_variables(model: Any, names: list[str]) -> None:
    program = dy2st.onnx.export(model, (torch.ones(3),))
    assert [value.name for value in program.model.graph.outputs] == names


def test_returns_that_do_not_agree_give_none() -> None:
    program = dy2st.onnx.export(differing, (torch.ones(3),))
    assert not {"a", "b"} & {value.name for value in program.model.graph.outputs}


def test_results_that_the_source_has_no_name_for():
    def one(x):
        return x * 2 if x.sum() > 0 else -x

    def two(x):
        return (x * 2 if x.sum() > 0 else -x), (x + 1 if x.max() > 1 else x)

    def names(model):
        return [each.name for each in dy2st.onnx.export(model, (torch.ones(3),)).model.graph.outputs]

    assert names(one) == ["output"]
    assert names(two) == ["output_0", "output_1"]


class Counting(torch.nn.Module):
    """Its result is named by no variable, and has a guard."""

    def __init__(self) -> None:
        super().__init__()
        self.total = torch.zeros(3)

    def forward(self, x: Tensor) -> Any:
        if x.sum() > 100:
            raise ValueError("too much")
        self.total = self.total + x
        return self.total / 2


def test_a_file_with_state_names_results_alike() -> None:
    names = [value.name for value in dy2st.onnx.export(Counting(), (torch.ones(3),)).model.graph.outputs]
    assert names == ["output", "total_next"]
    with pytest.warns(StateWarning):
        forgetful = dy2st.onnx.export(Counting(), (torch.ones(3),), state="forget")
    assert [value.name for value in forgetful.model.graph.outputs] == ["output"]
