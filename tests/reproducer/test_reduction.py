"""What makes source smaller, and values as text."""

from __future__ import annotations

import libcst as cst
import pytest
import torch
from torch.export import Dim

from dy2st.errors import UsageError
from dy2st.parity.inputs import InputSet
from dy2st.reproducer.edits import edits, replaced, statements, without
from dy2st.reproducer.literals import Literals, shapes_text
from dy2st.reproducer.reduction import reduced
from dy2st.reproducer.script import Script

SOURCE = """
def f(x: int, y) -> int:
    if x > 0:
        z = (x + y).clamp(0)
    elif y:
        z = 2
    else:
        z = not y
    return x, {"a": z}
"""


def test_statements_left_out():
    module = cst.parse_module(SOURCE)
    found = statements(module)
    assert [type(each).__name__ for each in found] == [
        "FunctionDef",
        "If",
        *["SimpleStatementLine"] * 4,
    ]
    assert "pass" in without(module, {found[2]}).code
    assert without(module, {found[1]}).code.count("\n") == 3
    for size in range(1, 5):
        for begin in range(len(found)):
            compile(without(module, set(found[begin : begin + size])).code, "f.py", "exec")


def test_every_edit_is_python_and_other():
    module = cst.parse_module(SOURCE)
    texts = [replaced(module, *edit).code for edit in edits(module)]
    for text in texts:
        compile(text, "f.py", "exec")
    told = "\n".join(texts)
    for part in (
        "return x\n",
        'return {"a": z}\n',
        "z = (x + y)\n",
        "z = x.clamp(0)",
        "z = y\n",
        "def f(x, y) -> int",
        "y):",
    ):
        assert part in told, part
    assert all(text != SOURCE for text in texts)
    alone = cst.parse_module("def f(z):\n    return {'a': z}\n")
    assert [replaced(alone, *edit).code for edit in edits(alone)] == ["def f(z):\n    return z\n"]


@pytest.mark.parametrize(
    "value",
    [
        torch.tensor([[0.1, -3e-8], [float("inf"), 5.0]]),
        torch.tensor(2.5, dtype=torch.float64),
        torch.tensor([1.5, float("nan")], dtype=torch.bfloat16),
        torch.tensor([[1, 2**60]]),
        torch.tensor([True, False]),
        torch.tensor([1 + 2j]),
        torch.zeros(2, 0, 3),
        torch.zeros(4, 5, dtype=torch.int32),
        torch.full((300,), 0.1),
        (1, [2.5, None, "a"], {"b": (True,)}, (), float("-inf"), torch.int64),
    ],
    ids=str,
)
def test_values_as_text(value):
    literals = Literals("saved")
    found = eval(literals.text(value, "x"), {"torch": torch})
    assert not literals.saved
    if isinstance(value, torch.Tensor):
        assert found.dtype == value.dtype
        assert torch.equal(found.nan_to_num(), value.nan_to_num())
        assert found.shape == value.shape
    else:
        assert found == value


def test_large_tensors_are_saved():
    literals = Literals("saved")
    assert literals.text({"a": [torch.arange(1000)]}, "x") == "{'a': [saved['x_a_0']]}"
    assert torch.equal(literals.saved["x_a_0"], torch.arange(1000))
    with pytest.raises(UsageError, match="x is of type object"):
        literals.text(object(), "x")


def test_dynamic_shapes_as_text():
    shapes = {"x": {0: Dim("batch", min=2, max=9), 1: Dim.AUTO}, "y": (None, Dim("n")), "z": [3]}
    found = eval(shapes_text(shapes), {"torch": torch})
    assert (found["x"][0].__name__, found["x"][0].min, found["x"][0].max) == ("batch", 2, 9)
    assert found["x"][1] is Dim.AUTO
    assert (found["y"][0], found["y"][1].__name__, found["z"]) == (None, "n", [3])
    with pytest.raises(UsageError, match="object"):
        shapes_text({"x": object()})


class Pretended:
    """Trials that never run: a script goes wrong while it calls atan on the first of its sets."""

    made, left = 0, 1000

    def go_on(self):
        return self.made < self.left

    def fails(self, script, key):
        self.made += 1
        space = {"__name__": "script"}
        try:
            exec(script.code(), space)
            calls = []
            space["torch"] = type("torch", (), {"atan": lambda x: calls.append(x) or x})
            eval(script.build, space)(*script.sets[0].args)
        except Exception:  # noqa: BLE001 - as in a real trial
            return False
        return bool(calls)


@pytest.mark.slow
def test_all_that_is_not_needed_goes():
    source = (
        "import torch\nUNUSED = 3\nclass Other:\n    pass\n\n"
        "def helper(x):\n    y = x + 1\n    return torch.atan(y)\n\n"
        "def f(x, y):\n    total = 0\n    for i in range(3):\n        if i > 1:\n            total = helper(x) * 2\n"
        "    return total, y\n"
    )
    sets = tuple(InputSet(str(i), (torch.rand(5, 3), torch.rand(3))) for i in range(3))
    small = reduced(Script(source, "f", sets), Pretended())
    assert len(small.source.strip().splitlines()) <= 6
    assert len(small.sets) == 1
    assert [tuple(each.shape) for each in small.sets[0].args] == [(1, 1), (1,)]
