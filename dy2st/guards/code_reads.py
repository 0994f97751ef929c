"""What code can read: the globals that it names, and the attributes that it asks of any object.

Both are over-approximations. A name counts though the path that reads it was not taken; an attribute counts for every
object that the code can come by. So what is not found here was not read.

What stands inside a call of ``dy2st.constant`` is left out: its value is read once, by the user's own word.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

# Who asks for attributes by names that are computed.
BY_COMPUTED_NAMES = frozenset(
    ("getattr", "hasattr", "vars", "dir", "__dict__", "__getattribute__", "attrgetter", "asdict", "getmembers")
)
_ASKING = frozenset(("getattr", "hasattr", "vars", "dir"))
# Who asks for globals by names that are no names of the code.
_OF_GLOBALS = frozenset(("globals", "eval", "exec", "__globals__"))
_GLOBALS = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS", "DELETE_GLOBAL", "STORE_GLOBAL"))
_ATTRIBUTES = frozenset(("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "STORE_ATTR", "DELETE_ATTR", "IMPORT_FROM"))
_CALLS = frozenset(("CALL", "CALL_FUNCTION_EX", "CALL_KW", "PRECALL"))


class Import(NamedTuple):
    """An import of a module: how many levels up from the code's own, its name, and what is imported from it, if so."""

    level: int
    module: str
    names: tuple[str, ...] | None = None


@dataclass(frozen=True)
class CodeReads:
    """The reads of a code object and of those inside of it.

    ``globals`` maps each global name to the chains of attributes asked of it (``{"torch": {("nn", "functional")}}``;
    the empty chain is the name alone), ``attributes`` are all names of attributes, ``computed`` says whether names of
    attributes may be computed, ``any_global`` the same of globals. ``imports`` are the modules that the code imports
    itself. ``asks`` says whether it asks if attributes are there.
    """

    globals: dict[str, set[tuple[str, ...]]] = field(default_factory=dict)
    attributes: frozenset[str] = frozenset()
    computed: bool = False
    any_global: bool = False
    imports: frozenset[Import] = frozenset()
    asks: bool = False


@functools.lru_cache(maxsize=4096)
def code_reads(code: types.CodeType) -> CodeReads:
    """What a code object and those inside of it (comprehensions, lambdas, functions) can read."""
    found: dict[str, set[tuple[str, ...]]] = {}
    attributes: set[str] = set()
    imports: set[Import] = set()
    computed = any_global = asks = False
    for inner in _with_inner(code):
        instructions = [each for each in dis.get_instructions(inner) if each.opname not in ("CACHE", "EXTENDED_ARG")]
        left_out = list(_inside_constant(instructions))
        for at, each in enumerate(instructions):
            if any(_within(each, span) for span in left_out):
                continue
            # Some tools put names into code that no source can have: pytest, for its asserts.
            if each.opname in _GLOBALS and str(each.argval).isidentifier():
                found.setdefault(each.argval, set()).add(_chain(instructions, at))
            elif each.opname in _ATTRIBUTES:
                attributes.add(each.argval)
            elif each.opname == "IMPORT_NAME":
                imports.add(Import(int(instructions[at - 2].argval or 0), each.argval, instructions[at - 1].argval))
        if not _OF_GLOBALS.isdisjoint(inner.co_names):
            texts = _global_texts(instructions)
            any_global |= texts is None
            for name in texts or ():
                found.setdefault(name, set()).add(())
        asks |= not _ASKING.isdisjoint(inner.co_names)
        imports.update(Import(0, text) for text in _imported_texts(inner))
        computed |= _computes_names(instructions)
        attributes.update(_constant_names(inner))
    return CodeReads(found, frozenset(attributes), computed, any_global, frozenset(imports), asks)


def _with_inner(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _with_inner(constant)


def _chain(instructions: list[dis.Instruction], at: int) -> tuple[str, ...]:
    """The attributes that are asked of the value at once: ``a.b.c`` gives ``("b", "c")``; ``x in a.b`` asks, too."""
    names = []
    for each in instructions[at + 1 :]:
        if each.opname == "CONTAINS_OP":
            names.append("__contains__")
        if each.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
            break
        names.append(each.argval)
    return tuple(names)


def _constant_names(code: types.CodeType) -> Iterator[str]:
    """Texts that could name an attribute: what ``getattr(x, "name")`` asks for."""
    if BY_COMPUTED_NAMES.isdisjoint(code.co_names):
        return
    for constant in code.co_consts:
        for each in constant if isinstance(constant, tuple) else (constant,):
            if isinstance(each, str) and each.isidentifier():
                yield each


def _global_texts(instructions: list[dis.Instruction]) -> set[str] | None:
    """The names in ``globals()["name"]``; None if globals are asked for otherwise."""
    plain = [each for each in instructions if each.opname not in ("PRECALL", "PUSH_NULL")]
    found = set()
    for at, each in enumerate(plain):
        if each.argval not in _OF_GLOBALS or each.opname not in (*_GLOBALS, *_ATTRIBUTES):
            continue
        following = plain[at + 1 : at + 4]
        kinds = [other.opname for other in following]
        name = following[1].argval if len(following) > 1 else None
        if each.argval != "globals" or kinds[:2] != ["CALL", "LOAD_CONST"] or not isinstance(name, str):
            return None
        if kinds[2] not in ("BINARY_SUBSCR", "BINARY_OP"):
            return None
        found.add(name)
    return found


def _imported_texts(code: types.CodeType) -> Iterator[str]:
    """The modules that ``importlib.import_module("name")`` and ``__import__("name")`` may import."""
    if {"import_module", "__import__"}.isdisjoint(code.co_names):
        return
    for constant in code.co_consts:
        if isinstance(constant, str) and all(part.isidentifier() for part in constant.split(".")):
            yield constant


def _computes_names(instructions: list[dis.Instruction]) -> bool:
    """Whether attributes are asked for by a name that is no text in the source."""
    for at, each in enumerate(instructions):
        if each.opname in (*_GLOBALS, *_ATTRIBUTES) and each.argval in BY_COMPUTED_NAMES:
            if each.argval not in ("getattr", "hasattr"):
                return True
            call = _call_from(instructions, each)
            following = instructions[at + 1 :]
            if call not in following or not _names_by_text(following, call):
                return True
    return False


def _names_by_text(following: list[dis.Instruction], call: dis.Instruction) -> bool:
    """Whether the second argument of a ``getattr`` is a text, behind a variable or attribute as the first."""
    inside = following[: following.index(call)]
    loads = iter([each for each in inside if each.opname not in ("PRECALL", "PUSH_NULL")])
    next(loads, None)
    second = next((each for each in loads if each.opname != "LOAD_ATTR"), None)
    if second is None or second.opname != "LOAD_CONST" or not isinstance(second.argval, str):
        return False
    # A larger expression that begins with a text computes something.
    return not any(_begins_at(each, second) for each in inside)


def _begins_at(instruction: dis.Instruction, other: dis.Instruction) -> bool:
    """Whether an instruction is of an expression that begins where that of another does, and goes on."""
    mine, its = instruction.positions, other.positions
    if mine is None or its is None or (mine.lineno, mine.col_offset) != (its.lineno, its.col_offset):
        return False
    return _beyond(mine, its)


def _call_from(instructions: list[dis.Instruction], callee: dis.Instruction) -> dis.Instruction | None:
    """The call whose source begins where that of ``callee`` does."""
    start = callee.positions
    for each in instructions:
        if each.opname in _CALLS and each.opname != "PRECALL" and each.positions is not None and start is not None:
            at = each.positions
            if (at.lineno, at.col_offset) == (start.lineno, start.col_offset) and _beyond(at, start):
                return each
    return None


def _beyond(outer: dis.Positions, inner: dis.Positions) -> bool:
    return (outer.end_lineno or 0, outer.end_col_offset or 0) > (inner.end_lineno or 0, inner.end_col_offset or 0)


def _inside_constant(instructions: list[dis.Instruction]) -> Iterator[dis.Positions]:
    """Where the calls of ``dy2st.constant`` (by whatever path to that name) stand."""
    for each in instructions:
        if each.opname in (*_GLOBALS, *_ATTRIBUTES) and each.argval == "constant":
            call = _call_from(instructions, each)
            if call is not None and call.positions is not None:
                yield call.positions


def _within(instruction: dis.Instruction, span: dis.Positions) -> bool:
    at = instruction.positions
    if at is None or None in (at.lineno, at.col_offset, span.lineno, span.col_offset):
        return False
    start, end = (at.lineno or 0, at.col_offset or 0), (at.end_lineno or 0, at.end_col_offset or 0)
    first, last = (span.lineno or 0, span.col_offset or 0), (span.end_lineno or 0, span.end_col_offset or 0)
    return first <= start and end <= last and not instruction.opname.startswith("CALL")
