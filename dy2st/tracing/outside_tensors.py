"""Tensors that code comes by on its own (a global, a variable of a closure) and that want a gradient.

A constant has a node in each place that reads it. A tensor that wants a gradient is where a derivative ends, and it is
asked what it wants: it has one node, before all others, as an input has.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import is_fake
from torch.fx.experimental import proxy_tensor

from dy2st.operators.export_session import current
from dy2st.tracing.tracer import Tracing
from dy2st.tracing.wanted_gradients import Carried


@contextlib.contextmanager
def outside_tensors(tracing: Tracing) -> Iterator[None]:
    """Operators that are traced here are given the one node of such a tensor."""
    create_arg = tracing.tracer.create_arg

    def argument(value: Any) -> Any:
        node = outside_node(tracing, value) if isinstance(value, torch.Tensor) else None
        return create_arg(value) if node is None else node

    tracing.tracer.create_arg = argument
    yield
    tracing.tracer.create_arg = create_arg
    for tensor, found in list(tracing.root.tensors.items()):
        node = found.proxy.node
        if node.op == "get_attr" and not node.users:  # torch takes each constant for one that is read
            del tracing.root.tensors[tensor]
            tracing.root.graph.erase_node(node)


def outside_node(tracing: Tracing, tensor: torch.Tensor) -> fx.Node | None:
    """The node of a tensor from outside that wants a gradient, made where there is none; of any other tensor None."""
    if is_fake(tensor):
        return None
    known = tracing.node_of(tensor)
    if known is not None:
        return known
    with torch._C.DisableTorchFunction():
        return _made(tracing, tensor) if tensor.requires_grad else None


def _made(tracing: Tracing, tensor: torch.Tensor) -> fx.Node:
    graph, tracer = tracing.root.graph, tracing.tracer
    with tracing.inside(tracing.root), tracing.untraced():
        first = next((each for each in graph.nodes if each.op != "placeholder"), None)
        with graph.inserting_after() if first is None else graph.inserting_before(first):
            node: fx.Node = type(tracer).create_arg(tracer, tensor)
        node.meta["val"] = tracing.fake_mode.from_tensor(tensor, static_shapes=True)
    tracing.root.tensors[tensor] = proxy_tensor._ProxyTensor(fx.Proxy(node, tracer), None)
    current().part(Carried).note_input(tensor, node)
    return node
