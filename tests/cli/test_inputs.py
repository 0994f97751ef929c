"""Example inputs of a command: specs, files, and the target's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch

from dy2st.cli.inputs import example_inputs
from dy2st.cli.source_inputs import require_inputs
from dy2st.cli.suggesting import spec_for
from dy2st.cli.target import load_target
from dy2st.errors import ExampleInputsError, InputFileError, InputSpecError
from dy2st.input_spec import InputSpec, ValueSpec, parse_input

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


VALUES = """
import torch

def model(x: torch.Tensor, k: int, mode: str = "sum", mask=None):
    if mask is not None:
        x = x * mask
    if (x.sum() if mode == "sum" else x.max()) > 0:
        return x * k
    return x - k
"""


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("k=5", "k", 5),
        ("k=-0.5", "k", -0.5),
        ('mode="max"', "mode", "max"),
        ("mode='a=b'", "mode", "a=b"),
        ("mask=None", "mask", None),
        ("sizes=(2, [3, True])", "sizes", (2, [3, True])),
        ("options={'a': 1}", "options", {"a": 1}),
        ("größe=3", "größe", 3),
        ("5", None, 5),
        ("'x=f32[3]'", None, "x=f32[3]"),
    ],
)
def test_python_values(text, name, value):
    assert parse_input(text) == ValueSpec(name, value)


@pytest.mark.parametrize("text", ["x=f32[3]", "f32[]", "k=i64[]:{1,2}"])
def test_specs_are_no_values(text):
    assert isinstance(parse_input(text), InputSpec)


@pytest.mark.parametrize(
    "text", ["mode=max", "k=__import__('os')", "k=1+f()", "k=", "=5", "", "k==5", "x=f32[3", "k=5 6"]
)
def test_neither(text):
    with pytest.raises(InputSpecError):
        parse_input(text)


def test_values_beside_specs(write, dy2st_command):
    write("net.py", VALUES)
    done = dy2st_command("check", "net.py", "--input", "x=f32[n]", "--input", "k=5", "--input", 'mode="max"')
    assert "x: f32[4], k: 5, mode: 'max'" in done.out
    assert done.code == 0, done
    done = dy2st_command("check", "net.py", "--input", "x=f32[n]", "--input", "5", "--input", "mask=None")
    assert "x: f32[4], k: 5, mask: None" in done.out
    assert done.code == 0, done


def test_values_beside_a_file(write, dy2st_command, folder):
    write("net.py", VALUES)
    torch.save([(torch.ones(3),), (-torch.ones(2), 7)], folder / "in.pt")
    done = dy2st_command("check", "net.py", "--inputs", "in.pt", "--input", "k=5", "--input", "mask=f32[]")
    assert "x: f32[3], k: 5, mask: f32[]" in done.out
    assert "x: f32[2], k: 5, mask: f32[]" in done.out


def test_values_and_files_of_the_settings(write, dy2st_command, folder):
    write("net.py", VALUES)
    torch.save([(torch.ones(3),), (-torch.ones(2),)], folder / "in.pt")
    table = '[[tool.dy2st.target]]\ntarget = "net.py"\ninputs = "in.pt"\ninput = "k=5"\n'
    write("pyproject.toml", table)
    done = dy2st_command("check", "net.py")
    assert done.code == 0, done


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (),
            "D2S905: net.py: there are no example inputs (instead: --input 'x=f32[batch,3]' --input k=5, --inputs FILE",
        ),
        (("--input", "x=f32[3]"), "missing a required argument: 'k' (instead: --input 'x=f32[batch,3]' --input k=5)"),
        (("--input", "mode=max"), "max is no dtype, and no Python value (instead: a text is --input 'mode=\"max\"')"),
        (("--input", "x=f32["), "found the end (instead: --input 'x=f32[batch,3]' --input k=5)"),
        (
            ("--input", "y=3"),
            "no parameter 'y' (instead: one of x, k, mode, mask: --input 'x=f32[batch,3]' --input k=5)",
        ),
        (("--inputs", "in.pt", "--input", "mask=f32[n]"), "the size n of mask: which sizes go with those of the file"),
        (("--inputs", "none.pt", "--input", "k=5"), "D2S904: none.pt: no such file"),
    ],
)
def test_hints_have_the_models_own_parameters(arguments, message, write, dy2st_command, folder):
    write("net.py", VALUES)
    torch.save([(torch.ones(3),)], folder / "in.pt")
    done = dy2st_command("check", "net.py", *arguments)
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert message in line


def test_hints_have_what_the_examples_are(given):
    with pytest.raises(InputSpecError) as caught:
        given("x=f32[")
    assert caught.value.hint == "--input 'x=f32[2]' --input 'y=f32[2]'"


@pytest.mark.parametrize(
    ("annotation", "spec"),
    [
        ("", "f32[batch,3]"),
        ("Tensor", "f32[batch,3]"),
        ("torch.Tensor | None", "f32[batch,3]"),
        ("torch.LongTensor", "i64[batch,3]"),
        ("int", "5"),
        ("float", "0.5"),
        ("bool", "True"),
        ("Optional[str]", '"text"'),
        ("Float[Tensor, 'batch time 3']", "f32[batch,time,3]"),
        ('Int64[torch.Tensor, "n"]', "i64[n]"),
        ("Float[Tensor, '*batch 3']", "f32[batch,3]"),
    ],
)
def test_annotations(annotation, spec):
    assert spec_for(annotation) == spec


@pytest.mark.parametrize(
    "source",
    [
        "def model(x: Tensor, k: int, mode='sum'):\n    return x\n",
        "class model(Module):\n    def forward(self, x: Tensor, k: int, *, mode='sum'):\n        return x\n",
        "class Net(Module):\n    def forward(self, x: Tensor, k: int):\n        return x\nmodel = Net()\n",
    ],
)
def test_missing_inputs_are_told_from_the_source_alone(source, write, folder):
    write("net.py", f"raise RuntimeError('imported')\n{source}")
    with pytest.raises(ExampleInputsError) as caught:
        require_inputs("net.py", Namespace(input=[], inputs=None, rtol=None, atol=None))
    assert caught.value.hint.startswith("--input 'x=f32[batch,3]' --input k=5, --inputs FILE")


@pytest.mark.parametrize(
    "source",
    [
        "from others import *\ndef model(x):\n    return x\n",
        "def model(x):\n    return x\nglobals()['example' + '_inputs'] = []\n",
        "def model():\n    return x\n",
        "@made\ndef model(x):\n    return x\n",
        "class model:\n    def __init__(self, width):\n        pass\n    def forward(self, x):\n        pass\n",
        "model = Net()\n",
        "def model(x):\n    return x\nif 0:\n    from others import example_inputs\n",
        "def other(x):\n    return x\n",
        "def model(x:\n",
    ],
)
def test_what_the_source_leaves_open_is_not_told_from_it(source, write, folder):
    write("net.py", source)
    require_inputs("net.py", Namespace(input=[], inputs=None, rtol=None, atol=None))


def test_missing_inputs_are_told_without_torch(write, folder):
    write("net.py", VALUES)
    script = "import sys; from dy2st.cli.main import main; print(main(['check', 'net.py']), 'torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )
    assert (done.stdout, done.stderr.count("D2S905")) == ("2 False\n", 1)


BEST = """
import torch
from torch import nn


def best(scores, k: int = 3, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, -9.0)
    values = scores.topk(k).values
    while values[0] > 20:
        values = values / 2
    return values


class Head(nn.Module):
    def forward(self, x):
        return x


_hidden = best
instance = Head()
"""


def test_a_search_keeps_python_values(write, dy2st_command):
    write("net.py", BEST)
    specs = ("--input", "scores=f32[n:2..9]", "--input", "k=2", "--input", "mask=bool[n:2..9]")
    done = dy2st_command("check", "net.py:best", *specs, "--search", "3")
    assert done.code == 0, done.out + done.err
    assert "k: 2" in done.out
    assert "no trip, one trip, more trips" in done.out


def test_sizes_that_eager_rejects_come_with_a_range(write, dy2st_command, folder):
    write("net.py", BEST)
    done = dy2st_command("convert", "net.py:best", "--input", "scores=f32[n]")
    assert done.code == 2
    assert "(instead: the sizes that it takes, as in --input 'scores=f32[n:3..64]')" in done.out
    assert not (folder / "best.onnx").exists()
    again = dy2st_command("convert", "net.py:best", "--input", "scores=f32[n:3..64]")
    assert again.code == 0, again.out + again.err


def test_a_file_without_a_model_says_what_it_has(write, dy2st_command):
    write("net.py", BEST)
    done = dy2st_command("check", "net.py")
    assert done.err == ("dy2st: D2S902: net.py has no 'model' (instead: net.py:best, net.py:Head or net.py:instance)\n")
    assert done.code == 2


@pytest.mark.parametrize("text", ["f32[n,3]", "i64[n:2..9]:0..4", "bool[]", "f16[2,batch]:{1,2.5}", "c64[n]"])
def test_a_spec_is_written_as_it_is_read(text):
    found = parse_input(f"x={text}")
    assert isinstance(found, InputSpec)
    assert found.text() == text
