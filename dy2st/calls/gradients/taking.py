"""``torch.autograd.grad`` inside a model: it becomes operators of the graph.

A capture runs without autograd. What a gradient is taken through is a part of the trace, which is differentiated on the
spot; the derivative is appended to the trace, where it is like all else that the model computes.

Source: ``torch.autograd.grad`` of torch 2.13, whose errors are raised for what it raises them for.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from dy2st.calls.builtins.overloads import stands_for
from dy2st.calls.gradients.flags import differentiable_node, is_carried, wants
from dy2st.derivatives.of_slices import derivative
from dy2st.derivatives.slicing import slice_between
from dy2st.errors import NoGradientError
from dy2st.operators.export_session import current
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.session import MODE, Session
from dy2st.tracing.grad_mode import emitting, gradient_mode
from dy2st.tracing.subgraph import storage_of
from dy2st.tracing.tracer import at_least
from dy2st.tracing.wanted_gradients import Carried, Wish, leaf_of, placeholders_behind
from dy2st.values.number import number_tensor
from dy2st.values.stacked_list import StackedList, has_rows

# A gradient, or None, and whether it is there: True, False, or a 0-d bool tensor; where it is not there it is zero.
Taken = tuple[torch.Tensor | None, Any]

UNUSED = (
    "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is "
    "the desired behavior."
)
NOT_SCALAR = "grad can be implicitly created only for scalar outputs"

_NATIVE = torch.autograd.grad


@stands_for(torch.autograd.grad)
def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """``torch.autograd.grad`` under a capture; of another thread meanwhile, torch's own."""
    capture = MODE.capture
    if capture is None:
        rest = grad_outputs, retain_graph, create_graph, only_inputs, allow_unused, is_grads_batched
        return _NATIVE(outputs, inputs, *rest, materialize_grads)
    if is_grads_batched:
        asked = {
            "create_graph": create_graph,
            "allow_unused": allow_unused,
            "materialize_grads": materialize_grads,
        }
        return _of_each_row(outputs, inputs, listed(grad_outputs), asked)
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: False.")
    ends, given = ends_of(outputs, grad_outputs)
    starts = leaves_of(inputs)
    for start in starts:
        node = differentiable_node(capture, start)
        if node is None or not wants(capture, node, told=False):
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    found = gradients(capture, ends, starts, given, create_graph=create_graph)
    made: list[torch.Tensor | None] = []
    for start, (value, there) in zip(starts, found, strict=True):
        kept = value
        if there is not True and not materialize_grads:
            kept = _of_some_paths(capture, value, there, allowed=bool(allow_unused))
        made.append(torch.zeros_like(start) if kept is None and materialize_grads else kept)
    return dict(zip(inputs, made, strict=True)) if isinstance(inputs, dict) else tuple(made)


stands_for(grad)(grad)


def _of_each_row(outputs: Any, inputs: Any, tangents: list[torch.Tensor], asked: dict[str, Any]) -> Any:
    """The gradients for each row of ``tangents``, stacked."""
    rows: Any = tangents[0].shape[0]
    if not isinstance(rows, int) or rows == 0:
        raise NoGradientError(
            f"autograd.grad() is called with is_grads_batched and {'no' if rows == 0 else 'a dynamic number of'} rows",
            hint="give it grad_outputs with a fixed number of rows",
        )
    found = [grad(outputs, inputs, [tangent[i] for tangent in tangents], **asked) for i in range(rows)]
    # Whether there is a gradient does not depend on what it is multiplied by.
    if isinstance(inputs, dict):
        return {key: _stack_of([each[key] for each in found]) for key in found[0]}
    return tuple(_stack_of(list(column)) for column in zip(*found, strict=True))


def _stack_of(rows: list[torch.Tensor | None]) -> torch.Tensor | None:
    there = [row for row in rows if row is not None]
    return torch.stack(there) if there else None


def leaves_of(values: Any) -> list[Any]:
    """What a gradient is taken by, one tensor or several."""
    found = listed(values)
    if has_rows(found):
        raise NoGradientError(
            "a gradient is taken by tensors of data-dependent number",
            hint="take it by the tensor that they are parts of, or by their stack",
        )
    return found


def listed(values: Any) -> list[Any]:
    """One tensor, or several, as a list."""
    if isinstance(values, dict):
        return list(values.values())
    return [values] if isinstance(values, torch.Tensor) else list(values)


def ends_of(outputs: Any, tangents: Any) -> tuple[list[torch.Tensor], list[torch.Tensor | None]]:
    """What is differentiated, and what each is multiplied by, if it is given.

    An element that stands for several, as ``torch.unbind`` of a dynamic size gives, is their stack: the gradients of
    all are summed, as those of each are. Of none of them eager has no gradient.
    """
    ends = listed(outputs)
    given = [None] * len(ends) if tangents is None else listed(tangents)
    pairs = [_stacked(end, tangent) for end, tangent in zip(ends, given, strict=True)]
    return [end for end, _ in pairs], [tangent for _, tangent in pairs]


def _stacked(end: Any, tangent: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
    if not isinstance(end, StackedList) and not isinstance(tangent, StackedList):
        return end, tangent
    if isinstance(end, StackedList) and not at_least(end.length, 1) and MODE.capture is not None:
        some = number_tensor(end.length) > 0
        here = location_of(users_frame())
        MODE.capture.guards.require(some, here, "exported for gradients of one tensor at least", always=True)
    if tangent is None:
        if any(not isinstance(size, int) or size != 1 for size in list[Any](end.stack.shape[1:])):
            raise RuntimeError(NOT_SCALAR)
        return end.stack, torch.ones_like(end.stack)
    if not isinstance(end, StackedList) or not isinstance(tangent, StackedList):
        raise NoGradientError(
            "a gradient is taken of tensors of data-dependent number, multiplied by others of another number",
            hint="torch.stack both lists first",
        )
    return end.stack, tangent.stack


def _of_some_paths(capture: Session, value: torch.Tensor | None, there: Any, *, allowed: bool) -> torch.Tensor | None:
    """A gradient that eager has on no path, or on some paths only: there it is None, or raises."""
    if value is None:
        if not allowed:
            raise RuntimeError(UNUSED)
        return None
    if allowed:
        raise NoGradientError(
            "whether there is a gradient, or None in its place, is data-dependent",
            hint="use materialize_grads=True, which gives zeros where there is none",
        )
    capture.guards.require(there, location_of(users_frame()))
    return value


def gradients(
    capture: Session,
    ends: Sequence[torch.Tensor],
    starts: Sequence[torch.Tensor],
    tangents: Sequence[torch.Tensor | None],
    *,
    create_graph: bool,
) -> list[Taken]:
    """The gradients of ``ends`` by ``starts``.

    Raises:
        RuntimeError: as eager does, of an end that wants no gradient or has several elements and no tangent.
        NoGradientError: there is no derivative that a graph can compute.
    """
    tracing = capture.tracing
    end_nodes = []
    for number, end in enumerate(ends):
        node = differentiable_node(capture, end)
        if node is None or not wants(capture, node, told=False):
            raise RuntimeError(f"element {number} of tensors does not require grad and does not have a grad_fn")
        end_nodes.append(node)
    with emitting():
        given = [_tangent(end, tangent) for end, tangent in zip(ends, tangents, strict=True)]
    by = [_nodes_of(capture, start) for start in starts]
    nodes = list(dict.fromkeys(node for several in by for node in several))
    _note_carried(capture, nodes, end_nodes)
    between = slice_between(tracing, nodes, end_nodes)
    if between is None:
        return [(None, False)] * len(starts)
    outside = [node for node in between.read if node.graph is not tracing.layer.graph]
    stored = {storage: location_of(users_frame()) for each in outside if (storage := storage_of(each)) is not None}
    current().part(Carried).outside.update(stored)
    mode = gradient_mode()
    before, mode.enabled = mode.enabled, create_graph
    try:
        pairs = [(_node(capture, value), value) for value in given]
        found = dict(
            zip(nodes, derivative(tracing, capture.subgraph.modules, between, pairs, again=create_graph), strict=True)
        )
        return [_sum([found[node] for node in several]) for several in by]
    finally:
        mode.enabled = before


def _nodes_of(capture: Session, start: torch.Tensor) -> list[fx.Node]:
    """What stands for a tensor that a gradient is taken by: one that a call is given twice has two nodes."""
    inputs = capture.shared_inputs
    several = [*inputs.twins(start), inputs.real(start)]
    found = [differentiable_node(capture, each) for each in several]
    return list(dict.fromkeys(node for node in found if node is not None))


def _sum(several: Sequence[Taken | None]) -> Taken:
    """The gradient by a tensor, of those by what stands for it.

    Raises:
        NoGradientError: whether there is each is data-dependent.
    """
    there = [each for each in several if each is not None]
    if len(there) > 1 and not all(each[1] is True for each in there):
        raise NoGradientError(
            "whether there is a gradient by a tensor that the call is given twice is data-dependent",
            hint="give it once",
        )
    if len(there) < 2:
        return there[0] if there else (None, False)
    values = [value for value, _ in there if value is not None]
    return functools.reduce(operator.add, values), True


def _node(capture: Session, value: torch.Tensor) -> fx.Node:
    node = capture.tracing.node_of(value)
    assert node is not None
    return node


def _note_carried(capture: Session, starts: Sequence[fx.Node], ends: Sequence[fx.Node]) -> None:
    """Note what a derivative takes the values for that loops carry.

    Raises:
        NoGradientError: one is computed, with gradients on, in an earlier iteration.
    """
    carried, here = current().part(Carried), location_of(users_frame())
    carried.starts.update({node: here for node in starts if node not in carried.starts})
    leaves, root = set(map(leaf_of, starts)), capture.tracing.tracer.root
    for node in placeholders_behind(ends, starts, root):
        if not is_carried(capture, node):
            continue
        carried.asked.setdefault(node, here)
        wish = carried.wish(node, root)
        if wish is Wish.COMPUTED or (wish is Wish.LEAF and leaf_of(node) in leaves):
            raise NoGradientError(
                "a gradient is taken in a loop, through a value that was computed with gradients on before the "
                "iteration: the graph has one iteration only",
                hint="take it by a value of the same iteration: x = x.detach().requires_grad_()",
                location=here,
            )


def may_be_same(one: Any, other: Any) -> bool:
    """Whether two sizes are not known to differ."""
    return not (isinstance(one, int) and isinstance(other, int)) or one == other


def _tangent(end: torch.Tensor, given: torch.Tensor | None) -> torch.Tensor:
    """What a gradient is multiplied by; a copy, since the trace may not know what was given."""
    if given is not None:
        if given.dim() != end.dim() or not all(map(may_be_same, given.shape, end.shape)):
            raise RuntimeError(
                f"Mismatch in shape: grad_output has a shape of {given.shape} and output has a shape of {end.shape}."
            )
        return given.clone()
    if any(not isinstance(size, int) or size != 1 for size in list[Any](end.shape)):
        raise RuntimeError(NOT_SCALAR)
    return torch.ones_like(end)
