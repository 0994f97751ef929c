"""``try``: handlers tell that they run, and never see a staged jump."""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms import build
from dy2st.transforms.tree import Pass, on


class LowerTry(Pass):
    """A handler announces itself; staged jumps pass it by; a suite that a jump leaves is a block under ``finally``.

    Before:
        def f(x):
            for i in x:
                try:
                    break
                except BaseException:
                    pass
                finally:
                    done()

    After:
        def f(x):
            for i in x:
                try_3 = d2s.try_("BaseException")
                try:
                    with try_3.body():
                        with d2s.block("finally"):
                            break
                except d2s.Jump:
                    raise
                except BaseException:
                    try_3.caught()
                    pass
                finally:
                    done()

    Order: before branches and loops.
    Refuses: ``try`` with ``except*`` stays as it is.
    Source: Python reference, 8.4 The try statement.
    """

    constructs = (ast.Try,)

    @on(cst.Try)
    def try_(self, node: cst.Try) -> cst.Try | list[cst.BaseStatement]:
        """Rewrite one ``try``."""
        node = self.inside(node)
        origin = self.active(node, ast.Try)
        if origin is None:
            return node
        changes: dict[str, object] = {}
        if origin.finalbody:
            changes["body"] = self._block(node.body, origin)
            if node.orelse is not None:
                changes["orelse"] = node.orelse.with_changes(body=self._block(node.orelse.body, origin, "orelse"))
        if origin.handlers:
            name = self.unit.names.of(origin, "try")
            suite = changes.get("body", node.body)
            assert isinstance(suite, cst.BaseSuite)
            watched = build.with_(build.method(name, "body"), suite)
            changes["body"] = build.enclosing(suite, self.unit.at(watched, origin))
            handlers = [
                self._handler(h, a, name, bool(origin.finalbody))
                for h, a in zip(node.handlers, origin.handlers, strict=True)
            ]
            if (origin, "body") in self.facts.jumping and any(self._may_catch_jump(h.type) for h in origin.handlers):
                jump = build.attribute(self.unit.names.operators, "Jump")
                through = cst.ExceptHandler(build.block([build.line(cst.Raise())]), jump)
                handlers.insert(0, self.unit.at(through, origin.handlers[0]))
            changes["handlers"] = handlers
        lowered = self.unit.same(node, node.with_changes(**changes)) if changes else node
        if not origin.handlers:
            return lowered
        kinds = (kind for handler in origin.handlers for kind in self._names(handler.type))
        made = self.operator("try_", *(build.string(kind) for kind in dict.fromkeys(kinds)))
        start = build.line(build.assign(name, made), node.leading_lines)
        return [self.unit.at(start, origin.body[0]), self.unit.same(node, lowered.with_changes(leading_lines=[]))]

    def _block(self, suite: cst.BaseSuite, owner: ast.AST, name: str = "body") -> cst.BaseSuite:
        if (owner, name) not in self.facts.jumping:
            return suite
        inner = build.with_(self.operator("block", build.string("finally")), suite)
        return build.enclosing(suite, self.unit.at(inner, owner))

    def _handler(self, node: cst.ExceptHandler, origin: ast.ExceptHandler, name: str, final: bool) -> cst.ExceptHandler:
        suite = self._block(node.body, origin) if final else node.body
        caught = self.unit.at(build.line(cst.Expr(build.method(name, "caught"))), origin)
        body = build.like(suite, [caught, *build.body_of(suite)], build.comment_of(suite))
        return self.unit.same(node, node.with_changes(body=body))

    def _names(self, kind: ast.expr | None) -> list[str]:
        """The types that a handler names; an empty name may be any."""
        match kind:
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
