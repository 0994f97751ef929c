"""``break`` and ``continue``, and the suites that a staged jump may leave."""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.tree import Pass, on


class LowerJump(Pass):
    """A ``break`` or ``continue`` is announced to its loop.

    Before:
        def f(xs):
            for x in xs:
                if x:
                    break

    After:
        def f(xs):
            for x in xs:
                if x:
                    loop_2.breaks(); break

    Order: before loops, which make ``loop_2``.
    Refuses: nothing.
    Source: Python reference, 7.9 The break statement, 7.10 The continue statement.
    """

    constructs = (ast.Break, ast.Continue)

    @on(cst.Break, cst.Continue)
    def jump(self, node: cst.Break | cst.Continue) -> list[cst.BaseSmallStatement] | cst.Break | cst.Continue:
        """Announce one."""
        origin = self.unit.origin(node)
        loop = self.facts.loop_of.get(origin) if origin is not None else None
        if loop is None:
            return node
        word = "breaks" if isinstance(node, cst.Break) else "continues"
        note = cst.Expr(build.method(self.unit.names.of(loop, "loop"), word))
        return [self.unit.at(note, origin), node]


class LowerWith(Pass):
    """A context manager goes through an operator; the suite of a ``with`` that a jump leaves is a block of its own.

    Before:
        def f(xs, lock):
            for x in xs:
                with lock as key:
                    break

    After:
        def f(xs, lock):
            for x in xs:
                with d2s.manager(lock) as key:
                    with d2s.block("with"):
                        break

    Order: before branches and loops.
    Refuses: nothing.
    Source: Python reference, 8.5 The with statement.
    """

    constructs = (ast.With,)

    @on(cst.With)
    def with_(self, node: cst.With) -> cst.With:
        """Rewrite one ``with``."""
        node = self.inside(node)
        origin = self.active(node, ast.With)
        if origin is None:
            return node
        items = [item.with_changes(item=self.wrapped("manager", item.item)) for item in node.items]
        node = self.unit.same(node, node.with_changes(items=items))
        if (origin, "body") not in self.facts.jumping:
            return node
        inner = build.with_(self.operator("block", build.string("with")), node.body)
        return node.with_changes(body=build.enclosing(node.body, self.unit.at(inner, origin)))
