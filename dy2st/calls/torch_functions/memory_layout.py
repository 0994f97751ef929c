"""How a tensor lies in memory, where the user's code asks for it, or says it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from dy2st.calls.torch_functions.registry import ints, replaces
from dy2st.operators.export_session import current
from dy2st.source.user_frames import is_users_frame, location_of
from dy2st.tracing.layouts import Layouts

ATEN = torch.ops.aten
_CALLS = str(Path(__file__).parents[1])
# Torch's own modules, which are written as a user would.
_MODULES = str(Path(torch.nn.__file__).parent)


@replaces(torch.Tensor.is_contiguous, torch.Tensor.stride, torch.Tensor.storage_offset)
def asked(*_: Any, **__: Any) -> Any:
    """What is known of a layout when the program is captured has to be so when it runs."""
    # a trace asks all along, so that it matters who does: converted code calls through functions of this package
    caller: FrameType | None = sys._getframe(4)
    while caller is not None and caller.f_code.co_filename.startswith(_CALLS):
        caller = caller.f_back
    if caller is None:
        return NotImplemented
    if is_users_frame(caller):
        current().part(Layouts).note(location_of(caller))
    elif caller.f_code.co_filename.startswith(_MODULES):
        current().part(Layouts).note(None)
    return NotImplemented


@replaces("contiguous")
def contiguous(input: torch.Tensor, memory_format: Any = torch.contiguous_format) -> Any:  # noqa: A002
    """``Tensor.contiguous``: as an operator, which looks at the strides when it runs.

    Torch's own does nothing, not even for a trace, with what is contiguous as far as that knows.
    """
    if not current().part(Layouts).by_path:
        return NotImplemented if ints(*input.shape) else ATEN.contiguous.default(input, memory_format=memory_format)
    # of a tensor of its own: the operator may give back the tensor itself, which goes on as it lies
    return ATEN.contiguous.default(ATEN.alias.default(input), memory_format=memory_format)
