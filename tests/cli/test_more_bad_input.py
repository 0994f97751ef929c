"""More kinds of bad input: each is told in one line, with the documented exit code, and leaves nothing behind."""

from __future__ import annotations

import re

import pytest

NET = """
import sys

import torch

def model(x, k=1):
    if x.sum() > 0:
        return x * k
    return -x

def example_inputs():
    return [(torch.ones(3),), (-torch.ones(2),)]

def build():
    sys.exit(3)

def broken():
    raise ValueError

class Wide(torch.nn.Module):
    def __init__(self, *, width):
        super().__init__()

class Space:
    inner = 3

    @property
    def late(self):
        raise OSError("gone")

space = Space()

def generator(x):
    yield x

async def coroutine(x):
    return x

nothing = None
tensor = torch.ones(3)
library = torch.nn

def raises():
    yield (torch.ones(3),)
    raise KeyError("x")

def leaves():
    sys.exit("bye")

def needs(width):
    return [(torch.ones(width),)]

def text():
    return "abc"

def number():
    return 3

def words():
    return [("abc",), ("de",)]

def arrays():
    return [(torch.ones(3).numpy(),)]

def too_many():
    return [(torch.ones(3), 1, 2, 3)]

def none_at_all():
    return [()]
"""
ONNX_TEXT = "no model at all\n"
PAIR = ["--input", "x=f32[3]"]

# name -> (files, arguments, what is said)
CASES = {
    # targets
    "folder_without_files": ({"empty/readme.txt": ""}, ["check", "empty"], "empty: there is no Python file"),
    "two_colons": ({"net.py": NET}, ["check", "net.py:model:extra"], "there is no module 'net.py:model'"),
    "only_a_colon": ({}, ["check", ":model"], "':model' is no target"),
    "text_file": ({"net.txt": NET}, ["check", "net.txt"], "net.txt: not a Python file"),
    "no_utf8": ({"net.py": b"model = '\xff\xfe'\n"}, ["check", "net.py"], "net.py"),
    "empty_file": ({"net.py": ""}, ["check", "net.py"], "net.py has no 'model'"),
    "unicode_name": ({"net.py": NET}, ["check", "net.py:größe"], "net.py has no 'größe'"),
    "unicode_file": ({}, ["check", "größe.py"], "größe.py: no such file"),
    "null_byte_in_target": ({}, ["check", "net\0.py"], "is no name of a file or module"),
    "newline_in_target": ({}, ["check", "net\n.py"], "is no name of a file or module"),
    "long_target": ({}, ["check", "a" * 5000 + ".py"], "is too long a name: 5003 bytes"),
    "long_module": ({}, ["check", "a" * 5000], "is too long a name"),
    "relative_module": ({}, ["check", "..net:model"], "there is no module '..net'"),
    "ends_in_a_dot": ({}, ["check", "net.:model"], "there is no module 'net.'"),
    "long_output": ({"net.py": NET}, ["convert", "net.py", "-o", "a" * 300 + ".onnx"], "is too long a name: 305 bytes"),
    "null_byte_in_output": ({"net.py": NET}, ["convert", "net.py", "-o", "a\0.onnx"], "is no name of a file"),
    "long_format": ({"net.py": NET}, ["check", "net.py", "--format", "html=" + "a" * 300], "is too long a name"),
    "long_setting": ({"pyproject.toml": f"[tool.dy2st]\ntargets = ['{'a' * 300}']\n"}, ["check"], "is too long a name"),
    "circular_import": (
        {"net.py": "from other import x\nmodel = x\n", "other.py": "from net import model\nx = 1\n"},
        ["check", "net.py"],
        "net.py can't be imported: ImportError: cannot import name 'model'",
    ),
    "recursion_on_import": ({"net.py": "def f():\n    f()\nf()\n"}, ["check", "net.py"], "RecursionError"),
    "base_exception_on_import": (
        {"net.py": "class Stop(BaseException):\n    pass\nraise Stop('all')\n"},
        ["check", "net.py"],
        "net.py can't be imported: Stop: all",
    ),
    "package_that_fails": (
        {"pkg/__init__.py": "1 / 0\n", "pkg/net.py": NET},
        ["check", "pkg.net"],
        "pkg.net can't be imported: ZeroDivisionError",
    ),
    "package_that_exits": (
        {"pkg/__init__.py": "raise SystemExit(4)\n", "pkg/net.py": NET},
        ["check", "pkg.net"],
        "pkg.net can't be imported: SystemExit: 4",
    ),
    "module_missing_in_a_package": ({"pkg/__init__.py": ""}, ["check", "pkg.net"], "there is no module 'pkg.net'"),
    "factory_that_exits": ({"net.py": NET}, ["check", "net.py:build"], "net.py:build() raises SystemExit: 3"),
    "factory_that_raises_nothing": ({"net.py": NET}, ["check", "net.py:broken"], "net.py:broken() raises ValueError"),
    "class_with_keywords": ({"net.py": NET}, ["check", "net.py:Wide"], "needs the arguments width"),
    "class_of_no_module": ({"net.py": NET}, ["check", "net.py:Space"], "which is no torch.nn.Module"),
    "no_callable_object": ({"net.py": NET}, ["check", "net.py:space"], "is of type Space: neither a module nor"),
    "name_of_a_number": ({"net.py": NET}, ["check", "net.py:Space.inner"], "is of type int: neither a module nor"),
    "name_in_a_number": ({"net.py": NET}, ["check", "net.py:Space.inner.x"], "net.py has no 'Space.inner.x'"),
    "property_that_raises": ({"net.py": NET}, ["check", "net.py:space.late"], "OSError: gone"),
    "none": ({"net.py": NET}, ["check", "net.py:nothing"], "is of type NoneType"),
    "a_tensor": ({"net.py": NET}, ["check", "net.py:tensor"], "is of type Tensor"),
    "a_python_module": ({"net.py": NET}, ["check", "net.py:library"], "is of type module"),
    "generator": ({"net.py": NET}, ["check", "net.py:generator", *PAIR], "is a generator"),
    "coroutine": ({"net.py": NET}, ["check", "net.py:coroutine", *PAIR], "is a coroutine"),
    # options
    "opset_zero": ({"net.py": NET}, ["check", "net.py", "--opset", "0"], "opset 0 can't be written"),
    "opset_with_a_point": ({"net.py": NET}, ["check", "net.py", "--opset", "18.5"], "--opset: invalid int value"),
    "opsets_of_letters": ({"net.py": NET}, ["check", "net.py", "--opsets", "a,b"], "--opsets"),
    "rtol_without_a_number": ({"net.py": NET}, ["check", "net.py", "--rtol", "y="], "--rtol"),
    "rtol_infinite": ({"net.py": NET}, ["check", "net.py", "--rtol", "inf"], "rtol"),
    "rtol_of_no_output": ({"net.py": NET}, ["check", "net.py", "--rtol", "nosuch=1e-3"], "nosuch"),
    "timeout_negative": ({"net.py": NET}, ["check", "net.py", "--timeout", "-1"], "timeout"),
    "timeout_nan": ({"net.py": NET}, ["check", "net.py", "--timeout", "nan"], "timeout"),
    "jobs_zero": ({"net.py": NET}, ["check", "net.py", "--jobs", "0"], "'0' is no whole number from 1 up"),
    "seed_of_letters": ({"net.py": NET}, ["check", "net.py", "--seed", "abc"], "--seed: invalid int value"),
    "search_negative": ({"net.py": NET}, ["check", "net.py", "--search=-1"], "search"),
    "search_nan": ({"net.py": NET}, ["check", "net.py", "--search=nan"], "search"),
    "format_unknown": ({"net.py": NET}, ["check", "net.py", "--format", "pdf"], "pdf"),
    "format_without_file": ({"net.py": NET}, ["check", "net.py", "--format", "html="], "--format"),
    "format_over_a_source": ({"net.py": NET}, ["check", "net.py", "--format", "html=net.py"], "a .py file, no report"),
    "format_into_no_folder": ({"net.py": NET}, ["check", "net.py", "--format", "html=no/a.html"], "does not exist"),
    "formats_on_stdout": (
        {"net.py": NET},
        ["check", "net.py", "--format", "html", "--format", "github"],
        "can't both go to stdout",
    ),
    "state_unknown": ({"net.py": NET}, ["check", "net.py", "--state", "keep"], "--state: invalid choice"),
    "outputs_unknown": ({"net.py": NET}, ["check", "net.py", "--optional-outputs", "x"], "invalid choice"),
    "inputs_as_alone": ({"net.py": NET}, ["check", "net.py", "--inputs-as", "k"], "'k' is not NAME=tensor"),
    "inputs_as_unknown": ({"net.py": NET}, ["check", "net.py", "--inputs-as", "k=list"], "list"),
    "inputs_as_of_none": ({"net.py": NET}, ["check", "net.py", "--inputs-as", "z=tensor"], "z"),
    "specialize_no_line": ({"net.py": NET}, ["check", "net.py", "--allow-specialize", "abc"], "abc"),
    "save_without_search": ({"net.py": NET}, ["check", "net.py", "--save-inputs", "d"], "there is no --search"),
    "reproducer_no_folder": ({"net.py": NET}, ["check", "net.py", "--reproducer", "no/b.py"], "does not exist"),
    "reproducer_of_two": ({"net.py": NET}, ["check", "net.py", "net.py:build", "--reproducer", "b.py"], "reproducer"),
    "baseline_missing": ({"net.py": NET}, ["check", "net.py", "--baseline", "b.json"], "D2S907: b.json"),
    "baseline_damaged": ({"net.py": NET, "b.json": "{"}, ["check", "net.py", "--baseline", "b.json"], "D2S907"),
    "baseline_of_a_list": ({"net.py": NET, "b.json": "[]"}, ["check", "net.py", "--baseline", "b.json"], "D2S907"),
    "baseline_folder": ({"net.py": NET, "b/x": ""}, ["check", "net.py", "--baseline", "b"], "D2S907"),
    "scheduler_of_nothing": ({"net.py": NET}, ["check", "net.py", "--scheduler", "nowhere"], "D2S908"),
    "onnx_missing": ({"net.py": NET}, ["check", "net.py", "--onnx", "a.onnx"], "there is no such file"),
    "onnx_folder": ({"net.py": NET, "a.onnx/x": ""}, ["check", "net.py", "--onnx", "a.onnx"], "there is no such file"),
    "onnx_damaged": ({"net.py": NET, "a.onnx": ONNX_TEXT}, ["check", "net.py", "--onnx", "a.onnx"], "D2S401"),
    "onnx_empty": ({"net.py": NET, "a.onnx": ""}, ["check", "net.py", "--onnx", "a.onnx"], "D2S401"),
    "onnx_and_opset": (
        {"net.py": NET, "a.onnx": ""},
        ["check", "net.py", "--onnx", "a.onnx", "--opset", "18"],
        "is there already",
    ),
    "onnx_for_two": ({"net.py": NET}, ["check", "net.py", "net.py:build", "--onnx", "a.onnx"], "--onnx is for one"),
    "tests_of_no_file": ({}, ["check", "a.onnx"], "a.onnx: there is no such file"),
    "tests_of_a_damaged_file": ({"a.onnx": ONNX_TEXT}, ["check", "a.onnx"], "a.onnx"),
    "tests_of_an_empty_file": ({"a.onnx": ""}, ["check", "a.onnx"], "a.onnx"),
    "tests_of_a_folder": ({"a.onnx/x": ""}, ["check", "a.onnx"], "a.onnx"),
    "providers_unknown": ({"net.py": NET}, ["check", "net.py", "--providers", "Abacus"], "Abacus"),
    "embed_unchecked": ({"net.py": NET}, ["convert", "net.py", "--embed-tests", "--no-check"], "--no-check makes none"),
    "two_to_convert": ({"net.py": NET}, ["convert", "net.py", "net.py"], "unrecognized arguments: net.py"),
    "nothing_to_convert": ({}, ["convert"], "the following arguments are required: target"),
    "after_nothing": ({"net.py": NET}, ["code", "net.py", "--after", ""], "there is no pass ''"),
    "code_of_a_folder": ({"models/net.py": NET}, ["code", "models"], "models is a folder"),
    "explain_two": ({}, ["explain", "D2S201", "D2S202"], "unrecognized arguments: D2S202"),
    "explain_the_empty": ({}, ["explain", ""], "there is no error code ''"),
    "survey_of_nothing": ({}, ["survey", "nowhere/at/all"], "nowhere/at/all"),
    "survey_of_a_text": ({"a.txt": ""}, ["survey", "a.txt"], "a.txt"),
    "init_without_models": ({"net.py": "x = 1\n"}, ["init"], "no file in this folder defines both"),
    # inputs
    "size_too_large": (
        {"net.py": NET},
        ["check", "net.py", "--input", "x=f32[99999999999999]"],
        "x=float32[99999999999999]: a tensor",
    ),
    "size_beyond_int64": ({"net.py": NET}, ["check", "net.py", "--input", "x=f32[99999999999999999999]"], "is no size"),
    "sizes_too_large": (
        {"net.py": NET},
        ["check", "net.py", "--input", "x=f32[n:99999999999..999999999999]"],
        "can't be made",
    ),
    "size_negative": ({"net.py": NET}, ["check", "net.py", "--input", "x=f32[-1]"], "-1 is no size"),
    "size_of_a_float": ({"net.py": NET}, ["check", "net.py", "--input", "x=f32[1e9]"], "1e9 is no size"),
    "range_of_nan": ({"net.py": NET}, ["check", "net.py", "--input", "x=f32[3]:nan..1"], "expected a number"),
    "range_too_wide": (
        {"net.py": NET},
        ["check", "net.py", "--input", "x=i8[3]:0..999"],
        "0..999 is beyond int8, which has -128 to 127",
    ),
    "range_beyond_int64": (
        {"net.py": NET},
        ["check", "net.py", "--input", "x=i64[3]:0..99999999999999999999"],
        "is beyond int64",
    ),
    "no_choices": ({"net.py": NET}, ["check", "net.py", "--input", "x=f32[3]:{}"], "expected a number"),
    "deep_value": ({"net.py": NET}, ["check", "net.py", "--input", "k=" + "(" * 500], "input spec"),
    "value_for_a_tensor": ({"net.py": NET}, ["check", "net.py", "--input", "x=None"], "D2S502"),
    "inputs_empty_folder": ({"net.py": NET, "in/x.txt": ""}, ["check", "net.py", "--inputs", "in"], "no input file in"),
    "inputs_folder_as_npz": ({"net.py": NET, "a.npz/x": ""}, ["check", "net.py", "--inputs", "a.npz"], "D2S904"),
    "inputs_empty_npz": ({"net.py": NET, "a.npz": ""}, ["check", "net.py", "--inputs", "a.npz"], "D2S904"),
    "inputs_empty_pt": ({"net.py": NET, "a.pt": ""}, ["check", "net.py", "--inputs", "a.pt"], "D2S904"),
    "inputs_empty_safetensors": (
        {"net.py": NET, "a.safetensors": ""},
        ["check", "net.py", "--inputs", "a.safetensors"],
        "D2S904",
    ),
    "inputs_of_a_missing_module": ({"net.py": NET}, ["check", "net.py", "--inputs", "no.py:f"], "no.py: no such file"),
    "inputs_that_raise": ({"net.py": NET}, ["check", "net.py", "--inputs", "net.py:raises"], "raises KeyError"),
    "inputs_that_exit": ({"net.py": NET}, ["check", "net.py", "--inputs", "net.py:leaves"], "raises SystemExit: bye"),
    "inputs_that_need": ({"net.py": NET}, ["check", "net.py", "--inputs", "net.py:needs"], "raises TypeError"),
    "inputs_of_a_text": ({"net.py": NET}, ["check", "net.py", "--inputs", "net.py:text"], "D2S905"),
    "inputs_of_a_number": ({"net.py": NET}, ["check", "net.py", "--inputs", "net.py:number"], "of type int"),
    "inputs_of_words": ({"net.py": NET}, ["check", "net.py", "--inputs", "net.py:words"], "D2S502"),
    "inputs_of_arrays": ({"net.py": NET}, ["check", "net.py", "--inputs", "net.py:arrays"], "ndarray"),
    "inputs_too_many": ({"net.py": NET}, ["check", "net.py", "--inputs", "net.py:too_many"], "takes from 1 to 2"),
    "inputs_of_nothing": ({"net.py": NET}, ["check", "net.py", "--inputs", "net.py:none_at_all"], "missing 1 required"),
    "inputs_empty": ({"net.py": NET}, ["check", "net.py", "--inputs", ""], "--inputs names no file"),
    "onnx_of_no_name": ({"net.py": NET}, ["check", "net.py", "--onnx", ""], "--onnx names no file"),
    "baseline_empty": ({"net.py": NET}, ["check", "net.py", "--baseline", ""], "--baseline names no file"),
    "rtol_of_no_name": ({"net.py": NET}, ["check", "net.py", "--rtol", "=1"], "'=1' names no output"),
    "no_parameters": ({}, ["check", "sys:exit"], "(instead: --inputs FILE, or a function"),
    "inputs_nobody_waits_for": (
        {"net.py": NET + "async def later():\n    return []\n"},
        ["check", "net.py", "--inputs", "net.py:later"],
        "of type coroutine",
    ),
    "undecoded_target": ({}, ["check", "net\udcc3.py"], "is no text in this locale"),
    "undecoded_output": ({"net.py": NET}, ["convert", "net.py", "-o", "\udcff.onnx"], "is no text in this locale"),
    "dynamic_shapes_by_text": (
        {"net.py": NET + "example_inputs = [(torch.ones(2, 4),)]\ndynamic_shapes = ('n',)\n"},
        ["check", "net.py"],
        "dynamic_shapes of x is 'n', and x is a tensor of rank 2",
    ),
    # settings
    "settings_rtol_negative": (
        {"pyproject.toml": "[tool.dy2st]\ntargets = 'net.py'\nrtol = -1\n"},
        ["check"],
        "pyproject.toml: [tool.dy2st]: rtol is -1, not a number from 0 up",
    ),
    "settings_atol_of_an_output": (
        {"pyproject.toml": "[[tool.dy2st.target]]\ntarget = 'net.py'\natol = {y = nan}\n"},
        ["check"],
        "of net.py: atol is {'y': nan}, not a number from 0 up",
    ),
    "settings_timeout_endless": (
        {"pyproject.toml": "[tool.dy2st]\ntargets = 'net.py'\ntimeout = inf\n"},
        ["check"],
        "timeout is inf, not a number of seconds above 0",
    ),
    "settings_search_of_no_time": (
        {"pyproject.toml": "[tool.dy2st]\ntargets = 'net.py'\nsearch = 0\n"},
        ["check"],
        "search is 0, not a number of seconds above 0",
    ),
    "settings_target_is_a_number": (
        {"pyproject.toml": "[[tool.dy2st.target]]\ntarget = 3\n"},
        ["check"],
        "target is 3, not a text",
    ),
    "tool_is_a_number": (
        {"net.py": NET, "pyproject.toml": "tool = 3\n"},
        ["check", "net.py"],
        "D2S906: pyproject.toml",
    ),
    "table_is_a_number": ({"net.py": NET, "pyproject.toml": "[tool]\ndy2st = 3\n"}, ["check", "net.py"], "not a table"),
    "settings_of_bytes": ({"net.py": NET, "pyproject.toml": b"\xff\xfe"}, ["check", "net.py"], "can't be read"),
    "settings_targets": ({"pyproject.toml": "[tool.dy2st]\ntargets = 3\n"}, ["check"], "targets is 3, not a text"),
    "settings_target": ({"pyproject.toml": "[[tool.dy2st.target]]\nopset = 18\n"}, ["check"], "has no target"),
    "settings_targets_empty": ({"pyproject.toml": "[tool.dy2st]\ntargets = []\n"}, ["check"], "nothing to check"),
    "settings_jobs": ({"pyproject.toml": "[tool.dy2st]\njobs = 0\n"}, ["check"], "jobs is 0, not a whole number"),
    "settings_seed": ({"pyproject.toml": "[tool.dy2st]\nseed = 1.5\n"}, ["check"], "seed is 1.5"),
    "settings_timeout": (
        {"net.py": NET, "pyproject.toml": "[tool.dy2st]\ntimeout = -1\n"},
        ["check", "net.py"],
        "timeout",
    ),
    "settings_rtol": (
        {"net.py": NET, "pyproject.toml": "[tool.dy2st]\nrtol = {y = 'a'}\n"},
        ["check", "net.py"],
        "rtol is {'y': 'a'}",
    ),
    "settings_of_no_file": (
        {"pyproject.toml": "[tool.dy2st]\ntargets = ['gone.py']\n"},
        ["check"],
        "gone.py: no such file",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_line(name, folder, dy2st_command):
    files, arguments, message = CASES[name]
    for file, content in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    before = sorted(folder.rglob("*"))
    done = dy2st_command(*arguments)
    assert (done.code, done.out) == (2, ""), done
    # torch writes of its own steps where a handler listens, as pytest's does
    (line,) = [line for line in done.err.splitlines() if not re.match(r"[VIW]\d{4} ", line)]
    assert line.startswith("dy2st: ")
    assert "D2S" in line
    assert message in line
    assert "Traceback" not in line
    assert [path for path in sorted(folder.rglob("*")) if "__pycache__" not in path.parts] == before
