"""Containers as the end of an arm leaves them.

The stores of an arm are undone at its end, so that the next one starts from the same state. A variable may then hold a
list that the arm has changed, and that the other arm has replaced by another: they are joined as what each arm made of
them, not as what the list was before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dy2st.values.container_structure import is_record, items_of, open_alike, open_container, record_like
from dy2st.values.journal import Slot
from dy2st.values.plain_objects import is_plain, plain_objects
from dy2st.values.tagged_union import TaggedUnion, cases_of, tag_of
from dy2st.values.undefined import UNSET


class Ends:
    """What two sides' stores say of the containers that their values hold."""

    def __init__(self, a: Mapping[Slot, Any], b: Mapping[Slot, Any]) -> None:
        self.stores = tuple(_by_owner(side) for side in (a, b))
        # By identity, a container as an end has left it and the container itself, which it stands for.
        self.copies: dict[int, tuple[Any, Any]] = {}

    def pair(self, a: Any, b: Any) -> tuple[Any, Any]:
        """Two values at the ends; one object on both sides is itself, and what is stored in it joined by itself."""
        if a is b or not any(self.stores):
            return a, b
        beside = open_alike(a, b) is not None
        left, right = self._shallow(a, 0, beside=beside), self._shallow(b, 1, beside=beside)
        opened = open_alike(left, right)
        if opened is None:
            return self.value(a, 0), self.value(b, 1)
        opened_a, opened_b = opened
        pairs = [self.pair(x, y) for x, y in zip(opened_a[0], opened_b[0], strict=True)]
        return (
            self._made(a, left, opened_a, [x for x, _ in pairs]),
            self._made(b, right, opened_b, [y for _, y in pairs]),
        )

    def value(self, value: Any, side: int) -> Any:
        """One side's value at its end."""
        if not self.stores[side]:
            return value
        if isinstance(value, TaggedUnion):
            cases = [self.value(case, side) for case in cases_of(value)]
            same = all(new is old for new, old in zip(cases, cases_of(value), strict=True))
            return value if same else TaggedUnion(tag_of(value), cases)
        shallow = self._shallow(value, side)
        opened = open_container(shallow)
        if opened is None:
            return value
        return self._made(value, shallow, opened, [self.value(child, side) for child in opened[0]])

    def _shallow(self, value: Any, side: int, *, beside: bool = False) -> Any:
        """``value``, or a copy with what the side has stored in it; ``beside`` something that can be taken apart."""
        stored = self.stores[side].get(id(value))
        if stored is None:
            return value
        if is_record(value):
            attributes = vars(value) | {name: part for name, part in stored.items() if name}
            return record_like(value, attributes, stored.get("", items_of(value)))
        if "" in stored:
            content = stored[""]
            # What can't be opened, such as a defaultdict, is never joined with another one.
            return value if open_container(value) is None else type(value)(content)
        if beside and is_plain(value):
            children, build, _ = plain_objects().opened(value)
            made = build(children)
            for name, part in stored.items():
                object.__setattr__(made, name, part)
                if part is UNSET:
                    object.__delattr__(made, name)
            return made
        opened = open_container(value)
        if opened is None or not isinstance(opened[2][1], tuple):
            return value
        children, build, (_, names) = opened
        return build([stored.get(name, child) for name, child in zip(names, children, strict=True)])

    def _made(self, value: Any, shallow: Any, opened: Any, children: list[Any]) -> Any:
        if shallow is value and all(new is old for new, old in zip(children, opened[0], strict=True)):
            return value
        made = opened[1](children)
        self.copies[id(made)] = made, value
        return made


def _by_owner(stores: Mapping[Slot, Any]) -> dict[int, dict[str, Any]]:
    """What is stored, by the owner's identity: values by attribute, a container's content under no name."""
    found: dict[int, dict[str, Any]] = {}
    for slot, value in stores.items():
        if slot.kind in ("content", "attribute"):
            found.setdefault(slot.identity, {})[slot.name] = value
    return found
