"""``torch._foreach_*``, which optimisers call: one function of many tensors, in an export called for each of them.

A static program keeps them, for they save calls of kernels; ONNX has nothing of the kind.

Source: ``aten/src/ATen/native/ForeachOpsKernels.cpp`` of torch 2.13, whose slow path is this loop.
"""

from __future__ import annotations

from typing import Any

import torch

from dy2st.calls.outside_world import Constants
from dy2st.calls.torch_functions.registry import replaces
from dy2st.operators.export_session import current

_PREFIX = "_foreach_"


def _norm(tensor: torch.Tensor, ord: Any = 2, dtype: torch.dtype | None = None) -> torch.Tensor:  # noqa: A002
    made: torch.Tensor = torch.linalg.vector_norm(tensor, ord, dtype=dtype)
    return made


def _powsum(tensor: torch.Tensor, ord: Any = 2, dtype: torch.dtype | None = None) -> torch.Tensor:  # noqa: A002
    return tensor.abs().pow(ord).sum(dtype=dtype)


_OF_ONE: dict[str, Any] = {"norm": _norm, "powsum": _powsum, "pow": torch.pow}
# Tensors have a method of the name for tensors only.
_OF_NUMBERS = {"maximum": "clamp_min", "minimum": "clamp_max", "maximum_": "clamp_min_", "minimum_": "clamp_max_"}


def _single(name: str) -> Any:
    """The function of one tensor that a function of many calls for each; None if there is none."""
    return _OF_ONE.get(name) or getattr(torch.Tensor, _OF_NUMBERS.get(name, name), None)


def _of_each(name: str, native: Any) -> None:
    single = _single(name)
    if single is None:
        return

    @replaces(native)
    def each(*args: Any, **kwargs: Any) -> Any:
        first = next((arg for arg in args if isinstance(arg, (list, tuple))), None)
        if first is None or not current().part(Constants).everything:
            return NotImplemented
        scalars = kwargs.pop("scalars", None)
        if scalars is not None:
            args = (*args, scalars)
        if name.startswith(("addcdiv", "addcmul")) and len(args) == 4 and isinstance(args[3], torch.Tensor):
            args = (*args[:3], list(args[3]))
        made = [
            _call(single, name, [_at(arg, i) for arg in args], {key: _at(arg, i) for key, arg in kwargs.items()})
            for i in range(len(first))
        ]
        return None if name.endswith("_") else made


def _at(argument: Any, place: int) -> Any:
    return argument[place] if isinstance(argument, (list, tuple)) else argument


def _call(single: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    if name.startswith(("addcdiv", "addcmul")) and len(args) == 4:
        return single(*args[:3], value=args[3], **kwargs)
    return single(*args, **kwargs)


for _name in [name for name in vars(torch) if name.startswith(_PREFIX)]:
    _of_each(_name.removeprefix(_PREFIX), getattr(torch, _name))
