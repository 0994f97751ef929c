"""What containers with data-dependent keys can't do, and what they turn out to hold: see ``data_keys``.

This is not converted: code there asks for it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from dy2st.errors import SharedContainerError, StagedNumberError
from dy2st.plan import plan
from dy2st.source.user_frames import running_location
from dy2st.staging.session import MODE
from dy2st.values.container_structure import Listed, changeable
from dy2st.values.references import is_reference

# The place of a container in the code, as an attribute of it.
SITE = "_site"


def refuse(what: str, hint: str) -> NoReturn:
    """Such a container has no answer that is eager's.

    Raises:
        StagedNumberError: at the user's line.
    """
    raise StagedNumberError(
        f"{what} of a container whose keys or members are known only when the graph runs is asked for",
        hint=hint,
        location=running_location(),
    )


def refuse_of_one(owner: str, what: str, hint: str) -> NoReturn:
    """What is one of several by data, called ``owner``, has no answer that is eager's.

    Raises:
        SharedContainerError: at the user's line.
    """
    told = f"{what} of {owner} is asked for, and which one that is, is known only when the graph runs"
    raise SharedContainerError(told, hint=hint, location=running_location())


def note_value(owner: Any, value: Any) -> None:
    """A dict gets a value: lists have a form of their own, so that they may grow."""
    site = vars(owner).get(SITE)
    if site is not None and isinstance(value, list) and site not in plan().keyed_lists:
        plan().key_by_data(site, lists=True)


def take_over(values: Any) -> None:
    """The elements of a list are copied into the dict: who has the list may read it, but change it no more."""
    if is_reference(values):
        raise SharedContainerError(
            "a list is put into a dict with data-dependent keys, and is changed by another name, too",
            hint="put a copy into the dict: d[key] = list(row)",
            location=running_location(),
        )
    if not isinstance(values, list):
        refuse("another value than a list", "keep lists in it, and nothing else")
    if MODE.capture is not None and changeable(values):
        MODE.capture.aliases.object_is_shared(values)


def hand_out(row: Any, owner: Any) -> Any:
    """A list of the dict is in the hands of the code."""
    if MODE.capture is not None:
        MODE.capture.handed.setdefault(id(owner), []).append(weakref.ref(row))
    return row


def require_none_handed_out(owner: Any) -> None:
    """A list is taken out of the dict: whoever has it has a list that is none of the dict's from then on.

    Raises:
        StagedNumberError: somebody may have it.
    """
    if MODE.capture is not None and any(row() is not None for row in MODE.capture.handed.get(id(owner), ())):
        refuse("a list of its own, while the code has one,", "take a copy: row = list(d[key])")


def rows_in_order(elements: list[Any]) -> Iterator[Any]:
    """The elements for a display that takes all of them, ``[0, *found]``: rows of the graph are one part of them."""
    return iter(elements)


def watched_rows(elements: list[Any], row: Listed) -> Iterator[Any]:
    """The same of a list that may change meanwhile: Python would go on with what is in it then."""
    check = row.watch()

    def each() -> Iterator[Any]:
        for element in elements:
            check()
            yield element

    return each()


def watch(held: list[Any]) -> Callable[[], None]:
    """What refuses to go on with elements of what is ``held``, where that has changed since."""
    capture = MODE.capture
    if capture is None:
        return lambda: None
    before = capture.touches[id(held)]

    def check() -> None:
        if capture.touches[id(held)] != before:
            refuse("the next element of a list that has changed since the iteration began,", "iterate over a copy")

    return check


def converted(method: Callable[[], list[Any]]) -> list[Any]:
    """What a method returns, converted while a capture runs."""
    found: list[Any] = (method if MODE.capture is None else MODE.capture.call(method))()
    return found
