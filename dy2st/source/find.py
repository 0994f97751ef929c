"""The text of a function, found from its code object."""

from __future__ import annotations

import ast
import linecache
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from dy2st.errors import Location, NoSourceError, StaleSourceError

if TYPE_CHECKING:
    import types
    from collections.abc import Iterator

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
FUTURES = 0x1FF0000  # the code flags that `from __future__` sets, which `compile` takes as they are


@dataclass(frozen=True)
class Found:
    """A definition: its node in the file's tree, the file's lines and imported names, and the class around it."""

    node: Definition
    lines: tuple[str, ...]
    imports: frozenset[str]
    owner: str | None

    @property
    def is_lambda(self) -> bool:
        """Whether the definition is a ``lambda``."""
        return isinstance(self.node, ast.Lambda)

    @property
    def text(self) -> str:
        """The definition's own lines, decorators apart; a lambda's own columns, in parentheses."""
        node = self.node
        end = node.end_lineno or node.lineno
        lines = list(self.lines[node.lineno - 1 : end])
        if not self.is_lambda:
            return "".join(lines)
        lines[-1] = lines[-1].encode()[: node.end_col_offset].decode()
        lines[0] = lines[0].encode()[node.col_offset :].decode()
        return f"({''.join(lines)})"


@dataclass(frozen=True)
class _File:
    definitions: dict[tuple[str, int], tuple[tuple[Definition, str | None], ...]]
    imports: frozenset[str]


def location(code: types.CodeType) -> Location:
    """Where a function starts."""
    text = linecache.getline(code.co_filename, code.co_firstlineno)
    return Location(code.co_filename, code.co_firstlineno, text=text.rstrip("\n") or None)


def find(function: types.FunctionType) -> list[Found]:
    """The definitions that ``function`` may come from: one, but for lambdas on one line that look alike."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = tuple(linecache.getlines(code.co_filename, function.__globals__))
    if not lines:
        what = f"the source of {function.__qualname__}() can't be found: {code.co_filename} has no text"
        hint = "define the function in a file or in a notebook cell"
        raise NoSourceError(what, hint=hint, location=location(code))
    try:
        file = _parse(lines, code.co_flags & FUTURES)
    except (SyntaxError, ValueError) as error:
        what = f"the source of {function.__qualname__}() is no Python (any more): {error}"
        raise StaleSourceError(what, location=location(code)) from error
    candidates = file.definitions.get((code.co_name, code.co_firstlineno), ())
    if code.co_name == "<lambda>":
        candidates = tuple(c for c in candidates if _same_lambda(c[0], code))
    matching = [
        Found(node, lines, file.imports, owner) for node, owner in candidates if _same_parameters(node, owner, code)
    ]
    if matching:
        return matching
    what = f"line {code.co_firstlineno} of {code.co_filename} is not {function.__qualname__}(): the file has changed"
    raise StaleSourceError(what, hint="reload the module", location=location(code))


@lru_cache(maxsize=32)
def _parse(lines: tuple[str, ...], flags: int) -> _File:
    tree = compile("".join(lines), "<source>", "exec", ast.PyCF_ONLY_AST | flags, dont_inherit=True)
    definitions: dict[tuple[str, int], list[tuple[Definition, str | None]]] = {}
    for node, owner in _definitions(tree, None):
        if isinstance(node, ast.Lambda):
            key = "<lambda>", node.lineno
        else:
            # The code object has the name unmangled, and starts at the first decorator.
            key = node.name, min([node.lineno, *(d.lineno for d in node.decorator_list)])
        definitions.setdefault(key, []).append((node, owner))
    return _File({key: tuple(found) for key, found in definitions.items()}, frozenset(_imports(tree)))


def _imports(tree: ast.AST) -> Iterator[str]:
    """The names that a module imports outside its functions and classes."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names if alias.name != "*")
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
            stack.extend(ast.iter_child_nodes(node))


def _definitions(node: ast.AST, owner: str | None) -> Iterator[tuple[Definition, str | None]]:
    """All definitions below ``node``, each with the name of the class whose private names it sees."""
    stack = [(node, owner)]
    while stack:
        node, owner = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node, owner
        if isinstance(node, ast.ClassDef):
            # Decorators, bases and keywords are evaluated outside the class.
            stack.extend((child, owner) for child in (*node.decorator_list, *node.bases, *node.keywords))
            stack.extend((child, node.name) for child in node.body)
        else:
            stack.extend((child, owner) for child in ast.iter_child_nodes(node))


def mangled(name: str, owner: str | None) -> str:
    """A private name as the compiler writes it in class ``owner``."""
    if owner is None or not name.startswith("__") or name.endswith("__") or "." in name:
        return name
    stripped = owner.lstrip("_")
    return f"_{stripped}{name}" if stripped else name


def _same_parameters(node: Definition, owner: str | None, code: types.CodeType) -> bool:
    args = node.args
    names = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    names += [a.arg for a in (args.vararg, args.kwarg) if a is not None]
    counts = len(args.posonlyargs), len(args.posonlyargs) + len(args.args), len(args.kwonlyargs)
    if counts != (code.co_posonlyargcount, code.co_argcount, code.co_kwonlyargcount):
        return False
    return tuple(mangled(n, owner) for n in names) == code.co_varnames[: len(names)]


def _same_lambda(node: Definition, code: types.CodeType) -> bool:
    """Whether the code's instructions stand in the lambda's body (``choose`` tells a lambda from one inside it)."""
    if not isinstance(node, ast.Lambda):
        return False
    body = node.body
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    # The instructions that enter the function have no width.
    spans = [((p[0], p[2]), (p[1], p[3])) for p in code.co_positions() if None not in p]
    return all(first == last or start <= first <= last <= end for first, last in spans)
