"""The unit that passes work on, and the walk that they share.

libcst's own transformers rebuild every node, whitespace included, on every visit; with a dozen passes that dominates
the time of a conversion. This walk visits syntax only and keeps a node whose children did not change, so identity
means "as the user wrote it": positions of untouched subtrees are copied wholesale.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import libcst as cst

from dy2st.transforms.build import argument, method

if TYPE_CHECKING:
    import ast

    from dy2st.transforms.analysis import Facts
    from dy2st.transforms.names import NameSupply

Origin = TypeVar("Origin", bound="ast.AST")
Handler = TypeVar("Handler", bound=Callable[..., Any])
Node = TypeVar("Node", bound=cst.CSTNode)


class Unit:
    """One outermost function on its way through the passes."""

    def __init__(
        self, node: cst.FunctionDef | cst.Lambda, origins: dict[cst.CSTNode, ast.AST], facts: Facts, names: NameSupply
    ) -> None:
        self.node = node
        self.origins = origins
        self.untouched = set(origins)
        self.places: dict[cst.CSTNode, ast.AST] = {}
        self.facts = facts
        self.names = names

    def origin(self, node: cst.CSTNode) -> ast.AST | None:
        """The node of the user's text that ``node`` stands for, or None for what a pass made."""
        return self.origins.get(node)

    def at(self, node: Node, place: ast.AST | None) -> Node:
        """Say where a new node comes from; its children follow, unless they know better."""
        if place is not None:
            self.places[node] = place
            if isinstance(node, cst.SimpleStatementLine):
                # Where a line of statements comes from is asked of each statement on it.
                self.places.update(dict.fromkeys(node.body, place))
        return node

    def same(self, node: cst.CSTNode, result: Node) -> Node:
        """``result`` takes the place of ``node`` in the user's text."""
        origin = self.origins.get(node)
        if origin is not None:
            self.origins[result] = origin
        elif node in self.places:
            self.places[result] = self.places[node]
        return result

    def fit(self, fit: Callable[[cst.BaseExpression], cst.BaseExpression], value: cst.BaseExpression) -> Any:
        """``value`` with other parentheses, still the same in the user's text."""
        return self.same(value, fit(value))

    def place(self, node: cst.CSTNode) -> ast.AST | None:
        """Where ``node`` comes from."""
        return self.origins.get(node) or self.places.get(node)


# Fields that hold no code, or code that is never rewritten: annotations, decorators, class bases, type parameters.
_SKIPPED = frozenset(
    {
        *("annotation", "bases", "comma", "colon", "decorators", "default_indent", "dot", "equal", "footer", "header"),
        *("keyword", "keywords", "lbrace", "lbracket", "leading_lines", "lpar", "names", "newline", "operator"),
        *("posonly_ind", "rbrace", "rbracket", "returns", "rpar", "semicolon", "trailing_whitespace"),
        "type_parameters",
    }
)


def _child_fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    names = (f.name for f in dataclasses.fields(kind))
    return tuple(n for n in names if n not in _SKIPPED and not n.startswith(("whitespace", "lines_")))


_FIELDS: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.Name: (),
    cst.Attribute: ("value",),
    cst.Comment: (),
    cst.Param: ("default",),
    cst.MatchValue: (),
    cst.Import: (),
    cst.ImportFrom: (),
    cst.Global: (),
    cst.Nonlocal: (),
    cst.AsName: ("name",),
    cst.NameItem: (),
    cst.FunctionDef: ("params", "body"),
}


def on(*kinds: type[cst.CSTNode]) -> Callable[[Handler], Handler]:
    """The decorated method of a pass rewrites nodes of these classes."""

    def register(handler: Handler) -> Handler:
        handler.handles = kinds  # type: ignore[attr-defined]
        return handler

    return register


class Pass:
    """One rewriting of one construct; ``constructs`` are the ``ast`` nodes without which it has nothing to do.

    A subclass has a method for each libcst class that it rewrites, marked ``@on(cst.X)``, which returns the node
    itself, another, or (for statements) a list; ``self.inside(node)`` rewrites what is in the node first.
    """

    constructs: ClassVar[tuple[type[ast.AST], ...]] = ()
    _handlers: ClassVar[dict[type[cst.CSTNode], Callable[[Any, Any], Any]]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        methods = (getattr(cls, name) for name in dir(cls))
        cls._handlers = {kind: method for method in methods for kind in getattr(method, "handles", ())}

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.facts = unit.facts

    @classmethod
    def applies(cls, facts: Facts) -> bool:
        """Whether the function has anything for this pass."""
        return any(kind in facts.kinds for kind in cls.constructs)

    def run(self) -> None:
        """Rewrite the unit."""
        self.unit.node = cast("cst.FunctionDef | cst.Lambda", self.visit(self.unit.node))

    def active(self, node: cst.CSTNode, kind: type[Origin]) -> Origin | None:
        """The node of the user's text that ``node`` stands for, if it is of this class and may be rewritten."""
        origin = self.unit.origin(node)
        return origin if isinstance(origin, kind) and origin in self.facts.active else None

    def operator(self, attr: str, *args: cst.BaseExpression | cst.Arg) -> cst.Call:
        """``d2s.attr(args)``."""
        return method(self.unit.names.operators, attr, *args)

    def wrapped(self, attr: str, value: cst.BaseExpression) -> cst.Call:
        """``d2s.attr(value)``, at the place of ``value``."""
        return self.unit.at(self.operator(attr, self.unit.fit(argument, value)), self.unit.place(value))

    def visit(self, node: cst.CSTNode) -> Any:
        """The rewritten ``node``; what the user's text says of it stays known."""
        handler = self._handlers.get(type(node))
        result = self.inside(node) if handler is None else handler(self, node)
        if result is not node and isinstance(result, cst.CSTNode):
            origin = self.unit.origins.get(node)
            if origin is not None and result not in self.unit.origins and result not in self.unit.places:
                self.unit.origins[result] = origin
        return result

    def inside(self, node: Node) -> Node:
        """``node`` with its children rewritten."""
        kind = type(node)
        if kind is cst.FunctionDef or kind is cst.Lambda:
            origin = self.unit.origins.get(node)
            if origin is not None and origin not in self.facts.functions:
                return node
        elif kind is cst.FormattedStringExpression and cast("cst.FormattedStringExpression", node).equal is not None:
            return node  # f"{x=}" shows its own text
        fields = _FIELDS.get(kind)
        if fields is None:
            fields = _FIELDS[kind] = _child_fields(kind)
        changes: dict[str, Any] = {}
        for name in fields:
            value = getattr(node, name)
            if isinstance(value, cst.CSTNode):
                new = self.visit(value)
                if new is not value:
                    changes[name] = new
            elif isinstance(value, (list, tuple)) and value:
                several = self._several(value)
                if several is not None:
                    changes[name] = several
        if not changes:
            return node
        result = node.with_changes(**changes)
        return self.unit.same(node, result)

    def _several(self, items: Iterable[cst.CSTNode]) -> list[cst.CSTNode] | None:
        found: list[cst.CSTNode] = []
        changed = False
        for item in items:
            new = self.visit(item)
            if new is not item:
                changed = True
            if isinstance(new, list):
                found.extend(new)
            else:
                found.append(new)
        return found if changed else None
