"""Lists that grow in a staged loop: one element of the list stands for all the rows that the loop appended.

The list object stays the user's own (aliases see it grow); torch functions that take lists of tensors, ``len``,
indexing and iteration in converted code know what the element stands for.
"""

from __future__ import annotations

from typing import Any

import torch

from dy2st.errors import GrownListError
from dy2st.graph.numbers import DTYPES, Number, number_kind, number_tensor


class Rows:
    """The rows of a tensor [n, ...] as that many elements of a list; ``kind`` is set for Python numbers."""

    def __init__(self, stack: torch.Tensor, length: Any, kind: type | None) -> None:
        self.stack = stack
        self.length = length
        self.kind = kind

    def element(self, index: Any) -> Any:
        """One of the rows, by its index (int or staged int)."""
        row = self.stack[index]
        return row if self.kind is None else Number(row, self.kind)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return call_with_rows(func, args, kwargs or {})

    def __repr__(self) -> str:
        return "<rows appended in a loop>"

    def _refuse(self) -> Any:
        raise GrownListError(
            "a list that grew in a staged loop is used in a way that needs its length",
            hint="torch.stack or torch.cat it, index it, take its len(), or iterate over it in converted code",
        )

    def __bool__(self) -> bool:
        return bool(self._refuse())

    def __iter__(self) -> Any:
        return self._refuse()

    def __eq__(self, other: object) -> bool:
        return self is other or bool(self._refuse())

    __hash__ = object.__hash__


def has_rows(value: list[Any]) -> bool:
    """Whether a list has elements that stand for several."""
    return any(type(v) is Rows for v in value)


def row_list(value: list[Any]) -> Rows:
    """All elements of such a list as one tensor of rows."""
    parts, length, kind = [], 0, None
    for element in value:
        if isinstance(element, Rows):
            parts.append(element.stack)
            length = length + element.length
            kind = element.kind
        else:
            row_kind = number_kind(element)
            row = element if isinstance(element, torch.Tensor) else number_tensor(element)
            parts.append(row.unsqueeze(0))
            length = length + 1
            kind = row_kind
    stack = parts[0] if len(parts) == 1 else torch.cat(parts, 0)
    return Rows(stack, length, kind)


def call_with_rows(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``torch.stack`` and its kind on a list that grew in a loop."""
    name = getattr(func, "__name__", "")
    values = list(args[0] if args else kwargs.get("tensors", kwargs.get("data", ())))
    if name in ("stack", "cat", "concat", "concatenate", "tensor", "as_tensor", "vstack", "row_stack", "hstack"):
        dim = kwargs.get("dim", args[1] if len(args) > 1 and isinstance(args[1], int) else 0)
        rows = row_list(values)
        stack = rows.stack
        if name in ("tensor", "as_tensor"):
            dtype = kwargs.get("dtype")
            if rows.kind is None and stack.dim() != 1:
                raise GrownListError("torch.tensor() of a list of tensors", hint="use torch.stack")
            natural = torch.get_default_dtype() if rows.kind is float else DTYPES.get(rows.kind or int, stack.dtype)
            return stack.to(dtype or (natural if rows.kind else stack.dtype))
        if name == "stack":
            return stack if dim == 0 else torch.movedim(stack, 0, dim)
        if name in ("vstack", "row_stack"):
            return stack if stack.dim() == 2 else stack.flatten(0, 1)
        if name == "hstack":
            dim = 0 if stack.dim() == 2 else 1
        dim = dim % (stack.dim() - 1)
        return torch.movedim(stack, 0, dim).flatten(dim, dim + 1)
    raise GrownListError(
        f"torch function {name!r} on a list that grew in a staged loop",
        hint="torch.stack the list first",
    )
