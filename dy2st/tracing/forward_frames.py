"""What torch records of where a node comes from, without a look at all that is running.

While it traces, torch notes with each node the frames of functions called ``forward``. It gets them by making a
summary of the whole stack, each frame with its line of source, and throwing away nearly all of it: a tenth of the time
of an export, in which a hundred functions are running. Here frames are looked at by name first.

Source: ``TracerBase.create_node`` and ``_filter_traceback_frames`` of torch 2.13.
"""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any

from torch import fx
from torch.fx.experimental.symbolic_shapes import uninteresting_files
from torch.fx.proxy import _STACK_TRACE_ANCHORS


def noting_forward_frames(tracer: Any) -> Callable[..., fx.Node]:
    """The ``create_node`` of a tracer that records such frames: it notes the same, and the tracer itself none."""
    create_node: Callable[..., fx.Node] = tracer.create_node
    if not (tracer.record_stack_traces and tracer._record_forward_stack_traces_only):
        return create_node
    tracer.record_stack_traces = False

    @functools.wraps(create_node)
    def create(*args: Any, **kwargs: Any) -> fx.Node:
        node = create_node(*args, **kwargs)
        if not node.stack_trace:
            found = forward_frames(sys._getframe(1))
            if found:
                node.stack_trace = found
        return node

    return create


def forward_frames(frame: FrameType | None) -> str:
    """The traceback that torch would keep of this frame and its callers, the outermost first."""
    kept: list[traceback.FrameSummary] = []
    hidden = uninteresting_files()
    while frame is not None:
        code = frame.f_code
        file, name = code.co_filename, code.co_name
        counts = name == "forward" or file.endswith("torch/__init__.py") or (file, name) in _STACK_TRACE_ANCHORS
        if counts and file not in hidden:
            kept.append(traceback.FrameSummary(file, frame.f_lineno, name))
        frame = frame.f_back
    return "".join(traceback.StackSummary.from_list(reversed(kept)).format()).strip()
