"""``try``: an exception on a staged path is raised behind the suite that it ends, for one of the arms of a branch."""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.tree import Pass, on


class LowerTry(Pass):
    """A handler is an arm where a tensor decides whether it runs; staged jumps pass it by.

    The else clause stands behind the statement, and runs where its suite has ended without an exception. Under
    ``finally``, Python alone decides, and a suite that a jump leaves is a block.

    Before:
        def f(a):
            try:
                l = cholesky(a)
            except RuntimeError:
                l = None
            return l

    After:
        def f(a):
            try_2 = d2s.try_("RuntimeError", names=("l",))
            try:
                with try_2.body():
                    l = cholesky(a)
            except RuntimeError:
                try_2.caught()
                if try_2.staged: l, = try_2.restore()
                l = None
            if try_2.staged: l, = try_2.join()
            return l

    Order: before branches and loops.
    Refuses: ``try`` with ``except*`` stays as it is.
    Source: Python reference, 8.4 The try statement.
    """

    constructs = (ast.Try,)

    @on(cst.Try)
    def try_(self, node: cst.Try) -> cst.Try | list[cst.BaseStatement]:
        """Rewrite one ``try``."""
        given = node = self.inside(node)
        origin = self.active(node, ast.Try)
        if origin is None:
            return node
        if origin.finalbody:
            node = node.with_changes(body=self._block(node.body, origin))
            if node.orelse is not None:
                orelse = node.orelse.with_changes(body=self._block(node.orelse.body, origin, "orelse"))
                node = node.with_changes(orelse=orelse)
        if not origin.handlers:
            return self.unit.same(given, node)
        name = self.unit.names.of(origin, "try")
        watched = build.with_(build.method(name, "body"), node.body)
        handlers = [self._handler(h, a, name, origin) for h, a in zip(node.handlers, origin.handlers, strict=True)]
        if (origin, "body") in self.facts.jumping and any(self._may_catch_jump(h.type) for h in origin.handlers):
            jump = build.attribute(self.unit.names.operators, "Jump")
            through = cst.ExceptHandler(build.block([build.line(cst.Raise())]), jump)
            handlers.insert(0, self.unit.at(through, origin.handlers[0]))
        body = build.enclosing(node.body, self.unit.at(watched, origin))
        lowered = node.with_changes(body=body, handlers=handlers, leading_lines=[])
        arguments: list[cst.BaseExpression | cst.Arg] = [build.string(self._kinds(each)) for each in origin.handlers]
        names = self.facts.tries.get(origin)
        behind: list[cst.BaseStatement] = []
        if names is not None:
            arguments.append(build.keyword("names", build.strings(names)))
            lowered = lowered.with_changes(orelse=None)
            behind = [*self._orelse(node.orelse, origin, name), self._values(name, names, "join")]
        made = self.operator("try_", *arguments)
        start = build.line(build.assign(name, made), node.leading_lines)
        return [
            self.unit.at(start, origin.body[0]),
            self.unit.same(given, lowered),
            *(self.unit.at(statement, origin) for statement in behind),
        ]

    def _orelse(self, clause: cst.Else | None, origin: ast.Try, name: str) -> list[cst.BaseStatement]:
        """The else clause as an arm behind the statement."""
        if clause is None:
            return []
        names = self.facts.tries[origin]
        restored = [self._values(name, names, "restore")] if names else []
        suite = self._arm(clause.body, (origin, "orelse"), name)
        body = build.like(suite, [*restored, *build.body_of(suite)], build.comment_of(clause.body))
        return [cst.If(build.method(name, "orelse"), body, leading_lines=clause.leading_lines)]

    def _arm(self, suite: cst.BaseSuite, key: tuple[ast.AST, str], name: str) -> cst.BaseSuite:
        return build.enclosed(build.method(name, "arm"), suite) if key in self.facts.jumping else suite

    def _values(self, name: str, names: tuple[str, ...], method: str) -> cst.If:
        values = build.method(name, method)
        statement = build.unpack(names, values) if names else cst.Expr(values)
        return build.if_line(build.attribute(name, "staged"), statement)

    def _block(self, suite: cst.BaseSuite, owner: ast.AST, name: str = "body") -> cst.BaseSuite:
        if (owner, name) not in self.facts.jumping:
            return suite
        inner = build.with_(self.operator("block", build.string("finally")), suite)
        return build.enclosing(suite, self.unit.at(inner, owner))

    def _handler(self, node: cst.ExceptHandler, origin: ast.ExceptHandler, name: str, of: ast.Try) -> cst.ExceptHandler:
        names = self.facts.tries.get(of)
        suite = self._block(node.body, origin) if of.finalbody else self._arm(node.body, (origin, "body"), name)
        first: list[cst.BaseStatement] = [build.line(cst.Expr(build.method(name, "caught")))]
        if names:
            first.append(self._values(name, names, "restore"))
        announced = [self.unit.at(statement, origin) for statement in first]
        body = build.like(suite, [*announced, *build.body_of(suite)], build.comment_of(node.body))
        return self.unit.same(node, node.with_changes(body=body))

    def _kinds(self, handler: ast.ExceptHandler) -> str:
        """The types that a handler names, and whether it looks at the exception: ``KeyError, IndexError as error``."""
        named = ", ".join(dict.fromkeys(self._names(handler.type)))
        return named if handler.name is None else f"{named} as {handler.name}"

    def _names(self, kind: ast.expr | None) -> list[str]:
        """The types that a handler names; an empty name may be any."""
        match kind:
            case None:
                return ["BaseException"]
            case ast.Name(id=name) if name not in self.facts.shadowed:
                return [name]
            case ast.Attribute(value=owner, attr=name):
                return [owned and f"{owned}.{name}" for owned in self._names(owner)]
            case ast.Tuple(elts=kinds):
                return [name for k in kinds for name in self._names(k)]
        return [""]

    def _may_catch_jump(self, kind: ast.expr | None) -> bool:
        """Whether a handler's type could be BaseException; a dotted name of another class could not."""
        match kind:
            case ast.Name(id=name):
                return name == "BaseException" or name in self.facts.shadowed
            case ast.Attribute(attr=name):
                return name == "BaseException"
            case ast.Tuple(elts=kinds):
                return any(self._may_catch_jump(k) for k in kinds)
        return True
