"""``torch.tensor`` of nested lists in which staged numbers, tensors and rows stand.

The dtype is torch's own choice: of Python numbers the default float dtype, int64 or bool; of tensors theirs; of several
the promotion; of nothing at all the default float dtype, which a list whose length only the graph knows can't follow.

Source: torch.tensor, ``infer_scalar_type`` of torch.
"""

from __future__ import annotations

import collections
from functools import reduce
from typing import Any

import torch

from dy2st.errors import DifferentDtypesError, GrownListError
from dy2st.graph.elements import Cell, Composite, Element
from dy2st.graph.numbers import DTYPES, number_kind, number_tensor
from dy2st.graph.rows import Rows, has_rows, row_list
from dy2st.graph.tracing import at_least

SEQUENCES = (list, tuple, collections.deque)


def tensor_of(data: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
    """``torch.tensor(data, dtype=dtype)``; traced."""
    if isinstance(data, torch.Tensor):
        return data.clone() if dtype is None else data.to(dtype).clone()
    if isinstance(data, SEQUENCES):
        return _of_sequence(list(data), dtype)
    kind = number_kind(data)
    if kind is None:
        made: torch.Tensor = torch.tensor(data, dtype=dtype)
        return made
    return number_tensor(data).to(dtype or _natural(kind)).clone()


def _natural(kind: type) -> torch.dtype:
    return torch.get_default_dtype() if kind is float else DTYPES[kind]


def _of_sequence(data: list[Any], dtype: torch.dtype | None) -> torch.Tensor:
    if not data:
        return torch.tensor([], dtype=dtype)
    if has_rows(data):
        return _of_rows(row_list(data), dtype)
    parts = [tensor_of(part) for part in data]
    target = dtype or reduce(torch.promote_types, (part.dtype for part in parts))
    return torch.stack([part.to(target) for part in parts])


def _of_rows(rows: Rows, dtype: torch.dtype | None) -> torch.Tensor:
    columns = iter(rows.columns)
    made = _of_element(rows.element, columns)
    target = dtype or made.dtype
    if not at_least(rows.length, 1):
        _refuse_nothing(made, dtype)
    return made.to(target)


def _refuse_nothing(made: torch.Tensor, dtype: torch.dtype | None) -> None:
    """Eager makes float numbers, in one dimension, of an empty list."""
    if made.dim() > 1:
        raise GrownListError(
            f"torch.tensor() of a list that may be empty: eager then makes a tensor of shape [0], not of {made.dim()} "
            "dimensions",
            hint="return before it if the list is empty: if not rows: return torch.zeros(0, 2)",
        )
    if dtype is None and made.dtype is not torch.get_default_dtype():
        name = str(made.dtype)
        raise DifferentDtypesError(
            f"torch.tensor() of a list that may be empty: eager then makes a {torch.get_default_dtype()} tensor, not "
            f"one of {name}",
            hint=f"say which: torch.tensor(rows, dtype={name})",
        )


def _of_element(element: Element, columns: Any) -> torch.Tensor:
    """The rows of one part of the elements: [n], or [n, k] for a part that is itself a list of k numbers."""
    if isinstance(element, Cell):
        column: torch.Tensor = next(columns)
        return column.to(_natural(element.kind)) if element.kind is not None else column
    if isinstance(element, Composite) and element.children and element.signature[0] in (list, tuple):
        parts = [_of_element(child, columns) for child in element.children]
        target = reduce(torch.promote_types, (part.dtype for part in parts))
        return torch.stack([part.to(target) for part in parts], 1)
    raise GrownListError("torch.tensor() of a list of objects", hint="make it a list of numbers or tuples of numbers")
