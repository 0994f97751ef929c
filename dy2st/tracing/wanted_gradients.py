"""Which values of a trace want a gradient, as ``requires_grad`` says it of tensors in eager mode.

The rule. A parameter or input wants one if it does so outside of the trace; so does what ``requires_grad_()`` was
called on, from then on (``LEAF`` marks the node that stands for it). What is computed with gradients on, of a value
that wants one, wants one too. What is detached, has no real numbers, or is computed under ``torch.no_grad()`` does not.

What a loop carries is not known while its body is traced: it is taken to want none, and ``check_carried`` compares when
the body is finished.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import fx

from dy2st.errors import Location, NoGradientError
from dy2st.operators.export_session import current
from dy2st.tracing.grad_mode import STOPPED
from dy2st.tracing.gradients import DETACH
from dy2st.tracing.subgraph import alias_source, storage_of, written_inputs

LEAF = "dy2st_leaf"


class Assumptions:
    """The placeholders of loops' bodies whose values a derivative took for constants, with the lines that did so.

    A part of an export's session.
    """

    def __init__(self) -> None:
        self.constant: dict[fx.Node, Location] = {}


def is_real(node: fx.Node) -> bool:
    """Whether a node gives a tensor of real or complex numbers, or several tensors."""
    value = node.meta.get("val")
    if isinstance(value, (list, tuple)):
        return True
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def wants_gradient(node: fx.Node) -> bool:
    """Whether the value of a node wants a gradient."""
    seen: set[fx.Node] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        settled = _settled(each)
        if settled:
            return True
        if settled is None:
            waiting += written_inputs(each)[:1] if STOPPED in each.meta else each.all_input_nodes
        if LEAF not in each.meta:
            waiting += _written_into(each)
    return False


def _settled(node: fx.Node) -> bool | None:
    """Whether a node's value wants a gradient, where that does not depend on others."""
    if LEAF in node.meta:
        return bool(node.meta[LEAF])
    if not is_real(node) or node.target is DETACH:
        return False
    if node.op != "call_function":
        value = node.meta["val"]
        return isinstance(value, torch.Tensor) and value.requires_grad
    if STOPPED in node.meta:
        return None if written_inputs(node) else False
    return None


def _written_into(node: fx.Node) -> list[fx.Node]:
    """What was written, with gradients on, into the memory of a node's tensor."""
    storage = storage_of(node)
    if storage is None or node.target is DETACH:
        return []
    while (source := alias_source(node)) is not None:
        node = source
    found: list[fx.Node] = []
    seen: set[fx.Node] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each in seen or storage_of(each) != storage or each.target is DETACH:
            continue
        seen.add(each)
        waiting += each.users
        if STOPPED not in each.meta and written_inputs(each):
            found += each.all_input_nodes
    return found


def check_carried(
    inputs: Sequence[fx.Node], initial: Sequence[fx.Node | None], following: Sequence[fx.Node]
) -> None:
    """Refuse a loop that carries a value with a gradient which a derivative in its body took for a constant.

    Raises:
        NoGradientError: it does.
    """
    assumed = current().part(Assumptions).constant
    if not assumed:
        return
    for node, *ends in zip(inputs, initial, following, strict=True):
        if node in assumed and any(each is not None and wants_gradient(each) for each in ends):
            raise NoGradientError(
                "a gradient is taken in a loop, through a value that an earlier iteration has computed with gradients "
                "on: the graph has one iteration only",
                hint="take the gradient by a value of the same iteration: x = x.detach().requires_grad_()",
                location=assumed[node],
            )
