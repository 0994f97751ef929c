"""``dy2st survey``: control flow on tensors and likely refusals, told from the source alone."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import textwrap

import pytest
import torch
from fluidattacks_core.sarif import SarifLog

import dy2st
from dy2st.errors import UntranslatedError
from dy2st.survey.likely_causes import NO_ONNX
from dy2st.survey.python_files import Source
from dy2st.survey.surveying import survey

HEAD = "import math\nimport numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor, nn\n"


def surveyed(text, name="m.py"):
    text = HEAD + textwrap.dedent(text)
    return survey([Source(name, name, ast.parse(text), text)]).functions


def flow(text):
    return [(each.kind, each.text) for function in surveyed(text) for each in function.constructs]


STAGED = {
    "an annotated parameter": ("def f(x: Tensor):\n    if x.sum() > 0: return x", [("if", "x.sum() > 0")]),
    "what forward takes": (
        "class M(nn.Module):\n    def forward(self, x, k=2):\n        while x.norm() > k: x = x / 2\n        return x",
        [("while", "x.norm() > k")],
    ),
    "what is asked of a parameter": (
        "def f(v):\n    v = v.unsqueeze(0)\n    assert v.min() > 0",
        [("assert", "v.min() > 0")],
    ),
    "what is given to torch": ("def f(v):\n    return 1 if torch.any(v) else F.relu(v)", [("ternary", "torch.any(v)")]),
    "a number made of a tensor": (
        "def f(x: Tensor):\n    n = int(x.max())\n    for i in range(n): x = x + i",
        [("for", "range(n)")],
    ),
    "an item": ("def f(x: Tensor):\n    n = x[0].item()\n    if n > 3: return x", [("if", "n > 3")]),
    "a loop over rows": ("def f(x: Tensor):\n    for i, row in enumerate(x): x = x + row", [("for", "enumerate(x)")]),
    "an element of a list": (
        "def f(xs: list[Tensor]):\n    for x in xs:\n        if x.any(): return x",
        [("if", "x.any()")],
    ),
    "a list that is filled": (
        "def f(x: Tensor):\n    xs = []\n    xs.append(x)\n    if xs[0] > 0: return 1",
        [("if", "xs[0] > 0")],
    ),
    "a comprehension": (
        "def f(x: Tensor):\n    return [v for v in x if v > 0]",
        [("comprehension", "x"), ("comprehension if", "v > 0")],
    ),
    "a buffer": (
        (
            "class M(nn.Module):\n    def __init__(self): self.register_buffer('b', torch.ones(1))\n"
            "    def step(self):\n        if self.b > 0: self.b += 1"
        ),
        [("if", "self.b > 0")],
    ),
    "what a function of the file gives": (
        "def g(x: Tensor):\n    return (x * 2).any()\ndef f(x: Tensor):\n    if g(x): return x",
        [("if", "g(x)")],
    ),
    "a function inside": (
        "def f(x: Tensor):\n    def go():\n        return 1 if x > 0 else 2\n    return go()",
        [("ternary", "x > 0")],
    ),
    "a match": ("def f(x: Tensor):\n    match x.item():\n        case 1: return x", [("match", "x.item()")]),
    "a part of an unpacked result": (
        "def f(x: Tensor):\n    values, places = x.max(0)\n    if (places > 1).all(): return x",
        [("if", "(places > 1).all()")],
    ),
}
PLAIN = {
    "shapes": "def f(x: Tensor):\n    if x.shape[0] > 1 and x.dim() == 2 and x.size(0): return x",
    "None": "def f(x: Tensor, mask: Tensor | None):\n    if mask is not None and not isinstance(x, list): return x",
    "options": "class M(nn.Module):\n    def forward(self, x, k=2):\n        if self.training and k > 1: return x",
    "a list of tensors": "def f(xs: list[Tensor]):\n    if xs and len(xs) > 2: return xs[0]\n    for x in xs: pass",
    "a key": "def f(d: dict[str, Tensor]):\n    if 'a' in d: return 1\n    for k, v in d.items():\n        if k: 1",
    "modes": "def f(x: Tensor):\n    if torch.is_grad_enabled() or torch.jit.is_scripting() or torch.is_tensor(x): 1",
    "pieces": "def f(x: Tensor):\n    for part in x.chunk(2): x = x + part\n    return [p for p in torch.split(x, 2)]",
    "numbers": "def f(n: int, x: Tensor):\n    while n > 0 and math.sqrt(n) > 1: n -= 1\n    return x",
    "a zip with names": "def f(names, x: Tensor):\n    for n, row in zip(names, [x]):\n        if n == 'a': return row",
}


@pytest.mark.parametrize("name", STAGED)
def test_control_flow_that_is_found(name):
    text, expected = STAGED[name]
    assert flow(text) == expected


@pytest.mark.parametrize("name", PLAIN)
def test_control_flow_of_pythons_own(name):
    assert flow(PLAIN[name]) == []


def test_files_without_torch_are_left_out():
    text = "import numpy as np\ndef f(x):\n    if x.argmax() > 0: return np.sum(x)\n"
    found = survey([Source("m.py", "m.py", ast.parse(text), text)])
    assert (found.read, found.functions) == (1, [])


CAUSES = {
    "D2S245": "def f(x: Tensor):\n    if x.any(): pass\n    return np.sort(x.numpy())",
    "D2S246": "import cv2\ndef f(x: Tensor):\n    if x.any(): return cv2.blur(x)",
    "D2S236": "def f(x: Tensor):\n    try:\n        if x.any(): raise ValueError\n    except Exception: return x",
    "D2S231": "def f(x: Tensor):\n    if x.any(): return f(x - 1)\n    return x",
    "D2S232": "def f(x: Tensor):\n    if x.any(): yield x",
    "D2S241": "def f(x: Tensor):\n    seen = set()\n    for v in x.tolist():\n        seen.add(int(v))",
    "D2S307": "def f(x: Tensor):\n    if x.any(): return x.to_sparse()",
    "D2S403": "def f(x: Tensor):\n    if x.any(): return torch.linalg.eig(x)",
    "D2S251": "def f(x: Tensor):\n    if x.any(): torch.manual_seed(0)",
}


@pytest.mark.parametrize("code", CAUSES)
def test_likely_causes(code):
    (function,) = surveyed(CAUSES[code])
    assert {cause.code for cause in function.causes} == {code}


def test_a_try_around_what_may_fail():
    text = "def f(x: Tensor):\n    if x.any():\n        try: torch.linalg.cholesky(x)\n        except RuntimeError: 1"
    ((cause,),) = (function.causes for function in surveyed(text))
    assert (cause.code, cause.line) == ("D2S236", 8)


@pytest.mark.parametrize("name", sorted(NO_ONNX))
def test_what_is_said_to_have_no_onnx_has_none(name):
    function = getattr(torch.linalg, name)

    def model(x):
        found = function(x)
        return found if isinstance(found, torch.Tensor) else found[0]

    with pytest.raises(UntranslatedError):
        dy2st.onnx.export(model, (torch.eye(3),))


def test_the_command(write, dy2st_command, snapshot):
    write("pkg/a.py", HEAD + CAUSES["D2S245"] + "\n" + textwrap.dedent(STAGED["what forward takes"][0]) + "\n")
    write("pkg/sub/b.py", HEAD + CAUSES["D2S231"] + "\n")
    write("pkg/broken.py", "def f(:\n")
    write("pkg/__pycache__/c.py", HEAD + CAUSES["D2S232"] + "\n")
    done = dy2st_command("survey", "pkg")
    assert (done.code, done.err) == (0, "")
    snapshot("survey.txt", done.out)


def test_json_and_sarif(write, dy2st_command, folder):
    write("pkg/a.py", HEAD + CAUSES["D2S245"] + "\n")
    found = json.loads(dy2st_command("survey", "pkg", "--json").out)
    (function,) = found["staged"]
    assert (function["function"], function["line"]) == ("f", 6)
    assert function["constructs"] == [{"kind": "if", "line": 7, "column": 8, "text": "x.any()"}]
    assert [(each["code"], each["line"]) for each in function["causes"]] == [("D2S245", 8), ("D2S245", 8)]
    assert found["causes"] == [{"code": "D2S245", "count": 2}]

    done = dy2st_command("survey", "pkg", "--format", "sarif=found.sarif")
    assert done.code == 0
    log = json.loads((folder / "found.sarif").read_text())
    SarifLog.model_validate(log)
    results = log["runs"][0]["results"]
    assert [(each["ruleId"], each["level"]) for each in results] == [("D2S245", "warning")] * 2
    assert results[0]["locations"][0]["physicalLocation"]["region"]["startLine"] == 8


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["nowhere"], "nowhere is no file, no folder and no installed package"),
        (["empty"], "empty has no Python files"),
        (["notes.txt"], "notes.txt has no Python files"),
        (["empty", "--format", "html"], "a survey has no format html"),
        (["empty", "--json", "--format", "sarif"], "json and sarif can't both go to stdout"),
        (["json.nothing"], "there is no json.nothing"),
    ],
)
def test_wrong_use(arguments, error, write, dy2st_command):
    write("empty/notes.txt", "")
    write("notes.txt", "")
    done = dy2st_command("survey", *arguments)
    assert done.code == 2
    assert f"D2S901: {error}" in done.err


def test_an_installed_package_is_read_and_not_imported():
    code = (
        "import sys; from dy2st.cli.main import main; code = main(['survey', 'json', '--all']);"
        "sys.exit(code or 10 * any(name in sys.modules for name in ('torch', 'numpy', 'libcst')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("json: 5 files, ")
