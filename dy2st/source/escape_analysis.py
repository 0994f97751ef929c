"""Whether a method hands its object on, so that somebody else may hold it: escape analysis of one variable.

The object escapes where ``self`` stands by itself, as an argument, an element, a result, or in a function inside. It
does not where an attribute of it is loaded or stored. A method of the object that is called may do either, and is
looked at in its turn.

Source: Choi et al., Escape Analysis for Java, 1999; intraprocedural, and of one object.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import types

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


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
        for base in cls.__mro__[:-1]:
            member = vars(base).get(name)
            member = member.fget if isinstance(member, property) else member
            if isinstance(member, types.FunctionType) and not member.__code__.co_filename.startswith("<"):
                asked = _attributes_of_self(member)
                if asked is None:
                    return True
                left.extend(asked)
    return False


def _attributes_of_self(method: types.FunctionType) -> set[str] | None:
    """The attributes of its object that a method names, or None where the object is handed on."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
    except (OSError, SyntaxError, TypeError):
        return None
    (function,) = tree.body[:1]
    if not isinstance(function, ast.FunctionDef) or not function.args.args:
        return None
    own = function.args.args[0].arg
    held = {id(node.value): node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}
    inside = [
        each
        for node in ast.walk(function)
        if isinstance(node, _FUNCTIONS) and node is not function
        for each in ast.walk(node)
    ]
    kept = {id(node) for node in inside}
    found = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == own:
            if id(node) not in held or id(node) in kept:
                return None
            found.add(held[id(node)])
    return found
