"""Ways to make source smaller: statements left out, blocks without their head, results and operands dropped.

An edit need not keep a meaning: whether what is left still goes wrong is tried.
Source: Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002 (what is removed, in halves,
quarters and so on); Regehr et al., "Test-case reduction for C compiler bugs", 2012 (edits that know the language).
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import cast

import libcst as cst

_STATEMENTS = (
    cst.SimpleStatementLine,
    cst.FunctionDef,
    cst.ClassDef,
    cst.If,
    cst.For,
    cst.While,
    cst.With,
    cst.Try,
    cst.Match,
)
_WITH_BODY = (cst.If, cst.For, cst.While, cst.With)


def statements(module: cst.Module) -> list[cst.CSTNode]:
    """All statements, each before those inside of it."""
    found: list[cst.CSTNode] = []

    class Collector(cst.CSTVisitor):
        def on_visit(self, node: cst.CSTNode) -> bool:
            if isinstance(node, _STATEMENTS) and not (isinstance(node, cst.If) and node in elifs):
                found.append(node)
            if isinstance(node, cst.If) and isinstance(node.orelse, cst.If):
                elifs.add(node.orelse)
            return not isinstance(node, cst.BaseExpression)

    elifs: set[cst.CSTNode] = set()
    module.visit(Collector())
    return found


def without(module: cst.Module, removed: AbstractSet[cst.CSTNode]) -> cst.Module:
    """The module without some of its statements; a block that has none left passes."""

    class Remover(cst.CSTTransformer):
        def on_leave(self, original: cst.CSTNode, updated: cst.CSTNode) -> cst.CSTNode | cst.RemovalSentinel:  # type: ignore[override]
            if original in removed:
                return cst.RemoveFromParent()
            return cast("cst.CSTNode", super().on_leave(original, updated))

    return module.visit(Remover())


Replacement = cst.CSTNode | cst.FlattenSentinel[cst.BaseStatement]


def edits(module: cst.Module) -> Iterator[tuple[cst.CSTNode, Replacement]]:
    """A node and what may stand in its place, from the outside in."""
    found: list[tuple[cst.CSTNode, Replacement]] = []

    class Collector(cst.CSTVisitor):
        def on_visit(self, node: cst.CSTNode) -> bool:
            if isinstance(node, cst.If) and isinstance(node.orelse, cst.If):
                elifs.add(node.orelse)
            several = node not in elifs  # what stands behind an else can't be several statements
            news = (new for new in _replacements(node) if several or not isinstance(new, cst.FlattenSentinel))
            found.extend((node, new) for new in news)
            return True

    elifs: set[cst.CSTNode] = set()

    module.visit(Collector())
    yield from found


def replaced(module: cst.Module, node: cst.CSTNode, new: Replacement) -> cst.Module:
    """The module with one node replaced."""

    class Replacer(cst.CSTTransformer):
        def on_leave(self, original: cst.CSTNode, updated: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
            if original is node:
                return cast("cst.CSTNode", new)
            return cast("cst.CSTNode", super().on_leave(original, updated))

    return module.visit(Replacer())


def _replacements(node: cst.CSTNode) -> Iterator[Replacement]:
    yield from _operands(node)
    if isinstance(node, _WITH_BODY) and isinstance(node.body, cst.IndentedBlock):
        yield cst.FlattenSentinel(cast("list[cst.BaseStatement]", list(node.body.body)))
    if isinstance(node, (cst.If, cst.For, cst.While)) and node.orelse is not None:
        other = node.orelse
        if isinstance(other, cst.Else) and isinstance(other.body, cst.IndentedBlock):
            yield cst.FlattenSentinel(cast("list[cst.BaseStatement]", list(other.body.body)))
        if isinstance(other, cst.If):
            yield other
        yield node.with_changes(orelse=None)
    if isinstance(node, cst.Return) and isinstance(node.value, cst.Tuple):
        yield from (node.with_changes(value=each) for each in _shorter(node.value))
    if isinstance(node, cst.Return) and isinstance(node.value, cst.Dict):
        yield from (node.with_changes(value=each.value) for each in node.value.elements)
    if isinstance(node, cst.Param) and node.annotation is not None:
        yield node.with_changes(annotation=None)
    if isinstance(node, cst.FunctionDef) and node.returns is not None:
        yield node.with_changes(returns=None)


def _operands(node: cst.CSTNode) -> Iterator[Replacement]:
    """What an expression is made of, each part in its place."""
    if isinstance(node, cst.Tuple) and len(node.elements) > 1:
        yield from (_alone(each.value) for each in node.elements)
    if isinstance(node, (cst.BinaryOperation, cst.BooleanOperation)):
        yield _alone(node.left)
        yield _alone(node.right)
    if isinstance(node, cst.UnaryOperation):
        yield _alone(node.expression)
    if isinstance(node, cst.IfExp):
        yield _alone(node.body)
        yield _alone(node.orelse)
    if isinstance(node, cst.Call):
        if isinstance(node.func, cst.Attribute):
            yield node.func.value  # x.clamp(0) as x
        yield from (_alone(each.value) for each in node.args if not each.star)


def _shorter(value: cst.Tuple) -> Iterator[cst.BaseExpression]:
    """A tuple with one element less; of two elements, each by itself."""
    if len(value.elements) == 2:  # noqa: PLR2004
        yield from (each.value for each in value.elements)
    else:
        for place in range(len(value.elements)):
            yield value.with_changes(elements=[*value.elements[:place], *value.elements[place + 1 :]])


def _alone(value: cst.BaseExpression) -> cst.BaseExpression:
    """An operand in place of the operation: in parentheses where it is made of several parts."""
    made_of_parts = isinstance(
        value, (cst.BinaryOperation, cst.BooleanOperation, cst.Comparison, cst.IfExp, cst.Lambda)
    )
    if made_of_parts and not value.lpar:
        return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return value
