"""Gradients that a model takes by itself: ``torch.autograd.grad`` becomes operators of the graph.

A capture runs without autograd. What the gradient is taken through is a part of the trace, which is differentiated on
the spot; the derivative is appended to the trace, where it is like all else that the model computes.

Source: ``torch.autograd.grad`` of torch 2.13, whose errors are raised for what it raises them for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from dy2st.calls.builtins.overloads import stands_for
from dy2st.derivatives.of_slices import derivative
from dy2st.derivatives.slicing import slice_between
from dy2st.errors import NoGradientError
from dy2st.operators.export_session import current
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.session import MODE, Session
from dy2st.tracing.grad_mode import gradient_mode, stopped
from dy2st.tracing.wanted_gradients import Assumptions, wants_gradient

_UNUSED = (
    "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is "
    "the desired behavior."
)


@stands_for(torch.autograd.grad)
def _grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[torch.Tensor | None, ...]:
    capture = MODE.capture
    assert capture is not None
    if is_grads_batched:
        raise NoGradientError("autograd.grad() with is_grads_batched", hint="take one gradient after another")
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True")
    ends, starts = _listed(outputs), _listed(inputs)
    given = [None] * len(ends) if grad_outputs is None else _listed(grad_outputs)
    for start in starts:
        node = capture.tracing.node_of(start)
        if node is None or not (wants_gradient(node) or _is_carried(capture, node)):
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    found = gradients(capture, ends, starts, given, create_graph=create_graph)
    made: list[torch.Tensor | None] = []
    for start, (value, there) in zip(starts, found, strict=True):
        if there is not True and not materialize_grads:
            value = _of_some_paths(capture, value, there, allowed=bool(allow_unused))
        made.append(torch.zeros_like(start) if value is None and materialize_grads else value)
    return tuple(made)


def _listed(values: Any) -> list[Any]:
    return [values] if isinstance(values, torch.Tensor) else list(values)


def _of_some_paths(capture: Session, value: torch.Tensor | None, there: Any, *, allowed: bool) -> torch.Tensor | None:
    """A gradient that eager has on no path, or on some paths only: there it is None, or raises."""
    if value is None:
        if not allowed:
            raise RuntimeError(_UNUSED)
        return None
    if allowed:
        raise NoGradientError(
            "whether there is a gradient, or None in its place, is data-dependent",
            hint="use materialize_grads=True, which gives zeros where there is none",
        )
    capture.guards.require(there, location_of(users_frame()), _UNUSED, always=True)
    return value


def gradients(
    capture: Session,
    ends: Sequence[torch.Tensor],
    starts: Sequence[torch.Tensor],
    tangents: Sequence[torch.Tensor | None],
    *,
    create_graph: bool,
) -> list[tuple[torch.Tensor | None, Any]]:
    """The gradients of ``ends`` by ``starts``: each a tensor or None, and whether it is there.

    Where there is none on some paths it is zero there, and a 0-d bool tensor says so.

    Raises:
        RuntimeError: as eager does, of an end that wants no gradient or has several elements and no tangent.
        NoGradientError: there is no derivative that a graph can compute.
    """
    tracing = capture.tracing
    of = [(number, tracing.node_of(end)) for number, end in enumerate(ends)]
    for number, node in of:
        if node is None or not wants_gradient(node):
            raise RuntimeError(
                f"element {number} of tensors does not require grad and does not have a grad_fn"
            )
    with stopped():
        given = [_tangent(end, tangent) for end, tangent in zip(ends, tangents, strict=True)]
    by = [tracing.node_of(start) for start in starts]
    nodes = [node for node in by if node is not None]
    end_nodes = [node for _, node in of if node is not None]
    between = slice_between(tracing, nodes, end_nodes)
    if between is None:
        return [(None, False)] * len(starts)
    current().part(Assumptions).constant.update(
        node for node in between.sources if node not in nodes and _is_carried(capture, node)
    )
    mode = gradient_mode()
    before, mode.enabled = mode.enabled, create_graph
    try:
        found = derivative(
            tracing,
            capture.subgraph.modules,
            between,
            [(_node(capture, value), value) for value in given],
        )
    finally:
        mode.enabled = before
    left = iter(found)
    pairs = [next(left) if node is not None else None for node in by]
    return [(None, False) if pair is None else pair for pair in pairs]


def _node(capture: Session, value: torch.Tensor) -> fx.Node:
    node = capture.tracing.node_of(value)
    assert node is not None
    return node


def _is_carried(capture: Session, node: fx.Node) -> bool:
    """Whether a node is a value at the head of an iteration of a loop."""
    return node.op == "placeholder" and node.graph is not capture.tracing.root.graph


def _tangent(end: torch.Tensor, given: torch.Tensor | None) -> torch.Tensor:
    if given is not None:
        return given.clone() if MODE.capture is not None and MODE.capture.tracing.node_of(given) is None else given
    if end.numel() != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    return torch.ones_like(end)


@stands_for(torch.autograd.backward)
def _backward(*_args: Any, **_kwargs: Any) -> None:
    raise NoGradientError("autograd.backward()", hint="use torch.autograd.grad")
