"""A difference that onnxruntime's optimiser makes is told from one that the file makes."""

from __future__ import annotations

import onnx
import torch
from onnx import TensorProto, helper

import dy2st


def transposed_times_vector(path):
    """A file that computes ``x.T @ v``, which onnxruntime 1.31 fuses into ``x @ v``."""
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), helper.make_node("MatMul", ["t", "v"], ["y"])]
    shapes = {"x": ["n", "n"], "v": ["n"], "y": ["n"]}
    infos = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()}
    graph = helper.make_graph(nodes, "g", [infos["x"], infos["v"]], [infos["y"]])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return path


def model(x, v):
    return x.T @ v


def other(x, v):
    return x.T @ v + 1


INPUTS = [(torch.arange(9.0).reshape(3, 3), torch.ones(3))]


def test_the_optimiser_is_named(tmp_path):
    report = dy2st.check(model, INPUTS, onnx_file=transposed_times_vector(tmp_path / "m.onnx"))
    assert report.outcome == "differs"
    (stage,) = report.inputs[0].stages
    assert stage.message == ("onnxruntime's optimiser is at fault: equal at ORT_ENABLE_BASIC, not at the default level")
    assert any(stage.message in problem for problem in report.problems())


def test_a_file_that_differs_is_not_excused(tmp_path):
    report = dy2st.check(other, INPUTS, onnx_file=transposed_times_vector(tmp_path / "m.onnx"))
    assert report.outcome == "differs"
    assert not report.inputs[0].stages[0].message


def test_the_files_of_dy2st_avoid_it():
    assert dy2st.check(model, INPUTS).ok
