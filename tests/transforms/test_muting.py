"""Muted statements: what they evaluate is unknown, or all of them is left out, the names that they bind apart."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from typing import TYPE_CHECKING, cast

import libcst as cst
import pytest

from dy2st.transforms import Unit, lower
from dy2st.transforms.analysis import Analysis
from dy2st.transforms.analysis.scope import identifiers
from dy2st.transforms.muting import Mute, MuteStatement
from dy2st.transforms.names import NameSupply
from dy2st.transforms.pairing import pair

if TYPE_CHECKING:
    from collections.abc import Mapping


def muted(text: str, lines: Mapping[int, Mute], *, further: bool = False) -> str:
    """The text after muting, and after all passes with ``further``."""
    node = cast("ast.FunctionDef", ast.parse(text).body[0])
    tree = cast("cst.FunctionDef", cst.parse_module(text).body[0])
    unit = Unit(tree, pair(tree, node), Analysis(node).facts, NameSupply(identifiers(node)))
    MuteStatement(unit, lines).run()
    if further:
        lower(unit)
    return cst.Module([unit.node]).code  # type: ignore[list-item]


def test_documentation() -> None:
    text = inspect.cleandoc(MuteStatement.__doc__ or "")
    before, after = (
        textwrap.dedent(found) for found in re.findall(r"^(?:Before|After):\n((?:    .*\n|\n)+?)\n", text, re.MULTILINE)
    )
    assert muted(before, {2: Mute.VALUES, 3: Mute.VALUES}) == after


# statement -> with unknown values, and left out
STATEMENTS = {
    "y = f(x)": ("y = d2s.muted()", "y = d2s.muted()"),
    "y: int = f(x)": ("y: int = d2s.muted()", "y = d2s.muted()"),
    "self.y = d[0] = f(x)": ("self.y = d[0] = d2s.muted()", "pass"),
    "a, b.c = f(x)": ("a, b.c = d2s.muted()", "a = d2s.muted()"),
    "y += f(x)": ("y = d2s.muted()", "y = d2s.muted()"),
    "y = (n := f(x))": ("y = d2s.muted(n := d2s.muted())", "y = n = d2s.muted()"),
    "f(x)": ("d2s.muted()", "pass"),
    "return f(x)": ("return d2s.muted()", "return d2s.muted()"),
    "raise f(x)": ("pass", "pass"),
    "assert f(x)": ("pass", "pass"),
    "del d[f(x)]": ("pass", "pass"),
    "import a.b, c as d": ("a = d = d2s.muted()", "a = d = d2s.muted()"),
    "if f(x):\n    y = 1": ("if d2s.muted():\n    y = 1", "y = d2s.muted()"),
    "while f(x):\n    y = 1": ("while d2s.muted():\n    y = 1", "y = d2s.muted()"),
    "for i in f(x):\n    y = 1": ("for i in d2s.muted():\n    y = 1", "i = y = d2s.muted()"),
    "with f(x) as y:\n    pass": ("with d2s.muted() as y:\n    pass", "y = d2s.muted()"),
    "match f(x):\n    case [y]:\n        pass": ("match d2s.muted():\n    case [y]:\n        pass", "y = d2s.muted()"),
    "def g():\n    return 1": ("g = d2s.muted()", "g = d2s.muted()"),
    "try:\n    y = 1\nfinally:\n    z = 2": ("y = 1\nz = 2", "y = z = d2s.muted()"),
}


def names_in_order(text: str) -> str:
    """The targets of an assignment in alphabetical order."""
    return re.sub(r"^(\w+(?: = \w+)*)(?= = d2s)", lambda m: " = ".join(sorted(m[1].split(" = "))), text)


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("level", list(Mute))
def test_statement(statement: str, level: Mute) -> None:
    text = "def f(self, x, d, b):\n" + textwrap.indent(statement, "    ") + "\n"
    result = muted(text, {2: level})
    body = textwrap.dedent(result.partition("\n")[2]).rstrip("\n")
    assert names_in_order(body) == names_in_order(STATEMENTS[statement][level - 1])
    compile(muted(text, {2: level}, further=True), "<muted>", "exec")


def test_other_lines_stay() -> None:
    text = "def f(x):\n    y = g(\n        x)\n    if y:  # why\n        z = 1\n    return z\n"
    assert muted(text, {3: Mute.VALUES}) == text.replace("g(\n        x)", "d2s.muted()")
    assert muted(text, {5: Mute.VALUES}) == text.replace("z = 1", "z = d2s.muted()")


def test_elif_stays_an_elif() -> None:
    text = "def f(x):\n    if x:\n        y = 1\n    elif g(x):\n        y = 2\n    return y\n"
    assert muted(text, {4: Mute.ALL}) == text.replace("g(x)", "d2s.muted()")


def test_names_of_other_scopes_are_not_bound() -> None:
    text = "def f(x):\n    global n\n    n = y = g(x)\n    if g(x):\n        n = 1\n"
    assert "n = y = d2s.muted()" in muted(text, {3: Mute.VALUES})
    assert "    y = d2s.muted()" in muted(text, {3: Mute.ALL})
    assert muted(text, {4: Mute.ALL}).endswith("    pass\n")


def test_lambda() -> None:
    node = cast("ast.Expression", ast.parse("(lambda x: x.f())", mode="eval")).body
    tree = cast("cst.Lambda", cst.parse_expression("(lambda x: x.f())"))
    assert isinstance(node, ast.Lambda)
    unit = Unit(tree, pair(tree, node), Analysis(node).facts, NameSupply(identifiers(node)))
    MuteStatement(unit, {1: Mute.VALUES}).run()
    assert cst.Module([]).code_for_node(unit.node) == "(lambda x: d2s.muted())"
