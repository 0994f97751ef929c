"""Lists of data-dependent length: one element of the list stands for all the rows of some tensors.

The list object stays the user's own (aliases see it grow and shrink); torch functions that take lists of tensors,
``len``, indexing and iteration in converted code know what the element stands for.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from functools import reduce
from typing import Any

import torch

from dy2st.errors import GrownListError, ListChangeError
from dy2st.tracing.tracer import same_size
from dy2st.values import uneven_rows
from dy2st.values.elements import (
    Cell,
    Element,
    UnlikeElementsError,
    Variants,
    assembled,
    cell_values,
    cells,
    common,
    converted,
    element_of,
)
from dy2st.values.number import number_tensor
from dy2st.values.staged_text import UNKNOWN, text


class StackedList:
    """n elements of a list: for each cell of their common structure ``element`` a tensor [n, ...].

    Tensors of several sizes are ``uneven``: their sizes as int64 [n, rank], and all their numbers in one row. Such a
    list can be returned, and its length taken. If only the first of the sizes differs, ``rest`` are the others: one
    can be picked, and ``torch.cat``, ``torch.stack`` and ``pad_sequence`` put them together.
    """

    def __init__(
        self,
        columns: Sequence[torch.Tensor],
        element: Element,
        *,
        uneven: bool = False,
        rest: tuple[Any, ...] | None = None,
    ) -> None:
        self.held = list(columns)
        self.element = element
        self.uneven = uneven
        self.rest = rest

    def __deepcopy__(self, memo: dict[int, Any]) -> StackedList:
        copies = [column.clone() for column in self.held]
        return StackedList(copies, self.element, uneven=self.uneven, rest=self.rest)

    @property
    def columns(self) -> list[torch.Tensor]:
        """The elements' cells as tensors [n, ...]; raises ``ListChangeError`` where their sizes are uneven."""
        if self.uneven:
            raise ListChangeError(
                "a list of tensors whose size may differ from one iteration to the next is used otherwise than to be "
                "returned",
                hint="pad them to one size, or collect them in one tensor: found = torch.cat([found, piece])",
            )
        return self.held

    @property
    def length(self) -> Any:
        """How many elements: int or symbolic int."""
        return self.held[0].shape[0] if len(self.held) > 1 else self.columns[0].shape[0]

    @property
    def kind(self) -> type | None:
        """``bool``, ``int`` or ``float`` if the elements are Python numbers."""
        return self.element.kind if isinstance(self.element, Cell) else None

    @property
    def stack(self) -> torch.Tensor:
        """The elements as one tensor [n, ...]."""
        if isinstance(self.element, Variants):
            raise GrownListError(
                "a list whose elements are of several kinds by the path taken is used as a list of tensors",
                hint="make them of one type first: torch.tensor([float(v) for v in found])",
            )
        if not isinstance(self.element, Cell):
            raise GrownListError(
                "a list of tuples, lists or objects is used as a list of tensors",
                hint="pick one part of each element first: torch.stack([score for score, _ in found])",
            )
        return self.columns[0]

    @property
    def in_a_row(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Of uneven tensors all rows [m, *rest], and how many each has, int64 [n]."""
        if self.rest is None or len(self.held) == 1:
            return self.columns[0], self.held[0]  # refuses
        return self.held[1].reshape(-1, *self.rest), self.held[0].select(1, 0)

    def at(self, index: Any) -> Any:
        """One of the elements, by its index (int or staged int), which is in range."""
        if self.uneven:
            return uneven_rows.piece(*self.in_a_row, index)
        return assembled(self.element, iter([column[index] for column in self.columns]))

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return call_with_rows(func, args, kwargs or {})

    def __repr__(self) -> str:
        return str(text(f"<elements {UNKNOWN}>"))

    def _refuse(self) -> Any:
        raise GrownListError(
            "a list of data-dependent length is used in a way that needs its length",
            hint="torch.stack or torch.cat it, index it, take its len(), or iterate over it in converted code",
        )

    # numpy leaves operators to this class.
    __array_ufunc__ = None

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self._refuse()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._refuse()

    def __bool__(self) -> bool:
        return bool(self._refuse())

    def __iter__(self) -> Any:
        return self._refuse()

    def __eq__(self, other: object) -> bool:
        return self is other or bool(self._refuse())

    def __lt__(self, other: object) -> bool:
        return bool(self._refuse())

    __gt__ = __le__ = __ge__ = __lt__

    def __hash__(self) -> int:
        return int(self._refuse())


def has_rows(value: Any) -> bool:
    """Whether a list, tuple or deque has elements that stand for several."""
    return isinstance(value, (list, tuple, collections.deque)) and any(type(v) is StackedList for v in value)


def row_places(value: Any) -> tuple[int, ...]:
    """Where in a tuple elements stand for several: tuples that differ in that are of different lengths."""
    return tuple(i for i, v in enumerate(value) if type(v) is StackedList) if isinstance(value, tuple) else ()


def rows_differ(a: Any, b: Any) -> bool:
    """Whether of two tuples some elements stand for several, and not for the same ones in both."""
    places = row_places(a)
    return places != row_places(b) or any(a[i] is not b[i] for i in places)


def common_element(values: Sequence[Any]) -> Element:
    """The structure of all elements, of which there is one at least; raises ``UnlikeElementsError``."""
    return reduce(common, (v.element if isinstance(v, StackedList) else element_of(v) for v in values))


def one_element(values: Sequence[Any]) -> Element:
    """As ``common_element``; raises the error for the user."""
    try:
        return common_element(values)
    except UnlikeElementsError as unlike:
        raise unlike.refusal() from None


def row_list(values: Sequence[Any], element: Element | None = None) -> StackedList:
    """All elements of a list, of which there is one at least, as rows; traced.

    ``element`` is their structure, if it is known already. Raises ``GrownListError``, or what says that dtypes or
    ranks differ.
    """
    values = list(values)
    if len(values) == 1 and isinstance(values[0], StackedList) and element in (None, values[0].element):
        return values[0]
    if any(isinstance(value, StackedList) and value.uneven for value in values):
        found = uneven_list(values)
        if found is not None:
            return found
    try:
        element = common_element(values) if element is None else element
        return stacked(values, element)
    except UnlikeElementsError as unlike:
        raise unlike.refusal() from None


def stacked(values: Sequence[Any], element: Element) -> StackedList:
    """Elements of this structure as rows; raises ``UnlikeElementsError`` if sizes differ."""
    pieces: list[list[torch.Tensor]] = [[] for _ in cells(element)]
    for value in values:
        if isinstance(value, StackedList):
            found = converted(value.columns, value.element, element)
        else:
            found = [cell.unsqueeze(0) for cell in cell_values(value, element)]
        for column, piece in zip(pieces, found, strict=True):
            column.append(piece)
    for column in pieces:
        _check_sizes(column)
    return StackedList([c[0] if len(c) == 1 else torch.cat(c, 0) for c in pieces], element)


def _check_sizes(column: list[torch.Tensor]) -> None:
    for sizes in zip(*(piece.shape[1:] for piece in column), strict=True):
        plain = sorted({size for size in sizes if isinstance(size, int)})
        if len(plain) > 1 or not all(same_size(sizes[0], size) for size in sizes[1:]):
            shown = f": {' and '.join(map(str, plain))}" if len(plain) > 1 else ", for some inputs"
            raise UnlikeElementsError(
                f"the elements of a list of data-dependent length are tensors of different sizes{shown}",
                "pad them to one size, or collect them in one tensor: found = torch.cat([found, piece])",
            )


def uneven_columns(values: Sequence[Any]) -> list[torch.Tensor]:
    """Tensors of one dtype and rank, as the columns of an uneven list: sizes [n, rank], and all numbers [m]; traced."""
    sizes, flat = [], []
    for value in values:
        if isinstance(value, StackedList) and value.uneven:
            sizes.append(value.held[0])
            flat.append(value.held[1])
        elif isinstance(value, StackedList):
            column = value.columns[0]
            row = torch.stack([number_tensor(size) for size in column.shape[1:]])
            sizes.append(row.unsqueeze(0).expand(column.shape[0], -1))
            flat.append(column.reshape(-1))
        else:
            sizes.append(size_row(value))
            flat.append(value.reshape(-1))
    return [torch.cat(sizes), torch.cat(flat)]


def uneven_list(values: Sequence[Any]) -> StackedList | None:
    """Tensors and lists of them, of which only the first size may differ, as one list; None for others. Traced."""
    found: list[Element] = []
    rests = set()
    for value in values:
        if isinstance(value, StackedList):
            if not isinstance(value.element, Cell) or value.element.kind is not None:
                return None
            rests.add(value.rest if value.uneven else _rest(value.columns[0].shape[1:]))
            found.append(value.element)
        elif isinstance(value, torch.Tensor):
            rests.add(constant_rest(value))
            found.append(element_of(value))
        else:
            return None
    if len(rests) != 1 or None in rests or any(each != found[0] for each in found):
        return None
    return StackedList(uneven_columns(values), found[0], uneven=True, rest=rests.pop())


def constant_rest(value: torch.Tensor) -> tuple[int, ...] | None:
    """The sizes behind the first one, if these are the same in all iterations: ints, none of them 0; else None."""
    return _rest(value.shape)


def _rest(shape: Sequence[Any]) -> tuple[int, ...] | None:
    rest = tuple(shape[1:])
    return rest if len(shape) > 0 and all(isinstance(size, int) and size > 0 for size in rest) else None


def size_row(value: torch.Tensor) -> torch.Tensor:
    """The sizes of a tensor: int64 [1, rank]; traced."""
    return torch.stack([number_tensor(size) for size in value.shape]).unsqueeze(0)


def no_rows(like: StackedList, sizes: Sequence[Sequence[Any]]) -> StackedList:
    """No elements, of the structure of others; ``sizes`` are those of a row of each column. Traced."""
    columns = [torch.zeros([0, *s], dtype=c.dtype) for c, s in zip(like.columns, sizes, strict=True)]
    return StackedList(columns, like.element)


def _joins_rows(name: str, dim: int, rank: int) -> bool:
    """Whether a function puts tensors of this rank together along their first dimension."""
    if name in ("vstack", "row_stack", "hstack"):
        return (rank == 1) == (name == "hstack")
    return name != "stack" and dim in (0, -rank)


def call_with_rows(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``torch.stack`` and its kind on a list that grew in a loop."""
    name = getattr(func, "__name__", "")
    given = args[0] if args else kwargs.get("tensors", kwargs.get("data", ()))
    if name in ("stack", "cat", "concat", "concatenate", "vstack", "row_stack", "hstack"):
        values = list(given)
        dim = kwargs.get("dim", args[1] if len(args) > 1 and isinstance(args[1], int) else 0)
        rows = row_list(values)
        if rows.uneven and rows.rest is not None and _joins_rows(name, dim, 1 + len(rows.rest)):
            return rows.in_a_row[0]
        stack = rows.stack
        if rows.kind is not None:
            raise GrownListError(f"torch.{name}() of a list of numbers", hint="use torch.tensor")
        if name == "stack":
            return stack if dim == 0 else torch.movedim(stack, 0, dim)
        if name in ("vstack", "row_stack"):
            return stack if stack.dim() == 2 else stack.flatten(0, 1)
        if name == "hstack":
            dim = 0 if stack.dim() == 2 else 1
        dim = dim % (stack.dim() - 1)
        return torch.movedim(stack, 0, dim).flatten(dim, dim + 1)
    raise GrownListError(
        f"torch function {name!r} is called on a list of data-dependent length",
        hint="torch.stack the list first",
    )
