"""``requires_grad`` and its kind under a capture, which runs without autograd: kept as marks on the trace.

A tensor that is told to want a gradient is an alias of what it was from then on, so that what was computed of it before
has no part in its gradient.

Source: ``torch.Tensor.requires_grad_``, ``is_leaf`` and ``detach_`` of torch 2.13.
"""

from __future__ import annotations

from typing import Any

import torch

from dy2st.calls.torch_functions.registry import replaces
from dy2st.errors import LeakedValueError
from dy2st.staging.session import MODE, Session
from dy2st.tracing.grad_mode import emitting
from dy2st.tracing.gradients import DETACH
from dy2st.tracing.wanted_gradients import LEAF, is_real, wants_gradient


@replaces(torch.Tensor.requires_grad_)
def _requires_grad(tensor: torch.Tensor, requires_grad: bool = True) -> Any:
    capture = MODE.capture
    node = None if capture is None else capture.tracing.node_of(tensor)
    if capture is None or node is None or not is_real(node):
        return NotImplemented
    if wants_gradient(node) is bool(requires_grad):
        return tensor
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


@replaces(torch.Tensor.requires_grad.__get__)  # type: ignore[attr-defined]
def _asked(tensor: torch.Tensor) -> Any:
    capture = MODE.capture
    node = None if capture is None else capture.tracing.node_of(tensor)
    return NotImplemented if node is None else wants_gradient(node)
