"""What lies between some values of a running trace and others: the part of the trace that is differentiated.

The rule. A node is on the way if it is computed, with gradients on, of a value on the way. Everything else that it
reads is taken from the trace as it stands. Where a tensor on the way is written to in place, all that shares its memory
and all writes to that come with it; where a tensor beside the way has been written to since it was read, a copy is kept
of what it was.
"""

from __future__ import annotations

import bisect
import copy
import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from dy2st.errors import NoGradientError
from dy2st.sizes.lowering import place_of
from dy2st.tracing.grad_mode import STOPPED
from dy2st.tracing.gradients import DETACH, stop_gradients
from dy2st.tracing.subgraph import alias_source, changed_inputs, graph_modules, storage_of, written_inputs
from dy2st.tracing.tracer import Tracing
from dy2st.tracing.wanted_gradients import is_real

# A value of the trace, and the first write to its memory after which it is no longer what was read.
Source = tuple[fx.Node, fx.Node | None]


@dataclass
class Slice:
    """A part of a trace: its placeholders take ``sources``, it gives the ends and then the starts inside of it.

    ``read`` are the nodes that the sources are, or are copies of. ``starts`` says of each value that a derivative is
    taken by which placeholders are it, and which result.
    """

    module: fx.GraphModule
    sources: list[fx.Node]
    read: list[fx.Node]
    starts: list[tuple[list[int], int | None]]


@dataclass
class _Slicing:
    tracing: Tracing
    starts: Sequence[fx.Node]
    ends: Sequence[fx.Node]
    order: list[fx.Node] = field(default_factory=list)
    place: dict[fx.Node, int] = field(default_factory=dict)
    # The places of the writes to each storage, in order.
    writes: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    # The nodes that share a storage.
    sharing: dict[int, list[fx.Node]] = field(default_factory=lambda: defaultdict(list))
    reached: set[fx.Node] = field(default_factory=set)
    # Storages that hold a value on the way.
    tainted: set[int] = field(default_factory=set)
    # The starts that are computed of others.
    inner: set[fx.Node] = field(default_factory=set)

    def look(self) -> None:
        """Number the nodes, and find those that depend on the starts."""
        layer = self.tracing.layer
        graphs = [each.graph for each in (*reversed(layer.ancestors()), layer)]
        self.order = [node for graph in graphs for node in graph.nodes]
        self.place = {node: i for i, node in enumerate(self.order)}
        for i, node in enumerate(self.order):
            storage = storage_of(node)
            if storage is not None:
                self.sharing[storage].append(node)
            for target in changed_inputs(node):
                written = storage_of(target)
                if written is not None:
                    self.writes[written].append(i)
            flows = self._flows(node)
            self._taint(node, flows=flows)
            if flows and node in self.starts:
                self.inner.add(node)
            if flows or node in self.starts:
                self.reached.add(node)

    def _taint(self, node: fx.Node, *, flows: bool) -> None:
        """Note what a node writes to; a write without gradients changes what a value on the way is, all the same."""
        for target in changed_inputs(node):
            storage = storage_of(target)
            if storage is None:
                continue
            if flows or self.reached.intersection(self.sharing[storage]).difference(self.starts):
                self.tainted.add(storage)

    def _flows(self, node: fx.Node) -> bool:
        if node.op != "call_function" or STOPPED in node.meta or node.target is DETACH:
            return False
        return any(each in self.reached or storage_of(each) in self.tainted for each in node.all_input_nodes)

    def included(self) -> list[fx.Node]:
        """The nodes to compute again, in order."""
        found: set[fx.Node] = set()
        seen: set[int] = set()
        waiting = [*self.ends, *(start for start in self.starts if start in self.inner)]
        while waiting:
            node = waiting.pop()
            storage = storage_of(node)
            if storage is not None and storage not in seen and storage in self.tainted:
                seen.add(storage)
                waiting += self.sharing[storage]
            if node not in found and self._is_computed(node):
                found.add(node)
                waiting += node.all_input_nodes
        return sorted(found, key=self.place.__getitem__)

    def _is_computed(self, node: fx.Node) -> bool:
        if node.op != "call_function" or (node in self.starts and node not in self.inner):
            return False
        shares = storage_of(node) in self.tainted and (alias_source(node) is not None or changed_inputs(node) != [])
        return node in self.reached or shares

    def source(self, node: fx.Node, reader: int) -> Source:
        """``node`` as it is where the node at the place ``reader`` reads it; as it is made, if writes to it follow."""
        storage = storage_of(node)
        writes = self.writes.get(storage, []) if storage is not None else []
        made = self.place.get(node, -1)
        after = bisect.bisect_right(writes, made if storage in self.tainted else max(reader, made))
        return node, (self.order[writes[after]] if after < len(writes) else None)


def slice_between(tracing: Tracing, starts: Sequence[fx.Node], ends: Sequence[fx.Node]) -> Slice | None:
    """The slice of the running trace from ``starts`` to ``ends``; None if no end depends on a start."""
    slicing = _Slicing(tracing, starts, ends)
    slicing.look()
    if not any(end in slicing.reached for end in ends):
        return None
    nodes = slicing.included()
    graph, local = fx.Graph(), dict[fx.Node, fx.Node]()
    placeholders: dict[Source, fx.Node] = {}
    modules: dict[str, Any] = {}
    made = set(nodes)

    def read(reader: int, node: fx.Node) -> fx.Node:
        if node in made:
            return local[node]
        named = getattr(tracing.tracer.root, str(node.target), None) if node.op == "get_attr" else None
        if isinstance(named, fx.GraphModule):
            modules[str(node.target)] = copy.deepcopy(named)
            return graph.get_attr(str(node.target))
        return placeholders[slicing.source(node, reader)]

    wanted: dict[Source, None] = {}
    for node in nodes:
        for each in node.all_input_nodes:
            if each not in made and not _names_graph(each, tracing):
                wanted.setdefault(slicing.source(each, slicing.place[node]))
    now = len(slicing.order)
    for end in (*ends, *(each for each in starts if each not in slicing.inner)):
        if end not in made:
            wanted.setdefault(slicing.source(end, now))
    for number, found in enumerate(wanted):
        placeholders[found] = graph.placeholder(f"source_{number}")
        placeholders[found].meta["val"] = value_of(found[0], tracing)
    for node in nodes:
        local[node] = graph.node_copy(node, functools.partial(read, slicing.place[node]))
    results = [read(now, end) for end in ends]
    places: list[tuple[list[int], int | None]] = []
    for start in starts:
        if start in slicing.inner:
            places.append(([], len(results)))
            results.append(local[start])
        else:
            places.append(([i for i, (node, _) in enumerate(wanted) if node is start], None))
    graph.output(tuple(results))
    _refuse_stopped_writes((*nodes, *(each for inner in modules.values() for each in nodes_of(inner))))
    module = fx.GraphModule(modules, graph, class_name="between")
    stop_gradients(module, graph)
    return Slice(module, [kept(found, tracing) for found in wanted], [node for node, _ in wanted], places)


def nodes_of(module: fx.GraphModule) -> Iterator[fx.Node]:
    """The nodes of a graph and of those inside it."""
    for each in graph_modules(module):
        yield from each.graph.nodes


def _refuse_stopped_writes(nodes: Iterable[fx.Node]) -> None:
    """Refuse a write without gradients into a value on the way: it changes the value, and not its derivative."""
    for node in nodes:
        if STOPPED in node.meta and any(map(is_real, written_inputs(node))):
            raise NoGradientError(
                "a gradient is taken through a tensor that is written to in place under torch.no_grad()",
                hint="compute a new tensor in place of the write",
                location=place_of(node),
            )


def _names_graph(node: fx.Node, tracing: Tracing) -> bool:
    return node.op == "get_attr" and isinstance(getattr(tracing.tracer.root, str(node.target), None), fx.GraphModule)


def value_of(node: fx.Node, tracing: Tracing) -> Any:
    """A node's value without data; that of a constant has some."""
    if "val" in node.meta:
        return node.meta["val"]
    found = getattr(tracing.tracer.root, str(node.target))
    return tracing.fake_mode.from_tensor(found) if isinstance(found, torch.Tensor) else found


def kept(source: Source, tracing: Tracing) -> fx.Node:
    """The node that holds what was read: a copy of it, if it has been written to since."""
    node, write = source
    if write is None:
        return node
    with write.graph.inserting_before(write):
        made = write.graph.call_function(torch.ops.aten.clone.default, (node,))
    made.meta = {key: value for key, value in write.meta.items() if key != STOPPED}
    with tracing.untraced():
        made.meta["val"] = value_of(node, tracing).clone()
    return made
