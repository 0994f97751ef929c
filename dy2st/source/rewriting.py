"""A function in, a rewritten function out."""

from __future__ import annotations

import ast
import sys
import types
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import cast

import libcst as cst

from dy2st import operators as run_time
from dy2st.errors import NoSourceError, UnsupportedSourceError
from dy2st.source.comparing import choose
from dy2st.source.compiling import compile_definition, nested
from dy2st.source.find import FUTURES, Definition, Found, find, location
from dy2st.source.muting import muting
from dy2st.source.positions import restore
from dy2st.source.registry import IdentityMap, Rewritten
from dy2st.transforms import Unit, lower
from dy2st.transforms.analysis import Analysis
from dy2st.transforms.analysis.collecting import NO_LIMIT
from dy2st.transforms.analysis.scope import identifiers
from dy2st.transforms.muting import Mute, MuteStatement
from dy2st.transforms.names import NameSupply
from dy2st.transforms.pairing import pair

# How deep lowered statements may nest before the compiler's own limits (20 blocks, 100 indents) make it give up.
DEPTHS = (NO_LIMIT, 40, 16, 8, 4, 2, 0)


_rewritten: IdentityMap[types.CodeType, Rewritten] = IdentityMap()
_made: IdentityMap[types.CodeType, types.CodeType] = IdentityMap()
_originals: weakref.WeakKeyDictionary[types.FunctionType, types.FunctionType] = weakref.WeakKeyDictionary()


def rewrite(function: types.FunctionType) -> types.FunctionType:
    """``function`` rewritten: same globals, cells, defaults and attributes, same file and lines.

    A function in which there is nothing to rewrite, and one that is rewritten already, is returned as it is.
    """
    _check(function)
    code = function.__code__
    if code in _made:
        return function
    running = muting()
    muted = running.lines(code)
    known = running.made if muted else _rewritten
    result = known.get(code)
    if result is None:
        result = known[code] = _rewrite_code(function, muted)
    if result.code is None:
        return function
    made = _with_code(function, result.code, result.operators)
    _originals[made] = function
    return made


def rewritten_source(function: types.FunctionType, after: str | None = None) -> str:
    """The text of the rewritten function, comments kept; ``after`` names the last pass to run."""
    _check(function)
    function = original(function)
    found = found_definition(function)
    with _deep_recursion():
        unit = _prepare(found, function)
        if unit is None:
            return _text(_parse(found, function))
        lower(unit, after)
        return _text(unit.node)


def found_definition(function: types.FunctionType) -> Found:
    """The definition of a function that is not rewritten, in its file."""
    return choose(find(function), function)


def is_rewritten(function: object) -> bool:
    """Whether ``function`` is a rewritten function, or was made by one."""
    return isinstance(function, types.FunctionType) and function.__code__ in _made


def is_rewritten_code(code: types.CodeType) -> bool:
    """Whether a code object is that of a rewritten function."""
    return code in _made


def original(function: types.FunctionType) -> types.FunctionType:
    """The function that ``function`` was rewritten from, or the function itself."""
    known = _originals.get(function)
    if known is not None:
        return known
    code = _made.get(function.__code__)
    return function if code is None else _with_code(function, code, None)


def _check(function: object) -> None:
    if not isinstance(function, types.FunctionType):
        name = getattr(function, "__qualname__", None) or repr(function)
        what = f"{name} is not a Python function: it has no source"
        raise NoSourceError(what, hint="pass the function itself, or a method's __func__")


def _with_code(function: types.FunctionType, code: types.CodeType, operators: str | None) -> types.FunctionType:
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    if operators is not None:
        cells[operators] = types.CellType(run_time)
    closure = tuple(cells[name] for name in code.co_freevars)
    made = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    made.__module__ = function.__module__
    made.__doc__ = function.__doc__
    made.__annotations__ = function.__annotations__
    made.__dict__.update(function.__dict__)
    if hasattr(function, "__type_params__"):  # since Python 3.12
        setattr(made, "__type_params__", function.__type_params__)  # noqa: B010  typeshed has it for 3.12 only
    return made


def _rewrite_code(function: types.FunctionType, muted: Mapping[int, Mute]) -> Rewritten:
    found = found_definition(function)
    error: Exception | None = None
    for deepest in DEPTHS:
        try:
            with _deep_recursion():
                unit = _prepare(found, function, deepest)
                if unit is None:
                    return Rewritten(None, "")
                before = unit.node
                if muted:
                    MuteStatement(unit, muted).run()
                lower(unit)
                if unit.node is before:
                    return Rewritten(None, "")
                code = _compile(unit, found, function.__code__)
        except (SyntaxError, RecursionError, MemoryError) as failure:
            error = failure
            continue
        _register(code, function.__code__)
        return Rewritten(code, unit.names.operators)
    what = f"{function.__qualname__}() can't be compiled once it is rewritten: {error}"
    hint = "move its inner blocks into a function of their own"
    raise UnsupportedSourceError(what, hint=hint, location=location(function.__code__)) from error


@contextmanager
def _deep_recursion() -> Iterator[None]:
    """Walking a long expression or a deep nest takes several frames for each level."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, 20_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _prepare(found: Found, function: types.FunctionType, deepest: int = NO_LIMIT) -> Unit | None:
    """The function as a unit for the passes; None if it is to be left alone."""
    node = found.node
    if isinstance(node, ast.AsyncFunctionDef):
        return None
    analysis = Analysis(node, deepest)
    if node not in analysis.facts.functions:
        return None
    tree = _parse(found, function)
    used = identifiers(node) | set(function.__code__.co_names) | set(function.__code__.co_freevars)
    return Unit(tree, pair(tree, node), analysis.facts, NameSupply(used))


def _parse(found: Found, function: types.FunctionType) -> cst.FunctionDef | cst.Lambda:
    text = found.text
    try:
        if found.is_lambda:
            return cast("cst.Lambda", cst.parse_expression(text))
        # An indented definition stands in a suite, rather than being dedented: its strings stay as they are.
        if text[:1] in " \t\f":
            outer = cast("cst.If", cst.parse_module("if 1:\n" + text).body[0])
            return cast("cst.FunctionDef", outer.body.body[0])
        return cast("cst.FunctionDef", cst.parse_module(text).body[0])
    except cst.ParserSyntaxError as failure:
        what = f"the source of {function.__qualname__}() can't be parsed: {failure.message}"
        raise UnsupportedSourceError(what, location=location(function.__code__)) from failure


def _text(node: cst.FunctionDef | cst.Lambda) -> str:
    if isinstance(node, cst.Lambda):
        return cst.Module([]).code_for_node(node) + "\n"
    return cst.Module([node.with_changes(decorators=[], leading_lines=[])]).code


def _compile(unit: Unit, found: Found, code: types.CodeType) -> types.CodeType:
    text = _text(unit.node)
    parsed = compile(text, "<rewritten>", "exec", ast.PyCF_ONLY_AST | (code.co_flags & FUTURES), dont_inherit=True)
    statement = parsed.body[0]
    tree = cast("Definition", statement.value if isinstance(statement, ast.Expr) else statement)
    if isinstance(unit.node, cst.FunctionDef):
        unit.node = unit.same(unit.node, unit.node.with_changes(decorators=[]))
    restore(unit, tree)
    return compile_definition(tree, found, code, unit.names.operators)


def _register(new: types.CodeType, old: types.CodeType) -> None:
    """Remember which code was made from which, nested functions included."""
    by_place: dict[tuple[str, int], list[types.CodeType]] = {}
    for code in nested(old):
        by_place.setdefault((code.co_name, code.co_firstlineno), []).append(code)
    for code in nested(new):
        candidates = by_place.get((code.co_name, code.co_firstlineno))
        if candidates:
            _made[code] = candidates.pop(0) if len(candidates) > 1 else candidates[0]
