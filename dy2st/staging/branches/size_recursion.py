"""A recursion whose depth a size decides: it ends while the program is captured where the size has a largest value.

def total(x):
if x.shape[0] < 2:
return x
return total(x[::2] + x[1::2])  # each call under the condition that the size is at least 2, 4, 8 ...
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import Any

import torch
from torch.utils._sympy.numbers import int_oo

from dy2st.errors import RecursionDepthError
from dy2st.source.user_frames import frames, location_of
from dy2st.staging.session import Session

# A function with so many open calls halves no tensor that fits into a memory.
_MOST_CALLS = 32
_LARGEST = 1 << 62


def check_depth(capture: Session, test: torch.Tensor, frame: FrameType) -> None:
    """Raise ``RecursionDepthError`` if the branch on ``test`` is one of many calls deep, and no size ends them."""
    if len(capture.trace_frames) < _MOST_CALLS:
        return
    if sum(each.f_code is frame.f_code for each in frames(frame)) < _MOST_CALLS:
        return
    if any(_is_unbounded(capture, symbol) for symbol in _sizes(capture, test)):
        raise RecursionDepthError(
            f"{frame.f_code.co_qualname}() calls itself, and a size without a largest value decides how deeply",
            hint='declare the largest one: dynamic_shapes={"x": {0: torch.export.Dim("n", max=1024)}}; or write a '
            "while loop",
            location=location_of(frame),
        )


def _sizes(capture: Session, test: torch.Tensor) -> Iterator[Any]:
    for value in (True, False):
        for fact in capture.tracing.said_by(test, value=value):
            if isinstance(fact, torch.SymBool):
                yield from fact.node.expr.free_symbols


def _is_unbounded(capture: Session, symbol: Any) -> bool:
    bounds = capture.tracing.shape_env.var_to_range.get(symbol)
    return bounds is None or bounds.upper is int_oo or bool(bounds.upper >= _LARGEST)
