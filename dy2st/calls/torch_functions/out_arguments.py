"""``torch.f(..., out=t)`` and ``t.resize_(...)``.

``out=``: the result is computed, then copied into ``t``, which is what eager leaves in it.

torch traces the ``out`` variant of an operator with a ``resize_`` in it, for which ONNX has nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dy2st.calls.torch_functions.registry import replaces
from dy2st.errors import DataError
from dy2st.tracing.tracer import same_size


def call_with_out(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``call(*args, **kwargs)`` with the tensor or tensors of its ``out`` argument written to; these are returned.

    Raises DataError where eager would resize or cast a tensor of ``out``.
    """
    kwargs = dict(kwargs)
    out = kwargs.pop("out")
    result = call(*args, **kwargs)
    if isinstance(out, torch.Tensor):
        _write(out, result)
    else:
        for target, value in zip(out, result, strict=True):
            _write(target, value)
    return out


def _write(out: torch.Tensor, value: torch.Tensor) -> None:
    alike = out.dtype is value.dtype and out.dim() == value.dim()
    if not alike or not all(map(same_size, out.shape, value.shape)):
        raise DataError(
            f"out= is a {out.dtype} tensor of shape {list(out.shape)}, the result a {value.dtype} tensor of shape "
            f"{list(value.shape)}: eager would resize or cast",
            hint="assign the result to the variable in place of out=, or give out= the result's shape and dtype",
        )
    out.copy_(value)


@replaces(torch.Tensor.resize_, torch.Tensor.resize_as_)
def resized(tensor: torch.Tensor, *size: Any, **kwargs: Any) -> torch.Tensor:
    """``t.resize_(size)`` or ``t.resize_as_(other)`` to the size that it has.

    Raises DataError for another size: a tensor of the graph keeps its own.
    """
    given = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    wanted = list(given.shape if isinstance(given, torch.Tensor) else given)
    if kwargs or len(wanted) != tensor.dim() or not all(map(same_size, tensor.shape, wanted)):
        raise DataError(
            f"a tensor of shape {list(tensor.shape)} is resized to {wanted}",
            hint="make a new tensor of that shape",
        )
    return tensor
