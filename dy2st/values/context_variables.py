"""Values of a ``contextvars.ContextVar``, as those of any other place: read, stored, and taken away again.

A variable that has no value in a context is one whose value is its default. Python takes a value away with the token
of the ``set`` that gave it, and takes each token once. While a model is exported, code that is traced more than once
sets a variable more than once, and its stores are undone in between. So it is remembered which token leads back to a
variable without a value.
"""

from __future__ import annotations

from contextvars import Context, ContextVar, Token
from typing import Any

from dy2st.operators.export_session import current
from dy2st.values.undefined import UNSET


class ContextTokens:
    """A part of an export: the tokens of variables that had no value, and those that the user's code has used."""

    def __init__(self) -> None:
        self.first: dict[int, Token[Any]] = {}
        self.used: dict[int, Token[Any]] = {}
        # Variables that the user's code has given their defaults.
        self.default_given: set[int] = set()


def value_of(variable: ContextVar[Any]) -> Any:
    """The value, or the default; UNSET without either."""
    try:
        return variable.get()
    except LookupError:
        return UNSET


def store(variable: ContextVar[Any], value: Any) -> None:
    """Give a variable a value that ``value_of`` has given."""
    tokens = current().part(ContextTokens)
    if value is not _default(variable) or id(variable) in tokens.default_given:
        _give(variable, value)
    elif variable.get(UNSET) is not UNSET:
        _take_away(variable, value)


def given(variable: ContextVar[Any], value: Any) -> Token[Any]:
    """What ``variable.set(value)`` does."""
    if value is _default(variable):
        current().part(ContextTokens).default_given.add(id(variable))
    return _give(variable, value)


def reset(variable: ContextVar[Any], token: Token[Any]) -> None:
    """What ``variable.reset(token)`` does; the token may be one that was needed to take the value away.

    Raises:
        RuntimeError: the token was used before.
        ValueError: it is one of another variable.
    """
    used = current().part(ContextTokens).used
    if id(token) in used:
        raise RuntimeError(f"{token!r} has already been used once")
    if token.var is not variable:
        raise ValueError(f"{token!r} was created by a different ContextVar")
    used[id(token)] = token
    if token.old_value is Token.MISSING:
        _take_away(variable, _default(variable))
    else:
        _give(variable, token.old_value)


def _default(variable: ContextVar[Any]) -> Any:
    return Context().run(value_of, variable)


def _give(variable: ContextVar[Any], value: Any) -> Token[Any]:
    token = variable.set(value)
    if token.old_value is Token.MISSING:
        current().part(ContextTokens).first[id(variable)] = token
    return token


def _take_away(variable: ContextVar[Any], default: Any) -> None:
    token = current().part(ContextTokens).first.pop(id(variable), None)
    if token is not None:
        variable.reset(token)
    elif default is not UNSET:
        variable.set(default)  # a value from before the export
