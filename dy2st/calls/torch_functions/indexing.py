"""Subscripts of tensors with data-dependent indices.

``x[i]``, ``x[:, a:b]``, ``x[..., None, i] = v`` with staged or symbolic ints, and with 0-d integer tensors, as the
views that they stand for: select, slice, unsqueeze. What remains (index and mask tensors) is torch's own.

Source: Python reference 3.3.7 (slices), torch.Tensor.__getitem__, ``treatSequenceAsTuple`` of torch.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from dy2st.errors import GrownListError
from dy2st.plan import Alternative, plan
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.session import MODE
from dy2st.tracing.size_facts import assume, expression
from dy2st.tracing.tracer import at_least, outside_the_trace
from dy2st.values.elements import Variants
from dy2st.values.number import DTYPES, Number, number_kind, number_tensor, one_element
from dy2st.values.stacked_list import StackedList, has_rows, row_list
from dy2st.values.tagged_union import TaggedUnion, cases_of, distributed
from dy2st.values.tensor_literals import tensor_of

# A list of as many items or more is an index tensor, whatever they are.
LONGEST_TUPLE = 32


@functools.cache
def _lists_are_tuples() -> bool:
    """Whether ``x[[i, j]]`` is ``x[i, j]`` for tensors i and j, as torch has long warned that it will not stay."""
    with warnings.catch_warnings(), outside_the_trace():
        warnings.simplefilter("ignore")
        return torch.zeros(1, 1, device="cpu")[[torch.tensor(0, device="cpu"), 0]].dim() == 0


def is_symbolic_index(item: Any) -> bool:
    """Whether an index item needs us: torch's own subscripts take Python ints only."""
    if isinstance(item, slice):
        return any(is_symbolic_index(part) for part in (item.start, item.stop, item.step))
    if isinstance(item, torch.Tensor):
        return item.dim() == 0 and item.dtype not in (torch.bool, torch.uint8) and not item.dtype.is_floating_point
    return isinstance(item, torch.SymInt) or (isinstance(item, Number) and item.kind is not bool)


def is_flag(item: Any) -> bool:
    """Whether an index item is a bool or 0-d bool tensor of which torch's own subscripts ask for the value.

    It is a mask for a new dimension of size one.
    """
    if isinstance(item, torch.Tensor):
        return item.dim() == 0 and item.dtype is torch.bool
    return isinstance(item, torch.SymBool) or (isinstance(item, Number) and item.kind is bool)


def needs_view(index: Any) -> bool:
    """Whether a subscript has such an item."""
    items = index if isinstance(index, tuple) else (index,)
    return any(is_symbolic_index(item) or is_flag(item) for item in items)


def _is_mask(item: Any) -> bool:
    return isinstance(item, torch.Tensor) and item.dtype is torch.bool and item.dim() > 0


def has_late_mask(index: Any) -> bool:
    """Whether a subscript has a mask behind another item (``x[:, mask] = v``), for which ONNX has no store."""
    return isinstance(index, tuple) and any(_is_mask(item) for item in index[1:])


def without_lists(index: Any) -> Any:
    """An index with lists of staged numbers or tensors (``x[[i, j]]``) as the tensors that they stand for."""
    if isinstance(index, list) and _is_staged(index) and _is_read_as_tuple(index):
        index = tuple(index)
    return tuple(map(_without_list, index)) if isinstance(index, tuple) else _without_list(index)


def _is_staged(sequence: Any) -> bool:
    return any(isinstance(leaf, (Number, torch.SymInt, torch.Tensor, StackedList)) for leaf in tree_leaves(sequence))


def _is_read_as_tuple(index: list[Any]) -> bool:
    """What torch makes of a list as the whole index: short ones that hold more than numbers are a tuple."""
    if has_rows(index):
        if row_list(index).kind is None:
            raise GrownListError(
                "a tensor is indexed by a list of data-dependent length that holds tensors or tuples",
                hint="torch.stack the list first, or collect ints: found.append(int(i))",
            )
        return False
    others = (torch.Tensor, list, tuple, slice, type(None), type(Ellipsis))
    return len(index) < LONGEST_TUPLE and any(isinstance(item, others) for item in index) and _lists_are_tuples()


def _bound(part: Any) -> Any:
    """An end of a slice, of which Python asks for a number: a tensor of one element has one, whatever its rank."""
    if isinstance(part, TaggedUnion) and all(_is_place(case) for case in cases_of(part)):
        return distributed(_place, part)
    return one_element(part) if isinstance(part, torch.Tensor) and part.dim() > 0 and _is_place(part) else part


def _is_place(value: Any) -> bool:
    """Whether a value is an integer, or a tensor of integers."""
    if isinstance(value, torch.Tensor):
        return value.dtype not in (torch.bool, torch.uint8) and not value.dtype.is_floating_point
    return number_kind(value) is int


def _place(value: Any) -> torch.Tensor:
    return (one_element(value) if isinstance(value, torch.Tensor) else number_tensor(value)).to(torch.int64)


def _without_list(item: Any) -> Any:
    if isinstance(item, slice):
        return slice(_bound(item.start), _bound(item.stop), _bound(item.step))
    if not isinstance(item, (list, tuple)) or not _is_staged(item):
        return item
    if not has_rows(item):
        return tensor_of(item)
    rows = row_list(item)
    # An empty list is an index, too: that of no elements.
    return tensor_of(item, _index_dtype(rows))


def _index_dtype(rows: StackedList) -> torch.dtype:
    """That of what an index holds; raises ``GrownListError`` where it depends on the path taken."""
    if isinstance(rows.element, Variants):
        return rows.stack.dtype
    return rows.columns[0].dtype if rows.kind is None else DTYPES[rows.kind]


def lies_inside(tensor: torch.Tensor, index: Any) -> bool:
    """Whether all staged ints of a subscript are known to be in range: counters of loops."""
    dim = 0
    for item in index if isinstance(index, tuple) else (index,):
        if item is None or is_flag(item):
            continue
        if isinstance(item, Number):
            if dim >= tensor.dim() or not item.known.lies_in(tensor.shape[dim]):
                return False
        elif not isinstance(item, (int, slice)):
            return False
        dim += 1
    return True


def may_lie_outside(tensor: torch.Tensor, index: Any) -> bool:
    """Whether an int of a subscript, in what may not run, is out of range for some sizes: the example's among them."""
    if MODE.capture is None or not MODE.capture.conditional:
        return False
    items = index if isinstance(index, tuple) else (index,)
    sizes: tuple[Any, ...] = tuple(tensor.shape)
    return any(
        type(item) is int and isinstance(size, torch.SymInt) and not at_least(size, item + 1 if item >= 0 else -item)
        for item, size in zip(items, sizes, strict=False)
    )


def _int(value: Any) -> Any:
    if isinstance(value, Number):
        return value.symbolic()
    if isinstance(value, torch.Tensor):
        return value.to(torch.int64).item()
    return value


def view_of(tensor: torch.Tensor, index: Any) -> tuple[torch.Tensor, tuple[Any, ...] | None]:
    """The view that the basic items of a subscript stand for, and what remains of it for torch (None: nothing)."""
    items = list(index) if isinstance(index, tuple) else [index]
    # A bool is an index of its own kind (it adds a dimension).
    consumed = sum(_dims(item) for item in items if item is not None and item is not Ellipsis)
    if Ellipsis in [i for i in items if not isinstance(i, torch.Tensor)]:
        at = next(k for k, i in enumerate(items) if i is Ellipsis)
        items[at : at + 1] = [slice(None)] * (tensor.dim() - consumed)
    view, dim = tensor, 0
    rest: list[Any] = []
    for item in items:
        if item is None:
            view = view.unsqueeze(dim)
        elif is_flag(item):
            view = view.unsqueeze(dim)
            rest += [slice(None)] * (dim - len(rest)) + [
                (item if isinstance(item, torch.Tensor) else number_tensor(item)).reshape(1)
            ]
        elif isinstance(item, slice):
            view = _slice(view, dim, item)
        elif isinstance(item, torch.Tensor) and not is_symbolic_index(item):
            rest += [slice(None)] * (dim - len(rest)) + [item]
            dim += max(1, item.dim() if item.dtype is torch.bool else 1)
            continue
        elif isinstance(item, (int, torch.SymInt, Number, torch.Tensor)) and not isinstance(item, bool):
            view = torch.select(view, dim, _int(item))
            continue
        else:
            rest += [slice(None)] * (dim - len(rest)) + [item]
        dim += 1
    return view, tuple(rest) or None


def _dims(item: Any) -> int:
    if isinstance(item, torch.Tensor) and item.dtype is torch.bool:
        return item.dim()
    return 0 if is_flag(item) or isinstance(item, bool) else 1


def _slice(view: torch.Tensor, dim: int, item: slice) -> torch.Tensor:
    if item.step in (None, 1) and (part := _piece(view, dim, item.start, item.stop)) is not None:
        return part
    start, stop, step = (_int(part) for part in (item.start, item.stop, item.step))
    if start is None and stop is None and step in (None, 1):
        return view
    sliced: torch.Tensor = torch.ops.aten.slice.Tensor(view, dim, start, stop, 1 if step is None else step)
    return sliced


def _piece(view: torch.Tensor, dim: int, start: Any, stop: Any) -> torch.Tensor | None:
    """``x[t : t + k]`` as k elements: for a loop's counter t, if it lies inside of ``x`` in every iteration."""
    if not isinstance(start, Number) or not isinstance(stop, Number):
        return None
    count = start.known.distance(stop.known)
    if count is None or not at_least(count, 1):
        return None
    if not start.known.lies_in(view.shape[dim], length=count):
        capture = MODE.capture
        if not plan().takes(Alternative.WHOLE_PIECES) or capture is None:
            return None
        end = number_tensor(view.shape[dim]) - count
        inside = (start.tensor >= 0) & (start.tensor <= end)
        what = "exported for pieces that lie inside of the tensor"
        capture.guards.require(inside, location_of(users_frame()), what, always=True)
    first = start.symbolic()
    for fact in (first >= 0, first + count <= view.shape[dim]):
        if isinstance(fact, torch.SymBool):
            assume(fact.node.shape_env, expression(fact))
    return torch.narrow(view, dim, first, count)


def get_item(tensor: torch.Tensor, index: Any) -> torch.Tensor:
    """``tensor[index]``."""
    view, rest = view_of(tensor, index)
    return view if rest is None else view[rest]


def set_item(tensor: torch.Tensor, index: Any, value: Any) -> None:
    """``tensor[index] = value``."""
    view, rest = view_of(tensor, index)
    with _made_anew(view):
        if rest is not None:
            _put(view, rest, value)
        elif not isinstance(value, torch.Tensor):
            view.fill_(value)
        else:
            while value.dim() > view.dim() and value.shape[0] == 1:
                value = value.squeeze(0)
            view.copy_(value)


def _put(view: torch.Tensor, rest: tuple[Any, ...], value: Any) -> None:
    """``view[rest] = value``, where torch's own store would ask whether the value's first size is one."""
    indices = [None if isinstance(item, slice) and item == slice(None) else _tensor_or(item) for item in rest]
    if has_late_mask(tuple(indices)):
        if sum(item is not None for item in indices) == 1 and (not isinstance(value, torch.Tensor) or not value.dim()):
            _fill(view, indices, value)
            return
        indices = [part for item in indices for part in _without_mask(item)]
        rest = tuple(slice(None) if item is None else item for item in indices)
    tensors = [item for item in indices if item is not None]
    plain = all(isinstance(item, torch.Tensor) and not item.is_floating_point() for item in tensors)
    if not plain or not isinstance(value, torch.Tensor) or any(item.dtype is torch.uint8 for item in tensors):
        view[rest] = value
        return
    # The rank of what is written to: a mask takes as many dimensions as it has, and gives one.
    taken = sum(_dims(item) for item in tensors)
    given = max(1 if item.dtype is torch.bool else item.dim() for item in tensors)
    while value.dim() > view.dim() - taken + given and value.shape[0] == 1:
        value = value.squeeze(0)
    torch.ops.aten.index_put_.default(view, indices, value)


def _without_mask(item: Any) -> tuple[Any, ...]:
    return item.nonzero().unbind(1) if _is_mask(item) else (item,)


def _tensor_or(item: Any) -> Any:
    return torch.tensor(item) if isinstance(item, (list, range)) and item else item


def _fill(view: torch.Tensor, indices: list[Any], value: Any) -> None:
    """``view[:, mask] = value`` for one number."""
    place = next(place for place, item in enumerate(indices) if item is not None)
    mask = indices[place]
    behind = view.dim() - place - mask.dim()
    if isinstance(value, torch.Tensor):
        value = value.to(view.dtype)
    view.masked_fill_(mask.reshape([*mask.shape, *[1] * behind]), value)


def _made_anew(view: torch.Tensor) -> contextlib.AbstractContextManager[None]:
    """Where gradients are recorded, a write through a view makes the view anew, with an offset that nobody sees."""
    mode = getattr(view, "fake_mode", None)
    env: Any = None if mode is None else mode.shape_env
    return contextlib.nullcontext() if env is None else env.ignore_fresh_unbacked_symbols()
