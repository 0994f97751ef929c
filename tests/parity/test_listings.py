"""Source listings: which functions, which lines ran, and the ONNX nodes of each line."""

from __future__ import annotations

import ast
import importlib.util
import sys
import textwrap

import pytest
import torch

import dy2st
from dy2st.parity.listings import line_marks, source_listings
from dy2st.report.model import PathSite

SOURCE = """\
import torch


def decorated(function):
    return function


class Net(torch.nn.Module):
    @decorated
    def forward(self, x):
        if x.sum() > 0:
            return helper(x)
        for row in x:
            x = x + row
        return x


def helper(x):
    def inner(y):
        return y * 2 if y.max() > 3 else y
    return inner(x)


def never_called(x):
    return x
"""


@pytest.fixture
def module(tmp_path):
    file = tmp_path / "listed_net.py"
    file.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("listed_net", file)
    found = importlib.util.module_from_spec(spec)
    sys.modules["listed_net"] = found
    spec.loader.exec_module(found)
    yield found
    del sys.modules["listed_net"]


def test_listings(module, tmp_path):
    model, x = module.Net(), torch.ones(3, 2)
    dy2st.onnx.export(model, (x,), tmp_path / "net.onnx")
    report = dy2st.check(model, [(x,)])
    first, second = source_listings(model, report.paths, tmp_path / "net.onnx")
    assert (first.name, first.first_line, len(first.lines)) == ("Net.forward", 9, 7)
    assert (second.name, second.first_line) == ("helper", 18)
    assert first.lines[0] == "    @decorated"
    assert first.rewritten.startswith("def forward(self, x):\n")
    assert "d2s.if_(" in first.rewritten
    assert "d2s.function()" in second.rewritten or "def inner" in second.rewritten
    assert [site.line for site in first.sites] == [11]
    assert dict(first.marks) == {12: "ran", 13: "never", 14: "never", 15: "never"}
    assert {node.line for node in first.nodes if node.op == "If"} == {11}
    inside = [node for node in first.nodes if node.line == 14]
    assert {node.op for node in inside} >= {"Add"}
    assert all(" / " in node.graph and node.graph.startswith("main / ") for node in inside)
    assert {node.line for node in second.nodes} == {20}


def test_a_model_that_is_no_python_function(tmp_path):
    dy2st.onnx.export(lambda x: x * 2, (torch.ones(2),), tmp_path / "net.onnx")
    (listing,) = source_listings(torch.relu, (), tmp_path / "net.onnx")
    assert listing.name == "test_a_model_that_is_no_python_function"  # whose line has the node


def marks(text, *sites):
    tree = ast.parse(textwrap.dedent(text))
    found = [PathSite("f.py", line, column, kind, "", (), taken) for line, column, kind, taken in sites]
    return "".join({"ran": "+", "never": "-", None: "."}[line_marks(tree, found).get(n)] for n in range(1, 12))


def test_marks():
    text = """\
    def f(x):
        if x:
            a = 1
        elif x > 1:
            a = 2
        else:
            a = 3
        while x:
            x = x - 1
        return a
    """
    assert marks(text) == "..........."
    assert marks(text, (2, 7, "if", ("then", "else"))) == "..+++++...."
    assert marks(text, (2, 7, "if", ("then",))) == "..+----...."
    assert marks(text, (2, 7, "if", ("else",)), (4, 9, "if", ("else",))) == "..-+-++...."
    assert marks(text, (8, 10, "loop", ("no trip",))) == "........-.."
    assert marks(text, (8, 10, "loop", ("no trip", "one trip"))) == "........+.."


def test_lines_of_an_arm_that_never_ran_did_not_run_whatever_lies_in_it():
    text = """\
    def f(x):
        if x:
            for y in x:
                x = x + y
                if y:
                    break
                x = 1
        return x
    """
    assert marks(text, (2, 7, "if", ("else",)), (3, 17, "loop", ("one trip",))) == "..-----...."
    assert marks(text, (3, 17, "loop", ("one trip",)), (5, 15, "if", ("then",))) == "...+++-...."
