"""Dicts and sets with data-dependent ints among their keys, as lists of keys and values, in the order of insertion.

    seen = set()
    for token in ids.tolist():
        if token in seen: continue
        seen.add(token)

Python's own have no place for a key that is known only when the graph runs. So a container that meets one is made anew
as one of these, where it is made in the code (:meth:`dy2st.plan.Plan.key_by_data`). Their methods are converted like
the user's code: what is done by path in them is a branch at the line that calls them.

A set of ints has an order that depends on its history. What asks for that is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

from dy2st.staging.containers.data_key_limits import note_value, refuse, rows_in_order
from dy2st.staging.containers.dict_views import Viewed
from dy2st.staging.routes import AROUND
from dy2st.values.container_structure import Listed

AROUND.add(__file__)


class DataKeyed(Listed):
    """What is common to them; ``kind`` is the class that eager has."""

    kind: type = dict

    def __len__(self) -> Any:
        return len(self._keys)

    def __contains__(self, key: Any) -> Any:
        return key in self._keys

    def __repr__(self) -> str:
        refuse("the text", "print its length, or a tensor of its keys")

    def __eq__(self, other: object) -> bool:
        refuse("a comparison", "compare what is needed of it: lengths, or single values")

    def __hash__(self) -> int:
        raise TypeError(f"unhashable type: '{self.kind.__name__}'")

    def __init__(self) -> None:
        self._keys: list[Any] = []

    def clear(self) -> None:
        """As ``dict.clear`` and ``set.clear``."""
        self._keys.clear()


class DataDict(DataKeyed, Viewed):
    """A ``dict``."""

    def __init__(self, pairs: Iterable[tuple[Any, Any]] = (), kind: type = dict) -> None:
        self._keys = []
        self._values: list[Any] = []
        self.kind = kind
        for key, value in pairs:
            self[key] = value

    def __iter__(self) -> Any:
        return rows_in_order(self._keys)

    def listed(self) -> list[Any]:
        """Its keys."""
        return self._keys

    def __getitem__(self, key: Any) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return self._values[self._keys.index(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        note_value(self, value)
        if key in self._keys:
            self._values[self._keys.index(key)] = value
        else:
            self._keys.append(key)
            self._values.append(value)

    def __delitem__(self, key: Any) -> None:
        if key not in self._keys:
            raise KeyError(key)
        place = self._keys.index(key)
        del self._keys[place]
        del self._values[place]

    def clear(self) -> None:
        """As ``dict.clear``."""
        self._keys.clear()
        self._values.clear()

    def _all_keys(self) -> list[Any]:
        return list(self._keys)

    def _all_values(self) -> list[Any]:
        return list(self._values)

    def _all_items(self) -> list[Any]:
        return list(zip(self._keys, self._values, strict=False))

    def get(self, key: Any, default: Any = None) -> Any:
        """As ``dict.get``."""
        return self._values[self._keys.index(key)] if key in self._keys else default

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """As ``dict.setdefault``."""
        note_value(self, default)
        if key not in self._keys:
            self._keys.append(key)
            self._values.append(default)
        return self._values[self._keys.index(key)]

    def pop(self, key: Any, *default: Any) -> Any:
        """As ``dict.pop``."""
        if default:
            found = default[0]
            if key in self._keys:
                found = self._values[self._keys.index(key)]
                del self[key]
            return found
        found = self[key]
        del self[key]
        return found

    def copy(self) -> DataDict:
        """As ``dict.copy``."""
        return DataDict(self.items(), self.kind)

    def popitem(self) -> tuple[Any, Any]:
        """As ``dict.popitem``: the last."""
        if len(self._keys) == 0:
            raise KeyError("popitem(): dictionary is empty")
        return self._keys.pop(), self._values.pop()


class DataOrderedDict(DataDict):
    """An ``OrderedDict``: a key may be moved, and the first one taken."""

    def move_to_end(self, key: Any, last: bool = True) -> None:
        """As ``OrderedDict.move_to_end``."""
        value = self.pop(key)
        if last:
            self._keys.append(key)
            self._values.append(value)
        else:
            self._keys.insert(0, key)
            self._values.insert(0, value)

    def popitem(self, last: bool = True) -> tuple[Any, Any]:
        """As ``OrderedDict.popitem``."""
        if len(self._keys) == 0:
            raise KeyError("dictionary is empty")
        place = -1 if last else 0
        return self._keys.pop(place), self._values.pop(place)

    def copy(self) -> DataOrderedDict:
        """As ``OrderedDict.copy``."""
        return DataOrderedDict(self.items(), self.kind)


class DataDefaultDict(DataDict):
    """A ``defaultdict``."""

    def __init__(self, default_factory: Callable[[], Any] | None, pairs: Iterable[tuple[Any, Any]], kind: type) -> None:
        self._keys = []
        self._values = []
        self.kind = kind
        self.default_factory = default_factory
        for key, value in pairs:
            self[key] = value

    def __getitem__(self, key: Any) -> Any:
        if self.default_factory is None:
            if key not in self._keys:
                raise KeyError(key)
        elif key not in self._keys:
            value = self.default_factory()
            note_value(self, value)
            self._keys.append(key)
            self._values.append(value)
        return self._values[self._keys.index(key)]

    def copy(self) -> DataDefaultDict:
        """As ``defaultdict.copy``."""
        return DataDefaultDict(self.default_factory, self.items(), self.kind)


class DataCounter(DataDict):
    """A ``Counter``."""

    def __getitem__(self, key: Any) -> Any:
        return self.get(key, 0)

    def update(self, other: Any = (), **named: Any) -> None:
        """As ``Counter.update``: it adds."""
        if hasattr(other, "items"):
            for key, count in other.items():
                self[key] = self[key] + count
        else:
            for key in other:
                self[key] = self[key] + 1
        for name, count in named.items():
            self[name] = self[name] + count

    def __delitem__(self, key: Any) -> None:
        if key in self._keys:
            place = self._keys.index(key)
            del self._keys[place]
            del self._values[place]

    def copy(self) -> DataCounter:
        """As ``Counter.copy``."""
        return DataCounter(self.items(), self.kind)

    def total(self) -> Any:
        """As ``Counter.total``."""
        return sum(self._values)

    def most_common(self, n: int | None = None) -> Any:
        """As ``Counter.most_common``: equal counts in the order of insertion."""
        ordered = sorted(self.items(), key=lambda pair: pair[1], reverse=True)
        return ordered if n is None else ordered[:n]


class DataSet(DataKeyed):
    """A ``set``."""

    kind = set

    def __init__(self, members: Iterable[Any] = ()) -> None:
        self._keys = []
        for each in members:
            self.add(each)

    def __iter__(self) -> Any:
        refuse("the order", "sort it: for member in sorted(members)")

    def listed(self) -> list[Any]:
        """It has no order that is eager's."""
        refuse("the order", "sort it: for member in sorted(members)")

    def add(self, member: Any) -> None:
        """As ``set.add``."""
        if member not in self._keys:
            self._keys.append(member)

    def discard(self, member: Any) -> None:
        """As ``set.discard``."""
        if member in self._keys:
            self._keys.remove(member)

    def remove(self, member: Any) -> None:
        """As ``set.remove``."""
        if member not in self._keys:
            raise KeyError(member)
        self._keys.remove(member)

    def pop(self) -> Any:
        """As ``set.pop``, which takes any."""
        refuse("an arbitrary member", "take the least: min(members)")

    def update(self, *others: Any) -> None:
        """As ``set.update``."""
        for other in others:
            for member in members_of(other):
                self.add(member)

    def copy(self) -> DataSet:
        """As ``set.copy``."""
        return DataSet(self._keys)

    def union(self, *others: Any) -> DataSet:
        """As ``set.union``."""
        made = self.copy()
        made.update(*others)
        return made

    def intersection(self, *others: Any) -> DataSet:
        """As ``set.intersection``."""
        found = self
        for other in others:
            both = DataSet()
            for member in found._keys:
                if member in other:
                    both.add(member)
            found = both
        return found if others else self.copy()

    def difference(self, *others: Any) -> DataSet:
        """As ``set.difference``."""
        found = self.copy()
        for other in others:
            for member in members_of(other):
                found.discard(member)
        return found

    def symmetric_difference(self, other: Any) -> DataSet:
        """As ``set.symmetric_difference``."""
        return self.difference(other).union(DataSet(members_of(other)).difference(self))

    def issubset(self, other: Any) -> Any:
        """As ``set.issubset``."""
        return all(member in other for member in self._keys)

    def issuperset(self, other: Any) -> Any:
        """As ``set.issuperset``."""
        return all(member in self._keys for member in members_of(other))

    def isdisjoint(self, other: Any) -> Any:
        """As ``set.isdisjoint``."""
        return not any(member in other for member in self._keys)

    def __or__(self, other: Any) -> DataSet:
        return self.union(other)

    def __and__(self, other: Any) -> DataSet:
        return self.intersection(other)

    def __sub__(self, other: Any) -> DataSet:
        return self.difference(other)

    def __xor__(self, other: Any) -> DataSet:
        return self.symmetric_difference(other)

    def __ror__(self, other: Any) -> DataSet:
        return DataSet(other).union(self)

    def __rand__(self, other: Any) -> DataSet:
        return self.intersection(other)

    def __rsub__(self, other: Any) -> DataSet:
        return DataSet(other).difference(self)

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self

    def __isub__(self, other: Any) -> Self:
        for member in members_of(other):
            self.discard(member)
        return self

    def __le__(self, other: Any) -> Any:
        return self.issubset(other)

    def __ge__(self, other: Any) -> Any:
        return self.issuperset(other)


def members_of(given: Any) -> Any:
    """What is in an iterable, in some order."""
    return given._keys if isinstance(given, DataSet) else given
