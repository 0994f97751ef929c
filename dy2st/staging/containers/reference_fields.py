"""Loads and stores of the fields of a reference: in the table of its class, at its handle.

There always is such a row, so that nothing is to be tested. This is not converted: code there asks for it.
"""

from __future__ import annotations

from typing import Any

from dy2st.errors import StagingError
from dy2st.source.user_frames import running_location
from dy2st.staging.containers import lists
from dy2st.staging.containers.data_key_limits import hand_out
from dy2st.staging.session import MODE
from dy2st.values.journal import Slot
from dy2st.values.plain_objects import TABLE
from dy2st.values.references import handle_of, refer, table_of


def load_field(owner: Any, name: str) -> Any:
    """The value of a field."""
    capture, table, handle = MODE.capture, table_of(owner), handle_of(owner)
    assert capture is not None
    if name in table.lists:
        return capture.call(table.lists[name].row)(handle)
    return lists.load(capture, table.columns[name], handle, sure=True)


def store_field(owner: Any, name: str, value: Any) -> None:
    """Another value for it."""
    capture, table, handle = MODE.capture, table_of(owner), handle_of(owner)
    assert capture is not None
    if name in table.lists:
        capture.call(table.lists[name].__setitem__)(handle, value)
        return
    column = table.columns[name]
    capture.touch(Slot.of("content", column))
    try:
        lists.store(capture, column, handle, value, sure=True)
    except StagingError as refused:
        what = f"{name!r} of {table.called} is not always of one kind: {refused.what}"
        error = type(refused)(what, hint=refused.hint, location=running_location())
        raise error.or_else(refused.otherwise) from None


# The one attribute of a list.
ITEMS = "items"


def listed_anew(kind: type, values: list[Any]) -> Any:
    """A reference to a new list with these elements."""
    capture = MODE.capture
    assert capture is not None
    table = vars(kind)[TABLE]
    made = refer(kind, capture.call(table.add)({ITEMS: values}))
    return hand_out(made, table.lists[ITEMS])


def listed_like(owner: Any, values: list[Any]) -> Any:
    """As another list."""
    return listed_anew(type(owner), values)


def row_of(owner: Any) -> tuple[Any, Any]:
    """The dict of lists that a reference to a list is one of, and its key."""
    return table_of(owner).lists[ITEMS], handle_of(owner)
