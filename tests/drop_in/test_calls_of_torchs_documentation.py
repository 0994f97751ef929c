"""The ways in which torch's documentation and tutorials call ``torch.onnx.export``, with ``dy2st.onnx.export`` instead.

Sources: https://docs.pytorch.org/docs/stable/onnx.html, onnx_export.html and onnx_ops.html; the docstrings of
``torch.onnx``; https://docs.pytorch.org/tutorials/beginner/onnx/intro_onnx.html and the tutorials it links. The models
are our own, of the same kinds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnxscript import opset18
from torch import Tensor, nn

import dy2st
from dy2st.errors import OnnxError


def outputs(file: Path | bytes, *args: Tensor) -> list[Any]:
    session = onnxruntime.InferenceSession(file if isinstance(file, bytes) else str(file))
    feed = zip(session.get_inputs(), args, strict=True)
    return list(session.run(None, {given.name: value.detach().numpy() for given, value in feed}))


class Picture(nn.Module):
    """Convolutions of pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 4, 5, padding=2), nn.Conv2d(4, 9, 3, padding=1)
        self.larger = nn.PixelShuffle(3)

    def forward(self, x: Tensor) -> Tensor:
        return self.larger(self.conv2(torch.relu(self.conv1(x))))


def test_the_first_example_of_the_overview(tmp_path: Path) -> None:
    model, file, x = Picture(), tmp_path / "my_model.onnx", torch.rand((1, 1, 16, 16))
    program = dy2st.onnx.export(model, (x,), str(file), input_names=["input"], dynamo=True)
    assert isinstance(program, torch.onnx.ONNXProgram)
    np.testing.assert_allclose(outputs(file, x)[0], model(x).detach(), atol=1e-5)


class Perceptron(nn.Module):
    """A tensor, a dict and a list as arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.together, self.last = nn.Linear(24, 8), nn.Linear(8, 2)

    def forward(self, tensor_x: Tensor, input_dict: dict[str, Tensor], input_list: list[Tensor]) -> Tensor:
        joined = torch.cat([tensor_x, input_dict["tensor_x"], input_list[0]], dim=1)
        return self.last(torch.sigmoid(self.together(joined)))


def test_nested_arguments_with_named_dimensions(tmp_path: Path) -> None:
    model, parts = Perceptron(), [torch.rand(7, 8) for _ in range(3)]
    program = dy2st.onnx.export(
        model,
        (parts[0], {"tensor_x": parts[1]}, [parts[2]]),
        dynamic_shapes=({0: "batch_size"}, {"tensor_x": {0: "batch_size"}}, [{0: "batch_size"}]),
        input_names=["tensor_input", "tensor_x", "list_input_index_0"],
        output_names=["output"],
        dynamo=True,
    )
    assert all(value.shape == ("batch_size", 8) for value in program.model.graph.inputs)
    program.save(str(tmp_path / "mlp.onnx"))
    want = model(parts[0], {"tensor_x": parts[1]}, [parts[2]]).detach()
    np.testing.assert_allclose(outputs(tmp_path / "mlp.onnx", *parts)[0], want, atol=1e-5)
    torch.testing.assert_close(program(parts[0], {"tensor_x": parts[1]}, [parts[2]])[0], want)
    program.optimize()


def test_a_tensor_alone_with_the_options_of_the_super_resolution_tutorial(tmp_path: Path) -> None:
    model, file = Picture().eval(), tmp_path / "super_resolution.onnx"
    x = torch.randn(2, 1, 12, 12, requires_grad=True)
    options: dict[str, Any] = {
        "export_params": True,
        "do_constant_folding": True,
        "input_names": ["input"],
        "output_names": ["output"],
        "dynamic_axes": {"input": {0: "batch_size"}, "output": {0: "batch_size"}},
    }
    with pytest.raises(OnnxError, match="opset 10 is not supported"):
        dy2st.onnx.export(model, x, str(file), opset_version=10, **options)
    dy2st.onnx.export(model, x, str(file), opset_version=18, **options)
    onnx.checker.check_model(onnx.load(file))
    for batch in (1, 5):
        other = torch.randn(batch, 1, 12, 12)
        np.testing.assert_allclose(outputs(file, other)[0], model(other).detach(), rtol=1e-3, atol=1e-5)


def test_dynamic_axes_of_the_docstring(tmp_path: Path) -> None:
    class Total(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.sum(x, dim=1)

    names = {"input_names": ["x"], "output_names": ["sum"]}
    dy2st.onnx.export(Total(), (torch.ones(2, 2),), "onnx.pb" if False else str(tmp_path / "fixed.onnx"), **names)
    dy2st.onnx.export(
        Total(),
        (torch.ones(2, 2),),
        str(tmp_path / "dynamic.onnx"),
        **names,
        dynamic_axes={"x": {0: "my_custom_axis_name"}, "sum": [0]},
    )
    fixed, dynamic = (onnx.load(tmp_path / f"{name}.onnx").graph for name in ("fixed", "dynamic"))
    assert [d.dim_value for d in fixed.input[0].type.tensor_type.shape.dim] == [2, 2]
    assert dynamic.input[0].type.tensor_type.shape.dim[0].dim_param == "my_custom_axis_name"
    assert dynamic.output[0].type.tensor_type.shape.dim[0].dim_param == "my_custom_axis_name"


def test_keyword_arguments_as_a_dict_at_the_end() -> None:
    class Three(nn.Module):
        def forward(self, x: Tensor, y: Tensor | None = None, z: Tensor | None = None) -> Tensor:
            return x if z is None else x + z

    x, z = torch.ones(3), torch.full((3,), 2.0)
    for args in ((x, {"z": z}), (x, {"z": z}, {})):
        if len(args) == 2:
            program = dy2st.onnx.export(Three(), args)
            np.testing.assert_array_equal(outputs(program.model_proto.SerializeToString(), x, z)[0], (x + z).numpy())
    program = dy2st.onnx.export(Three(), (x,), kwargs={"z": z})
    assert [value.name for value in program.model.graph.inputs] == ["x", "z"]


class Signed(nn.Module):
    """A branch inside a Sequential."""

    def forward(self, x: Tensor) -> Tensor:
        if x.sum():
            return x * 2
        return -x


def test_the_control_flow_tutorial_without_its_patch() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1), Signed())
    program = dy2st.onnx.export(model, (torch.randn(3),), dynamo=True)
    assert "If" in {node.op_type for node in program.model.graph}
    for x in (torch.randn(3), torch.zeros(3)):
        np.testing.assert_allclose(outputs(program.model_proto.SerializeToString(), x)[0], model(x).detach(), rtol=1e-5)


def test_torch_cond_as_that_tutorial_writes_it() -> None:
    class Cond(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: -x, (x,))

    program = dy2st.onnx.export(Cond(), (torch.ones(3),), dynamo=True, verify=True)
    for x in (torch.ones(3), -torch.ones(3)):
        np.testing.assert_array_equal(outputs(program.model_proto.SerializeToString(), x)[0], Cond()(x).numpy())


def test_another_translation_of_an_operator() -> None:
    class Sum(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return torch.ops.aten.add(x, y)

    def custom_aten_add(x: Any, y: Any, alpha: float = 1.0) -> Any:
        return opset18.Add(opset18.Mul(y, opset18.CastLike(alpha, y)), x)

    x, y = torch.randn(3, 4), torch.randn(3, 4)
    program = dy2st.onnx.export(
        Sum().eval(), (x, y), dynamo=True, custom_translation_table={torch.ops.aten.add.Tensor: custom_aten_add}
    )
    np.testing.assert_allclose(outputs(program.model_proto.SerializeToString(), x, y)[0], x + y, rtol=1e-6)


def test_a_symbolic_operator_of_the_ops_page() -> None:
    class Custom(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.onnx.ops.symbolic(
                "custom_domain::CustomOp", (x,), {"attr_key": "value"}, dtype=x.dtype, shape=x.shape, version=1
            )

    program = dy2st.onnx.export(Custom(), (torch.ones(2, 3),), dynamo=True)
    (node,) = program.model.graph
    assert (node.domain, node.op_type, node.attributes["attr_key"].as_string()) == (
        "custom_domain",
        "CustomOp",
        "value",
    )


def test_an_onnx_operator_of_the_ops_page() -> None:
    class Rotated(nn.Module):
        def forward(self, x: Tensor, cos: Tensor, sin: Tensor, places: Tensor) -> Tensor:
            return torch.onnx.ops.rotary_embedding(x, cos, sin, places)

    args = torch.randn(2, 3, 4, 8), torch.randn(50, 4), torch.randn(50, 4), torch.arange(4).repeat(2, 1)
    program = dy2st.onnx.export(Rotated(), args, dynamo=True, opset_version=23)
    assert "RotaryEmbedding" in {node.op_type for node in program.model.graph}
    assert dy2st.check(Rotated(), [args], opset_version=23).ok


def test_a_program_that_was_exported_before() -> None:
    batch = torch.export.Dim("batch")
    program = torch.export.export(Picture(), (torch.rand(2, 1, 8, 8),), dynamic_shapes={"x": {0: batch}})
    made = dy2st.onnx.export(program, dynamo=True, report=False, optimize=True, external_data=True)
    x = torch.rand(3, 1, 8, 8)
    want = program.module()(x).detach()
    np.testing.assert_allclose(outputs(made.model_proto.SerializeToString(), x)[0], want, atol=1e-5)
