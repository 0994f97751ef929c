"""Which names a top-level statement binds, and which names of its module it mentions: Python's rules of scopes."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from types import ModuleType

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def bound(statement: ast.AST) -> set[str]:
    """The names that a statement binds in its own scope; ``*`` for an import of everything."""
    found: set[str] = set()
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, ast.Import):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.ImportFrom):
        return {alias.asname or alias.name for alias in statement.names}
    if isinstance(statement, ast.Name) and isinstance(statement.ctx, ast.Store):
        return {statement.id}
    if isinstance(statement, ast.ExceptHandler) and statement.name:
        found.add(statement.name)
    if isinstance(statement, (*_SCOPES, *_COMPREHENSIONS)):
        return set()
    for child in ast.iter_child_nodes(statement):
        found |= bound(child)
    return found


def acts_on(statement: ast.stmt, name: str) -> bool:
    """Whether a statement that binds nothing does something to a name: ``net.eval()``, ``table["a"] = 1``."""
    if bound(statement) or isinstance(statement, (ast.If, ast.Import, ast.ImportFrom)):
        return False
    for node in ast.walk(statement):
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            root: ast.expr = node
            while isinstance(root, (ast.Attribute, ast.Subscript)):
                root = root.value
            if isinstance(root, ast.Name) and root.id == name:
                return True
    return False


Mention = tuple[ast.expr | ast.Import | ast.ImportFrom, list[str]]


def global_names(statement: ast.stmt) -> Iterator[Mention]:
    """Names and chains of attributes (``a.b.c``) that begin at a global name; and imports inside of functions."""
    yield from _mentions(statement, frozenset(), inside=False)


def _mentions(node: ast.AST, local: frozenset[str], *, inside: bool) -> Iterator[Mention]:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        if inside:
            yield node, []
        return
    chain = _chain(node)
    if chain:
        if chain[0] not in local and isinstance(node, ast.expr):
            yield node, chain
        return
    if isinstance(node, _SCOPES):
        arguments = node.args
        for outer in [*arguments.defaults, *arguments.kw_defaults, *getattr(node, "decorator_list", ())]:
            if outer is not None:
                yield from _mentions(outer, local, inside=inside)
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        given = [each for each in every if each is not None]
        notes = [each.annotation for each in given] + [getattr(node, "returns", None)]
        for note in notes:
            if note is not None:
                yield from _mentions(note, local, inside=inside)
        body = node.body if isinstance(node.body, list) else [node.body]
        own = {each.arg for each in given}.union(*(bound(each) for each in body))
        outside = {name for each in body for name in declared_global(each)}
        for each in body:
            yield from _mentions(each, (local | own) - outside, inside=True)
        return
    if isinstance(node, _COMPREHENSIONS):
        local = local.union(*(bound(generator.target) for generator in node.generators))
    for child in ast.iter_child_nodes(node):
        yield from _mentions(child, local, inside=inside)


def _chain(node: ast.AST) -> list[str]:
    """``a.b.c`` as its names; a name alone; nothing for anything else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) else []


def absolute(module: ModuleType, statement: ast.ImportFrom) -> str:
    """The module that is imported from, by its whole name."""
    relative = "." * statement.level + (statement.module or "")
    return importlib.util.resolve_name(relative, module.__package__) if statement.level else relative


def modules_of(module: ModuleType, statement: ast.Import | ast.ImportFrom) -> list[str]:
    """The modules that an import may bind or read."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    origin = absolute(module, statement)
    return [origin, *(f"{origin}.{alias.name}" for alias in statement.names)]


def place_of_name(statement: ast.stmt) -> tuple[int, int] | None:
    """The line and the column (in bytes) of the name that a definition defines."""
    words = {ast.FunctionDef: "def ", ast.AsyncFunctionDef: "async def ", ast.ClassDef: "class "}
    word = words.get(type(statement))
    return None if word is None else (statement.lineno, statement.col_offset + len(word))


def declared_global(statement: ast.AST) -> set[str]:
    """The names that functions inside of it declare as global."""
    return {name for node in ast.walk(statement) if isinstance(node, ast.Global) for name in node.names}
