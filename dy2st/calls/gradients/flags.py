"""``requires_grad`` and its kind under a capture, which runs without autograd: kept as marks on the trace.

A tensor that is told to want a gradient is an alias of what it was from then on, so that what was computed of it before
has no part in its gradient.

Source: ``torch.Tensor.requires_grad_``, ``is_leaf`` and ``retain_grad`` of torch 2.13.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import FrameType
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from dy2st.calls.outside_world import Constants
from dy2st.calls.torch_functions.gradient_marks import Leaves, mark, remember
from dy2st.calls.torch_functions.registry import replaces
from dy2st.errors import LostStateError, NoGradientError
from dy2st.operators.export_session import current
from dy2st.source.user_frames import is_users_frame, location_of, users_frame
from dy2st.staging.session import MODE, Session
from dy2st.tracing.grad_mode import ASKED, gradient_mode
from dy2st.tracing.outside_tensors import outside_node
from dy2st.tracing.wanted_gradients import (
    LEAF,
    Carried,
    is_leaf,
    is_real,
    is_uncertain,
    placeholders_behind,
    wants_gradient,
)

# Of the class, an attribute is a descriptor.
ATTRIBUTES: Any = torch.Tensor


def wants(capture: Session, node: fx.Node, *, told: bool = True) -> bool:
    """Whether the value of a node wants a gradient; what a loop carries is noted if the answer is ``told``.

    Raises:
        NoGradientError: that is data-dependent.
    """
    made_on = LEAF in node.meta or ASKED in node.meta or node.op != "call_function"
    if told and not gradient_mode().ambient and not made_on:
        return False  # computed in a call that is made without gradients
    carried, root = current().part(Carried), capture.tracing.tracer.root
    decides = not told or _decides()
    if told and decides:
        here = location_of(users_frame())
        placed = [each for each in placeholders_behind([node], (), root) if is_carried(capture, each)]
        carried.asked.update({each: here for each in placed if each not in carried.asked})
    found = wants_gradient(node, root)
    if not found and decides and is_uncertain(node, root):
        raise NoGradientError(
            "whether a tensor wants a gradient is data-dependent: it is told so under a tensor condition or in a loop",
            hint="tell a tensor of its own there: x = x.detach().requires_grad_()",
        )
    return found


def may_want_gradients(capture: Session, values: Iterable[Any]) -> bool:
    """Whether some of these values may be tensors that want gradients, with gradients on."""
    mode = gradient_mode()
    if not mode.enabled or not (mode.ambient or mode.asked):
        return False
    nodes = [differentiable_node(capture, each) for each in values if isinstance(each, torch.Tensor)]
    try:
        return any(wants(capture, node) for node in nodes if node is not None)
    except NoGradientError:  # data say so
        return True


def is_carried(capture: Session, node: fx.Node) -> bool:
    """Whether a node is a value at the head of an iteration of a loop."""
    return node.op == "placeholder" and node.graph is not capture.tracing.root.graph


@replaces(torch.Tensor.requires_grad_)
def _requires_grad(tensor: torch.Tensor, requires_grad: bool = True) -> Any:
    capture, node = MODE.capture, _node_of(tensor)
    if capture is None:
        return NotImplemented
    if is_given(capture, tensor):
        return _told(capture, tensor, bool(requires_grad))
    if node is None or not is_real(node):
        return NotImplemented
    # What is not known for sure becomes so.
    wanted = wants_gradient(node, capture.tracing.tracer.root)
    if is_carried(capture, node):
        current().part(Carried).told.setdefault(node, location_of(users_frame()))
    if wanted is bool(requires_grad):
        return tensor
    if wanted and not is_leaf(node):
        raise RuntimeError("you can only change requires_grad flags of leaf variables.")
    mark(capture, tensor, leaf=bool(requires_grad))
    return tensor


def is_given(capture: Session, tensor: torch.Tensor) -> bool:
    """Whether a tensor is there before a call in whose place a program is to run."""
    if current().part(Constants).everything:
        return False
    return capture.shared_inputs.is_one(tensor) or not isinstance(tensor, FakeTensor)


def _told(capture: Session, tensor: torch.Tensor, wanted: bool) -> torch.Tensor:
    """A tensor that was there before is told what it wants: nothing happens if it wants that already."""
    with torch._C.DisableTorchFunction():
        if capture.shared_inputs.real(tensor).requires_grad is not wanted:
            raise LostStateError(
                "an input, a parameter or a buffer is told whether it wants a gradient, which a program does not tell "
                "it",
                hint="tell it before the call, or tell a copy: x.detach().requires_grad_()",
                location=location_of(users_frame()),
            )
    return tensor


@replaces(ATTRIBUTES.requires_grad.__get__)
def _wants(tensor: torch.Tensor) -> Any:
    capture, node = MODE.capture, _node_of(tensor)
    return NotImplemented if capture is None or node is None else wants(capture, node)


@replaces(ATTRIBUTES.is_leaf.__get__)
def _is_leaf(tensor: torch.Tensor) -> Any:
    capture, node = MODE.capture, _node_of(tensor)
    return NotImplemented if capture is None or node is None else not wants(capture, node) or is_leaf(node)


@replaces(ATTRIBUTES.grad_fn.__get__)
def _grad_fn(tensor: torch.Tensor) -> Any:
    capture, node = MODE.capture, _node_of(tensor)
    if capture is None or node is None:
        return NotImplemented
    if not wants(capture, node) or is_leaf(node):
        return None
    return GradFn()


class GradFn:
    """Stands for the ``grad_fn`` of a tensor that has one: it is there, and more a trace does not know of it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NoGradientError(
            f"the model reads {name} of the grad_fn of a tensor, which is a node of autograd's own graph",
            hint="ask requires_grad, or is_leaf",
        )


def _hooked(tensor: torch.Tensor, *_: Any) -> Any:
    capture, node = MODE.capture, _node_of(tensor)
    if capture is None or (node is None and isinstance(tensor, FakeTensor)):
        return NotImplemented
    if node is None:
        with torch._C.DisableTorchFunction():
            wanted = tensor.requires_grad
    else:
        wanted = wants(capture, node)
    if not wanted:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    raise NoGradientError(
        "a hook is put on the gradient of a tensor, which a graph can't call",
        hint="take the gradient with torch.autograd.grad, and change what it gives",
    )


def differentiable_node(capture: Session, tensor: torch.Tensor) -> fx.Node | None:
    """The node of a tensor by which a gradient is taken, or of which one is."""
    node = capture.tracing.node_of(tensor)
    return outside_node(capture.tracing, tensor) if node is None else node


def _node_of(tensor: torch.Tensor) -> fx.Node | None:
    return None if MODE.capture is None else MODE.capture.tracing.node_of(tensor)


def _decides() -> bool:
    """Whether who asks makes results depend on it: other code of torch's chooses between ways to compute the same."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "__torch_function__":
        frame = frame.f_back
    asks = None if frame is None else frame.f_back
    return asks is not None and (
        is_users_frame(asks) or str(asks.f_globals.get("__name__")).startswith("torch.autograd")
    )


def _of_memory(name: str) -> Any:
    def asked(tensor: torch.Tensor) -> Any:
        capture, node = MODE.capture, _node_of(tensor)
        known = capture is None or (node is None and isinstance(tensor, FakeTensor))
        if known or current().part(Constants).everything or not _decides():
            return NotImplemented
        raise NoGradientError(
            f"the model reads {name} of a tensor, which autograd keeps of it, and a program does not know",
            hint="ask outside, and pass in what follows from it",
        )

    return asked


for _name in ("_version", "_base", "retains_grad"):
    replaces(getattr(ATTRIBUTES, _name).__get__)(_of_memory(_name))

for _name in ("register_hook", "register_post_accumulate_grad_hook"):
    replaces(getattr(torch.Tensor, _name))(_hooked)


@replaces(torch.Tensor.retain_grad)
def _retain_grad(tensor: torch.Tensor) -> Any:
    capture = MODE.capture
    node = None if capture is None else differentiable_node(capture, tensor)
    if capture is None or node is None:
        return NotImplemented
    if not wants(capture, node):
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if is_leaf(node) and node in current().part(Carried).wanting:
        return None  # it keeps its gradient in any case
    if is_given(capture, tensor):
        raise LostStateError(
            "a tensor that was there before the call is told to keep its gradient, which a program does not tell it",
            hint="call retain_grad() before the call",
            location=location_of(users_frame()),
        )
    remember(tensor)
    if not is_leaf(node):
        current().part(Leaves).retained[id(tensor)] = location_of(users_frame())
    return None
