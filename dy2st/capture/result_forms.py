"""What a model returns that is not the same number of tensors in each call: lists that grow, ``None`` by path, texts.

A program gives tensors. So a list of data-dependent length is a tensor of its elements for each part that they have,
and a value that is one of several is its tag and the tensors that it may be. ``ListForm`` and ``CaseForm`` hold these,
and torch's pytree knows them: where a program runs, they come out as the list, the tensor, the text or ``None``; where
it is traced or described, they stay what they are.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.capture.result_parts import fields_as_dicts
from dy2st.errors import UnsavableError
from dy2st.values.container_structure import Keys
from dy2st.values.describing import article
from dy2st.values.elements import Cell, Composite, Constant, Element

# A case that has no tensor of its own stands for a constant.
ABSENT = -1


class ListForm:
    """A list whose length is data-dependent: ``columns`` has a tensor [n, ...] for each cell of its elements.

    If it is ``uneven``, these are the sizes of its tensors, int64 [n, rank], and all their numbers in one row.
    """

    def __init__(self, columns: Sequence[Any], element: Element, kind: type, uneven: bool = False) -> None:
        self.columns = list(columns)
        self.element = element
        self.kind = kind
        self.uneven = uneven

    def value(self) -> Any:
        """The list; the tensors of its elements share no memory."""
        if self.uneven:
            sizes, flat = self.columns
            pieces = flat.clone().split(sizes.prod(1).tolist()) if len(sizes) else []
            return self.kind([piece.reshape(size) for piece, size in zip(pieces, sizes.tolist(), strict=True)])
        cells = [iter(column.clone().unbind(0)) for column in self.columns]
        count = int(self.columns[0].shape[0])
        return self.kind([_element(self.element, iter([next(cell) for cell in cells])) for _ in range(count)])


class CaseForm:
    """A value that is one of several: ``tag`` is a 0-d int64 tensor.

    For each tag, ``places`` says which of ``values`` it is, or ``ABSENT``; then it is that of ``constants``, a text or
    ``None``.
    """

    def __init__(self, tag: Any, values: Sequence[Any], places: Sequence[int], constants: Sequence[Any]) -> None:
        self.tag = tag
        self.values = list(values)
        self.places = tuple(places)
        self.constants = tuple(constants)

    def value(self) -> Any:
        """The one that it is."""
        tag = int(self.tag)
        return self.constants[tag] if self.places[tag] == ABSENT else self.values[self.places[tag]]


Form = ListForm | CaseForm
FORMS = (ListForm, CaseForm)


def _element(element: Element, cells: Any) -> Any:
    if isinstance(element, Cell):
        tensor = next(cells)
        return tensor if element.kind is None else element.kind(tensor)
    if isinstance(element, Composite):
        return element.build([_element(child, cells) for child in element.children])
    assert isinstance(element, Constant), "no list of several kinds has a form"
    return element.value


def cell_places(element: Element) -> list[str]:
    """Where each cell of an element is in it, as torch's pytree names it: ``[0]``, ``['score']``, ``.score``."""
    numbers = iter(range(len(cells_of(element))))
    marked = fields_as_dicts(_marked(element, numbers))
    paths = {leaf: pytree.keystr(path) for path, leaf in pytree.tree_flatten_with_path(marked)[0]}
    return [paths[number] for number in sorted(paths) if isinstance(number, int)]


def _marked(element: Element, numbers: Any) -> Any:
    if isinstance(element, Cell):
        return next(numbers)
    if isinstance(element, Composite):
        return element.build([_marked(child, numbers) for child in element.children])
    return None


def cells_of(element: Element) -> list[Cell]:
    """The cells of an element, in order."""
    if isinstance(element, Composite):
        return [cell for child in element.children for cell in cells_of(child)]
    return [element] if isinstance(element, Cell) else []


# ---- as torch's pytree knows them


def _is_computed(leaf: Any) -> bool:
    """Whether a leaf is a tensor with values: a program runs."""
    return type(leaf) is torch.Tensor


def _list_parts(form: ListForm) -> tuple[list[Any], tuple[Element, type, bool]]:
    return form.columns, (form.element, form.kind, form.uneven)


def _list_of(leaves: Any, context: tuple[Element, type, bool]) -> Any:
    columns = list(leaves)
    form = ListForm(columns, *context)
    return form.value() if _is_computed(columns[0]) else form


def _case_parts(form: CaseForm) -> tuple[list[Any], tuple[tuple[int, ...], tuple[Any, ...]]]:
    return [form.tag, *form.values], (form.places, form.constants)


def _case_of(leaves: Any, context: tuple[tuple[int, ...], tuple[Any, ...]]) -> Any:
    tag, *values = leaves
    form = CaseForm(tag, values, *context)
    return form.value() if _is_computed(tag) else form


def _numbered(parts: Callable[[Any], tuple[list[Any], Any]]) -> Callable[[Any], Any]:
    """The children with keys: their numbers."""

    def keyed(form: Any) -> Any:
        children, context = parts(form)
        return [(pytree.SequenceKey(number), child) for number, child in enumerate(children)], context

    return keyed


def _list_context_as_json(context: tuple[Element, type, bool]) -> Any:
    element, kind, uneven = context
    return [_element_as_json(element), kind.__name__, uneven]


def _list_context_of_json(told: Any) -> tuple[Element, type, bool]:
    return _element_of_json(told[0]), {"list": list, "tuple": tuple, "deque": collections.deque}[told[1]], told[2]


def _element_as_json(element: Element) -> Any:
    if isinstance(element, Cell):
        return [str(element.dtype).removeprefix("torch."), element.rank, element.kind and element.kind.__name__]
    if isinstance(element, Constant):
        return {"value": element.value}
    assert isinstance(element, Composite), "no list of several kinds has a form"
    kind = element.signature[0]
    children = [_element_as_json(child) for child in element.children]
    if kind is dict:
        return {"dict": [[*pair] for pair in zip(element.signature[1].order, children, strict=True)]}
    if kind not in (list, tuple):
        raise UnsavableError(
            f"the program returns a list of data-dependent length whose elements are {article(kind.__name__)}",
            hint="return a list of tensors, numbers, tuples, lists or dicts",
        )
    return {kind.__name__: children}


def _element_of_json(told: Any) -> Element:
    if isinstance(told, list):
        kinds: dict[str | None, type | None] = {"bool": bool, "int": int, "float": float, None: None}
        return Cell(getattr(torch, told[0]), told[1], kinds[told[2]])
    ((kind, content),) = told.items()
    if kind == "value":
        return Constant(content)
    if kind == "dict":
        keys = [key for key, _ in content]
        children = tuple(_element_of_json(child) for _, child in content)
        return Composite(children, lambda made: dict(zip(keys, made, strict=True)), (dict, Keys(tuple(keys))))
    make = {"list": list, "tuple": tuple}[kind]
    return Composite(tuple(map(_element_of_json, content)), make, (make, len(content)))


def described(form: Form) -> tuple[list[Any], Any]:
    """The tensors and numbers that a form holds, and the rest of it as JSON."""
    if isinstance(form, ListForm):
        parts, about = _list_parts(form)
        return parts, _list_context_as_json(about)
    values, (places, constants) = _case_parts(form)
    return values, [list(places), list(constants)]


def made_as_described(told: Any, count: int, *, is_list: bool) -> Callable[[list[Any]], Form]:
    """A function that makes a form of ``count`` parts and what ``described`` has said of it.

    Raises:
        ValueError: that is not what it says (or another error of Python's).
    """
    if is_list:
        element, kind, uneven = _list_context_of_json(told)
        if count != (2 if uneven else len(cells_of(element))) or not count:
            raise ValueError(count)
        return lambda parts: ListForm(parts, element, kind, uneven)
    places, constants = told
    known = all(type(place) is int and ABSENT <= place < count - 1 for place in places)
    if not known or len(places) != len(constants) or any(not isinstance(each, str | None) for each in constants):
        raise ValueError(told)
    return lambda parts: CaseForm(parts[0], parts[1:], places, constants)


pytree.register_pytree_node(
    ListForm,
    _list_parts,
    _list_of,
    serialized_type_name="dy2st.ListForm",
    flatten_with_keys_fn=_numbered(_list_parts),
    to_dumpable_context=_list_context_as_json,
    from_dumpable_context=_list_context_of_json,
)
pytree.register_pytree_node(
    CaseForm,
    _case_parts,
    _case_of,
    serialized_type_name="dy2st.CaseForm",
    flatten_with_keys_fn=_numbered(_case_parts),
    to_dumpable_context=lambda context: [list(context[0]), list(context[1])],
    from_dumpable_context=lambda told: (tuple(told[0]), tuple(told[1])),
)
