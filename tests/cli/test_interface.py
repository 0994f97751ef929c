"""What ``dy2st convert`` says of a file's inputs and outputs."""

from __future__ import annotations

import json

import pytest

NET = """
import torch

def model(x, mask):
    if x.sum() > 0:
        x = x * 2
    return {"y": x[:, mask > 0], "total": x.sum().double()}

def growing(x):
    rows = []
    while x.sum() > 1:
        rows.append(x)
        x = x / 2
    return rows

def several():
    return [(torch.ones(2, 3), torch.ones(3)), (-torch.ones(4, 3), torch.ones(3))]

def one():
    return [(torch.ones(2, 3), torch.ones(3)), (-torch.ones(2, 3), torch.ones(3))]

def scalar(x):
    return x * 2
"""


@pytest.fixture
def net(write):
    return write("net.py", NET)


def lines(done):
    return [line for line in done.out.splitlines() if line.startswith(("  inputs: ", "  outputs: "))]


@pytest.mark.parametrize("checked", [True, False])
def test_names_dtypes_and_sizes(net, checked, dy2st_command):
    options = [] if checked else ["--no-check"]
    inputs = ["--input", "x=f32[batch,3]", "--input", "mask=f32[3]"]
    done = dy2st_command("convert", "net.py", *inputs, "-o", "net.onnx", *options)
    assert done.code == 0
    shown = lines(done)
    assert shown[0] == "  inputs: x: f32[batch, 3], mask: f32[3]"
    assert shown[1].startswith("  outputs: y: f32[batch, ")
    assert shown[1].endswith("], total: f64[]")
    assert done.err == ""


def test_lists_are_told(net, dy2st_command):
    done = dy2st_command("convert", "net.py:growing", "--input", "x=f32[n]:0..4", "--no-check")
    assert lines(done)[1].startswith("  outputs: rows: list of f32[")


def test_a_warning_where_all_is_fixed(net, dy2st_command, folder):
    done = dy2st_command("convert", "net.py", "--inputs", "net.py:one", "-o", "net.onnx")
    assert done.code == 0
    assert done.err == (
        "dy2st: net.onnx: all sizes of its inputs are fixed (instead: example inputs of several sizes, dynamic_shapes, "
        "or --input 'x=f32[batch,3]')\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("net.py", "--inputs", "net.py:several", "-o", "net.onnx"),
        ("net.py:scalar", "--input", "x=f32[]"),
        ("net.py", "--inputs", "net.py:one", "-o", "net.onnx", "--json"),
        ("net.py", "--inputs", "net.py:one", "-o", "net.onnx", "--format", "github"),
    ],
    ids=["several sizes", "no sizes", "for a program", "for GitHub"],
)
def test_no_warning(net, arguments, dy2st_command):
    done = dy2st_command("convert", *arguments)
    assert (done.code, done.err) == (0, "")


def test_json_is_json(net, dy2st_command):
    done = dy2st_command("convert", "net.py", "--inputs", "net.py:one", "-o", "net.onnx", "--json")
    assert json.loads(done.out)["exit_code"] == 0
