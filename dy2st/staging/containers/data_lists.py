"""Dicts of lists with data-dependent ints among their keys: one list of all elements, each beside its key.

    followers = defaultdict(list)
    for before, after in zip(tokens, tokens[1:]):
        followers[before].append(after)

The lists grow by themselves, so none of them has a length that the graph could know. What stands for one of them finds
its elements among all, and appends to all. Methods are converted like the user's code, as in ``data_keys``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dy2st.staging.containers.data_key_limits import (
    converted,
    hand_out,
    refuse,
    require_none_handed_out,
    take_over,
    watch,
    watched_rows,
)
from dy2st.staging.containers.data_keys import DataDict
from dy2st.staging.routes import AROUND
from dy2st.values.container_structure import Listed

AROUND.add(__file__)


class DataRow(Listed):
    """The list at one key of such a dict."""

    kind: type = list

    def __init__(self, owner: DataListDict, key: Any) -> None:
        self._owner = owner
        self._key = key

    def all(self) -> list[Any]:
        """Its elements, as they are now."""
        found = []
        for key, item in zip(self._owner._beside, self._owner._items, strict=False):
            if key == self._key:
                found.append(item)
        return found

    def listed(self) -> list[Any]:
        """The same, asked for by code that is not converted."""
        return converted(self.all)

    def append(self, item: Any) -> None:
        """As ``list.append``."""
        self._owner._beside.append(self._key)
        self._owner._items.append(item)

    def extend(self, items: Iterable[Any]) -> None:
        """As ``list.extend``."""
        for item in items:
            self._owner._beside.append(self._key)
            self._owner._items.append(item)

    def __iadd__(self, items: Iterable[Any]) -> DataRow:  # noqa: PYI034 - converted code has no annotations
        self.extend(items)
        return self

    def __len__(self) -> Any:
        return self._owner._beside.count(self._key)

    def __contains__(self, item: Any) -> Any:
        return item in self.all()

    def watch(self) -> Any:
        """Whoever goes over its elements has them as they were."""
        return watch(self._owner._items)

    def __iter__(self) -> Any:
        return watched_rows(self.all(), self)

    def __getitem__(self, place: Any) -> Any:
        return self.all()[place]

    def _places(self) -> list[int]:
        """Where its elements are among all."""
        found = []
        for place, key in enumerate(self._owner._beside):
            if key == self._key:
                found.append(place)
        return found

    def __setitem__(self, place: Any, item: Any) -> None:
        self._owner._items[self._places()[place]] = item

    def pop(self, place: Any = -1) -> Any:
        """As ``list.pop``."""
        among = self._places()[place]
        del self._owner._beside[among]
        return self._owner._items.pop(among)

    def remove(self, item: Any) -> None:
        """As ``list.remove``."""
        self.pop(self.all().index(item))

    def __add__(self, other: list[Any]) -> list[Any]:
        return [*self.all(), *other]

    def __radd__(self, other: list[Any]) -> list[Any]:
        return [*other, *self.all()]

    def copy(self) -> list[Any]:
        """As ``list.copy``."""
        return self.all()

    def index(self, item: Any) -> Any:
        """As ``list.index``."""
        return self.all().index(item)

    def count(self, item: Any) -> Any:
        """As ``list.count``."""
        return self.all().count(item)

    def __repr__(self) -> str:
        refuse("the text of a list", "print its length, or a tensor of it")

    def __eq__(self, other: object) -> bool:
        refuse("a comparison of a list", "compare lengths, or single elements")

    def __hash__(self) -> int:
        raise TypeError("unhashable type: 'list'")


class DataListDict(DataDict):
    """A ``dict`` or ``defaultdict`` whose values are lists."""

    def __init__(
        self, pairs: Iterable[tuple[Any, Any]] = (), kind: type = dict, factory: Callable[[], Any] | None = None
    ) -> None:
        self._keys = []
        self._beside: list[Any] = []
        self._items: list[Any] = []
        self.kind = kind
        self.default_factory = factory
        for key, value in pairs:
            self[key] = value

    def enter(self, key: Any, value: list[Any]) -> None:
        """A key that is not in the dict gets a list."""
        take_over(value)
        self._keys.append(key)
        for item in value:
            self._beside.append(key)
            self._items.append(item)

    def row(self, key: Any) -> DataRow:
        """The list at a key that is in the dict."""
        row = DataRow(self, key)
        hand_out(row, self)
        return row

    def __getitem__(self, key: Any) -> DataRow:
        if self.default_factory is None:
            if key not in self._keys:
                raise KeyError(key)
        elif key not in self._keys:
            self._keys.append(key)
        return self.row(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        take_over(value)
        if key in self._keys:
            self._drop(key)
        else:
            self._keys.append(key)
        for item in value:
            self._beside.append(key)
            self._items.append(item)

    def _drop(self, key: Any) -> None:
        require_none_handed_out(self)
        beside = []
        items = []
        for other, item in zip(self._beside, self._items, strict=False):
            if other != key:
                beside.append(other)
                items.append(item)
        self._beside = beside
        self._items = items

    def __delitem__(self, key: Any) -> None:
        if key not in self._keys:
            raise KeyError(key)
        self._keys.remove(key)
        self._drop(key)

    def clear(self) -> None:
        """As ``dict.clear``."""
        require_none_handed_out(self)
        self._keys.clear()
        self._beside.clear()
        self._items.clear()

    def _all_values(self) -> Any:
        return map(self.row, list(self._keys))

    def _all_items(self) -> Any:
        return map(self._pair, list(self._keys))

    def _pair(self, key: Any) -> tuple[Any, DataRow]:
        return key, self.row(key)

    def get(self, key: Any, default: Any = None) -> Any:
        """As ``dict.get``: a list to read."""
        if default is None:
            return self.row(key) if key in self._keys else None
        found = default
        if key in self._keys:
            found = DataRow(self, key).all()
        take_over(found)
        return found

    def setdefault(self, key: Any, default: Any = None) -> DataRow:
        """As ``dict.setdefault``, with a list."""
        take_over(default)
        if key not in self._keys:
            self._keys.append(key)
            for item in default:
                self._beside.append(key)
                self._items.append(item)
        return self.row(key)

    def pop(self, key: Any, *default: Any) -> Any:
        """As ``dict.pop``: the list is nobody else's then."""
        if not default:
            found = DataRow(self, self._present(key)).all()
            del self[key]
            return found
        found = default[0]
        if key in self._keys:
            found = DataRow(self, key).all()
            del self[key]
        return found

    def _present(self, key: Any) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return key

    def copy(self) -> Any:
        """As ``dict.copy``, which has the same lists."""
        refuse("a copy with the same lists", "copy the lists, too")

    def popitem(self) -> Any:
        """As ``dict.popitem``: the last."""
        if len(self._keys) == 0:
            raise KeyError("popitem(): dictionary is empty")
        key = self._keys[-1]
        return key, self.pop(key)
