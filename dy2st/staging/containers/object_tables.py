"""The objects of one class that a model makes, as a table: a list for each attribute, a place in it for each object.

    for box in boxes:
        track = nearest(tracks, box)
        if track is None: tracks.append(Track(box))
        else: track.update(box)

How many there are, and which one is changed, is known only when the graph runs. So a list of such objects has their
places, and a change is a store to the list of the attribute, which whoever else has the object sees. An attribute that
is a list itself is one of a dict of lists. Methods are converted like the user's code, as in ``data_keys``.
"""

from __future__ import annotations

from typing import Any

from dy2st.staging.containers.data_key_limits import refuse_of_one
from dy2st.staging.containers.data_lists import DataRow
from dy2st.staging.containers.dict_views import Viewed
from dy2st.staging.containers.reference_fields import listed_like, load_field, row_of, store_field
from dy2st.staging.routes import AROUND

AROUND.add(__file__)


class ObjectTable:
    """``columns`` has a list for each of the attributes ``names``, ``lists`` a dict of lists: all are empty.

    ``called`` is how a message calls the objects.
    """

    def __init__(self, called: str, names: tuple[str, ...], columns: dict[str, Any], lists: dict[str, Any]) -> None:
        self.names = names
        self.called = called
        self.columns = columns
        self.lists = lists
        self.count: list[int] = []

    def add(self, values: dict[str, Any]) -> int:
        """A new object with these attributes: its place."""
        place = len(self.count)
        self.count.append(0)
        for name, column in self.columns.items():
            column.append(values[name])
        for name, rows in self.lists.items():
            rows.enter(place, values[name])
        return place


class Record(Viewed):
    """A ``dict`` that always has the same keys, as a reference to its values in such a table."""

    kind: type = dict
    # The derived class has the table.
    _dy2st_table: ObjectTable

    def __getitem__(self, key: Any) -> Any:
        if key not in self._dy2st_table.names:
            raise KeyError(key)
        return load_field(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if key not in self._dy2st_table.names:
            refuse_of_one("a dict", "a new key", "give it all keys where it is made")
        store_field(self, key, value)

    def __delitem__(self, key: Any) -> None:
        refuse_of_one("a dict", "the deletion of a key", "keep the key, with a value that says that there is none")

    def __contains__(self, key: Any) -> Any:
        return key in self._dy2st_table.names

    def __len__(self) -> int:
        return len(self._dy2st_table.names)

    def __iter__(self) -> Any:
        return iter(self._dy2st_table.names)

    def listed(self) -> list[Any]:
        """Its keys."""
        return list(self._dy2st_table.names)

    def _all_keys(self) -> list[Any]:
        return self.listed()

    def _all_values(self) -> list[Any]:
        return [self[key] for key in self._dy2st_table.names]

    def _all_items(self) -> list[tuple[Any, Any]]:
        return [(key, self[key]) for key in self._dy2st_table.names]

    def get(self, key: Any, default: Any = None) -> Any:
        """As ``dict.get``."""
        return self[key] if key in self._dy2st_table.names else default

    def setdefault(self, key: Any, _: Any = None) -> Any:
        """As ``dict.setdefault``, of a key that there is."""
        if key not in self._dy2st_table.names:
            refuse_of_one("a dict", "a new key", "give it all keys where it is made")
        return self[key]

    def pop(self, key: Any, *default: Any) -> Any:
        """As ``dict.pop``, of a key that there is not."""
        if key in self._dy2st_table.names or not default:
            refuse_of_one("a dict", "the deletion of a key", "keep the key, with a value that says that there is none")
        return default[0]

    def copy(self) -> dict[Any, Any]:
        """As ``dict.copy``."""
        return {key: self[key] for key in self._dy2st_table.names}

    def __repr__(self) -> str:
        refuse_of_one("a dict", "the text", "print single values")

    def __eq__(self, other: object) -> bool:
        refuse_of_one("a dict", "a comparison", "compare single values")

    def __hash__(self) -> int:
        raise TypeError("unhashable type: 'dict'")


class ReferredList(DataRow):
    """A ``list``, as a reference to its elements in such a table."""

    @property
    def _owner(self) -> Any:  # type: ignore[override]
        return row_of(self)[0]

    @property
    def _key(self) -> Any:
        return row_of(self)[1]

    def __getitem__(self, place: Any) -> Any:
        found = self.all()[place]
        return listed_like(self, [*found]) if isinstance(place, slice) else found

    def __add__(self, other: Any) -> Any:
        return listed_like(self, [*self.all(), *other])

    def __radd__(self, other: Any) -> Any:
        return listed_like(self, [*other, *self.all()])

    def copy(self) -> Any:
        """As ``list.copy``."""
        return listed_like(self, self.all())
