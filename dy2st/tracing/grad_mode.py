"""Whether the user's code has gradients on while it is captured.

A capture runs without autograd; ``torch.no_grad()`` and its kind only switch the mode that is kept here, and each node
knows in which mode it was made.

Whether the call of a static function has gradients is the caller's business: a program runs in either mode. So a
capture starts with gradients on; but where the call has none and the user's code switches them on for a while, the
capture starts without, and the program is run with gradients on.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

import torch
from torch import fx

from dy2st.operators.export_session import current
from dy2st.plan import plan
from dy2st.source.user_frames import is_users_frame
from dy2st.tracing.autocast import visible_casts
from dy2st.tracing.replaced import replaced

STOPPED = "dy2st_no_grad"
# On what is made with gradients that were switched on in a call that has none.
ASKED = "dy2st_asked"
# On what the forward of a torch.autograd.Function computes: the calls that it is a part of, outermost first.
OWN_BACKWARD = "dy2st_own_backward"
# Marks a copy that a capture makes where eager hands a tensor on as it is: out of a branch, into a loop.
HANDED_ON = "dy2st_handed_on"
# Marks a copy that a capture makes where eager writes to a tensor itself, in an arm or in a loop.
WORKED_ON = "dy2st_worked_on"


@dataclass(frozen=True, eq=False)
class FunctionCall:
    """One call of a torch.autograd.Function."""

    name: str


class GradientMode:
    """Whether the user's code that is being captured has gradients on, and whether nodes are its own.

    ``differentiated`` says whether the program is to have eager's gradients: None, and not zeros, where eager has none.
    """

    def __init__(self, *, differentiated: bool = False) -> None:
        self.differentiated = differentiated
        self.enabled = True
        # Whether what the user's code computes may have gradients at all, by the mode of the call.
        self.ambient = True
        # Whether the user's code has switched them on, in a call that has none; and what that was before each switch.
        self.asked = False
        self.asked_before: list[bool] = []
        self.emitting = 0
        # The calls of torch.autograd.Functions that are running.
        self.functions: tuple[FunctionCall, ...] = ()

    def note(self, node: fx.Node) -> None:
        """A node has been made."""
        if self.emitting and node.target is torch.ops.aten.clone.default:
            node.meta[HANDED_ON] = True
        if not self.enabled and not self.emitting and node.op == "call_function":
            node.meta[STOPPED] = True
        if self.asked and not torch.is_inference_mode_enabled():
            node.meta[ASKED] = True
        if self.functions and node.op == "call_function":
            node.meta[OWN_BACKWARD] = self.functions


def gradient_mode() -> GradientMode:
    """That of the running export."""
    return current().part(GradientMode)


@contextlib.contextmanager
def emitting() -> Iterator[None]:
    """The nodes made here hand values on; no code of the user's computes them."""
    mode = gradient_mode()
    mode.emitting += 1
    try:
        yield
    finally:
        mode.emitting -= 1


@contextlib.contextmanager
def stopped() -> Iterator[None]:
    """What is computed here has no gradient, whatever the mode is: a number that was read from a tensor."""
    mode = gradient_mode()
    before, mode.enabled = mode.enabled, False
    try:
        yield
    finally:
        mode.enabled = before


@contextlib.contextmanager
def inside_function(name: str) -> Iterator[None]:
    """The forward of a torch.autograd.Function runs, which has a derivative of its own."""
    mode = gradient_mode()
    before = mode.functions
    mode.functions = (*before, FunctionCall(name))
    try:
        yield
    finally:
        mode.functions = before


def function_left(node: fx.Node) -> str | None:
    """The torch.autograd.Function that a node is a part of, unless its forward is still running; or None."""
    running = gradient_mode().functions
    return next((each.name for each in node.meta.get(OWN_BACKWARD, ()) if each not in running), None)


NATIVE = torch.is_grad_enabled


@contextlib.contextmanager
def without_gradients() -> Iterator[None]:
    """Without autograd, where torch's context managers find what autograd itself does, not the user's mode."""
    before = NATIVE()
    with replaced([(torch, "is_grad_enabled", NATIVE)]):
        torch._C._set_grad_enabled(False)
        try:
            yield
        finally:
            torch._C._set_grad_enabled(before)


def mode_of_managers() -> bool:
    """What ``torch.no_grad()`` and its kind find when they are entered, and put back when they are left."""
    return NATIVE() if current().capture is None else gradient_mode().enabled


def set_mode(enabled: bool) -> None:
    """The user's code, or one of torch's managers in it, switches gradients on or off."""
    mode = gradient_mode()
    if _is_put_back():
        mode.asked = mode.asked_before.pop() if mode.asked_before else False
    else:
        mode.asked_before.append(mode.asked)
        mode.asked = enabled and not mode.ambient
        if mode.asked and mode.differentiated and not torch.is_inference_mode_enabled():
            plan().switch_gradients_on()
    mode.enabled = enabled


def mode_left() -> bool | None:
    """The mode that the user's code has left, where that is not the one in which it began."""
    mode = gradient_mode()
    return mode.enabled if mode.enabled is plan().switches_gradients_on else None


def _is_put_back() -> bool:
    """Whether one of torch's managers is left at present."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users_frame(frame):
        if frame.f_code.co_name == "__exit__" and frame.f_globals.get("__name__") == torch.no_grad.__module__:
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def watching_gradients(ambient: bool) -> Iterator[None]:
    """A capture starts in its mode; ``torch.is_grad_enabled`` tells torch's own context managers our mode.

    The casts of that other mode, autocast, are made visible too.
    """
    mode = gradient_mode()
    switched = plan().switches_gradients_on
    mode.enabled, mode.ambient = not switched, ambient or switched
    with replaced([(torch, "is_grad_enabled", mode_of_managers)]), visible_casts():
        yield
