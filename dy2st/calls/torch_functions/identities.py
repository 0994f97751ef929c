"""Torch functions that compute nothing: they give back a tensor, its memory, or what is known of it already.

Source: ``dropout`` in ATen's ``Dropout.cpp`` (torch 2.13), which returns its input itself unless it trains: a write to
the result is one to the input, while ``torch.export`` takes it for a new tensor.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.nn import functional

from dy2st.calls.builtins.copies import copied
from dy2st.calls.outside_world import Constants
from dy2st.calls.torch_functions.registry import known, replaces
from dy2st.errors import DataError
from dy2st.operators.export_session import current
from dy2st.staging.session import MODE
from dy2st.tracing.grad_mode import set_mode
from dy2st.values.stacked_list import has_rows
from dy2st.values.staged_text import unknown_part
from dy2st.values.tensor_literals import SEQUENCES, tensor_of

# By function: whether it trains where nothing is said of that.
DROPOUTS: dict[Any, bool] = {
    functional.dropout: True,
    functional.dropout1d: True,
    functional.dropout2d: True,
    functional.dropout3d: True,
    functional.alpha_dropout: False,
    functional.feature_alpha_dropout: False,
    torch.dropout: True,
    torch.feature_dropout: True,
    torch.alpha_dropout: True,
    torch.feature_alpha_dropout: True,
}


def _dropout(trains: bool) -> Any:
    def dropout(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip(("input", "p", "training"), args, strict=False)) | kwargs
        training = given.get("training", given.get("train", trains))
        drops_nothing = training is False and 0 <= given.get("p", 0.5) <= 1
        return given["input"] if drops_nothing and isinstance(given.get("input"), torch.Tensor) else NotImplemented

    return dropout


for _function, _trains in DROPOUTS.items():
    replaces(_function)(_dropout(_trains))


def _of_dtypes(function: Any) -> Any:
    """What torch says of dtypes is no value of the graph, though it has operators of these names."""

    def called(*args: Any, **kwargs: Any) -> Any:
        with disable_proxy_modes_tracing():
            return function(*args, **kwargs)

    return called


for _function in (torch.promote_types, torch.result_type, torch.can_cast):
    replaces(_function)(_of_dtypes(_function))


@replaces(torch.Tensor.new)
def _new(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """``tensor.new(list)``: in the tensor's own dtype; of a list with data-dependent numbers."""
    data = args[0] if len(args) == 1 and not kwargs else None
    listed = isinstance(data, SEQUENCES) and not isinstance(data, torch.Size)
    return tensor_of(data, tensor.dtype) if listed and (has_rows(data) or not known([data])) else NotImplemented


@replaces(torch.Tensor.__format__)
def _format(tensor: torch.Tensor, spec: str) -> Any:
    return unknown_part("tensor", format, tensor, spec)


@replaces(torch.Tensor.__repr__)
def _repr(tensor: torch.Tensor, *_: Any, **__: Any) -> Any:
    """Of a tensor of the world around, which is real while a program is captured, and an input of the program."""
    constants = current().part(Constants)
    fixed = constants.everything or (isinstance(tensor, FakeTensor) and not constants.speaks)
    return NotImplemented if fixed else unknown_part("tensor", repr, tensor)


@replaces(torch._C._set_grad_enabled)
def _set_grad_enabled(enabled: bool) -> None:
    set_mode(bool(enabled))


@replaces(torch.Tensor.data.__get__)  # type: ignore[attr-defined]
def _data(tensor: torch.Tensor, *_: Any) -> torch.Tensor:
    """The same memory, and known to the trace."""
    if isinstance(tensor, torch.nn.Parameter) and MODE.capture is not None and MODE.capture.depth > 1:
        raise DataError(
            "a parameter's data is used under a tensor condition or in a staged loop",
            hint="use the parameter itself, and keep what changes in a buffer",
        )
    return tensor.detach()


@replaces(torch.Tensor.data.__set__)  # type: ignore[attr-defined]
def _set_data(*_args: Any) -> None:
    raise DataError("the data of a tensor is replaced", hint="use copy_() to change its values, or assign a new tensor")


@replaces(torch.where)
def _where(condition: Any, *args: Any, **kwargs: Any) -> Any:
    """Eager still takes a byte mask; the decompositions don't."""
    is_byte = isinstance(condition, torch.Tensor) and condition.dtype is torch.uint8
    return torch.where(condition.to(torch.bool), *args, **kwargs) if is_byte else NotImplemented


@replaces(torch.Tensor.where)
def _where_of(tensor: torch.Tensor, condition: Any, other: Any) -> Any:
    return _where(condition, tensor, other)


@replaces(torch.Tensor.__deepcopy__, torch.nn.Parameter.__deepcopy__)
def _deepcopy(tensor: torch.Tensor, memo: dict[Any, Any]) -> Any:
    return copied(tensor, memo)


@replaces(torch.Tensor.__reduce_ex__, torch.nn.Parameter.__reduce_ex__)
def _reduce(tensor: torch.Tensor, *_: Any) -> Any:
    """Asked by ``copy.copy()``."""
    return torch.ops.aten.alias.default, (tensor,)


@replaces(torch.Tensor.random_)
def _random(tensor: torch.Tensor, *bounds: Any, generator: Any = None, **named: Any) -> Any:
    """With two bounds it is an operator called ``from``, which the text of a graph can't name."""
    bounds = (*bounds, *(named[name] for name in ("from", "to") if name in named))
    if len(bounds) != 2 or bounds[1] is None or generator is not None:
        return NotImplemented
    return tensor.copy_(torch.randint(*bounds, tensor.shape, dtype=tensor.dtype, device=tensor.device))
