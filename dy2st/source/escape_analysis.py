"""Whether a method hands its object on, so that somebody else may hold it: escape analysis of one variable.

The object escapes where ``self`` stands by itself, as an argument, an element, a result, or in a function inside, and
where one of its methods is taken without a call, since a bound method holds it. It does not where an attribute of it is
loaded or stored, by ``setattr`` too, or where the constructor of a base class gets it. A method of the object that is
called may do either, and is looked at in its turn.

Source: Choi et al., Escape Analysis for Java, 1999; intraprocedural, and of one object.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import types
from typing import Any

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


# What takes an object, and hands it to nobody.
_HARMLESS = frozenset(("setattr", "hasattr", "isinstance", "super"))


@functools.cache
def escapes_its_constructor(cls: type) -> bool:
    """Whether ``__init__`` or ``__post_init__`` of a class, or a method that these call, hands the object on."""
    left = ["__init__", "__post_init__"]
    seen: set[str] = set()
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        for member in _members(cls, name):
            member = member.fget if isinstance(member, property) else member  # noqa: PLW2901
            if isinstance(member, types.FunctionType) and not member.__code__.co_filename.startswith("<"):
                asked = _attributes_of_self(member)
                if asked is None or any(not called and _is_method(cls, each) for each, called in asked):
                    return True
                left.extend(each for each, _ in asked)
    return False


def _members(cls: type, name: str) -> list[Any]:
    return [vars(base)[name] for base in cls.__mro__[:-1] if name in vars(base)]


def _is_method(cls: type, name: str) -> bool:
    return any(isinstance(member, types.FunctionType) for member in _members(cls, name))


def _attributes_of_self(method: types.FunctionType) -> set[tuple[str, bool]] | None:
    """The attributes of its object that a method names, and whether it calls them; None where it hands that on."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    except (OSError, SyntaxError, TypeError):
        return None
    (function,) = tree.body[:1]
    if not isinstance(function, ast.FunctionDef) or not function.args.args:
        return None
    own = function.args.args[0].arg
    nodes = list(ast.walk(function))
    functions = [node for node in nodes[1:] if isinstance(node, _FUNCTIONS)]
    inside = {id(each) for inner in functions for each in ast.walk(inner)}
    held = {id(node.value): node for node in nodes if isinstance(node, ast.Attribute)}
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    given = {id(node.args[0]) for node in nodes if isinstance(node, ast.Call) and node.args and _is_harmless(node.func)}
    found = set()
    for node in nodes:
        if isinstance(node, ast.Name) and node.id == own:
            if id(node) in inside or (id(node) not in held and id(node) not in given):
                return None
            if id(node) in held:
                attribute = held[id(node)]
                found.add((attribute.attr, id(attribute) in called))
    return found


def _is_harmless(called: ast.expr) -> bool:
    """Whether what is called is one of these functions, or ``Base.__init__``, which is looked at with the others."""
    if isinstance(called, ast.Attribute):
        return called.attr == "__init__" and isinstance(called.value, ast.Name)
    return isinstance(called, ast.Name) and called.id in _HARMLESS
