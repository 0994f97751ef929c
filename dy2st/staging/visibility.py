"""Who else can see an object or a tensor's memory: what the variables of the running functions lead to."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType, FrameType, FunctionType
from typing import Any

from dy2st.source.user_frames import TORCH, is_users, is_users_frame
from dy2st.staging.memory.heap import (
    attributes,
    elements,
    held_by_function,
    held_by_iterator,
    is_closed,
    is_filled,
    is_machinery,
    names_in,
    walk,
)
from dy2st.values.journal import Slot
from dy2st.values.plain_objects import attributes_of
from dy2st.values.undefined import UNSET

_DICT: dict[Any, Any] = {}
_VIEWS = type(_DICT.keys()), type(_DICT.values()), type(_DICT.items())


def is_seen(container: Any, place: Any, frame: FrameType, variables: dict[Any, Any]) -> bool:
    """Whether a variable of the running functions, other than the place itself, leads to a container.

    ``variables`` are those of the innermost one, at ``frame``.
    """
    return any(value is container for value in seen_from(frame, variables, place))


def seen_from(frame: FrameType, variables: Any, place: Any) -> Iterator[Any]:
    """What the variables of the running functions lead to, and the globals that these name, each once.

    What is at ``place`` itself, a variable of ``frame`` or a slot, is left out. Raises ``HeapSizeError``.
    """
    leading = _Leading(frame, place)
    return walk(leading.roots(variables), (leading.parts, leading.elements, held_by_iterator), _is_end)


def in_use(containers: Sequence[Any], frame: FrameType, managers: Sequence[Any]) -> bool:
    """Whether a variable of the running functions leads to one of these, or something is in the middle of one.

    ``managers`` are the context managers that are open.
    """
    wanted = {id(each) for each in containers}
    if any(id(each) in wanted for each in seen_from(frame, {**frame.f_locals, "with": [*managers]}, UNSET)):
        return True
    return any(_goes_through(each) for each in gc.get_referrers(*containers))


def _goes_through(value: Any) -> bool:
    """Whether something is an iterator or a view of Python's."""
    kind = type(value)
    return kind in _VIEWS or (kind.__module__ in ("builtins", "itertools") and hasattr(kind, "__next__"))


def _is_end(value: Any) -> bool:
    if isinstance(value, FunctionType):
        return not is_users(value.__code__.co_filename)
    # What stands for an iterator leads to what that goes over.
    return is_closed(value) or (is_machinery(value) and not getattr(type(value), "goes_over", False))


class _Leading:
    """What leads from one value to others, save by a place of ``frame``."""

    def __init__(self, frame: FrameType, place: Any) -> None:
        self.frame, self.place = frame, place

    def roots(self, variables: Any) -> Iterator[Any]:
        around: FrameType | None = self.frame
        while around is not None and (is_users_frame(around) or not around.f_code.co_filename.startswith(TORCH)):
            if around.f_globals.get("__name__", "").partition(".")[0] != "dy2st":
                found = variables if around is self.frame else around.f_locals
                for name, value in found.items():
                    if around is not self.frame or name != self.place:
                        yield value
                yield from self._globals(around.f_code, around.f_globals)
            around = around.f_back

    def parts(self, value: Any) -> Iterable[Any]:
        """What a value holds, by attribute or as a function; nothing for the content that is the place."""
        if isinstance(value, FunctionType):
            return self._of_function(value)
        own = self._is_of_place(value)
        if own and self.place.kind == "attribute":
            return [part for name, part in attributes_of(value).items() if name != self.place.name]
        return (*attributes(value), *held_by_function(value))

    def elements(self, value: Any) -> Iterable[Any]:
        """The elements of a container other than the place."""
        return () if self._is_of_place(value) and self.place.kind == "content" else elements(value)

    def _is_of_place(self, value: Any) -> bool:
        return isinstance(self.place, Slot) and self.place.owner is value

    def _of_function(self, function: FunctionType) -> Iterator[Any]:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            own = isinstance(self.place, Slot) and self.place.owner is cell
            variable = name == self.place and _is_variable_of(self.frame.f_code, function.__code__, name)
            if not own and not variable and is_filled(cell):
                yield cell.cell_contents
        yield from function.__defaults__ or ()
        yield from (function.__kwdefaults__ or {}).values()
        yield from attributes(function)
        yield from self._globals(function.__code__, function.__globals__)

    def _globals(self, code: CodeType, known: dict[str, Any]) -> Iterator[Any]:
        for name in names_in(code):
            if name in known and not (self._is_of_place(known) and self.place.name == name):
                yield known[name]


def _is_variable_of(outer: CodeType, inner: CodeType, name: str) -> bool:
    """Whether a name of a function is a variable of the one that it stands in, however deep."""
    nested = (each for each in outer.co_consts if isinstance(each, CodeType) and name in each.co_freevars)
    return any(each is inner or _is_variable_of(each, inner, name) for each in nested)
