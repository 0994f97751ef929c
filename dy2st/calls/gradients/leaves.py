"""``backward()``, and the ``grad`` of the tensors that it ends at.

A tensor's ``grad`` is an attribute like any other of the user's objects: a store to it is recorded, so that branches
and loops know of it. What ``backward()`` adds to the ``grad`` of a parameter or input lives on outside of the model,
where a program does not reach: reading it inside is refused.

Source: ``torch.autograd.backward`` and ``AccumulateGrad`` of torch 2.13.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import fx

from dy2st.calls.builtins.overloads import stands_for
from dy2st.calls.gradients.flags import ATTRIBUTES, differentiable_node, is_carried, is_given
from dy2st.calls.gradients.taking import ends_of, grad, gradients, leaves_of
from dy2st.calls.torch_functions.gradient_marks import Leaves
from dy2st.calls.torch_functions.registry import replaces
from dy2st.errors import Location, LostStateError, NoGradientError
from dy2st.operators.export_session import current
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.cases import narrowed
from dy2st.staging.containers.attributes import store
from dy2st.staging.session import MODE, Session
from dy2st.tracing.grad_mode import stopped
from dy2st.tracing.replaced import replaced
from dy2st.tracing.wanted_gradients import Carried, Wish, inputs_reached, is_uncertain, wants_gradient, wish_of
from dy2st.values.tagged_union import TaggedUnion


class Reached:
    """The parameters and inputs to whose ``grad`` a ``backward()`` has added; a part of an export's session."""

    def __init__(self) -> None:
        self.nodes: set[fx.Node] = set()
        # The line of the first such call.
        self.location: Location | None = None


_NATIVE = torch.autograd.backward


@stands_for(torch.autograd.backward)
def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """``torch.autograd.backward`` under a capture; of another thread meanwhile, torch's own."""
    capture = MODE.capture
    if capture is None:
        _NATIVE(tensors, grad_tensors, retain_graph, create_graph, grad_variables, inputs)
        return
    ends, tangents = ends_of(tensors, grad_variables if grad_tensors is None else grad_tensors)
    if inputs is None:
        leaves = _leaves(capture, ends)
    else:
        leaves = leaves_of(inputs)
        if not leaves:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        known = {node for leaf in leaves if (node := differentiable_node(capture, leaf)) is not None}
        _note_reached(known & current().part(Carried).wanting)
    found = gradients(capture, ends, leaves, tangents, create_graph=create_graph)
    for leaf, (value, there) in zip(leaves, found, strict=True):
        if value is None or is_given(capture, leaf):  # what is there before is not changed, see ``Reached``
            continue
        if there is not True:
            raise NoGradientError(
                "whether backward() adds to the grad of a tensor is data-dependent",
                hint="use torch.autograd.grad with materialize_grads=True, which gives zeros where there is none",
            )
        _accumulate(capture, leaf, value, create_graph=create_graph)


stands_for(backward)(backward)


def _leaves(capture: Session, ends: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The tensors that the user's code told to want a gradient; of others ``backward`` notes that it reaches them."""
    named = capture.tracing.tracer.root
    end_nodes = [node for end in ends if (node := capture.tracing.node_of(end)) is not None]
    _note_reached(inputs_reached(end_nodes, named))
    seen: set[fx.Node] = set()
    waiting = list(end_nodes)
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += node.all_input_nodes
    for node in end_nodes:
        if is_uncertain(node, named):
            raise NoGradientError(
                "backward() may reach a tensor that was told to want a gradient under a tensor condition or in a loop",
                hint="tell a tensor of its own there: x = x.detach().requires_grad_()",
            )
    carried = [node for node in seen if is_carried(capture, node) and wish_of(node, named) is Wish.LEAF]
    leaves = [*current().part(Leaves).alive(), *(_tensor_of(capture, node) for node in carried)]
    known = [(leaf, capture.tracing.node_of(leaf)) for leaf in leaves]
    return [leaf for leaf, node in known if node is not None and wants_gradient(node, named)]


def _note_reached(nodes: set[fx.Node]) -> None:
    reached = current().part(Reached)
    reached.nodes |= nodes
    if reached.nodes and reached.location is None:
        reached.location = location_of(users_frame())


def _tensor_of(capture: Session, node: fx.Node) -> torch.Tensor:
    """The tensor that a loop's body has for something that the loop carries."""
    layer = capture.tracing.layer
    of_layer = next(each for each in (layer, *layer.ancestors()) if each.graph is node.graph)
    found: torch.Tensor = next(tensor for tensor, known in of_layer.tensors.items() if known.proxy.node is node)
    return found


def _accumulate(capture: Session, leaf: torch.Tensor, value: torch.Tensor, *, create_graph: bool) -> None:
    before = narrowed(capture, vars(leaf).setdefault("grad", None))
    if isinstance(before, TaggedUnion):
        raise NoGradientError(
            "backward() adds to the grad of a tensor, which is None on some paths",
            hint="write x.grad = None before backward(), or x.grad = torch.zeros_like(x) before the loop",
        )
    if before is None:
        store(capture, leaf, "grad", value, _put)
    elif create_graph:
        store(capture, leaf, "grad", before + value, _put)
    else:
        with stopped():
            before.add_(value)


@replaces(torch.Tensor.backward)
def _method(
    tensor: torch.Tensor,
    gradient: torch.Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> Any:
    if MODE.capture is None:
        return NotImplemented
    return backward(tensor, gradient, retain_graph, create_graph, inputs=inputs)


@replaces(ATTRIBUTES.grad.__get__)
def _read(tensor: torch.Tensor) -> Any:
    if "grad" in vars(tensor):
        return vars(tensor)["grad"]
    capture = MODE.capture
    if capture is not None and capture.tracing.node_of(tensor) in current().part(Reached).nodes:
        raise NoGradientError(
            "the model reads the grad of a parameter or input, to which its backward() has added: that lives on "
            "from call to call, which a program does not know of",
            hint="take the gradient with torch.autograd.grad",
        )
    if capture is not None and capture.shared_inputs.has_grad(tensor):
        raise NoGradientError(
            "the model reads the grad of a parameter or input, which training changes unseen",
            hint="pass it in as an argument",
        )
    return NotImplemented


@replaces(ATTRIBUTES.grad.__set__)
def _store(tensor: torch.Tensor, value: Any) -> Any:
    capture = MODE.capture
    if capture is None or (capture.tracing.node_of(tensor) is None and not is_given(capture, tensor)):
        return NotImplemented
    if is_given(capture, tensor):
        with torch._C.DisableTorchFunction():
            if value is capture.shared_inputs.real(tensor).grad:
                return None
        raise LostStateError(
            "the grad of a tensor that was there before the call is set, which a program does not set",
            hint="set it before the call or after it (optimizer.zero_grad())",
            location=location_of(users_frame()),
        )
    _put(tensor, "grad", value)
    return None


def _put(tensor: torch.Tensor, name: str, value: Any) -> None:
    vars(tensor)[name] = value


@replaces(ATTRIBUTES.grad.__delete__)
def _delete(tensor: torch.Tensor) -> Any:
    return _store(tensor, None)


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """While a capture runs, torch's own Python code takes gradients as converted code does."""
    with replaced([(torch.autograd, "grad", grad), (torch.autograd, "backward", backward)]):
        yield
