"""Marks on the trace for tensors that are told to want a gradient: a capture runs without autograd.

A tensor that is told so is an alias of what it was from then on, so that what was computed of it before has no part in
its gradient.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch

from dy2st.errors import LeakedValueError, Location
from dy2st.operators.export_session import current
from dy2st.staging.session import MODE, Session
from dy2st.tracing.grad_mode import emitting
from dy2st.tracing.gradients import DETACH
from dy2st.tracing.wanted_gradients import LEAF, Carried, is_real


class Leaves:
    """The tensors whose ``grad`` a ``backward()`` adds to, in order; a part of an export's session."""

    def __init__(self) -> None:
        self._known: list[weakref.ref[torch.Tensor]] = []
        # Those of them that are no leaves, by identity: eager's ``backward`` adds to what the caller has, too.
        self.retained: dict[int, Location] = {}

    def add(self, tensor: torch.Tensor) -> None:
        """One more."""
        self._known.append(weakref.ref(tensor))

    def alive(self) -> list[torch.Tensor]:
        """Those that somebody still has."""
        found = [tensor for each in self._known if (tensor := each()) is not None]
        return list({id(tensor): tensor for tensor in found}.values())


def mark(capture: Session, tensor: torch.Tensor, *, leaf: bool) -> None:
    """Let a tensor want a gradient, or none, from now on: where it is one from outside, in this arm or loop only.

    Raises:
        LeakedValueError: it is one from outside of a loop, in which it has been used before.
    """
    tracing = capture.tracing
    node = tracing.node_of(tensor)
    assert node is not None
    if node.graph is not tracing.layer.graph:
        open_here = {each.graph for each in (tracing.layer, *tracing.layer.ancestors())} - {node.graph}
        if any(each.graph in open_here for each in node.users):
            raise LeakedValueError(
                "a tensor from outside is told under a tensor condition or in a staged loop whether it wants a "
                "gradient, and has been used there before",
                hint="tell it before the loop, or tell a tensor of its own: x = x.detach().requires_grad_()",
            )
        current().part(Carried).uncertain.add(node)
    with emitting():
        alias = (torch.ops.aten.alias.default if leaf else DETACH)(tensor)
    made = tracing.node_of(alias)
    assert made is not None
    made.meta[LEAF] = leaf
    tracing.track(tensor, tracing.proxy_of(alias))
    if leaf:
        remember(tensor)


def remember(tensor: torch.Tensor) -> None:
    """``backward()`` adds to the ``grad`` of a tensor."""
    current().part(Leaves).add(tensor)
    # An attribute that is None, and not one that is not there, is what branches and loops see.
    vars(tensor).setdefault("grad", None)


def mark_made(kwargs: dict[str, Any], result: Any) -> None:
    """A torch function has made a tensor, which may have been asked for as one that wants a gradient."""
    capture = MODE.capture
    if capture is None or kwargs.get("requires_grad") is not True or not isinstance(result, torch.Tensor):
        return
    node = capture.tracing.node_of(result)
    if node is not None and node.op == "call_function" and is_real(node):
        mark(capture, result, leaf=True)
