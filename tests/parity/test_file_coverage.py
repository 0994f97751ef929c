"""The arms of a file itself: a file that is wrong where no input goes does not pass, and is blamed where one does."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from torch import Tensor, nn

import dy2st
from dy2st.parity import file_coverage
from dy2st.report.file_arms import FileSite, blamed_inputs, merged_arms, untaken, untaken_lines
from dy2st.report.model import InputResult, PathSite, StageResult

NET = """\
import torch

def clipped(x):
    if x.sum() > 4:
        return x * 0.5
    return x + 1

def model(x):
    for bound in (1.0, 2.0, 3.0):
        if x[0] < bound:
            x = x + bound
    return clipped(x) + clipped(x * 2)

few = [torch.tensor([5.0, 5.0]), torch.tensor([-9.0, 0.0]), torch.tensor([0.5, 0.0])]
example_inputs = [(x,) for x in few]
"""


def control_flow(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    found = []
    for node in graph.node:
        found += [node] if node.op_type in ("If", "Loop") else []
        for attribute in node.attribute:
            found += control_flow(attribute.g)
    return found


def negate(file: Any, number: int, branch: str) -> None:
    """Make one arm of one branch of a file give something else."""
    model = onnx.load(file)
    node = control_flow(model.graph)[number]
    (arm,) = [each.g for each in node.attribute if each.name == branch]
    made = arm.output[0].name
    arm.node.append(onnx.helper.make_node("Neg", [made], ["negated"]))
    arm.output[0].name = "negated"
    onnx.save(model, file)


@pytest.fixture
def net(dy2st_command, write):
    write("net.py", NET)
    assert dy2st_command("convert", "net.py", "-o", "net.onnx").code == 0


def test_arms_of_copies_that_no_input_takes(net, dy2st_command, snapshot):
    done = dy2st_command("check", "net.py", "--onnx", "net.onnx")
    assert done.code == 1
    snapshot("arms_not_covered", done.out)


def test_what_the_source_calls_covered_is_not_enough(net, dy2st_command, folder):
    found = json.loads(dy2st_command("check", "net.py", "--onnx", "net.onnx", "--json").out)["targets"][0]
    assert found["outcome"] == "equal"
    assert not found["covered"]
    for path in found["paths"]:
        assert path["ways"] == path["taken"]
    assert len(found["uncovered"]) == 3
    assert {site["construct"] for site in found["arms"]} == {"if"}
    assert len(found["arms"]) == 5
    assert dy2st_command("check", "net.py", "--onnx", "net.onnx", "--allow-uncovered").code == 0
