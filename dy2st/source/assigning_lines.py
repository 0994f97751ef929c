"""Where the two paths through a branch or loop give a variable its values: read off the user's source."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType

from dy2st.errors import Location
from dy2st.source.user_frames import node_location

Statement = ast.If | ast.IfExp | ast.While | ast.For
RETURNED = "the returned value"


def by_path(name: str, values: tuple[str, str], location: Location | None) -> str:
    """``'h' is VALUE on one path (line 12) and VALUE on the other (line 14)``, as far as the lines are known.

    ``values`` describes the value on the first path (the arm of a true condition; the state before a loop) and on the
    second; ``location`` is the place of the branch or loop.
    """
    verb = f"{quoted(name)} is"
    found = _statement(location)
    if location is None or found is None:
        where = f" of line {location.line}" if location is not None else ""
        return f"{verb} {values[0]} on one path and {values[1]} on the other{where}"
    line = location.line
    if isinstance(found, (ast.While, ast.For)):
        after = _last(found.body, name)
        return (
            f"{verb} {values[0]} before the loop at line {line} and {values[1]} after an iteration"
            + (f" (line {after})" if after else "")
        )  # fmt: skip
    arms: list[Sequence[ast.AST]] = (
        [[found.body], [found.orelse]] if isinstance(found, ast.IfExp) else [found.body, found.orelse]
    )
    lines = [_last(arm, name) for arm in arms]
    if isinstance(found, ast.IfExp):
        lines = [found.body.lineno, found.orelse.lineno] if name.startswith("the value of") else [None, None]
    if lines == [None, None]:
        return f"{verb} {values[0]} on one path and {values[1]} on the other of the {_word(found)} at line {line}"
    places = [f"line {n}" if n is not None else f"from before line {line}" for n in lines]
    if name == RETURNED:
        places = [f"line {n}" if n is not None else f"after line {line}" for n in lines]
    return f"{verb} {values[0]} on one path ({places[0]}) and {values[1]} on the other ({places[1]})"


def quoted(name: str) -> str:
    """A variable's name in quotes; a phrase ("the returned value") as it is."""
    return name if " " in name else repr(name)


def _word(statement: Statement) -> str:
    return "if" if isinstance(statement, ast.If) else "conditional expression"


def _statement(location: Location | None) -> Statement | None:
    """The branch or loop whose condition or iterable stands at a place."""
    tree = None if location is None else _tree(location.filename)
    if location is None or tree is None:
        return None
    found: list[tuple[bool, Statement]] = []
    for node in ast.walk(tree):
        if isinstance(node, Statement):
            header = node.iter if isinstance(node, ast.For) else node.test
            if location.line in (header.lineno, node.lineno):
                found.append((header.col_offset != location.column, node))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def stored_at(cls: type, attribute: str) -> Location | None:
    """The last store to an attribute in the methods of a class; None if it is stored elsewhere."""
    return _in_methods(cls, lambda node: _stores(node, f"self.{attribute}"))


def named_at(cls: type, attribute: str) -> Location | None:
    """The last place in the methods of a class that names an attribute; None if none does."""
    return _in_methods(cls, lambda node: isinstance(node, ast.Attribute) and node.attr == attribute)


def _in_methods(cls: type, sought: Callable[[ast.AST], bool]) -> Location | None:
    """The last such expression in the methods of a class, but for its constructor."""
    for base in cls.__mro__:
        codes = [member.__code__ for member in vars(base).values() if isinstance(member, FunctionType)]
        files = {code.co_filename for code in codes if code.co_name != "__init__"}
        for filename in files:
            spans = {line for code in codes for *_, line in code.co_lines() if code.co_name != "__init__"}
            tree = _tree(filename)
            stores = [n for n in (ast.walk(tree) if tree else ()) if sought(n)]
            found = [n for n in stores if isinstance(n, ast.expr) and n.lineno in spans]
            if found:
                return node_location(filename, found[-1])
    return None


def _tree(filename: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError):
        return None


def _last(suite: Sequence[ast.AST], name: str) -> int | None:
    """The last line of a suite that stores to a variable (or returns); None if there is none."""
    lines = [
        node.lineno
        for statement in suite
        for node in inside(statement)
        if isinstance(node, (ast.stmt, ast.expr)) and _stores(node, name)
    ]
    return max(lines, default=None)


def inside(node: ast.AST) -> Iterator[ast.AST]:
    """A statement and what is in it, functions inside it apart."""
    yield node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
        for child in ast.iter_child_nodes(node):
            yield from inside(child)


def _stores(node: ast.AST, name: str) -> bool:
    if name == RETURNED:
        return isinstance(node, ast.Return)
    variable, *attributes = re.split(r"[.\[]", name)
    if attributes and isinstance(node, ast.Attribute):
        return isinstance(node.ctx, ast.Store) and node.attr == attributes[0]
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node.name == variable
    return isinstance(node, ast.Name) and node.id == variable and isinstance(node.ctx, ast.Store)
