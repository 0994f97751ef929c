"""Dicts with keys that are there on some paths only: one of the cases of such a key's value is none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from dy2st.source.user_frames import users_frame
from dy2st.staging.branches.case_distribution import choose, present, verdict
from dy2st.staging.cases import all_there, maybe_absent, narrowed
from dy2st.staging.containers.data_keyed import key_by_data
from dy2st.staging.containers.selection import Subscripted, chosen
from dy2st.staging.session import MODE, Session
from dy2st.values.journal import Slot
from dy2st.values.tagged_union import TaggedUnion
from dy2st.values.undefined import UNSET


class MaybeKeys(Subscripted):
    """Stands for such a dict where it is subscripted."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, TaggedUnion):
            return chosen(self.capture, key, self.__getitem__)
        key_by_data(self.capture, self.owner, key)
        value, factory = self.owner[key], getattr(self.owner, "default_factory", None)
        if factory is None or not maybe_absent(narrowed(self.capture, value)):
            return present(self.capture, value, sys._getframe(1))
        # A defaultdict: to read is to store where the key is not there.
        self.capture.touch(Slot.of("content", self.owner))
        default = self.capture.new(factory())
        made = choose(self.capture, value, lambda case: default if case is UNSET else case, sys._getframe(1))
        self.owner[key] = made
        return made


def contains_key(owner: dict[Any, Any], key: Any) -> Any:
    """``key in owner``."""
    if MODE.capture is not None:
        key_by_data(MODE.capture, owner, key)
    value = owner.get(key, UNSET)
    return verdict(value, lambda case: case is not UNSET) if maybe_absent(value) else key in owner


def bound_method(capture: Session, owner: dict[Any, Any], name: str) -> Callable[..., Any] | None:
    """What stands for a method of such a dict; None for one that is right as it is."""

    def get(key: Any, default: Any = None) -> Any:
        key_by_data(capture, owner, key)
        value = owner.get(key, UNSET)
        if value is UNSET:
            return default
        if not maybe_absent(value):
            return value
        return choose(capture, value, lambda case: default if case is UNSET else case, users_frame())

    def setdefault(key: Any, default: Any = None) -> Any:
        key_by_data(capture, owner, key)
        capture.touch(Slot.of("content", owner))
        owner[key] = get(key, default)
        return owner[key]

    def pop(key: Any, *default: Any) -> Any:
        capture.touch(Slot.of("content", owner))
        value = get(key, *default) if default else present(capture, owner[key], users_frame())
        owner.pop(key, None)
        return value

    def by_case(method: Callable[..., Any]) -> Callable[..., Any]:
        """The method, for each case of a key that is one of several."""

        def call(key: Any, *more: Any) -> Any:
            if isinstance(key, TaggedUnion):
                return chosen(capture, key, lambda case: method(case, *more))
            return method(key, *more)

        return call

    own = {
        "get": by_case(get),
        "setdefault": by_case(setdefault),
        "pop": by_case(pop),
        "__getitem__": MaybeKeys(capture, owner).__getitem__,
    }
    if name in own:
        return own[name]
    if name not in ("clear", "update", "__setitem__", "__contains__"):
        all_there(capture, owner)
    return None
