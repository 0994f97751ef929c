"""Runs passes on the text of one function."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, cast

import libcst as cst

from dy2st.transforms import PASSES, Pass, Unit
from dy2st.transforms.analysis import Analysis, Facts
from dy2st.transforms.analysis.scope import identifiers
from dy2st.transforms.names import NameSupply
from dy2st.transforms.pairing import pair

if TYPE_CHECKING:
    from collections.abc import Iterable


def facts_of(text: str) -> Facts:
    """The facts of the function in ``text``."""
    return Analysis(cast("ast.FunctionDef", ast.parse(text).body[0])).facts


def lowered(text: str, passes: Iterable[type[Pass]] = PASSES) -> str:
    """The text after some passes."""
    node = cast("ast.FunctionDef", ast.parse(text).body[0])
    module = cst.parse_module(text)
    tree = cast("cst.FunctionDef", module.body[0])
    unit = Unit(tree, pair(tree, node), Analysis(node).facts, NameSupply(identifiers(node)))
    for kind in passes:
        if kind.applies(unit.facts):
            kind(unit).run()
    return cst.Module([unit.node]).code  # type: ignore[list-item]


def named(name: str) -> type[Pass]:
    """The pass of this name."""
    return next(kind for kind in PASSES if kind.__name__ == name)
