"""The structure that all elements of a list have in common: tensors and numbers, and containers of them.

The tensors and numbers of an element are its *cells*, in order; what is equal in all elements is a constant. So
a list of n elements is one tensor [n, ...] for each cell. An element may be one of several numbers, tensors without
dimensions and constants (*variants*): a cell then says which one.
"""

from __future__ import annotations

import dataclasses
import enum
import numbers
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

import torch

from dy2st.errors import DifferentDtypesError, DifferentRanksError, ListChangeError, StagingError
from dy2st.values.container_structure import open_container
from dy2st.values.describing import describe
from dy2st.values.dtype_provenance import Kind, add_lower_kinds, is_other, lower_kinds
from dy2st.values.number import DTYPES, Number, number_kind, number_tensor, promoted_dtype
from dy2st.values.references import (
    handle_of,
    is_reference,
    is_reference_class,
    note_list,
    qualified_name,
    refer_to,
    refer_to_lists,
    refer_to_objects_of,
)
from dy2st.values.tagged_union import MOST_CASES, TaggedUnion, cases_of, tag_of
from dy2st.values.undefined import UNSET


@dataclasses.dataclass(frozen=True)
class Cell:
    """A tensor of one dtype and rank (``kind`` None), or a number.

    ``lower``: what eager has among the elements in place of such a tensor, as in ``dtype_provenance``.
    """

    dtype: torch.dtype
    rank: int
    kind: type | None
    lower: frozenset[Kind] = dataclasses.field(default=frozenset(), compare=False)


@dataclasses.dataclass(frozen=True)
class Constant:
    """The same in all elements."""

    value: Any


@dataclasses.dataclass(frozen=True)
class Composite:
    """A container: tuple, list, dict, named tuple or dataclass."""

    children: tuple[Any, ...]
    build: Callable[[list[Any]], Any] = dataclasses.field(compare=False)
    signature: Any


@dataclasses.dataclass(frozen=True)
class Variants:
    """One of several numbers, tensors without dimensions, references and constants; ``tag`` says which one."""

    alternatives: tuple[Cell | Constant | Composite, ...]

    tag = Cell(torch.int64, 0, int)


Element = Cell | Constant | Composite | Variants


class UnlikeElementsError(Exception):
    """Elements have no common structure: ``what`` and ``hint`` say why not, ``kind`` is the error for the user.

    ``value`` is the one that can't be an element, if it is one; ``lists``: there are lists among them; ``holder`` is
    the class of the objects that hold them.
    """

    def __init__(
        self, what: str, hint: str, kind: type[StagingError] = ListChangeError, value: Any = None, lists: bool = False
    ) -> None:
        super().__init__(what)
        self.value = value
        self.lists = lists
        self.holder: Any = None
        self.what = what
        self.hint = hint
        self.kind = kind

    def refer(self) -> None:
        """Where there can be references to what is unlike, the attempt is begun anew."""
        refer_to(self.value)
        if isinstance(self.holder, type):
            refer_to_objects_of(self.holder)
        if self.lists:
            refer_to_lists()

    def refusal(self) -> StagingError:
        """The error for the user; if nobody catches it, the attempt is begun anew where there can be references."""
        return self.kind(self.what, hint=self.hint).or_else(self.refer)


def _is_member(value: Any) -> bool:
    """Whether a value is a member of an enumeration that equals no number."""
    return isinstance(value, enum.Enum) and not isinstance(value, numbers.Number)


def element_of(value: Any) -> Element:
    """The structure of one value; raises ``UnlikeElementsError`` for what can't be an element."""
    if isinstance(value, torch.Tensor):
        return Cell(value.dtype, value.dim(), None, lower_kinds(value))
    kind = number_kind(value)
    if kind is not None:
        return Cell(DTYPES[kind], 0, kind)
    if value is None or isinstance(value, (str, bytes, torch.dtype, torch.device)) or _is_member(value):
        return Constant(value)
    if isinstance(value, TaggedUnion):
        found = [element_of(case) for case in cases_of(value) if case is not UNSET]
        if len(found) == len(cases_of(value)) and all(map(_is_small, found)):
            return reduce(common, found)
    opened = open_container(value)
    note_list(value, () if opened is None else opened[0])
    if opened is None:
        raise UnlikeElementsError(
            f"a list of data-dependent length has an element that is {describe(value)}",
            "put tensors, numbers, or tuples and dataclasses of them into the list",
            value=value,
            lists=any(type(case) is list for case in cases_of(value)),
        )
    try:
        return Composite(tuple(element_of(child) for child in opened[0]), opened[1], opened[2])
    except UnlikeElementsError as unlike:
        unlike.lists = unlike.lists or type(value) is list
        raise


def common(a: Element, b: Element) -> Element:
    """The structure of both; raises ``UnlikeElementsError`` if there is none."""
    if isinstance(a, Composite) and isinstance(b, Composite) and a.signature == b.signature:
        try:
            children = tuple(common(x, y) for x, y in zip(a.children, b.children, strict=True))
        except UnlikeElementsError as unlike:
            unlike.holder = a.signature[0]
            raise
        return Composite(children, a.build, a.signature)
    if isinstance(a, Cell) and isinstance(b, Cell):
        try:
            return _common_cell(a, b)
        except UnlikeElementsError:
            if a.rank or b.rank:
                raise
    elif a == b:
        return a
    found = [*_alternatives(a), *_alternatives(b)]
    if not all(map(_is_small, found)):
        what, hint = "in their structure", "give all elements the same structure"
        lists = any(isinstance(each, Composite) and each.signature[0] is list for each in (a, b))
        what = f"a list of data-dependent length has elements that differ {what}"
        raise UnlikeElementsError(what, hint, lists=lists)
    return _variants(found)


def _is_small(element: Element) -> bool:
    """Whether it may be one of several: it has no sizes."""
    if isinstance(element, Composite):
        return is_reference_class(element.signature[0])
    return not (isinstance(element, Cell) and element.rank)


def _cell_of(alternative: Cell | Constant | Composite) -> Cell | None:
    """The cell of one of several: of a reference the handle, of a constant none."""
    if isinstance(alternative, Composite):
        (handle,) = cell_list(alternative)
        return handle
    return alternative if isinstance(alternative, Cell) else None


def _alternatives(element: Element) -> tuple[Any, ...]:
    return element.alternatives if isinstance(element, Variants) else (element,)


def _variants(found: Sequence[Cell | Constant | Composite]) -> Element:
    """One of these. Of each kind there is one, tensors come first, and a number that one of them holds is no other."""
    kept: dict[Any, Cell | Constant | Composite] = {}
    for each in sorted(found, key=_place):
        if isinstance(each, Constant):
            kept[type(each.value), each.value] = each
            continue
        if isinstance(each, Composite):
            kept[each.signature] = each
            continue
        for key, other in kept.items():
            try:
                kept[key] = _common_cell(other, each) if isinstance(other, Cell) else other
            except UnlikeElementsError:
                continue
            break
        else:
            kept[each.dtype, each.kind] = each
    if len(kept) > MOST_CASES:
        raise UnlikeElementsError(
            f"a list of data-dependent length has elements of {len(kept)} kinds: at most {MOST_CASES} are possible",
            "use numbers in place of names",
        )
    alternatives = tuple(kept.values())
    return alternatives[0] if len(alternatives) == 1 else Variants(alternatives)


def _place(each: Cell | Constant | Composite) -> tuple[Any, ...]:
    """An order of alternatives in which it does not matter which of them were met first."""
    if isinstance(each, Composite):
        return 3, qualified_name(each.signature[0]), ""
    if isinstance(each, Constant):
        return 2, type(each.value).__name__, str(each.value)
    return (0, str(each.dtype), "") if each.kind is None else (1, each.kind.__name__, "")


def _common_cell(a: Cell, b: Cell) -> Cell:
    if a == b:
        return dataclasses.replace(a, lower=a.lower | b.lower)
    same = "the elements of a list of data-dependent length"
    if a.kind is not None and b.kind is not None:
        names = f"{a.kind.__name__} and {b.kind.__name__}"
        raise UnlikeElementsError(f"{same} are {names}", "use numbers of one type (0.0 in place of 0)")
    if (a.kind is None) != (b.kind is None):
        tensor, number = (a, b) if a.kind is None else (b, a)
        like = torch.empty((), dtype=tensor.dtype, device="meta")
        assert number.kind is not None
        if tensor.rank == 0 and promoted_dtype(like, number.kind) is tensor.dtype:
            below = {number.kind} if is_other(number.kind, tensor.dtype) else set()
            return dataclasses.replace(tensor, lower=tensor.lower | below)
        raise UnlikeElementsError(f"{same} are tensors and numbers", "make the numbers tensors: torch.full(...)")
    if a.dtype is not b.dtype:
        raise UnlikeElementsError(f"{same} are {a.dtype} and {b.dtype}", "cast them alike", DifferentDtypesError)
    ranks = f"tensors with {a.rank} and {b.rank} dimensions"
    raise UnlikeElementsError(f"{same} are {ranks}", "reshape them alike", DifferentRanksError)


def cells(element: Element) -> list[Cell]:
    """The cells in order; at least one, which counts the elements if nothing differs between them."""
    return cell_list(element) or [Cell(torch.int64, 0, int)]


def cell_list(element: Element) -> list[Cell]:
    """The cells in order."""
    if isinstance(element, Cell):
        return [element]
    if isinstance(element, Composite):
        return [cell for child in element.children for cell in cell_list(child)]
    if isinstance(element, Variants):
        return [element.tag, *(cell for each in element.alternatives if (cell := _cell_of(each)) is not None)]
    return []


def cell_values(value: Any, element: Element) -> list[torch.Tensor]:
    """The cells of a value of this structure, as tensors of the cells' dtypes; traced."""
    return list(_cell_values(value, element)) or [torch.zeros((), dtype=torch.int64)]


def _cell_values(value: Any, element: Element) -> Iterator[torch.Tensor]:
    if isinstance(element, Composite):
        opened = open_container(value)
        assert opened is not None
        for child, inner in zip(opened[0], element.children, strict=True):
            yield from _cell_values(child, inner)
    elif isinstance(element, (Cell, Variants)):
        cases = [(element_of(case), case) for case in cases_of(value)]
        given = [(kind, None if isinstance(kind, Constant) else _tensor(case)) for kind, case in cases]
        tag = tag_of(value) if isinstance(value, TaggedUnion) else torch.zeros((), dtype=torch.int64)
        yield from _as_variants(tag, given, element)


def cell_shapes(value: Any, element: Element) -> list[tuple[Any, ...]]:
    """The shapes of the cells of a value of this structure."""
    if isinstance(element, Composite):
        opened = open_container(value)
        assert opened is not None
        pairs = zip(opened[0], element.children, strict=True)
        return [shape for child, inner in pairs for shape in cell_shapes(child, inner)]
    return [tuple(value.shape) if isinstance(value, torch.Tensor) and cell.rank else () for cell in cell_list(element)]


def pieces(element: Element) -> Iterator[Element]:
    """All that an element consists of, itself included."""
    yield element
    if isinstance(element, Composite):
        for child in element.children:
            yield from pieces(child)


def _tensor(value: Any) -> torch.Tensor:
    if is_reference(value):
        value = handle_of(value)
    return value if isinstance(value, torch.Tensor) else number_tensor(value)


def converted(columns: Sequence[torch.Tensor], element: Element, wanted: Element) -> list[torch.Tensor]:
    """The columns [n, ...] of elements of one structure as those of another that holds them, too; traced."""
    counter = columns[0].new_zeros(columns[0].shape[:1], dtype=torch.int64)
    return list(_converted(iter(columns), element, wanted, counter)) or [counter]


def _converted(
    columns: Iterator[torch.Tensor], element: Element, wanted: Element, counter: torch.Tensor
) -> Iterator[torch.Tensor]:
    if isinstance(element, Composite) and isinstance(wanted, Composite):
        for child, inner in zip(element.children, wanted.children, strict=True):
            yield from _converted(columns, child, inner, counter)
    elif isinstance(wanted, (Cell, Variants)):
        tag = next(columns) if isinstance(element, Variants) else counter
        kinds = _alternatives(element)
        yield from _as_variants(tag, [(k, next(columns) if _cell_of(k) else None) for k in kinds], wanted)


def _as_variants(
    tag: torch.Tensor, given: list[tuple[Any, torch.Tensor | None]], wanted: Cell | Variants
) -> Iterator[torch.Tensor]:
    """The cells of ``wanted`` for one of the ``given`` by ``tag``, which has the dimensions of each of these."""
    alternatives = _alternatives(wanted)
    places = [next(i for i, each in enumerate(alternatives) if _holds(each, kind)) for kind, _ in given]
    if isinstance(wanted, Variants):
        made = torch.full_like(tag, places[-1])
        for old, new in enumerate(places[:-1]):
            made = torch.where(tag == old, torch.full_like(tag, new), made)
        yield made
    for place, alternative in enumerate(alternatives):
        cell = _cell_of(alternative)
        if cell is not None:
            found: torch.Tensor | None = None
            for old, (_, value) in enumerate(given):
                if places[old] == place and value is not None:
                    cast = value if value.dtype is cell.dtype else value.to(cell.dtype)
                    found = cast if found is None else torch.where(tag == old, cast, found)
            yield torch.zeros_like(tag, dtype=cell.dtype) if found is None else found


def _holds(alternative: Cell | Constant | Composite, kind: Element) -> bool:
    """Whether a value of one kind can go on as another."""
    try:
        return common(alternative, kind) == alternative
    except UnlikeElementsError:
        return False


def assembled(element: Element, values: Iterator[torch.Tensor]) -> Any:
    """A value of this structure from its cells."""
    if isinstance(element, Cell):
        tensor = next(values)
        add_lower_kinds(tensor, element.lower)
        return tensor if element.kind is None else Number(tensor, element.kind)
    if isinstance(element, Composite):
        return element.build([assembled(child, values) for child in element.children])
    if isinstance(element, Variants):
        tag = next(values)
        return TaggedUnion(tag, [assembled(each, values) for each in element.alternatives])
    return element.value


def parts(value: Any) -> Iterator[Any]:
    """All tensors and containers that a value consists of, itself included."""
    if isinstance(value, TaggedUnion):
        for case in cases_of(value):
            yield from parts(case)
        return
    yield value
    opened = None if isinstance(value, torch.Tensor) else open_container(value)
    if opened is not None:
        for child in opened[0]:
            yield from parts(child)
