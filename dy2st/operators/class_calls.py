"""Classes: what Python calls of them by itself is converted, and so is what makes an object."""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any, cast

import torch

from dy2st.conversion import is_left_alone
from dy2st.operators.decorated import TracedCachedProperty
from dy2st.operators.python_functions import python_function, should_follow

if TYPE_CHECKING:
    from collections.abc import Callable

    from dy2st.operators.capture import Capture


def converted_members(cls: type) -> dict[str, Any]:
    """The properties and special methods of a user's class, which Python calls itself, rewritten."""
    members: dict[str, Any] = {}
    if is_left_alone(cls):
        return members
    for name, member in list(vars(cls).items()):
        if isinstance(member, property) and isinstance(member.fget, types.FunctionType):
            getter = python_function(member.fget)
            setter = member.fset
            if isinstance(setter, types.FunctionType):
                setter = python_function(setter)
            if getter is not member.fget or setter is not member.fset:
                members[name] = property(getter, setter, member.fdel, member.__doc__)
        elif isinstance(member, functools.cached_property):
            members[name] = TracedCachedProperty(member, python_function(cast("types.FunctionType", member.func)))
        elif name in SPECIAL and isinstance(member, types.FunctionType):
            rewritten = python_function(member)
            if rewritten is not member:
                members[name] = rewritten
    return members


SPECIAL = frozenset(
    f"__{name}__"
    for name in "add radd sub rsub mul rmul matmul rmatmul truediv rtruediv floordiv rfloordiv mod pow rpow neg and or "
    "xor invert iadd isub imul itruediv lt le gt ge getitem setitem contains enter exit abs iter next getattr".split()
)


def constructor(capture: Capture, cls: type[Any]) -> Callable[..., Any] | None:
    """What makes an object with its converted ``__init__``; None for a class that has none."""
    new: Any = cls.__new__
    init = cls.__dict__.get("__init__") or getattr(cls, "__init__", None)
    if (
        not isinstance(init, types.FunctionType)
        or new is not object.__new__
        or type(cls).__call__ is not type.__call__
        or issubclass(cls, (BaseException, torch.nn.Module))
        or not should_follow(init)
        or is_left_alone(cls)
        or init.__code__.co_filename.startswith("<")
    ):
        return None

    def construct(*args: Any, **kwargs: Any) -> Any:
        made = capture.new(object.__new__(cls))
        python_function(init)(made, *args, **kwargs)
        return made

    return construct
