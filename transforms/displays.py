"""Lists, dicts and sets that the function makes itself."""

from __future__ import annotations

import ast

import libcst as cst

from dy2st.transforms.tree import Node, Pass, on

# What they make is only known to be complete where they end.
COMPREHENSIONS = (cst.ListComp, cst.DictComp, cst.SetComp)

# The part of a node that is only read where it stands.
READ_HERE: dict[type[cst.CSTNode], str] = {
    cst.CompFor: "iter",
    cst.For: "iter",
    cst.Index: "value",
    cst.ComparisonTarget: "comparator",
}
# Of a list or dict these make another one.
JOINING = (cst.Add, cst.BitOr, cst.Multiply)
# Functions that keep no container that they are given, by the name that they, or their modules, usually have.
READERS = frozenset(
    "torch F nn np math any all sum len min max sorted reversed enumerate zip map filter tuple set frozenset range"
    " print isinstance float int bool str".split()
)


def _root(function: cst.BaseExpression) -> str | None:
    """The name that the expression for a function starts with."""
    while isinstance(function, cst.Attribute):
        function = function.value
    return function.value if isinstance(function, cst.Name) else None


class MarkDisplay(Pass):
    """A container made on the spot is marked as new.

    What is done to it inside the same arm or iteration is no change of the state around.

    Before:
        def f(x):
            rows = [x]
            rows.append(x)
            return torch.stack([x, x])

    After:
        def f(x):
            rows = d2s.new([x])
            rows.append(x)
            return torch.stack([x, x])

    A dict or set some of whose keys are no constants is made of a list of its pairs or members: ``{k: x}`` becomes
    ``d2s.dict_of([(k, x)])``. What ``+``, ``*`` and ``|`` make of a display is marked in its place: ``[x] * 2`` becomes
    ``d2s.new([x] * 2)``.

    Order: any. A display that is an iterable, an operand of ``in`` or an argument of a function that only reads it
        stays as it is, but for a dict that takes over the keys of another.
    Refuses: nothing.
    Source: Python reference, 6.2.4 Displays for lists, sets and dictionaries.
    """

    constructs = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp, ast.BinOp)

    def run(self) -> None:
        """Rewrite the unit."""
        self.plain: set[cst.CSTNode] = set()
        super().run()

    @on(cst.Call)
    def call(self, node: cst.Call) -> cst.Call:
        """The arguments of a call."""
        only_read = _root(node.func) in READERS
        self.plain.update(arg.value for arg in node.args if only_read or arg.star)
        return self.inside(node)

    @on(*READ_HERE)
    def reader(self, node: Node) -> Node:
        """What is iterated over, a subscript, or the right operand of a comparison."""
        self.plain.add(getattr(node, READ_HERE[type(node)]))
        return self.inside(node)

    @on(cst.BinaryOperation)
    def operation(self, node: cst.BinaryOperation) -> cst.BaseExpression:
        """What an operator makes of displays, which it only reads."""
        plain = node in self.plain
        made = _makes_container(node)
        if made:
            self.plain.update((node.left, node.right))
        result = self.inside(node)
        if not made or plain or self.unit.origin(result) not in self.facts.active:
            return result
        return self.wrapped("new", result)

    @on(cst.List, cst.Dict, cst.Set, cst.ListComp, cst.DictComp, cst.SetComp)
    def display(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """A display that is a value of its own."""
        computed = _has_computed_keys(node)
        # Keys may be data: who only reads such a container can't have it as Python's either.
        plain = node in self.plain and not isinstance(node, COMPREHENSIONS) and not computed
        result = self.inside(node)
        origin = self.unit.origin(result)
        if plain or origin not in self.facts.active or isinstance(getattr(origin, "ctx", None), (ast.Store, ast.Del)):
            return result
        members = _members(result) if computed else None
        if members is None:
            return self.wrapped("new", result)
        # Only a list has a place for members that are known when the graph runs.
        kind = "dict_of" if isinstance(node, (cst.Dict, cst.DictComp)) else "set_of"
        return self.wrapped(kind, self.unit.at(members, self.unit.place(node)))


def _makes_container(node: cst.BaseExpression) -> bool:
    """Whether an operator is applied to a display, or to what one makes of it."""
    return (
        isinstance(node, cst.BinaryOperation)
        and isinstance(node.operator, JOINING)
        and any(
            isinstance(side, (cst.List, cst.Dict, cst.Set, *COMPREHENSIONS)) or _makes_container(side)
            for side in (node.left, node.right)
        )
    )


def _has_computed_keys(display: cst.BaseExpression) -> bool:
    """Whether a dict or set has others than constants as keys or members."""
    if isinstance(display, (cst.Dict, cst.Set)):
        keys = [each.key if isinstance(each, cst.DictElement) else each.value for each in display.elements]
        return not all(isinstance(key, cst.BaseNumber | cst.BaseString) for key in keys)
    return isinstance(display, cst.DictComp | cst.SetComp)


def _members(display: cst.BaseExpression) -> cst.List | cst.ListComp | None:
    """The members of a set, or the pairs of a dict, as a list; None of a dict that takes over another one."""
    match display:
        case cst.SetComp():
            return cst.ListComp(display.elt, display.for_in)
        case cst.DictComp():
            return cst.ListComp(_pair(display.key, display.value), display.for_in)
        case cst.Set():
            return cst.List(display.elements)
        case cst.Dict() if all(isinstance(each, cst.DictElement) for each in display.elements):
            pairs = [_pair(each.key, each.value) for each in display.elements if isinstance(each, cst.DictElement)]
            return cst.List([cst.Element(pair) for pair in pairs])
    return None


def _pair(key: cst.BaseExpression, value: cst.BaseExpression) -> cst.Tuple:
    return cst.Tuple([cst.Element(key), cst.Element(value)])
