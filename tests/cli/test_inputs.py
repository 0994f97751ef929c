"""Example inputs of a command: specs, files, and the target's own."""

from __future__ import annotations

import json
from argparse import Namespace

import numpy as np
import pytest
import torch

from dy2st.cli.inputs import example_inputs
from dy2st.cli.target import load_target
from dy2st.errors import InputFileError, InputSpecError

NET = """
import torch

def model(x, y, *, scale=1.0):
    return (x + y) * scale

def example_inputs():
    yield torch.ones(2), torch.ones(2)
    yield torch.zeros(2), torch.ones(2)

def dynamic_shapes():
    return ({0: None}, None)

others = {"a": (torch.ones(1), torch.ones(1))}
"""


@pytest.fixture
def given(write):
    write("net.py", NET)
    target = load_target("net.py")

    def collect(*specs, file=None):
        return example_inputs(target, Namespace(input=list(specs), inputs=file))

    return collect


def test_own_inputs_and_shapes(given):
    found = given()
    assert [len(each) for each in found.sets] == [2, 2]
    assert found.dynamic_shapes == ({0: None}, None)


def test_specs_go_to_their_parameters_in_the_signatures_order(given):
    found = given("y=f32[n]", "x=f32[n]")
    assert [list(each) for each in found.sets] == [["x", "y"]] * 4
    assert list(found.dynamic_shapes) == ["x", "y"]
    assert found.dynamic_shapes["x"][0] is found.dynamic_shapes["y"][0]
    found = given("f32[3]", "f32[3]")
    assert [list(each) for each in found.sets] == [["x", "y"]] * 2
    assert found.dynamic_shapes is None


@pytest.mark.parametrize("specs", [("f32[1]",), ("f32[1]",) * 4, ("z=f32[1]",), ("x=f32[1]", "x=f32[1]")])
def test_specs_that_do_not_fit(given, specs):
    with pytest.raises(InputSpecError):
        given(*specs)


def test_npz(given, folder):
    np.savez(folder / "in.npz", x=np.ones(3, np.float32), y=np.arange(3))
    (found,) = given(file="in.npz").sets
    assert {name: tensor.dtype for name, tensor in found.items()} == {"x": torch.float32, "y": torch.int64}


def test_npz_with_objects_is_not_unpickled(given, folder):
    np.savez(folder / "in.npz", x=np.array([{}], dtype=object))
    with pytest.raises(InputFileError, match="allow_pickle"):
        given(file="in.npz")


@pytest.mark.parametrize(
    "saved", [[(torch.ones(3), torch.ones(3))], {"one": (torch.ones(3),)}, {"x": torch.ones(3), "y": torch.ones(3)}]
)
def test_pt(given, folder, saved):
    torch.save(saved, folder / "in.pt")
    found = given(file="in.pt").sets
    assert len(found) == 1
    assert isinstance(found, dict) == ("one" in saved)


def test_pt_with_code_is_not_run(given, folder):
    torch.save(torch.nn.Linear(1, 1), folder / "in.pt")
    with pytest.raises(InputFileError, match="holds more than plain data"):
        given(file="in.pt")


def test_function_in_a_file(given):
    assert list(given(file="net.py:others").sets) == ["a"]
    assert len(given(file="net.py").sets) == 2


def safetensors_bytes(entries, body):
    header = json.dumps(entries).encode()
    return len(header).to_bytes(8, "little") + header + body


def test_safetensors(given, folder):
    values = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    body = values.numpy().tobytes() + b"\x01\x00" + values.bfloat16().view(torch.int16).numpy().tobytes()
    entries = {
        "__metadata__": {"format": "pt"},
        "x": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
        "flags": {"dtype": "BOOL", "shape": [2], "data_offsets": [16, 18]},
        "half": {"dtype": "BF16", "shape": [4], "data_offsets": [18, 26]},
        "empty": {"dtype": "I64", "shape": [0, 3], "data_offsets": [26, 26]},
    }
    (folder / "in.safetensors").write_bytes(safetensors_bytes(entries, body))
    (found,) = given(file="in.safetensors").sets
    assert torch.equal(found["x"], values)
    assert found["flags"].tolist() == [True, False]
    assert torch.equal(found["half"], values.bfloat16().flatten())
    assert found["empty"].shape == (0, 3)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 80]},
        {"dtype": "F99", "shape": [2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2]},
    ],
)
def test_damaged_safetensors(given, folder, entry):
    (folder / "in.safetensors").write_bytes(safetensors_bytes({"x": entry}, bytes(8)))
    with pytest.raises(InputFileError, match="can't be read"):
        given(file="in.safetensors")
