"""``requires_grad`` and its kind under a capture, which runs without autograd: kept as marks on the trace.

A tensor that is told to want a gradient is an alias of what it was from then on, so that what was computed of it before
has no part in its gradient.

Source: ``torch.Tensor.requires_grad_``, ``is_leaf`` and ``retain_grad`` of torch 2.13.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import fx

from dy2st.calls.torch_functions.registry import replaces
from dy2st.errors import LeakedValueError, NoGradientError
from dy2st.operators.export_session import current
from dy2st.staging.session import MODE, Session
from dy2st.tracing.grad_mode import STOPPED, emitting
from dy2st.tracing.gradients import DETACH
from dy2st.tracing.subgraph import written_inputs
from dy2st.tracing.wanted_gradients import LEAF, is_real, wants_gradient


class Leaves:
    """The tensors that were told to want a gradient, in order; a part of an export's session."""

    def __init__(self) -> None:
        self._known: list[weakref.ref[torch.Tensor]] = []

    def add(self, tensor: torch.Tensor) -> None:
        """One more."""
        self._known.append(weakref.ref(tensor))

    def alive(self) -> list[torch.Tensor]:
        """Those that somebody still has."""
        found = [tensor for each in self._known if (tensor := each()) is not None]
        return list({id(tensor): tensor for tensor in found}.values())


def is_leaf(node: fx.Node) -> bool:
    """Whether a node stands for a tensor at which a derivative ends, as it is after writes without gradients."""
    while STOPPED in node.meta and (targets := written_inputs(node)):
        node = targets[0]
    return node.meta.get(LEAF) is True or (node.op != "call_function" and wants_gradient(node))


@replaces(torch.Tensor.requires_grad_)
def _requires_grad(tensor: torch.Tensor, requires_grad: bool = True) -> Any:
    capture, node = MODE.capture, _node_of(tensor)
    if capture is None or node is None or not is_real(node):
        return NotImplemented
    wants = wants_gradient(node)
    if wants is bool(requires_grad):
        return tensor
    if wants and not is_leaf(node):
        raise RuntimeError("you can only change requires_grad flags of leaf variables.")
    mark(capture, tensor, wants=bool(requires_grad))
    return tensor


def mark(capture: Session, tensor: torch.Tensor, *, wants: bool) -> None:
    """Let a tensor want a gradient, or none, from now on.

    Raises:
        LeakedValueError: it is one from outside of an arm or a loop.
    """
    tracing = capture.tracing
    node = tracing.node_of(tensor)
    assert node is not None
    if node.graph is not tracing.layer.graph:
        raise LeakedValueError(
            "a tensor from outside is told under a tensor condition or in a staged loop whether it wants a gradient",
            hint="tell a tensor of its own: x = x.detach().requires_grad_()",
        )
    with emitting():
        alias = (torch.ops.aten.alias.default if wants else DETACH)(tensor)
    made = tracing.node_of(alias)
    assert made is not None
    made.meta[LEAF] = wants
    tracing.track(tensor, tracing.proxy_of(alias))
    if wants:
        current().part(Leaves).add(tensor)
        # An attribute that is None, and not one that is not there, is what branches and loops see.
        vars(tensor).setdefault("grad", None)


@replaces(torch.Tensor.requires_grad.__get__)  # type: ignore[attr-defined]
def _wants(tensor: torch.Tensor) -> Any:
    node = _node_of(tensor)
    return NotImplemented if node is None else wants_gradient(node)


@replaces(torch.Tensor.is_leaf.__get__)  # type: ignore[attr-defined]
def _is_leaf(tensor: torch.Tensor) -> Any:
    node = _node_of(tensor)
    return NotImplemented if node is None else not wants_gradient(node) or is_leaf(node)


@replaces(torch.Tensor.grad_fn.__get__)  # type: ignore[attr-defined]
def _grad_fn(tensor: torch.Tensor) -> Any:
    node = _node_of(tensor)
    if node is None:
        return NotImplemented
    if not wants_gradient(node) or is_leaf(node):
        return None
    raise NoGradientError(
        "the model looks at the grad_fn of a tensor, which is a node of autograd's own graph",
        hint="ask requires_grad, or is_leaf",
    )


def _hooked(tensor: torch.Tensor, *_: Any) -> Any:
    node = _node_of(tensor)
    if node is None:
        return NotImplemented
    if not wants_gradient(node):
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    raise NoGradientError(
        "a hook is put on the gradient of a tensor, which a graph can't call",
        hint="take the gradient with torch.autograd.grad, and change what it gives",
    )


def _node_of(tensor: torch.Tensor) -> fx.Node | None:
    return None if MODE.capture is None else MODE.capture.tracing.node_of(tensor)


for _name in ("register_hook", "register_post_accumulate_grad_hook", "retain_grad"):
    replaces(getattr(torch.Tensor, _name))(_hooked)
