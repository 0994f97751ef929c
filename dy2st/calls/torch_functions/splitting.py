"""Tensors taken apart along a dimension of data-dependent size: ``split``, ``chunk``, ``unbind`` and the like.

How many pieces there are is then known only when the graph runs. They can be iterated, indexed and counted like any
other staged iterable; ``a, b = x.chunk(2)`` demands that there are two.

Source: ``split``, ``chunk``, ``tensor_split`` and ``unbind`` of ATen/native/TensorShape.cpp.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from dy2st.calls.torch_functions.registry import ints, replaces
from dy2st.errors import DynamicLengthError
from dy2st.source.user_frames import frames, is_users_frame
from dy2st.staging.conditions import demand, require
from dy2st.staging.loops.iterables import StagedIterable
from dy2st.staging.session import MODE
from dy2st.tracing.row_reads import rows_at
from dy2st.values.elements import Cell
from dy2st.values.number import Number, number_tensor, one_element, symbolic
from dy2st.values.stacked_list import StackedList, has_rows
from dy2st.values.tensor_literals import tensor_of


class Pieces(StagedIterable):
    """Pieces of a tensor, in order: of a tuple, as far as Python asks."""

    kind = tuple

    def __iter__(self) -> Iterator[Any]:
        count = unpacked(sys._getframe(1))
        if count is None:
            raise DynamicLengthError(
                f"{self.what} gives a number of pieces that is known only when the graph runs, and is iterated by code "
                "that dy2st does not convert",
                hint="iterate over the pieces with a for statement, or index them",
            )
        require(self.length == count)
        return iter([self.element(i) for i in range(count)])


def unpacked(frame: FrameType, *, next_one: bool = False) -> int | None:
    """Into how many names the running instruction of ``frame``, or the next one, unpacks; None if it is another."""
    instructions = list(dis.get_instructions(frame.f_code))
    # A call is over at the last of its caches, which are no instructions.
    running = sum(each.offset <= frame.f_lasti for each in instructions) - 1
    found = instructions[running + next_one]
    return found.arg if found.opname == "UNPACK_SEQUENCE" else None


# What stands between the user's call of a torch function and the function that replaces it.
_BETWEEN = frozenset(
    f"dy2st.calls.{name}"
    for name in ("torch_functions.registry", "torch_functions.dispatch", "library_calls", "call_conversion")
)


def _targets() -> tuple[int | None, bool]:
    """Into how many names the user's code unpacks the tensor, or what the torch function that it has called gives.

    And whether the tensor is iterated.
    """
    iterates = False
    for frame in frames(sys._getframe(2)):
        if is_users_frame(frame):
            return unpacked(frame, next_one=not iterates), iterates
        if frame.f_code is torch.Tensor.__iter__.__code__:
            iterates = True
        elif frame.f_globals.get("__name__") not in _BETWEEN:
            return None, iterates
    return None, iterates


def _dim(tensor: torch.Tensor, dim: int) -> int:
    return dim % tensor.dim() if -tensor.dim() <= dim < tensor.dim() else dim


def _is_dynamic(tensor: Any, dim: Any) -> bool:
    """Whether a tensor's size in a dimension is known only when the graph runs."""
    if not isinstance(tensor, torch.Tensor) or not isinstance(dim, int) or not -tensor.dim() <= dim < tensor.dim():
        return False
    return not isinstance(tensor.shape[dim], int)


def _part(tensor: torch.Tensor, dim: int, start: Any, end: Any) -> torch.Tensor:
    piece: torch.Tensor = torch.ops.aten.slice.Tensor(tensor, dim, symbolic(start), symbolic(end))
    return piece


def _pieces(tensor: torch.Tensor, size: Any, count: Any, dim: int, what: str) -> Pieces:
    return Pieces(count, lambda i: _part(tensor, dim, i * size, i * size + size), what)


@replaces("split", "split_with_sizes", sized=True)
def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    """``torch.split``; NotImplemented if torch's own will do."""
    size = split_size_or_sections
    if has_rows(size):
        return _of_lengths(tensor, size, _dim(tensor, dim))
    if isinstance(size, (list, tuple)):
        needed = _is_dynamic(tensor, dim) or not ints(*size)
        return _sections(tensor, list(size), _dim(tensor, dim)) if needed else NotImplemented
    if not _is_dynamic(tensor, dim) and isinstance(size, int):
        return NotImplemented
    dim, size = _dim(tensor, dim), symbolic(size)
    n = tensor.shape[dim]
    require(size > 0)
    return _pieces(tensor, size, torch.sym_max(1, (n + size - 1) // size), dim, "split()")


def _sections(tensor: torch.Tensor, sizes: list[Any], dim: int) -> tuple[torch.Tensor, ...]:
    """Pieces of given sizes, which must add up."""
    found, start = [], 0
    for size in map(symbolic, sizes):
        found.append(_narrowed(tensor, dim, start, size))
        start = start + size
    require(tensor.shape[dim] == start)
    return tuple(found)


def _of_lengths(tensor: torch.Tensor, sizes: Any, dim: int) -> Pieces:
    """Pieces of as many lengths as there are, which must add up."""
    lengths = tensor_of(sizes, torch.int64)
    ends = lengths.cumsum(0)
    require((lengths >= 0).all(), RuntimeError, "split sizes are not negative")
    require(number_tensor(tensor.shape[dim]) == lengths.sum(), RuntimeError, "split sizes add up to the tensor's")

    def bounds(i: Any) -> list[Number]:
        at = number_tensor(i).to(torch.int64).reshape(1)
        end, length = (rows_at(each, at).reshape(()) for each in (ends, lengths))
        return [Number(end - length, int), Number(end, int)]

    return Pieces(lengths.shape[0], lambda i: _part(tensor, dim, *bounds(i)), "split()")


def _narrowed(tensor: torch.Tensor, dim: int, start: Any, length: Any) -> torch.Tensor:
    demand(length >= 0)
    demand(start >= 0)
    demand(start + length <= tensor.shape[dim])
    return _part(tensor, dim, start, start + length)


@replaces("narrow")
def narrow(tensor: Any, dim: int, start: Any, length: Any) -> Any:
    """``torch.narrow``, which demands that there are so many; NotImplemented if torch's own will do."""
    if isinstance(start, int) and isinstance(length, int) and not _is_dynamic(tensor, dim):
        return NotImplemented
    if isinstance(start, torch.Tensor):
        start = Number(one_element(start).to(torch.int64), int)
    if isinstance(start, Number):
        # Counted from the end if negative.
        size = number_tensor(tensor.shape[dim])
        start = Number(torch.where(start.tensor < 0, start.tensor + size, start.tensor), int)
    elif isinstance(start, int) and start < 0:
        start = start + tensor.shape[dim]
    return _narrowed(tensor, _dim(tensor, dim), symbolic(start), symbolic(length))


@replaces("chunk", sized=True)
def chunk(tensor: Any, chunks: Any, dim: int = 0) -> Any:
    """``torch.chunk``; NotImplemented if torch's own will do."""
    if type(chunks) is int and (chunks < 1 or not _is_dynamic(tensor, dim)):
        return NotImplemented
    # Where the number is data, so are the pieces' sizes, and whether the last one is shorter can't be told.
    declared = isinstance(chunks, torch.SymInt) and not free_unbacked_symbols(chunks)
    if not isinstance(tensor, torch.Tensor) or not (type(chunks) is int or declared):
        return NotImplemented
    dim = _dim(tensor, dim)
    n = tensor.shape[dim]
    require(chunks > 0, RuntimeError, "chunk expects `chunks` to be greater than 0")
    size = torch.sym_max((n + chunks - 1) // chunks, 1)
    # No piece is empty, but nothing comes in as many pieces as asked for.
    count = (n + size - 1) // size + chunks * (1 - torch.sym_min(n, 1))
    return _pieces(tensor, size, count, dim, "chunk()")


@replaces("tensor_split", sized=True)
def tensor_split(tensor: Any, indices_or_sections: Any = None, dim: int = 0, **kwargs: Any) -> Any:
    """``torch.tensor_split``; NotImplemented if torch's own will do."""
    given = kwargs.get("indices", kwargs.get("sections", indices_or_sections))
    if not _is_dynamic(tensor, dim):
        return NotImplemented
    dim = _dim(tensor, dim)
    n = tensor.shape[dim]
    if isinstance(given, int) and given > 0:
        starts = [i * (n // given) + torch.sym_min(i, n % given) for i in range(given)]
    elif isinstance(given, (list, tuple)):
        starts = [0, *given]
    else:
        return NotImplemented
    return tuple(_part(tensor, dim, a, b) for a, b in zip(starts, [*starts[1:], n], strict=True))


@replaces("unbind", sized=True)
def unbind(tensor: Any, dim: int = 0) -> Any:
    """``torch.unbind``; NotImplemented if torch's own will do."""
    if not _is_dynamic(tensor, dim):
        return NotImplemented
    rows = torch.movedim(tensor, dim, 0)
    count, iterates = _targets()
    if count is not None:
        require(rows.shape[0] == count, ValueError, f"not {count} values to unpack")
        return [rows[i] for i in range(count)]
    if iterates:
        raise DynamicLengthError(
            "a tensor has a size that is known only when the graph runs, and is iterated by code that dy2st does not "
            "convert",
            hint="iterate it with a for statement in converted code, or make a list of it first: list(x)",
        )
    return _new([StackedList([rows], Cell(rows.dtype, rows.dim() - 1, None))])


def _new(made: list[Any]) -> list[Any]:
    """A list that nothing outside of what is running refers to."""
    return made if MODE.capture is None else MODE.capture.new(made)
