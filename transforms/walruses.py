"""Names that ``:=`` binds in what is not evaluated on every path: operands of ``and``/``or``, arms of ternaries.

A variable of the function alone is bound again behind the expression, to what it is on the path that was taken. A store
to a ``global`` or ``nonlocal`` name, or to one that a nested function rebinds, is announced in the operand or arm.

Source: PEP 572.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.analysis.scope import walruses
from dy2st.transforms.stores import announcement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dy2st.transforms.tree import Pass


def names_bound(lowering: Pass, *expressions: ast.AST) -> list[str]:
    """The variables of the function alone that expressions bind, in the order of their names."""
    shared = lowering.facts.shared_walruses
    return sorted({each.target.id for e in expressions for each in walruses(e) if each not in shared})


def announced(lowering: Pass, value: cst.BaseExpression, origin: ast.AST) -> cst.BaseExpression:
    """``value``, the rewritten ``origin``, with the announcements of its stores to shared names before it."""
    shared = lowering.facts.shared_walruses
    for name, is_global in sorted({(each.target.id, shared[each]) for each in walruses(origin) if each in shared}):
        value = build.pair(announcement(lowering, name, is_global=is_global), value, 1)
    return value


def rebound(value: cst.BaseExpression, driver: str, names: Sequence[str]) -> cst.BaseExpression:
    """``value``, an expression of ``driver``; behind it names are bound to what they are then."""
    return build.pair(value, build.rebound(driver, "bound", names), 0) if names else value
