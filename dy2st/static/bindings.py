"""Torch's own Python functions in place of operator overloads: the same kernels, at half of the cost of a call.

``torch.ops.aten.add.Tensor(x, y)`` parses a schema in each call; ``torch.add(x, y)`` is generated from the same
schema, and takes its arguments in the same order. What has no such function, or one that is written by hand, is called
as it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch._ops import OpOverload

from dy2st.tracing.custom_functions import CustomFunction
from dy2st.tracing.guards import guard_error, require_op

ATEN = torch.ops.aten


def _require(ok: Any, message: str) -> None:
    """A guard, of a tensor or of Python's bool."""
    if not ok:
        raise guard_error(message)


# Functions of Python that are written by hand, or take their arguments in another way than the schema says.
_BY_HAND = frozenset(
    "range linspace logspace full randint rand randn randperm tensor size stride numel item to _to_copy "
    "new_tensor copy_ contiguous nonzero requires_grad_ set_ resize_ split quantize_per_tensor sparse_coo_tensor "
    "unique_consecutive stft istft einsum tensordot cdist".split()
)
_OVERLOADS: dict[Any, Callable[..., Any]] = {
    ATEN.item.default: torch.Tensor.item,
    ATEN._local_scalar_dense.default: torch.Tensor.item,
    ATEN.sym_size.int: torch.Tensor.size,
    ATEN.sym_numel.default: torch.Tensor.numel,
    ATEN.sym_stride.int: torch.Tensor.stride,
    ATEN.sym_storage_offset.default: torch.Tensor.storage_offset,
    ATEN.lift_fresh_copy.default: torch.clone,
    ATEN.copy_.default: torch.Tensor.copy_,
    ATEN.to.dtype: torch.Tensor.to,
    ATEN.full.default: torch.full,
    require_op: _require,
}


def called(target: Any) -> Any:
    """What to call for a node of a graph."""
    if isinstance(target, CustomFunction):
        return target.apply
    return binding(target) if isinstance(target, OpOverload) else target


@functools.cache
def binding(operator: OpOverload) -> Callable[..., Any]:
    """What to call in place of an operator overload, with its arguments as they stand in a graph."""
    if operator in _OVERLOADS:
        return _OVERLOADS[operator]
    namespace, _, name = operator._schema.name.partition("::")
    if namespace != "aten" or name in _BY_HAND or name.startswith("__") or _takes_gaps(operator):
        return operator
    for home in (torch._C._VariableFunctions, torch._C._nn, torch._C.TensorBase):
        found = getattr(home, name, None)
        if callable(found) and (home is not torch._C.TensorBase or _takes_a_tensor_first(operator)):
            return found  # type: ignore[no-any-return]
    return operator


def unread_defaults(operator: Any, given: int, names: Collection[str]) -> dict[str, Any]:
    """The defaults that torch's own functions do not have, of arguments that a call of an operator leaves out.

    A schema's ``reduction=Mean`` is ``at::Reduction::Mean`` in what torch's parser reads, which takes that for 0.
    """
    if not isinstance(operator, OpOverload):
        return {}
    left_out = operator._schema.arguments[given:]
    return {each.name: each.default_value for each in left_out if each.name == "reduction" and each.name not in names}


def _takes_gaps(operator: OpOverload) -> bool:
    """Whether an operator takes lists in which tensors may be missing: torch's functions take no None first in them."""
    return any(str(each.type) == "List[Optional[Tensor]]" for each in operator._schema.arguments)


def _takes_a_tensor_first(operator: OpOverload) -> bool:
    arguments = operator._schema.arguments
    return bool(arguments) and arguments[0].name == "self" and str(arguments[0].type) == "Tensor"
