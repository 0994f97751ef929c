"""A program under other names: its variables, attributes, keys and functions are called as our code calls its own.

What a user calls a thing says nothing of what it does, so the verdict of a program must be the same under any names.
"""

from __future__ import annotations

import ast
import builtins
import functools
import keyword
from collections.abc import Iterator
from pathlib import Path

import torch

import dy2st

# What the program's test looks for, and what torch calls.
FIXED = frozenset({"model", "SETS", "DYNAMIC", "forward"})
# Attributes of objects that are not the program's own: a name among these may be one of theirs.
FOREIGN = frozenset(
    name
    for kind in (
        torch.Tensor,
        torch.fx.GraphModule(torch.nn.Module(), torch.fx.Graph()),
        torch,
        dict,
        list,
        set,
        float,
        property,
    )
    for name in dir(kind)
)


@functools.cache
def our_code() -> tuple[ast.Module, ...]:
    """The modules of the project."""
    home = Path(dy2st.__file__).parent
    files = sorted({*home.rglob("*.py"), *(home.parent / "transforms").rglob("*.py")})
    return tuple(ast.parse(file.read_text(encoding="utf-8")) for file in files)


def our_names() -> list[str]:
    """Every identifier of our code, and every string in it that is one."""
    return sorted({name for tree in our_code() for name in names_in(tree) if usable(name)})


def meeting_names() -> list[str]:
    """The strings and the parameters of our code: what a key or a keyword of the user's can be equal to."""
    found = {
        node.arg if isinstance(node, ast.arg) else node.value
        for tree in our_code()
        for node in ast.walk(tree)
        if isinstance(node, ast.arg) or is_key(node)
    }
    return sorted(filter(usable, found))


# Code that calls one of the first two may read any variable, and is left alone; the last is what nobody reads.
OF_PYTHON = ("eval", "exec", "_")


def usable(name: str) -> bool:
    """Whether a variable, an attribute and a key may all be called so, with no meaning to Python."""
    return name not in OF_PYTHON and name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("__")


def names_in(tree: ast.AST) -> Iterator[str]:
    """All names and all strings that could be one."""
    for node in ast.walk(tree):
        for _, value in ast.iter_fields(node):
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, str) and each.isidentifier():
                    yield each


class _Bound(ast.NodeVisitor):
    """The names that a program gives to things of its own, and those that it uses as attributes."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.keywords: set[str] = set()

    def generic_visit(self, node: ast.AST) -> None:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                self.names.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)):
                self.names.add(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                self.names.add(name)
            case ast.Attribute(attr=name):
                self.attributes.add(name)
                if not isinstance(node.ctx, ast.Load):
                    self.names.add(name)
            case ast.keyword(arg=str(name)):
                self.keywords.add(name)
            case ast.Dict(keys=keys):
                self.names.update(key.value for key in keys if is_key(key))
            case ast.Subscript(slice=key) if is_key(key):
                self.names.add(key.value)
            case ast.Call(func=ast.Attribute(attr="register_buffer"), args=[ast.Constant(value=str(name)), *_]):
                self.names.add(name)
        if isinstance(node, ast.ClassDef):
            # What a class body binds is an attribute, and what one calls by keyword may be a field.
            self.attributes.update(n.id for s in node.body for n in ast.walk(s) if isinstance(n, ast.Name))
            self.attributes.update(s.name for s in node.body if isinstance(s, ast.FunctionDef))
        super().generic_visit(node)


def is_key(node: ast.AST | None) -> bool:
    """Whether an expression is a text that could be a name."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier()


class _Renaming(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self.new = names

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for field, value in ast.iter_fields(node):
            if isinstance(value, str):
                setattr(node, field, self.new.get(value, value))
            elif isinstance(value, list) and all(isinstance(each, str) for each in value):
                setattr(node, field, [self.new.get(each, each) for each in value])
        return super().generic_visit(node)


def own_names(tree: ast.AST) -> dict[str, bool]:
    """The names that a program may change, with whether an attribute is among what has the name."""
    bound = _Bound()
    bound.visit(tree)
    found = bound.names - FIXED - (bound.keywords & FOREIGN) - (bound.attributes & FOREIGN)
    return {name: name in bound.attributes for name in sorted(found) if usable(name) and not hasattr(builtins, name)}


def renamed(source: str, names: list[str]) -> str:
    """The program under as many of these names as it has of its own; those that it takes are taken off the list."""
    tree = ast.parse(source)
    taken = set(names_in(tree))
    new: dict[str, str] = {}
    for old, is_attribute in own_names(tree).items():
        fit = (name for name in names if name not in taken and not (is_attribute and name in FOREIGN))
        found = next(fit, None)
        if found is not None:
            names.remove(found)
            new[old] = found
    return ast.unparse(_Renaming(new).visit(tree))
