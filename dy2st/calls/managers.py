"""``with`` under a capture: managers are converted code, and none may hide what staging has to see."""

from __future__ import annotations

import contextlib
import sys
import warnings
from types import TracebackType
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from dy2st.calls.outside_world import Constants
from dy2st.calls.swallowing import may_swallow
from dy2st.errors import UnguardedError
from dy2st.operators.export_session import current
from dy2st.operators.jumps import Jump
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.refusals import caught_outside, is_refusal
from dy2st.staging.session import Session
from dy2st.staging.trace_frame import Watch
from dy2st.staging.untracked_mutation import refuse_registering
from dy2st.tracing.grad_mode import gradient_mode

# Managers that let every exception pass.
TRANSPARENT = (
    contextlib.nullcontext,
    contextlib.closing,
    contextlib.redirect_stdout,
    contextlib.redirect_stderr,
)
TRANSPARENT_PACKAGES = ("torch", "threading", "_thread")


class CapturedManager:
    """The context manager of one ``with`` statement."""

    def __init__(self, capture: Session, manager: Any) -> None:
        self.capture = capture
        self.manager = manager
        self.depth = capture.depth
        self.frame = sys._getframe(3)
        self.mode = gradient_mode().enabled
        kind = type(manager)
        transparent = isinstance(manager, TRANSPARENT) or kind.__module__.split(".")[0] in TRANSPARENT_PACKAGES
        self.watches = not transparent and may_swallow(manager)
        capture.convert_class(kind)

    def __enter__(self) -> Any:
        manager = self.manager
        if isinstance(manager, torch.inference_mode):
            # Its tensors are no others in a graph; that they carry no gradient is what matters.
            self.mode, gradient_mode().enabled = gradient_mode().enabled, gradient_mode().enabled and not manager.mode
            return None
        if isinstance(manager, warnings.catch_warnings) and not current().part(Constants).everything:
            _require_no_list(manager)
        self.capture.managers.append(manager)
        entered = type(manager).__enter__(manager)
        if self.watches:
            kinds = ("",) if isinstance(manager, contextlib.suppress) else ()
            self.capture.watched.append(Watch(self.depth, kinds))
        return entered

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        manager, capture = self.manager, self.capture
        if isinstance(manager, torch.inference_mode):
            gradient_mode().enabled = self.mode
            return False
        capture.managers.pop()
        if self.watches:
            capture.watched.pop()
        if isinstance(manager, RemovableHandle):
            refuse_registering(capture, manager, "__exit__")
        if isinstance(error, Jump):
            # In eager code a break, continue or return leaves without an exception.
            type(manager).__exit__(manager, None, None, None)
            return False
        swallowed = bool(type(manager).__exit__(manager, kind, error, trace))
        if not swallowed or is_refusal(error):
            return False
        if capture.depth != self.depth:
            raise caught_outside(self.frame)
        return True


def _require_no_list(manager: warnings.catch_warnings[Any]) -> None:
    """Refuse a list of the warnings of a block: a program has those of its capture."""
    if getattr(manager, "_record", False):
        raise UnguardedError(
            "catch_warnings(record=True) makes a list of warnings, which are others when the program runs",
            hint="make it around the call of the static function",
            location=location_of(users_frame()),
        )
