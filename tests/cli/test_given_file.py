"""``dy2st check --onnx FILE``: a file that is there already, of ours or of another exporter."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

NET = """\
import torch

def model(x):
    h = x * 2
    if h.sum() > 0:
        return h + 1
    return h - 1

def refused(x):
    return x * 2 + (f"{x.sum()}" != "4.0")

example_inputs = [(torch.ones(3),), (-torch.ones(3),)]
"""


@pytest.fixture
def net(dy2st_command, write):
    """The model, and its own file beside it."""
    write("net.py", NET)
    assert dy2st_command("convert", "net.py", "-o", "own.onnx").code == 0


@pytest.fixture
def traced(folder):
    """What a trace with the first input makes of the model: ``2 x + 1``."""
    kinds = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in ("x", "y")]
    numbers = [numpy_helper.from_array(np.float32(value), name) for name, value in (("two", 2), ("one", 1))]
    nodes = [helper.make_node("Mul", ["x", "two"], ["h"]), helper.make_node("Add", ["h", "one"], ["y"])]
    graph = helper.make_graph(nodes, "traced", kinds[:1], kinds[1:], numbers)
    opsets = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), folder / "traced.onnx")


def constants(graph):
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from constants(attribute.g)
            if attribute.HasField("t"):
                yield attribute.t
    yield from graph.initializer


def test_its_own_file(net, dy2st_command):
    done = dy2st_command("check", "net.py", "--onnx", "own.onnx")
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == "equal to eager on all 2 inputs"
    again = dy2st_command("check", "net.py", "--onnx", "own.onnx")
    assert "cached" not in again.out  # the file may have changed in what only onnxruntime reads


def test_a_file_that_has_been_changed(net, dy2st_command, folder):
    proto = onnx.load(folder / "own.onnx")
    (one,) = [each for each in constants(proto.graph) if numpy_helper.to_array(each).tolist() == 1]
    one.CopyFrom(numpy_helper.from_array(np.float32(3), one.name))
    onnx.save(proto, folder / "changed.onnx")
    done = dy2st_command("check", "net.py", "--onnx", "changed.onnx", "--format=json=report.json")
    assert done.code == 1
    assert "it begins at net.py:6: return h + 1: eager 3 vs onnxruntime 5 at [0] (then-arm" in done.out
    (target,) = json.loads((folder / "report.json").read_text())["targets"]
    assert target["onnx_file"] == "changed.onnx"


def test_a_trace_of_one_path(net, traced, dy2st_command):
    done = dy2st_command("check", "net.py", "--onnx", "traced.onnx")
    assert done.code == 1
    assert "input 1 (x: f32[3]): onnxruntime: output: eager has -3 at [0], this -1 (3 of 3 elements differ)" in done.out
    assert done.out.splitlines()[-1] == "differs: equal to eager on 1 of 2 inputs"


def test_a_model_that_is_refused(net, traced, dy2st_command):
    done = dy2st_command("check", "net.py:refused", "--onnx", "traced.onnx")
    assert done.code == 1
    assert "not covered: the paths are not known, since the model can't be captured: net.py:10: D2S2" in done.out
    assert done.out.splitlines()[-1] == "equal to eager on all 2 inputs"
    assert dy2st_command("check", "net.py:refused", "--onnx", "traced.onnx", "--allow-uncovered").code == 0


def test_in_the_settings(net, traced, dy2st_command, write):
    write("pyproject.toml", '[[tool.dy2st.target]]\ntarget = "net.py"\nonnx = "traced.onnx"\n')
    assert dy2st_command("check").code == 1
    assert dy2st_command("check", "--onnx", "own.onnx").code == 0
    assert dy2st_command("convert", "net.py").code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--onnx", "missing.onnx"], "D2S901: --onnx missing.onnx: there is no such file"),
        (["--onnx", "net.py"], "D2S401: net.py is no ONNX file: "),
        (["--onnx", "own.onnx", "--opset", "20"], "D2S901: --opset is for files that are written"),
        (["--onnx", "own.onnx", "--opsets", "20"], "D2S901: --opsets is for files that are written"),
        (["--onnx", "own.onnx", "--reproducer", "r.py"], "D2S901: --reproducer and --onnx exclude each other"),
        (["net.py:refused", "--onnx", "own.onnx"], "D2S901: --onnx is for one target, and there are 2"),
    ],
)
def test_what_can_not_be(net, dy2st_command, arguments, said):
    done = dy2st_command("check", "net.py", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"dy2st: {said}")
    assert len(done.err.splitlines()) == 1
