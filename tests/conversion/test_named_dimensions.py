"""Dimensions by name, wherever dynamic shapes are given."""

from __future__ import annotations

import pytest
import torch

import dy2st
import dy2st.onnx
from dy2st.errors import UsageError
from dy2st.sizes.named import with_dims

SHAPES = {"x": {0: "rows"}, "y": ("rows", None)}
INPUTS = [(torch.ones(3, 2), torch.ones(3, 2)), (-torch.ones(5, 2), torch.ones(5, 2))]


def model(x, y):
    if x.sum() > 0:
        return x + y
    total = torch.zeros(2)
    for row in x:
        total = total * 0.5 + row
    return total + y


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x, y):
        self.seen += 1
        return x + y + self.seen


def test_a_name_is_one_dimension():
    found = with_dims({"a": {0: "n", 1: None}, "b": ("n", [{0: "m"}])})
    assert found["a"][0] is found["b"][0]
    assert found["b"][1][0][0].__name__ == "m"
    assert found["a"][1] is None


def test_programs_files_and_checks():
    program = dy2st.export(model, INPUTS[0], dynamic_shapes=SHAPES)
    for inputs in INPUTS:
        torch.testing.assert_close(program.module()(*inputs), model(*inputs))
    for made in (model, program, Counting()):
        graph = dy2st.onnx.export(made, INPUTS[0], dynamic_shapes=SHAPES).model.graph
        assert [str(value.shape[0]) for value in graph.inputs[:2]] == ["rows", "rows"]
    assert dy2st.check(model, INPUTS, dynamic_shapes=SHAPES).outcome == "equal"


@pytest.mark.parametrize("name", ["two words", "class", ""])
def test_what_is_no_name(name):
    with pytest.raises(UsageError, match="which is no name"):
        dy2st.export(model, INPUTS[0], dynamic_shapes={"x": {0: name}, "y": None})


def others(x, **others):
    return others["a"] + x if x.sum() > 0 else others["b"] - x


@pytest.mark.parametrize(
    "shapes",
    [
        {"x": {0: "n"}, "others": {"a": {0: "n"}, "b": {0: "n"}}},  # as torch.export has it
        {"x": {0: "n"}, "a": {0: "n"}, "b": {0: "n"}},
        ({0: "n"}, {"a": {0: "n"}, "b": {0: "n"}}),
        ({0: "n"}, {0: "n"}, {0: "n"}),
    ],
)
def test_sizes_of_what_keywords_take(shapes):
    x = torch.ones(3)
    program = dy2st.export(others, (x,), {"a": x, "b": x * 2}, dynamic_shapes=shapes)
    for y in (torch.ones(5), -torch.ones(4)):
        assert torch.equal(program.module()(y, a=y * 3, b=y * 4), others(y, a=y * 3, b=y * 4))
    assert dy2st.check(others, [{"x": x, "a": x, "b": x}, {"x": -x, "b": x, "a": x}], dynamic_shapes=shapes).ok
