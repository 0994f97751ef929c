"""What a target may be, and under which name its module is imported."""

from __future__ import annotations

import pickle
import sys

import pytest

from dy2st.cli.folders import targets_in
from dy2st.cli.target import default_output, load_target, split_target

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        return x

def build():
    return Net()

def plain(x):
    return x

class Space:
    inner = Net()

model = Net().eval()
"""


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a.py", ("a.py", "model")),
        ("a.py:net", ("a.py", "net")),
        ("pkg.mod:net", ("pkg.mod", "net")),
        ("C:/models/a.py", ("C:/models/a.py", "model")),
        ("C:/models/a.py:net", ("C:/models/a.py", "net")),
        ("a.py:Space.inner", ("a.py", "Space.inner")),
    ],
)
def test_split(text, parts):
    assert split_target(text) == parts


@pytest.mark.parametrize("name", ["model", "Net", "build", "Space.inner"])
def test_modules(name, write):
    write("net.py", NET)
    target = load_target(f"net.py:{name}")
    assert type(target.model).__name__ == "Net"
    assert default_output(target.text) == ("net.onnx" if name == "model" else f"{name}.onnx")
    assert target.model.training == (name != "model")


def test_function(write):
    write("net.py", NET)
    assert load_target("net.py:plain").model(3) == 3


def test_module_has_its_own_name_and_can_be_pickled(write):
    write("net.py", NET)
    target = load_target("net.py")
    assert target.module.__name__ == "net"
    assert sys.modules["net"] is target.module
    assert type(pickle.loads(pickle.dumps(target.model))) is type(target.model)
    assert load_target("net.py").model is target.model


def test_siblings_can_be_imported(write):
    write("models/net.py", "from parts import Net\nmodel = Net()\n")
    write("models/parts.py", NET)
    assert type(load_target("models/net.py").model).__module__ == "parts"


def test_file_in_a_package(write):
    write("pkg/__init__.py", "")
    write("pkg/sub/__init__.py", "")
    write("pkg/sub/net.py", "from ..parts import Net\nmodel = Net()\n")
    write("pkg/parts.py", NET)
    assert load_target("pkg/sub/net.py").module.__name__ == "pkg.sub.net"
    assert load_target("pkg.sub.net").module is sys.modules["pkg.sub.net"]


def test_a_file_named_like_a_known_module_does_not_replace_it(write):
    import json

    write("json.py", NET)
    target = load_target("json.py")
    assert target.module is not json
    assert sys.modules["json"] is json
    assert type(target.model).__name__ == "Net"
    assert default_output(target.text) == "json.onnx"


def test_two_files_of_one_name(write):
    write("a/net.py", NET)
    write("b/net.py", NET + "second = True\n")
    assert not hasattr(load_target("a/net.py").module, "second")
    assert load_target("b/net.py").module.second


def test_folder_lists_files_with_model_and_inputs_without_importing(write, folder):
    write("m/a.py", "model = example_inputs = None\nraise SystemExit\n")
    write("m/sub/b.py", "from x import model, example_inputs\n")
    write("m/c.py", "model = 3\n")
    write("m/d.py", "def model(x):\n    return x\ndef example_inputs():\n    return []\n")
    write("m/e.py", "if 1:\n    model, example_inputs = 1, 2\n")
    write("m/broken.py", "model = example_inputs = (\n")
    write("m/_private.py", "model = example_inputs = None\n")
    write("m/.hidden/f.py", "model = example_inputs = None\n")
    found = [path.removeprefix(f"{folder}/") for path in targets_in(folder / "m")]
    assert found == ["m/a.py", "m/d.py", "m/e.py", "m/sub/b.py"]
