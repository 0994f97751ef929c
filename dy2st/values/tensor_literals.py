"""``torch.tensor`` of nested lists in which staged numbers, tensors and rows stand.

The dtype is torch's own choice: of Python numbers the default float dtype, int64 or bool; of tensors theirs; of several
the promotion; of nothing at all the default float dtype, in one dimension: a list of data-dependent length is either.

The dtype is settled first, and each number is then made into it from what Python has: a double, an int64 or a bool. So
``torch.tensor([0.1, t], dtype=torch.float64)`` has all digits of 0.1, which is never a float32 on the way.

Source: torch.tensor, ``infer_scalar_type`` of torch.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.errors import GrownListError
from dy2st.tracing.tracer import at_least, common_dtype
from dy2st.values.elements import Cell, Composite, Element, Variants, cells, pieces
from dy2st.values.number import DTYPES, SYMBOLS, number_kind, number_tensor
from dy2st.values.stacked_list import StackedList, has_rows, row_list
from dy2st.values.tagged_union import TaggedUnion

SEQUENCES = (list, tuple, collections.deque)

# The functions, and where each takes the list: by its place and by its name.
LITERALS = {
    "tensor": (0, "data"),
    "as_tensor": (0, "data"),
    "asarray": (0, "obj"),
    "scalar_tensor": (0, "s"),
    "new_tensor": (1, "data"),
}


def _data(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    place, keyword = LITERALS[name]
    return args[place] if len(args) > place else kwargs.get(keyword)


def with_data(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], change: Callable[[Any], Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a function of ``LITERALS``, with what it makes a tensor of as ``change`` says."""
    place, keyword = LITERALS[name]
    if len(args) > place:
        return (*args[:place], change(args[place]), *args[place + 1 :]), kwargs
    rest = {name: value for name, value in kwargs.items() if name != keyword}
    if len(args) == place and keyword in kwargs:  # torch.export looks for it in its place
        return (*args, change(kwargs[keyword])), rest
    return args, {**rest, keyword: change(kwargs.get(keyword))}


def of_tensors(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a function of ``LITERALS`` is given sizes, or a list with tensors or rows: torch would ask for values.

    It looks at what is in a list only after it has looked for ``__torch_function__``.
    """

    def holds(value: Any) -> bool:
        return isinstance(value, (torch.Tensor, StackedList, *SYMBOLS)) or (
            isinstance(value, SEQUENCES) and any(map(holds, value))
        )

    return name in LITERALS and isinstance(data := _data(name, args, kwargs), (*SEQUENCES, *SYMBOLS)) and holds(data)


def literal(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of ``LITERALS``; traced."""
    place, _ = LITERALS[name]
    dtype = kwargs.get("dtype")
    if dtype is None:
        dtype = args[0].dtype if name == "new_tensor" else next(iter(args[place + 1 :]), None)
    if dtype is None and name == "scalar_tensor":
        dtype = torch.get_default_dtype()
    made = tensor_of(_data(name, args, kwargs), dtype)
    return made if kwargs.get("device") is None else made.to(kwargs["device"])


def tensor_of(data: Any, dtype: torch.dtype | None = None) -> Any:
    """``torch.tensor(data, dtype=dtype)``; traced. It takes the values alone: no gradient flows through it.

    A tensor, or one of several where ``data`` may be empty.
    """
    if isinstance(data, torch.Tensor):
        values = data.detach()
        return values.clone() if dtype is None else values.to(dtype).clone()
    if isinstance(data, SEQUENCES):
        return _of_sequence(list(data), dtype or common_dtype(_dtypes(data)), said=dtype is not None)
    kind = number_kind(data)
    if kind is None:
        return torch.tensor(data, dtype=dtype)
    return number_tensor(data).to(dtype or _natural(kind)).clone()


def _dtypes(data: Any) -> Iterator[torch.dtype]:
    """The dtypes that the parts of a list have as tensors by themselves."""
    if isinstance(data, StackedList):
        if any(isinstance(each, Variants) for each in pieces(data.element)):
            raise GrownListError(
                "torch.tensor() of a list whose elements are of several kinds by the path taken, so that its dtype is"
                " data-dependent",
                hint="say the dtype: torch.tensor(found, dtype=torch.float32)",
            )
        yield from (each.dtype if each.kind is None else _natural(each.kind) for each in cells(data.element))
    elif isinstance(data, torch.Tensor):
        yield data.dtype
    elif isinstance(data, SEQUENCES):
        if not data:
            yield torch.get_default_dtype()
        for part in data:
            yield from _dtypes(part)
    else:
        kind = number_kind(data)
        yield torch.tensor(data).dtype if kind is None else _natural(kind)


def _natural(kind: type) -> torch.dtype:
    return torch.get_default_dtype() if kind is float else DTYPES[kind]


def _of_sequence(data: list[Any], dtype: torch.dtype, *, said: bool) -> Any:
    """A list as a tensor of this dtype, which the user has ``said`` or the elements have."""
    if not data:
        return torch.tensor([], dtype=dtype)
    if has_rows(data):
        return _of_rows(row_list(data), dtype, said=said)
    parts = [
        _of_sequence(list(part), dtype, said=said) if isinstance(part, SEQUENCES) else tensor_of(part, dtype)
        for part in data
    ]
    if isinstance(data[0], torch.Tensor):
        # The first element says how deep the list is: here, that each is one number.
        parts = [_number(part) for part in parts]
    return torch.stack(parts)


def _number(part: torch.Tensor) -> torch.Tensor:
    if any(size != 1 for size in part.shape):
        raise ValueError("only one element tensors can be converted to Python scalars")
    return part.reshape(())


def _of_rows(rows: StackedList, dtype: torch.dtype, *, said: bool) -> Any:
    """Of no rows eager makes an empty tensor of one dimension, of floats if no dtype is said: that is another case."""
    made = _of_element(rows.element, iter(rows.columns), dtype)
    empty = dtype if said else torch.get_default_dtype()
    if at_least(rows.length, 1) or (made.dim() == 1 and made.dtype is empty):
        return made
    tag = (number_tensor(rows.length) == 0).to(torch.int64)
    return TaggedUnion(tag, [made, torch.tensor([], dtype=empty)])


def _of_element(element: Element, columns: Iterator[torch.Tensor], dtype: torch.dtype) -> torch.Tensor:
    """The rows of one part of the elements: [n], or [n, k] for a part that is itself a list of k numbers."""
    if isinstance(element, Cell):
        return next(columns).detach().to(dtype)
    if isinstance(element, Variants) and all(isinstance(each, Cell) for each in element.alternatives):
        tag, made = next(columns), next(columns).detach().to(dtype)
        for number in range(1, len(element.alternatives)):
            made = torch.where(tag == number, next(columns).detach().to(dtype), made)
        return made
    if isinstance(element, Composite) and element.children and element.signature[0] in (list, tuple):
        return torch.stack([_of_element(child, columns, dtype) for child in element.children], 1)
    raise GrownListError("torch.tensor() of a list of objects", hint="make it a list of numbers or tuples of numbers")


def is_staged_list(data: Any) -> bool:
    """Whether data is a list in which something is known only when the graph runs."""
    if isinstance(data, StackedList):
        return True
    if not isinstance(data, SEQUENCES) or isinstance(data, torch.Size):
        return False
    leaves = pytree.tree_leaves(data, is_leaf=lambda each: isinstance(each, StackedList))
    return not all(isinstance(leaf, (bool, int, float)) for leaf in leaves)
