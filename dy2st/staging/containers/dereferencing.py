"""What a model returns, without references: each as an object, dict or list with its fields as they are at the end.

Rows of references become rows of their fields, gathered from the table at once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import torch

from dy2st.errors import DifferentStructureError
from dy2st.staging.containers import lists
from dy2st.staging.containers.data_lists import DataRow
from dy2st.staging.containers.object_tables import Record
from dy2st.staging.containers.reference_fields import load_field
from dy2st.tracing.row_reads import rows_at
from dy2st.values.container_structure import open_container
from dy2st.values.elements import Composite, Element, Variants, cell_list, pieces
from dy2st.values.plain_objects import TABLE
from dy2st.values.references import class_behind, is_reference, is_reference_class, table_of
from dy2st.values.stacked_list import StackedList
from dy2st.values.tagged_union import TaggedUnion, cases_of, tag_of


def dereferenced(value: Any, inside: frozenset[type] = frozenset()) -> Any:
    """A value without references; ``inside`` are the classes of references that hold it.

    Raises:
        DifferentStructureError: what an object of a list holds has no place in rows, or leads to others of its class.
    """
    if is_reference(value):
        return _dereferenced(value, inside)
    if isinstance(value, DataRow):
        return [dereferenced(each, inside) for each in value.listed()]
    if isinstance(value, StackedList):
        return _rows(value)
    if isinstance(value, TaggedUnion):
        cases = [dereferenced(case, inside) for case in cases_of(value)]
        same = all(new is old for new, old in zip(cases, cases_of(value), strict=True))
        return value if same else TaggedUnion(tag_of(value), cases)
    if not isinstance(value, (list, tuple, dict)):
        return value
    opened = open_container(value)
    if opened is None:
        return value
    parts = [dereferenced(part, inside) for part in opened[0]]
    same = all(new is old for new, old in zip(parts, opened[0], strict=True))
    return value if same else opened[1](parts)


def _dereferenced(value: Any, inside: frozenset[type]) -> Any:
    if type(value) in inside:
        raise DifferentStructureError(
            f"an object is returned that leads to others of its class, {class_behind(value).__name__}: how many is"
            " data-dependent",
            hint="return a list of what is wanted of each",
        )
    inside |= {type(value)}
    if isinstance(value, DataRow):
        return [dereferenced(each, inside) for each in value.listed()]
    fields = {name: dereferenced(load_field(value, name), inside) for name in table_of(value).names}
    if isinstance(value, Record):
        return fields
    made: Any = object.__new__(class_behind(value))
    for name, field in fields.items():
        object.__setattr__(made, name, field)
    return made


def _rows(rows: StackedList) -> StackedList:
    kinds = [each.signature[0] for each in _all_pieces(rows.element) if isinstance(each, Composite)]
    if not any(map(is_reference_class, kinds)):
        return rows
    columns, element = _fields(rows.element, iter(rows.columns))
    return StackedList(columns or [torch.zeros(rows.length, dtype=torch.int64)], element)


def _all_pieces(element: Element) -> Iterator[Element]:
    for each in pieces(element):
        yield each
        if isinstance(each, Variants):
            yield from each.alternatives


def _fields(element: Element, columns: Iterator[torch.Tensor]) -> tuple[list[torch.Tensor], Element]:
    """Columns of elements, and their structure, with the fields of references in place of these."""
    if isinstance(element, Variants):
        if any(isinstance(each, Composite) for each in element.alternatives):
            raise _no_rows("an object or None, by path")
        return [next(columns) for _ in cell_list(element)], element
    if not isinstance(element, Composite):
        return [next(columns) for _ in cell_list(element)], element
    kind = element.signature[0]
    if not is_reference_class(kind):
        found = [_fields(child, columns) for child in element.children]
        children = tuple(child for _, child in found)
        return [column for own, _ in found for column in own], Composite(children, element.build, element.signature)
    (places,), table = [next(columns) for _ in cell_list(element)], vars(kind)[TABLE]
    if table.lists:
        raise _no_rows("lists of their own lengths")
    columns_of: list[torch.Tensor] = []
    children_of: list[Element] = []
    made = _like(kind, table.names)
    names = made if isinstance(made, dict) else [each.name for each in dataclasses.fields(made)]
    for name in names:
        whole = lists.whole(table.columns[name])
        own, child = _fields(whole.element, iter([rows_at(column, places) for column in whole.columns]))
        columns_of += own
        children_of.append(child)
    opened = open_container(made)
    assert opened is not None
    return columns_of, Composite(tuple(children_of), opened[1], opened[2])


def _like(kind: type, names: tuple[str, ...]) -> Any:
    """A dict with these keys, or a dataclass with these fields."""
    if issubclass(kind, Record):
        return dict.fromkeys(names)
    cls: Any = kind.__mro__[1]
    if dataclasses.is_dataclass(cls) and {each.name for each in dataclasses.fields(cls)} == set(names):
        made: Any = object.__new__(cls)  # type: ignore[arg-type]
        for name in names:
            object.__setattr__(made, name, None)
        return made
    raise _no_rows(f"objects of class {kind.__mro__[1].__name__}")


def _no_rows(what: str) -> DifferentStructureError:
    return DifferentStructureError(
        f"a list of data-dependent length is returned, and its elements hold {what}",
        hint="return lists of tensors and numbers: [track.box for track in tracks]",
    )
