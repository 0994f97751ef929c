"""``if``/``elif``/``else``: both suites stay in the user's frame, each behind a question to the run time."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.tree import Pass, Unit, on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dy2st.transforms.analysis import BranchFacts


def lower_branch(
    unit: Unit,
    name: str,
    facts: BranchFacts,
    test: cst.BaseExpression,
    then: cst.BaseSuite,
    orelse: cst.BaseSuite | None,
    place: ast.AST | None,
    leading: Sequence[cst.EmptyLine] = (),
    orelse_leading: Sequence[cst.EmptyLine] = (),
) -> list[cst.BaseStatement]:
    """The statements that stand for ``if test: then else: orelse``."""
    start = build.method(unit.names.operators, "if_", unit.fit(build.argument, test), *map(build.string, facts.names))
    staged = build.attribute(name, "staged")
    lowered: list[cst.BaseStatement] = [
        build.line(build.assign(name, start), leading, build.comment_of(then)),
        build.if_(build.method(name, "then"), [], ()).with_changes(body=_arm(name, then, facts.then_jumps)),
    ]
    if orelse is not None:
        suite = _arm(name, orelse, facts.orelse_jumps, build.comment_of(orelse))
        if facts.names:
            restore = build.if_line(staged, build.unpack(facts.names, build.method(name, "restore")))
            suite = suite.with_changes(body=[restore, *suite.body])
        lowered.append(
            cst.If(build.method(name, "orelse"), suite, leading_lines=orelse_leading),
        )
    join = build.method(name, "join")
    if facts.names:
        lowered.append(build.if_line(staged, build.unpack(facts.names, join)))
    else:
        lowered.append(build.line(cst.Expr(join)))
    return [unit.at(statement, place) for statement in lowered]


def _arm(
    name: str, suite: cst.BaseSuite, jumps: bool, header: cst.TrailingWhitespace | None = None
) -> cst.IndentedBlock:
    if jumps:
        enclosed = build.enclosed(build.method(name, "arm"), suite)
        return enclosed if header is None else enclosed.with_changes(header=header)
    return build.like(suite, build.body_of(suite), header)


class LowerIf(Pass):
    """An ``if`` asks the run time which of its suites run: one of them in Python, both while staging.

    Before:
        def f(x):
            y = x
            if x.sum() > 0:
                y = x + 1
            else:
                y = x - 1
            return y

    After:
        def f(x):
            y = x
            if_3 = d2s.if_(x.sum() > 0, "y")
            if if_3.then():
                y = x + 1
            if if_3.orelse():
                if if_3.staged: y, = if_3.restore()
                y = x - 1
            if if_3.staged: y, = if_3.join()
            return y

    Order: after the passes that make suites longer (match, try, jumps, returns), so that arms enclose what they add.
    Refuses: nothing; an ``if`` that only Python can decide stays an ``if``.
    Source: Python reference, 8.1 The if statement.
    """

    constructs = (ast.If,)

    @on(cst.If)
    def if_(self, node: cst.If) -> cst.If | list[cst.BaseStatement]:
        """Lower the whole chain, its last ``elif`` first."""
        body: cst.BaseSuite = self.visit(node.body)
        orelse = node.orelse
        suite: cst.BaseSuite | None = None
        leading: Sequence[cst.EmptyLine] = ()
        clause: cst.If | cst.Else | None = None
        if isinstance(orelse, cst.If):
            lowered = self.if_(orelse)
            if isinstance(lowered, list):
                suite = build.block(lowered)
                clause = self.unit.at(cst.Else(suite), self.unit.origin(orelse))
            else:
                clause = lowered
                suite = build.block([lowered])
        elif orelse is not None:
            clause = self.visit(orelse)
            suite, leading = clause.body, orelse.leading_lines
        origin = self.unit.origin(node)
        facts = self.facts.branches.get(origin) if origin is not None else None
        if facts is not None and origin is not None:
            name = self.unit.names.of(origin, "if")
            place = self.unit.place(node.test)
            return lower_branch(self.unit, name, facts, node.test, body, suite, place, node.leading_lines, leading)
        if body is node.body and clause is orelse:
            return node
        return self.unit.same(node, node.with_changes(body=body, orelse=clause))
