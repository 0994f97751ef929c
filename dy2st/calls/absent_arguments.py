"""Keyword arguments that are given on some paths only: ``f(**kwargs)``, with a key that may not be there.

A converted function is called once. A parameter with a default has that where the argument is missing, and
``**kwargs`` takes the key as the dict had it, there on some paths only. All other code is called twice, with the
argument and without.
"""

from __future__ import annotations

import inspect
import types
from typing import Any

import torch

from dy2st.calls.module_calls import called_as_a_whole
from dy2st.source.rewriting import is_rewritten
from dy2st.staging.cases import maybe_absent, narrowed
from dy2st.staging.session import Session
from dy2st.staging.users_code import python_function
from dy2st.values.tagged_union import TaggedUnion, cases_of, tag_of
from dy2st.values.undefined import UNSET


def absent_key(capture: Session, kwargs: dict[str, Any]) -> str | None:
    """The first keyword argument that may be missing, if there is one."""
    return next((key for key, value in kwargs.items() if maybe_absent(narrowed(capture, value))), None)


def with_defaults(
    capture: Session, function: Any, found: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any] | None:
    """The keyword arguments for one call of ``found``, which stands for ``function``; None if it can't take them."""
    takes = _converted(function, found)
    if takes is None:
        return None
    code, owned = takes.__code__, takes is not found
    positional = code.co_varnames[: code.co_argcount]
    named = code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
    defaults = dict(zip(reversed(positional), reversed(takes.__defaults__ or ()), strict=False))
    defaults |= takes.__kwdefaults__ or {}
    given = dict(kwargs)
    for key, value in kwargs.items():
        if not maybe_absent(narrowed(capture, value)):
            continue
        if key in named:
            if key not in defaults or key in positional[: len(args) + owned]:
                return None
            cases = [defaults[key] if case is UNSET else case for case in cases_of(value)]
            given[key] = TaggedUnion(tag_of(value), cases)
        elif not code.co_flags & inspect.CO_VARKEYWORDS:
            return None
    return given


def _converted(function: Any, found: Any) -> types.FunctionType | None:
    """The converted function that a call of ``found`` is one of, with ``self`` if it is a method."""
    owner = getattr(function, "__self__", function)
    if isinstance(owner, torch.nn.Module) and (function is owner or function.__func__ is torch.nn.Module.__call__):
        forward = getattr(owner.forward, "__func__", None)
        if not isinstance(forward, types.FunctionType) or called_as_a_whole(owner):
            return None
        found = python_function(forward)
    plain = getattr(found, "__func__", found)
    return plain if isinstance(plain, types.FunctionType) and is_rewritten(plain) else None
