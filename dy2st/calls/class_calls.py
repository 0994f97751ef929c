"""Classes: what Python calls of them by itself is converted, and so is what makes an object."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, cast

from dy2st.calls.caches import TracedCachedProperty
from dy2st.calls.library_calls import marking
from dy2st.conversion import is_left_alone
from dy2st.source.user_frames import is_part_of_torch
from dy2st.staging.branches.implicit_exceptions import ATTRIBUTE, AWAITED, awaiting
from dy2st.staging.containers.enum_members import finder, has_plain_values
from dy2st.staging.session import Session
from dy2st.staging.users_code import (
    FOLLOWED_CONTAINERS,
    FOLLOWED_OWN,
    OWN_PACKAGES,
    of_the_user,
    python_function,
    should_follow,
)


class ConvertedClasses:
    """Classes whose properties and special methods are converted while a capture runs, with the originals."""

    def __init__(self) -> None:
        self._originals: dict[type, dict[str, Any]] = {}

    def convert(self, cls: type) -> None:
        """Convert what Python itself calls of a user's class (properties, operators)."""
        for base in cls.__mro__:
            package = base.__module__.split(".")[0]
            plain = package == "collections" and base.__qualname__ not in FOLLOWED_CONTAINERS
            followed = base.__module__ in FOLLOWED_OWN or is_part_of_torch(base.__module__)
            closed = package in (*OWN_PACKAGES, "builtins") and not followed
            if base in self._originals or plain or closed:
                continue
            members = {name: each for name, each in converted_members(base).items() if not _is_metaclasses(base, name)}
            self._originals[base] = {name: vars(base)[name] for name in members}
            for name, member in members.items():
                setattr(base, name, member)
            for descriptor in list(vars(base).values()):
                if any(of_the_user(getattr(type(descriptor), name, None)) for name in ("__get__", "__set__")):
                    self.convert(type(descriptor))

    def restore(self) -> None:
        """Undo it all."""
        for cls, members in self._originals.items():
            for name, member in members.items():
                setattr(cls, name, member)


def _is_metaclasses(cls: type, name: str) -> bool:
    """Whether a class's metaclass answers for an attribute, and takes no other value for it."""
    metaclass: Any = type(cls)
    return any(name in vars(kind) and hasattr(vars(kind)[name], "__set__") for kind in metaclass.__mro__)


def converted_members(cls: type) -> dict[str, Any]:
    """The properties and special methods of a user's class, which Python calls itself, rewritten."""
    members: dict[str, Any] = {}
    if is_left_alone(cls):
        return members
    for name, member in list(vars(cls).items()):
        if isinstance(member, property) and isinstance(member.fget, types.FunctionType):
            getter = _awaiting(python_function(member.fget), member.fget, ATTRIBUTE)
            setter, deleter = _converted(member.fset), _converted(member.fdel)
            if (getter, setter, deleter) != (member.fget, member.fset, member.fdel):
                members[name] = property(getter, setter, deleter, member.__doc__)
        elif isinstance(member, functools.cached_property):
            members[name] = TracedCachedProperty(member, python_function(cast("types.FunctionType", member.func)))
        elif name in SPECIAL and isinstance(member, types.FunctionType):
            rewritten = python_function(member)
            if rewritten is not member:
                rewritten = _awaiting(rewritten, member, AWAITED.get(name))
                members[name] = rewritten if name != "__getattr__" else _of_plain_names(member, rewritten)
    return members


def _awaiting(rewritten: Callable[..., Any], native: Any, kinds: tuple[str, ...] | None) -> Callable[..., Any]:
    return rewritten if rewritten is native or kinds is None else awaiting(rewritten, kinds)


def _converted(function: Any) -> Any:
    return python_function(function) if isinstance(function, types.FunctionType) else function


def _of_plain_names(native: Callable[..., Any], rewritten: Callable[..., Any]) -> Callable[..., Any]:
    """A ``__getattr__``: for ``__wrapped__`` and its like it is asked by other code than the user's, as it is."""

    @functools.wraps(rewritten)
    def lookup(self: Any, name: str) -> Any:
        return (native if name.startswith("__") and name.endswith("__") else rewritten)(self, name)

    return lookup


# Not those that make objects or texts of them, which have places of their own.
SPECIAL = frozenset(
    f"__{name}__"
    for name in "add radd iadd sub rsub isub mul rmul imul matmul rmatmul imatmul truediv rtruediv itruediv floordiv "
    "rfloordiv ifloordiv mod rmod imod divmod rdivmod pow rpow ipow lshift rlshift ilshift rshift rrshift irshift and "
    "rand iand or ror ior xor rxor ixor neg pos abs invert lt le gt ge eq ne bool len int float complex index round "
    "trunc floor ceil getitem setitem delitem missing contains iter next reversed length_hint enter exit getattr "
    "setattr delattr get set delete post_init".split()
)


def constructor(capture: Session, cls: type[Any]) -> Callable[..., Any] | None:
    """What makes an object with its converted ``__init__``; None for a class that has none.

    Where its metaclass says what a call does, that is converted; it comes to ``maker`` by ``super().__call__``.
    """
    if has_plain_values(cls) and not is_left_alone(cls):
        return finder(capture.call, cls, marking(capture, cls))
    called = type(cls).__call__
    if isinstance(called, types.FunctionType):
        rewritten = python_function(called)
        return None if rewritten is called or is_left_alone(cls) else types.MethodType(rewritten, cls)
    return maker(capture, cls)


def maker(capture: Session, cls: type[Any]) -> Callable[..., Any] | None:
    """As ``type.__call__``: a new object, and its converted ``__init__``; None for a class that has none."""
    new: Any = cls.__new__
    init = cls.__dict__.get("__init__") or getattr(cls, "__init__", None)
    if (
        not isinstance(init, types.FunctionType)
        or new is not object.__new__
        or issubclass(cls, BaseException)
        or not should_follow(init)
        or is_left_alone(cls)
    ):
        return None
    generated = init.__code__.co_filename.startswith("<")
    if generated and not hasattr(cls, "__post_init__"):
        return None

    def construct(*args: Any, **kwargs: Any) -> Any:
        made = capture.new(object.__new__(cls))
        (init if generated else python_function(init))(made, *args, **kwargs)
        return made

    return construct
