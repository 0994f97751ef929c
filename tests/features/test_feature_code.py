"""Row 57: the rewritten code can be read."""

# ruff: noqa: SIM108 - the constructs under test are written as users write them
from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import torch
from harness import row
from torch import Tensor, nn

import dy2st

SOURCE = '''\
import torch


def model(x):
    """Doubles or negates."""
    if x.sum() > 0:  # a remark that stays
        y = x * 2
    else:
        y = -x
    for row in y:
        y = y + row
    return y


def example_inputs():
    return [(torch.ones(3),), (-torch.ones(2),)]
'''


def sign(x: Tensor) -> Tensor:
    """The sign of the sum."""
    # A remark that stays.
    if x.sum() > 0:
        y = torch.ones(())
    else:
        y = -torch.ones(())
    return y


class Model(nn.Module):
    """A model with a method."""

    def forward(self, x: Tensor) -> Tensor:
        while x.norm() > 1:
            x = self.halve(x)
        return x

    def halve(self, x: Tensor) -> Tensor:
        """Called by the loop."""
        return x / 2 if x.sum() > 0 else x / 3


@row(57)
def test_code_of_a_function_is_python_and_keeps_names_and_remarks() -> None:
    code = dy2st.code(sign)
    (function,) = (node for node in ast.parse(code).body if isinstance(node, ast.FunctionDef) and node.name == "sign")
    assert ast.get_docstring(function) == "The sign of the sum."
    assert "# A remark that stays." in code
    assert code != Path(__file__).read_text()


@row(57)
def test_code_of_modules_and_methods() -> None:
    for target in (Model(), Model().forward, Model().halve):
        assert ast.parse(dy2st.code(target))
    assert "x.norm" in dy2st.code(Model())


@row(57)
def test_code_on_the_command_line_whole_per_pass_and_as_a_diff(dy2st_command: Any, write: Any) -> None:
    file = write("user_model.py", SOURCE)

    def run(*options: str) -> str:
        done = dy2st_command("code", f"{file}:model", *options)
        assert done.code == 0, done.err
        out: str = done.out
        return out

    assert "def model(x)" in run()
    diff = run("--diff").splitlines()
    assert any(line.startswith("-") and "if x.sum() > 0" in line for line in diff)
    assert any(line.startswith("+") for line in diff)
