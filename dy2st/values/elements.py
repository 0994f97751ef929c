"""The structure that all elements of a list have in common: tensors and numbers, and containers of them.

The tensors and numbers of an element are its *cells*, in order; what is equal in all elements is a constant. So
a list of n elements is one tensor [n, ...] for each cell.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch

from dy2st.errors import DifferentDtypesError, DifferentRanksError, ListChangeError, StagingError
from dy2st.values.container_structure import open_container
from dy2st.values.describing import describe
from dy2st.values.dtype_provenance import Kind, add_lower_kinds, is_other, lower_kinds
from dy2st.values.number import DTYPES, Number, number_kind, number_tensor, promoted_dtype


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


Element = Cell | Constant | Composite


class UnlikeElementsError(Exception):
    """Elements have no common structure: ``what`` and ``hint`` say why not, ``kind`` is the error for the user."""

    def __init__(self, what: str, hint: str, kind: type[StagingError] = ListChangeError) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.kind = kind

    def refusal(self) -> StagingError:
        """The error for the user."""
        return self.kind(self.what, hint=self.hint)


def element_of(value: Any) -> Element:
    """The structure of one value; raises ``UnlikeElementsError`` for what can't be an element."""
    if isinstance(value, torch.Tensor):
        return Cell(value.dtype, value.dim(), None, lower_kinds(value))
    kind = number_kind(value)
    if kind is not None:
        return Cell(DTYPES[kind], 0, kind)
    if value is None or isinstance(value, (str, bytes, torch.dtype, torch.device)):
        return Constant(value)
    opened = open_container(value)
    if opened is None:
        raise UnlikeElementsError(
            f"a list of data-dependent length has an element that is {describe(value)}",
            "put tensors, numbers, or tuples and dataclasses of them into the list",
        )
    return Composite(tuple(element_of(child) for child in opened[0]), opened[1], opened[2])


def common(a: Element, b: Element) -> Element:
    """The structure of both; raises ``UnlikeElementsError`` if there is none."""
    if isinstance(a, Cell) and isinstance(b, Cell):
        return _common_cell(a, b)
    if isinstance(a, Composite) and isinstance(b, Composite) and a.signature == b.signature:
        children = tuple(common(x, y) for x, y in zip(a.children, b.children, strict=True))
        return Composite(children, a.build, a.signature)
    if a == b:
        return a
    if isinstance(a, Constant) and isinstance(b, Constant) and a.value is not None and b.value is not None:
        what, hint = f"({a.value!r} and {b.value!r})", "use numbers in place of names"
    else:
        what, hint = "in their structure", "give all elements the same structure"
    raise UnlikeElementsError(f"a list of data-dependent length has elements that differ {what}", hint)


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
    return []


def cell_values(value: Any, element: Element) -> list[torch.Tensor]:
    """The cells of a value of this structure, as tensors of the cells' dtypes; traced."""
    return _cell_values(value, element) or [torch.zeros((), dtype=torch.int64)]


def _cell_values(value: Any, element: Element) -> list[torch.Tensor]:
    if isinstance(element, Cell):
        tensor = value if isinstance(value, torch.Tensor) else number_tensor(value)
        return [tensor if tensor.dtype is element.dtype else tensor.to(element.dtype)]
    if isinstance(element, Composite):
        opened = open_container(value)
        assert opened is not None
        pairs = zip(opened[0], element.children, strict=True)
        return [cell for child, inner in pairs for cell in _cell_values(child, inner)]
    return []


def assembled(element: Element, values: Iterator[torch.Tensor]) -> Any:
    """A value of this structure from its cells."""
    if isinstance(element, Cell):
        tensor = next(values)
        add_lower_kinds(tensor, element.lower)
        return tensor if element.kind is None else Number(tensor, element.kind)
    if isinstance(element, Composite):
        return element.build([assembled(child, values) for child in element.children])
    return element.value


def parts(value: Any) -> Iterator[Any]:
    """All tensors and containers that a value consists of, itself included."""
    yield value
    opened = None if isinstance(value, torch.Tensor) else open_container(value)
    if opened is not None:
        for child in opened[0]:
            yield from parts(child)
