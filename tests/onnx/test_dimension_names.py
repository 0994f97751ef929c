"""Sizes of a file's inputs and outputs have names: the given ones, or one by where they were met first."""

from __future__ import annotations

import onnx
import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st
import dy2st.onnx


def found(x: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
    kept = x[x > 0]
    places = torch.nonzero(mask)
    while kept.sum() > 3:
        kept = kept / 2
    return kept, places, torch.cat([kept, kept]), x + 1


def sizes(shapes: object) -> dict[str, list[str | int]]:
    model = dy2st.onnx.export(found, (torch.tensor([1.0, 5.0, -1.0]), torch.ones(3, 4)), dynamic_shapes=shapes)
    proto = model.model_proto
    onnx.checker.check_model(proto, full_check=True)
    return {
        value.name: [d.dim_param or d.dim_value for d in _dims(value)]
        for value in (*proto.graph.input, *proto.graph.output)
    }


def _dims(value: onnx.ValueInfoProto) -> list[onnx.TensorShapeProto.Dimension]:
    return list(value.type.tensor_type.shape.dim)


@pytest.mark.parametrize(
    ("shapes", "x", "mask"),
    [
        (None, [3], [3, 4]),
        ({"x": {0: Dim.DYNAMIC}, "mask": {0: Dim.AUTO, 1: "width"}}, ["x_dim_0"], ["mask_dim_0", "width"]),
        ({"x": {0: "s77"}, "mask": {0: Dim("u9"), 1: Dim.AUTO}}, ["s77"], ["u9", "mask_dim_1"]),
    ],
)
def test_a_size_without_a_name_has_that_of_its_first_place(shapes, x, mask):
    assert sizes(shapes) == {
        "x": x,
        "mask": mask,
        "kept": ["kept_dim_0"],
        "places": ["places_dim_0", 2],
        "cat": ["2*kept_dim_0"],
        "add": x,
    }


def test_a_copy_of_a_variable_has_no_operators_name():
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        steps = 0
        while x.sum() > 1:
            x, steps = x / 2, steps + 1
        return x, torch.tensor(steps)

    exported = dy2st.onnx.export(model, (torch.ones(3),))
    assert [value.name for value in exported.model_proto.graph.output] == ["x_out", "output_1"]
