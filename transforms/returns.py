"""``return`` and ``raise`` from inside other statements."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.tree import Pass, on

if TYPE_CHECKING:
    from dy2st.transforms.analysis import Facts


class LowerReturn(Pass):
    """A function with an early return or raise gets a frame, which takes the values of all its returns.

    Before:
        def f(x):
            if x:
                return 1
            if x is None:
                raise ValueError("nothing")
            return 2

    After:
        def f(x):
            with d2s.function() as fn_1:
                if x:
                    return fn_1.returns(1)
                if x is None:
                    fn_1.raises(); raise ValueError("nothing")
                return fn_1.returns(2)
            return fn_1.value

    Order: before branches and loops, so that the frame's body is theirs to rewrite.
    Refuses: coroutines are left alone.
    Source: Python reference, 7.6 The return statement, 7.8 The raise statement.
    """

    constructs = (ast.Return, ast.Raise)

    @classmethod
    def applies(cls, facts: Facts) -> bool:
        """Whether any function returns or raises early."""
        return bool(facts.framed)

    @on(cst.Return)
    def return_(self, node: cst.Return) -> cst.Return:
        """``return value``."""
        node = self.inside(node)
        origin = self.unit.origin(node)
        function = self.facts.frame_of.get(origin) if origin is not None else None
        if function is None:
            return node
        value = cst.Name("None") if node.value is None else self.unit.fit(build.argument, node.value)
        taken = build.method(self.unit.names.of(function, "fn"), "returns", value)
        self.unit.at(taken, self.unit.place(node.value) if node.value is not None else origin)
        return node.with_changes(value=taken, whitespace_after_return=cst.SimpleWhitespace(" "))

    @on(cst.Raise)
    def raise_(self, node: cst.Raise) -> list[cst.BaseSmallStatement] | cst.Raise:
        """``raise``."""
        node = self.inside(node)
        origin = self.unit.origin(node)
        function = self.facts.frame_of.get(origin) if origin is not None else None
        if function is None:
            return node
        note = cst.Expr(build.method(self.unit.names.of(function, "fn"), "raises"))
        return [self.unit.at(note, origin), node]

    @on(cst.FunctionDef)
    def function_def(self, node: cst.FunctionDef) -> cst.FunctionDef:
        """The frame of a function."""
        node = self.inside(node)
        origin = self.unit.origin(node)
        if origin not in self.facts.framed or not isinstance(origin, ast.FunctionDef):
            return node
        name = self.unit.names.of(origin, "fn")
        head, rest, place = parted(node, origin)
        frame = build.with_(self.operator("function"), rest, name)
        end = build.line(cst.Return(build.attribute(name, "value")))
        # The frame stands where the first statement of the body stood, so that no line is seen that was never run.
        lowered = [*head, self.unit.at(frame, place), self.unit.at(end, place)]
        return node.with_changes(body=build.like(node.body, lowered))


def parted(
    node: cst.FunctionDef, origin: ast.FunctionDef
) -> tuple[list[cst.BaseStatement], list[cst.BaseStatement], ast.stmt]:
    """A function's documentation and its ``global`` and ``nonlocal`` declarations; the rest, and where that begins."""
    body = build.body_of(node.body)
    first = next((i for i, statement in enumerate(body) if not _stays_first(statement, i)), len(body))
    return body[:first], body[first:], origin.body[min(first, len(origin.body) - 1)]


def _stays_first(statement: cst.BaseStatement, position: int) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    if all(isinstance(s, (cst.Global, cst.Nonlocal)) for s in statement.body):
        return True
    only = statement.body[0]
    strings = (cst.SimpleString, cst.ConcatenatedString)
    return position == 0 and len(statement.body) == 1 and isinstance(only, cst.Expr) and isinstance(only.value, strings)
