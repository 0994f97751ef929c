"""Is the text that was found the text that runs?"""

from __future__ import annotations

import copy
import types
from typing import TYPE_CHECKING

from dy2st.errors import StaleSourceError
from dy2st.source.compiling import compile_definition, nested
from dy2st.source.find import Found, location

if TYPE_CHECKING:
    from collections.abc import Iterable

# Import hooks that change a function's code, and by which names that shows: pytest's assertions, type checkers.
HOOKS = ("@py", "beartype", "typeguard", "jaxtyping")


def choose(candidates: Iterable[Found], function: types.FunctionType) -> Found:
    """The candidate whose text compiles to the code of ``function``."""
    code = function.__code__
    hooked: Found | None = None
    for found in candidates:
        compiled = compile_definition(copy.copy(found.node), found, code, None)
        if _same(compiled, code):
            return found
        if hooked is None and any(mark in name for name in _names(code) for mark in HOOKS):
            hooked = found
    if hooked is not None:
        return hooked
    what = f"the source of {function.__qualname__}() is not what it was compiled from: the file has changed"
    raise StaleSourceError(what, hint="reload the module", location=location(code))


def _same(first: types.CodeType, second: types.CodeType) -> bool:
    if first.co_code != second.co_code or first.co_names != second.co_names:
        return False
    if len(first.co_consts) != len(second.co_consts):
        return False
    for a, b in zip(first.co_consts, second.co_consts, strict=True):
        if isinstance(a, types.CodeType) and isinstance(b, types.CodeType):
            if not _same(a, b):
                return False
        elif type(a) is not type(b) or repr(a) != repr(b):
            return isinstance(a, frozenset) and a == b
    return True


def _names(code: types.CodeType) -> set[str]:
    return {name for inner in nested(code) for name in (*inner.co_names, *inner.co_varnames)}
