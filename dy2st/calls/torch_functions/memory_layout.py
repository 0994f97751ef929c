"""How a tensor lies in memory, where the user's code asks for it, or says it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from dy2st.calls.torch_functions.registry import ints, replaces
from dy2st.errors import StagedNumberError
from dy2st.operators.export_session import current
from dy2st.source.user_frames import is_users_frame, location_of, users_frame
from dy2st.staging.session import MODE
from dy2st.tracing.emission import fresh_copy
from dy2st.tracing.layouts import Layouts, lies_by_path, rests_on_path
from dy2st.tracing.size_facts import expression
from dy2st.tracing.subgraph import storage_key

ATEN = torch.ops.aten
_CALLS = str(Path(__file__).parents[1])
# Torch's own modules, which are written as a user would.
_MODULES = str(Path(torch.nn.__file__).parent)


@replaces(torch.Tensor.is_contiguous, torch.Tensor.stride, torch.Tensor.storage_offset)
def asked(tensor: torch.Tensor, *_: Any, **__: Any) -> Any:
    """What is known of a layout when the program is captured has to be so when it runs."""
    # a trace asks all along, so that it matters who does: converted code calls through functions of this package
    caller: FrameType | None = sys._getframe(4)
    while caller is not None and caller.f_code.co_filename.startswith(_CALLS):
        caller = caller.f_back
    if caller is None:
        return NotImplemented
    if is_users_frame(caller):
        _note(tensor, caller)
    elif caller.f_code.co_filename.startswith(_MODULES):
        current().part(Layouts).note(None)
    return NotImplemented


def _note(tensor: torch.Tensor, frame: FrameType) -> None:
    """The user's code rests on how a tensor lies: what no path has handed on lies as in eager."""
    assert MODE.capture is not None
    node = MODE.capture.tracing.node_of(tensor)
    if node is not None and rests_on_path(node, MODE.capture.tracing.root.graph):
        current().part(Layouts).note(location_of(frame))


@replaces("contiguous")
def contiguous(input: torch.Tensor, memory_format: Any = torch.contiguous_format) -> Any:  # noqa: A002
    """``Tensor.contiguous``: as an operator, which looks at the strides when it runs.

    Torch's own does nothing, not even for a trace, with what is contiguous as far as that knows.
    """
    if not current().part(Layouts).by_path:
        return NotImplemented if ints(*input.shape) else ATEN.contiguous.default(input, memory_format=memory_format)
    if _is_so_on_every_path(input, memory_format):
        return NotImplemented  # the tensor itself, as the code may ask
    # of a tensor of its own: the operator may give back the tensor itself, which goes on as it lies
    return ATEN.contiguous.default(ATEN.alias.default(input), memory_format=memory_format)


def _is_so_on_every_path(tensor: torch.Tensor, memory_format: Any) -> bool:
    """Whether a tensor is contiguous whatever path has been taken."""
    if not ints(*tensor.shape, *tensor.stride()):
        return False
    with torch._C.DisableTorchFunction():
        if not tensor.is_contiguous(memory_format=memory_format):
            return False
    assert MODE.capture is not None
    node = MODE.capture.tracing.node_of(tensor)
    return node is None or not rests_on_path(node, MODE.capture.tracing.root.graph)


# What gives a view of its operand, or a copy, by how that lies.
_MAYBE_VIEWS = frozenset("reshape reshape_as flatten ravel contiguous".split())


def apart_by_path(name: str, args: tuple[Any, ...], result: Any) -> Any:
    """The result of a function of this name: a tensor of its own, if it is a view on some paths and a copy on others.

    Who writes to it, or to what it is made of, is refused where the other one is used again.
    """
    capture = MODE.capture
    if name not in _MAYBE_VIEWS or capture is None or not isinstance(result, torch.Tensor) or not args:
        return result
    if capture.depth == 1 and not capture.subgraph.modules:
        return result  # there is one path so far
    operand = args[0]
    node = capture.tracing.node_of(operand) if isinstance(operand, torch.Tensor) else None
    if node is None or not lies_by_path(node, capture.tracing.tracer.root, capture.tracing.root.graph):
        return result
    if storage_key(result) == storage_key(operand):
        result = fresh_copy(result)
    capture.aliases.is_one_of(result, operand)
    return result


@replaces("as_strided")
def as_strided(
    input: torch.Tensor,  # noqa: A002
    size: Any,
    stride: Any,
    storage_offset: int | None = None,
) -> Any:
    """``torch.as_strided``: of the elements in the order in which they lie in memory, which is all that a file has.

    Raises:
        StagedNumberError: the tensor has gaps in memory, or elements that are one, or it is asked for what lies outside
            of it.
    """
    if storage_offset is None and all(isinstance(each, int) and each == 1 for each in size):
        # the first element, however the others lie
        first = input
        while first.dim():
            first = first.select(0, 0)
        return first.view(size)
    frame = users_frame()
    if frame is not None:
        _note(input, frame)
    order = _order_in_memory(input)
    start = 0 if storage_offset is None else storage_offset - input.storage_offset()
    if order is None or (isinstance(start, int) and start < 0) or _reaches_beyond(input, size, stride, start):
        raise StagedNumberError(
            "as_strided() asks for what lies beside a tensor's own elements in memory, or between them",
            hint="call it on x.contiguous(), or use unfold() or slices",
        )
    # an operator of a file counts from the first element that it is given
    return ATEN.as_strided.default(input.permute(order).reshape(-1)[start:], size, stride)


def _order_in_memory(tensor: torch.Tensor) -> list[int] | None:
    """A tensor's dimensions, so that its elements lie one behind the other; None if no order does that."""
    strides = tensor.stride()
    if not ints(*tensor.shape, *strides):
        # torch would decide by the sizes of the example; a dimension's place is as it stands
        return list(range(tensor.dim())) if _in_order(tensor.shape, strides) else None
    order = sorted(range(tensor.dim()), key=lambda dim: (strides[dim], tensor.shape[dim] > 1), reverse=True)
    return order if _in_order([tensor.shape[dim] for dim in order], [strides[dim] for dim in order]) else None


def _in_order(sizes: Any, strides: Any) -> bool:
    step: Any = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if isinstance(size, int) and size == 1:
            continue
        if expression(stride) != expression(step):
            return False
        step = step * size
    return True


def _reaches_beyond(tensor: torch.Tensor, size: Any, stride: Any, start: Any) -> bool:
    """Whether it is known that elements are asked for which are in the tensor's memory, but not in the tensor."""
    if not ints(*tensor.shape, *size, *stride, start) or 0 in size:
        return False
    return bool(start + sum((n - 1) * step for n, step in zip(size, stride, strict=True)) >= tensor.numel())
