"""``while`` and ``for``: native loops whose driver may run the body as often as it needs."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.analysis.facts import stores_into_objects
from dy2st.transforms.branches import lower_branch
from dy2st.transforms.tree import Pass, on

if TYPE_CHECKING:
    from dy2st.transforms.analysis import LoopFacts


class SplitForTarget(Pass):
    """A ``for`` that stores into an object binds a name first, and stores in its body.

    Before:
        def f(self, xs):
            for self.x in xs:
                pass

    After:
        def f(self, xs):
            for target_2 in xs:
                self.x = target_2
                pass

    Order: before stores, which then see an assignment, and before loops.
    Refuses: nothing.
    Source: Python reference, 8.3 The for statement.
    """

    constructs = (ast.For,)

    @on(cst.For)
    def for_(self, node: cst.For) -> cst.For:
        """Rewrite one ``for``."""
        node = self.inside(node)
        origin = self.unit.origin(node)
        if not isinstance(origin, ast.For) or origin not in self.facts.loops or not stores_into_objects(origin.target):
            return node
        name = self.unit.names.fresh("target", origin.lineno)
        store = build.line(cst.Assign([cst.AssignTarget(node.target)], cst.Name(name)))
        first = self.unit.at(cst.Name(name), origin.target)
        body = build.like(node.body, [self.unit.at(store, origin.target), *build.body_of(node.body)])
        return node.with_changes(target=first, body=body)


class LowerLoop(Pass):
    """A loop asks its driver for each iteration.

    Before:
        def f(n, h):
            i = 0
            while i < n:
                h = h * 2
                i += 1
            for j in range(n):
                h += j
            return h

    After:
        def f(n, h):
            i = 0
            loop_3 = d2s.loop("h", "i")
            while loop_3.test(i < n):
                if loop_3.staged: h, i = loop_3.state()
                h = h * 2
                i += 1
            if loop_3.staged: h, i = loop_3.result()
            loop_6 = d2s.loop("h")
            for j in loop_6.over(range(n)):
                if loop_6.staged: h, = loop_6.state()
                h += j
            if loop_6.staged: h, = loop_6.result()
            return h

    Order: after the passes that make bodies longer, so that the body encloses what they add.
    Refuses: ``async for`` stays as it is.
    Source: Python reference, 8.2 The while statement, 8.3 The for statement.
    """

    constructs = (ast.While, ast.For)

    @on(cst.While, cst.For)
    def loop(self, node: cst.While | cst.For) -> cst.While | cst.For | list[cst.BaseStatement]:
        """Rewrite one loop."""
        node = self.inside(node)
        origin = self.unit.origin(node)
        facts = self.facts.loops.get(origin) if origin is not None else None
        if facts is None or origin is None:
            return node
        name, space = self.unit.names.of(origin, "loop"), cst.SimpleWhitespace(" ")
        asked = node.test if isinstance(node, cst.While) else node.iter
        word = "test" if isinstance(node, cst.While) else "over"
        place = self.unit.place(asked)
        told = self.unit.at(build.method(name, word, self.unit.fit(build.argument, asked)), place)
        if isinstance(node, cst.While):
            return self._driven(node.with_changes(test=told, whitespace_after_while=space), origin, name, facts, place)
        return self._driven(node.with_changes(iter=told, whitespace_after_in=space), origin, name, facts, place)

    def _driven(
        self, loop: cst.For | cst.While, origin: ast.AST, name: str, facts: LoopFacts, place: ast.AST | None
    ) -> list[cst.BaseStatement]:
        arguments = [cst.Arg(build.string(n)) for n in facts.names]
        if facts.targets:
            targets = cst.Tuple([cst.Element(build.string(n)) for n in facts.targets])
            arguments.append(build.keyword("targets", targets))
        if facts.yields:
            arguments.append(build.keyword("yields", cst.Name("True")))
        start = build.line(build.assign(name, self.operator("loop", *arguments)), loop.leading_lines)
        results = self._result(name, (*facts.names, *facts.targets), place)
        orelse = loop.orelse
        if orelse is not None and facts.orelse is not None:
            branch = self.unit.names.of(origin, "if")
            completed = build.attribute(name, "completed")
            suite = lower_branch(self.unit, branch, facts.orelse, completed, orelse.body, None, place)
            orelse = orelse.with_changes(body=build.block([results, *suite]))
        driven = loop.with_changes(body=self._body(loop.body, name, facts, place), orelse=orelse, leading_lines=[])
        self.unit.same(loop, driven)
        self.unit.at(driven, origin)
        lowered: list[cst.BaseStatement] = [self.unit.at(start, place), driven]
        return lowered if orelse is not None else [*lowered, results]

    def _body(self, suite: cst.BaseSuite, name: str, facts: LoopFacts, place: ast.AST | None) -> cst.BaseSuite:
        state = []
        staged = build.attribute(name, "staged")
        if facts.names:
            unpacked = build.if_line(staged, build.unpack(facts.names, build.method(name, "state")))
            state.append(self.unit.at(unpacked, place))
        if facts.jumps:
            inner = self.unit.at(build.with_(build.method(name, "body"), suite), place)
            lowered = build.enclosing(suite, inner)
            settled = []
            if facts.names:
                # After a staged jump the frame's own variables are those of one path only.
                unpacked = build.if_line(staged, build.unpack(facts.names, build.method(name, "settle")))
                settled.append(self.unit.at(unpacked, place))
            return lowered.with_changes(body=[*state, inner, *settled])
        return build.like(suite, [*state, *build.body_of(suite)], build.comment_of(suite)) if state else suite

    def _result(self, name: str, names: tuple[str, ...], place: ast.AST | None) -> cst.BaseStatement:
        result = build.method(name, "result")
        if not names:
            return self.unit.at(build.line(cst.Expr(result)), place)
        return self.unit.at(build.if_line(build.attribute(name, "staged"), build.unpack(names, result)), place)
