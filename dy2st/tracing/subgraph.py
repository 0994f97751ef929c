"""A subgraph: one arm of a branch, one iteration of a loop, traced into a graph of its own.

What a subgraph captures is read off its graph: an input of one of its nodes that lives in another graph. What it
changes in place is read off too: a node whose schema writes to a tensor that shares its storage with a captured one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import is_fake

from dy2st.errors import AliasError, DataError, LeakedValueError, RaisedError, SparseTensorError, StagingError
from dy2st.source.user_frames import running_location
from dy2st.tracing.grad_mode import WORKED_ON
from dy2st.tracing.layers import Layer
from dy2st.tracing.size_facts import ASSUMED, SizeFacts
from dy2st.tracing.tracer import Tracing


def storage_key(tensor: torch.Tensor) -> int:
    """The identity of a tensor's storage."""
    try:
        with torch._C.DisableTorchFunction():  # many times cheaper than to ask the modes of an export
            return int(tensor.untyped_storage()._cdata)
    except NotImplementedError as error:
        refuse_sparse(tensor)
        raise RaisedError(
            "a tensor that torch.func or torch.vmap has wrapped has no memory that a trace could follow",
            hint="write a for loop in place of vmap, the derivative as a formula in place of grad",
            location=running_location(),
        ) from error


def refuse_sparse(tensor: torch.Tensor, name: str | None = None) -> None:
    """Raise for a tensor that is not dense, at the line that runs; one with a ``name`` comes from outside.

    Raises:
        SparseTensorError: its values are not in one storage.
    """
    with torch._C.DisableTorchFunction():
        if tensor.layout is not torch.strided:
            layout = str(tensor.layout).removeprefix("torch.")
            raise SparseTensorError(
                f"{name or 'a tensor'} is sparse ({layout}), for which a graph has no operators",
                hint="make it dense outside of the model, or keep its indices and values as tensors of their own",
                location=running_location() if name is None else None,
            )


def storage_of(node: fx.Node) -> int | None:
    """The identity of the storage behind a node's tensor, or behind all of its tensors (``unbind``, ``split``)."""
    value = node.meta.get("val")
    tensors = value if isinstance(value, (tuple, list)) else [value]
    storages = {storage_key(t) if isinstance(t, torch.Tensor) else None for t in tensors}
    return storages.pop() if len(storages) == 1 else None


def graph_modules(module: torch.nn.Module) -> list[fx.GraphModule]:
    """A program's graphs, its own first, then those of its branches and loops."""
    return [each for each in module.modules() if isinstance(each, fx.GraphModule)]


def written_inputs(node: fx.Node) -> list[fx.Node]:
    """The inputs that a node writes to, by its operator's schema."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.is_mutable:
        return []
    written = []
    for i, argument in enumerate(schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        value = node.args[i] if i < len(node.args) else node.kwargs.get(argument.name)
        written += [v for v in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(v, fx.Node)]
    return written


@dataclass
class Subgraph:
    """A graph under construction, its subgraphs, and what the user's code stored while it ran."""

    tracing: Tracing
    parent: Subgraph | None
    layer: Layer
    label: str
    modules: dict[str, Any] = field(default_factory=dict)
    # What was known of the sizes before the subgraph.
    facts: SizeFacts | None = None

    @classmethod
    def open(cls, tracing: Tracing, parent: Subgraph, label: str) -> Subgraph:
        """A new subgraph inside ``parent``; ``enter`` it to trace into it."""
        return cls(tracing, parent, Layer(tracing, parent.layer), label, facts=tracing.size_facts())

    @classmethod
    def root(cls, tracing: Tracing) -> Subgraph:
        """The subgraph of the whole program."""
        return cls(tracing, None, tracing.root, "program")

    @property
    def graph(self) -> fx.Graph:
        """The graph that the subgraph is traced into."""
        return self.layer.graph

    def enter(self) -> None:
        """Trace into this subgraph from now on."""
        self.tracing.activate(self.layer)

    def forget_sizes(self) -> None:
        """What the subgraph found out about sizes holds inside it only: it may not run, or has been discarded."""
        env = self.tracing.shape_env
        if self.facts is not None and not self.facts.same_as(env):
            self.layer.found = SizeFacts.of(env)
            self.tracing.has_local_facts = True
            self.facts.restore(env)

    def nodes_outside(self) -> list[fx.Node]:
        """The nodes of other graphs that this subgraph reads, in order of first use."""
        found: dict[fx.Node, None] = {}
        for node in self.graph.nodes:
            for used in node.all_input_nodes:
                if used.graph is not self.graph:
                    found[used] = None
        return list(found)

    def own_storages(self) -> set[int]:
        """The storages of what this subgraph made itself; a view of a captured tensor is not among them."""
        outside = {storage_of(node) for node in self.nodes_outside()}
        return {s for n in self.graph.nodes if (s := storage_of(n)) is not None and s not in outside}

    def hoist_constants(self) -> None:
        """Tensor constants belong to the program, not to a subgraph: read them there and capture them."""
        top = self.tracing.root
        for node in list(self.graph.nodes):
            if node.op != "get_attr" or node.target in self.modules:
                continue
            if "val" not in node.meta:
                raise StagingError(
                    "an object of torch's that is no tensor, such as a generator of random numbers, is used under a"
                    " tensor condition or in a staged loop",
                    hint="draw before it, or without a generator of your own (torch.manual_seed)",
                    location=running_location(),
                )
            first = next((n for n in top.graph.nodes if n.op != "placeholder"), None)
            with top.graph.inserting_before(first) if first is not None else top.graph.inserting_after():
                outside = top.graph.get_attr(node.target)
            outside.meta = dict(node.meta)
            node.replace_all_uses_with(outside)
            self.graph.erase_node(node)

    def drop_grad_mode(self) -> None:
        """Switching gradients on and off means nothing in a subgraph."""
        for node in list(self.graph.nodes):
            if node.op == "call_function" and node.target is torch._C._set_grad_enabled and not node.users:
                self.graph.erase_node(node)

    def check_captures(self, captured: list[fx.Node]) -> None:
        """Every captured node belongs to a subgraph around this one; anything else has leaked out of its arm."""
        around = {id(layer.graph) for layer in self.layer.ancestors()}
        for node in captured:
            if id(node.graph) not in around:
                raise LeakedValueError(
                    f"a value made inside {self.label} is used after that arm or iteration has ended"
                    f" (it is stored where dy2st does not see it: {node.name})",
                    hint="store it in a variable, an attribute or a container that the converted code assigns itself",
                )

    def written_outside(self) -> dict[int, list[fx.Node]]:
        """Storages of captured tensors that this subgraph writes to, each with the captured nodes that share it."""
        by_storage: dict[int, list[fx.Node]] = {}
        for node in self.nodes_outside():
            storage = storage_of(node)
            if storage is not None:
                by_storage.setdefault(storage, []).append(node)
        written: dict[int, list[fx.Node]] = {}
        for node in self.graph.nodes:
            for target in written_inputs(node):
                storage = storage_of(target)
                if storage in by_storage:
                    written[storage] = by_storage[storage]
                elif self._views_outside(target):
                    raise DataError(
                        "a parameter is changed in place through .data or .detach() under a tensor condition or in a "
                        "loop",
                        hint="change a buffer in its place, or compute the new value outside",
                    )
        return written

    def writers_of(self, storage: int) -> list[fx.Node]:
        """The nodes of this subgraph that write to a storage."""
        return [n for n in self.graph.nodes if any(storage_of(target) == storage for target in written_inputs(n))]

    def _views_outside(self, node: fx.Node) -> bool:
        """Whether a node is a view, by its operator's schema, of a captured tensor."""
        while node.graph is self.graph:
            source = _viewed(node)
            if source is None:
                return False
            node = source
        return True

    def localise(self, base: fx.Node, views: list[fx.Node]) -> fx.Node:
        """Work on a copy of ``base`` instead of writing to it; captured views of it become views of the copy.

        Returns the node of the copy: after the subgraph has run it holds the new value.
        """
        first = next((n for n in self.graph.nodes if n.op != "placeholder"), None)
        assert first is not None
        with self.graph.inserting_before(first):
            copy = self.graph.call_function(torch.ops.aten.clone.default, (base,))
            with self.tracing.untraced():
                copy.meta |= {"val": base.meta["val"].clone(), WORKED_ON: True}
            local: dict[fx.Node, fx.Node] = {base: copy}
            for view in views:
                source = base
                for node in view_chain(base, view):
                    if node not in local:
                        # An in-place operator hands on the tensor that it wrote to.
                        local[node] = (
                            local[source]
                            if written_inputs(node)
                            else self.graph.node_copy(node, lambda n: local.get(n, n))
                        )
                    source = node
        made_here = set(local.values())
        for outside, inside in local.items():
            for user in list(outside.users):
                if user.graph is self.graph and user not in made_here:
                    user.replace_input_with(outside, inside)
        return copy

    def module(self, captured: list[fx.Node], outputs: list[fx.Node], leading: list[fx.Node]) -> fx.GraphModule:
        """The finished subgraph: placeholders ``leading`` (already there), then one for each captured node."""
        after = leading[-1] if leading else None
        local: dict[fx.Node, fx.Node] = {}
        for i, outside in enumerate(captured):
            context = (
                self.graph.inserting_after(after)
                if after is not None
                else self.graph.inserting_before(next(iter(self.graph.nodes), None))
            )
            with context:
                inside = new_input(self.graph, "captured", i)
            inside.meta = {k: v for k, v in outside.meta.items() if k in ("val", "tensor_meta")}
            after = inside
            local[outside] = inside
            for user in list(outside.users):
                if user.graph is self.graph:
                    user.replace_input_with(outside, inside)
        out = self.graph.output(tuple(local.get(n, n) for n in outputs))
        out.meta["val"] = tuple(n.meta.get("val") for n in outputs)
        made = fx.GraphModule(self.modules, self.graph, class_name=self.label.replace(" ", "_"))
        made.meta[ASSUMED] = tuple(
            fact for layer in [*self.layer.ancestors()[::-1], self.layer] for fact in layer.assumed
        )
        return made


def new_input(graph: fx.Graph, name: str, number: int) -> fx.Node:
    """A new input of a graph, called ``name_number`` or by a later number: the user has names, and so have we."""
    taken = {node.target for node in graph.nodes if node.op == "placeholder"}
    while f"{name}_{number}" in taken:
        number += 1
    return graph.placeholder(f"{name}_{number}")


def call_node(graph: fx.Graph, target: Any, arguments: tuple[Any, ...], value: Any) -> fx.Node:
    """A new node, which gives ``value``."""
    node = graph.call_function(target, arguments)
    node.meta["val"] = value
    return node


def write_into(tracing: Tracing, base: fx.Node, result: fx.Proxy) -> fx.Node:
    """In the graph that is traced into, write ``result`` into the tensor of ``base``."""
    arguments = (fx.Proxy(base, tracing.tracer), result)
    written: fx.Node = tracing.tracer.create_proxy("call_function", torch.ops.aten.copy_.default, arguments, {}).node
    written.meta["val"] = base.meta["val"]
    return written


def leaked(node: fx.Node, tracing: Tracing) -> bool:
    """Whether a node reads a tensor of the trace that no subgraph around it has made: it is taken for a constant."""
    root = tracing.tracer.root
    return any(n.op == "get_attr" and is_fake(getattr(root, str(n.target), None)) for n in node.all_input_nodes)


def training_norm(node: fx.Node) -> bool:
    """Whether a node updates running statistics that its operator's schema says nothing of."""
    norms = (torch.ops.aten.batch_norm.default, torch.ops.aten.instance_norm.default)
    return node.target in norms and bool(node.args[5]) and node.args[3] is not None


def changed_inputs(node: fx.Node) -> list[fx.Node]:
    """The inputs that a node writes to, by its operator's schema or without a word of it."""
    silent = [each for each in node.args[3:5] if isinstance(each, fx.Node)] if training_norm(node) else []
    return [*written_inputs(node), *silent]


def base_of(node: fx.Node) -> fx.Node:
    """The tensor that a chain of views and in-place operators starts from, through the graphs around its own."""
    base = node
    while (source := alias_source(node)) is not None:
        node = source
        if not isinstance(node.meta.get("val"), (tuple, list)):
            base = node
    return base


def alias_source(node: fx.Node) -> fx.Node | None:
    """The input that shares its storage with the node's own value, if any; maybe one of a graph around its own."""
    storage = storage_of(node)
    return next((n for n in node.all_input_nodes if storage_of(n) == storage), None)


def alias_chain(node: fx.Node) -> list[fx.Node]:
    """A node, what it is a view of, and so on, through the graphs around its own.

    A constant of the trace has a stand-in, with a storage, for each graph that it is used in: there the operator's
    schema tells.
    """
    chain = [node]
    while (source := alias_source(chain[-1]) or _viewed(chain[-1])) is not None:
        chain.append(source)
    return chain


def _viewed(node: fx.Node) -> fx.Node | None:
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.returns or schema.returns[0].alias_info is None or not node.args:
        return None
    return node.args[0] if isinstance(node.args[0], fx.Node) else None


def view_chain(base: fx.Node, view: fx.Node) -> list[fx.Node]:
    """The nodes that lead from ``base`` to ``view``, in order, ``base`` left out."""
    chain: list[fx.Node] = []
    node = view
    while node is not base:
        chain.append(node)
        source = alias_source(node)
        if source is None:
            raise AliasError(
                "a tensor is written to in place while another one shares its memory in a way that can't be followed",
                hint="clone() the tensor before it is written to",
            )
        node = source
    return chain[::-1]
