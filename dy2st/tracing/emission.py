"""From finished subgraphs to one node of the graph around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from dy2st.tracing.grad_mode import STOPPED, WORKED_ON, emitting
from dy2st.tracing.graph_ops import Varying, branch_op, branch_results, loop_op, loop_results
from dy2st.tracing.row_writes import RowWrite, row_write
from dy2st.tracing.size_ops import sized_op
from dy2st.tracing.spelled_sizes import spell_out
from dy2st.tracing.stale import check_repeated
from dy2st.tracing.subgraph import Subgraph, base_of, new_input, storage_of, write_into
from dy2st.tracing.tracer import Tracing, same_size
from dy2st.tracing.wanted_gradients import check_carried, check_written


@emitting()
def fresh_copy(value: torch.Tensor) -> torch.Tensor:
    """A tensor of its own, traced: a subgraph may return neither a captured tensor nor the same one twice."""
    copy: torch.Tensor = torch.ops.aten.clone.default(value, memory_format=torch.contiguous_format)
    return copy


@dataclass
class Effects:
    """The captured tensors that subgraphs write to: for each its base node, and every captured node that shares it.

    ``stopped`` are the bases that are only written to without gradients.
    """

    bases: list[fx.Node]
    views: list[list[fx.Node]]
    stopped: set[fx.Node] = field(default_factory=set)

    @classmethod
    def of(cls, subgraphs: Sequence[Subgraph]) -> Effects:
        """Collect over the arms of a branch, or the one body of a loop."""
        shared: dict[fx.Node, dict[fx.Node, None]] = {}
        with_gradients = set()
        for subgraph in subgraphs:
            for storage, nodes in subgraph.written_outside().items():
                base = base_of(nodes[0])
                shared.setdefault(base, {}).update(dict.fromkeys(nodes))
                if any(STOPPED not in writer.meta for writer in subgraph.writers_of(storage)):
                    with_gradients.add(base)
        views = [[n for n in nodes if n is not base] for base, nodes in shared.items()]
        return cls(list(shared), views, set(shared) - with_gradients)

    def without_row_writes(self, body: Subgraph, counter: fx.Node) -> tuple[Effects, list[RowWrite]]:
        """The effects of a loop's body less those that only write one row per iteration, and these."""
        kept = Effects([], [], self.stopped)
        writes = []
        for base, views in zip(self.bases, self.views, strict=True):
            write = row_write(body, base, views, counter)
            if write is None:
                kept.bases.append(base)
                kept.views.append(views)
            else:
                writes.append(write)
        return kept, writes

    def localise(self, subgraph: Subgraph) -> list[fx.Node]:
        """In ``subgraph``, work on copies; the nodes that hold the new values."""
        around = subgraph.graph
        return [
            subgraph.localise(base, [v for v in views if any(u.graph is around for u in v.users)])
            for base, views in zip(self.bases, self.views, strict=True)
        ]

    def write_back(self, tracing: Tracing, results: Sequence[fx.Proxy]) -> None:
        """In the subgraph around, write the new values into the tensors themselves, so that every alias sees them."""
        for base, result in zip(self.bases, results, strict=True):
            written = write_into(tracing, base, result)
            if base in self.stopped:
                written.meta[STOPPED] = True

    def operands(self, tracing: Tracing, nodes: Sequence[fx.Node]) -> list[fx.Proxy]:
        """What the subgraphs are given for ``nodes``: copies of what is written to afterwards, for gradients.

        Autograd may have to look at an operand again, and refuses one that has changed since.
        """
        storages = {storage_of(base) for base in self.bases}
        tracer = tracing.tracer
        proxies = []
        for node in nodes:
            value, proxy = node.meta.get("val"), fx.Proxy(node, tracer)
            if storage_of(node) in storages and isinstance(value, torch.Tensor) and value.dtype.is_floating_point:
                proxy = tracer.create_proxy("call_function", torch.ops.aten.clone.default, (proxy,), {})
                with tracing.untraced():
                    proxy.node.meta["val"] = value.clone()
            proxies.append(proxy)
        return proxies


def output_copy(subgraph: Subgraph, node: fx.Node) -> fx.Node:
    """At the end of a subgraph, a copy of a node's value."""
    copied = subgraph.graph.call_function(
        torch.ops.aten.clone.default, (node,), {"memory_format": torch.contiguous_format}
    )
    copied.meta |= {"val": node.meta["val"], WORKED_ON: True}
    return copied


@emitting()
def emit_branch(
    tracing: Tracing,
    parent: Subgraph,
    pred: torch.Tensor,
    arms: tuple[Subgraph, Subgraph],
    outputs: tuple[Sequence[torch.Tensor], Sequence[torch.Tensor]],
) -> tuple[torch.Tensor, ...]:
    """Emit a branch whose arms return ``outputs`` (copies made inside them); ``parent`` is being traced into."""
    effects = Effects.of(arms)
    results: list[list[fx.Node]] = []
    for subgraph, values in zip(arms, outputs, strict=True):
        subgraph.hoist_constants()
        subgraph.drop_grad_mode()
        nodes = [subgraph.layer.tensors[v].proxy.node for v in values]
        if effects.bases:
            if not len(subgraph.graph.nodes):
                # A graph of no nodes has no place to put copies before.
                start = subgraph.graph.call_function(torch.ops.aten.full.default, ([], 0))
                with tracing.untraced():
                    start.meta["val"] = torch.zeros((), dtype=torch.int64)
            nodes += [output_copy(subgraph, n) for n in effects.localise(subgraph)]
        results.append(nodes)
    for subgraph in arms:
        spell_out(tracing, subgraph)
    captured = list(dict.fromkeys(n for subgraph in arms for n in subgraph.nodes_outside()))
    for subgraph in arms:
        subgraph.check_captures(list(subgraph.nodes_outside()))
    first_symbol = min(subgraph.layer.first_symbol for subgraph in arms)
    names = []
    for subgraph, nodes, prefix in zip(arms, results, ("then", "orelse"), strict=True):
        module = subgraph.module(captured, nodes, [])
        module.meta["first_symbol"] = first_symbol
        names.append(tracing.register(prefix, module, parent.modules))
    with tracing.untraced():
        then, orelse = ([n.meta["val"] for n in nodes] for nodes in results)
        metadata = branch_results(tracing.shape_env, then, orelse, first_symbol)
    tracer = tracing.tracer
    subgraphs = [tracer.create_proxy("get_attr", name, (), {}) for name in names]
    proxy = tracer.create_proxy(
        "call_function",
        branch_op,
        (tracing.proxy_of(pred), *subgraphs, tuple(effects.operands(tracing, captured))),
        {},
        name="branch",
    )
    tracing.track(metadata, proxy)
    for subgraph in arms:
        parent.layer.stale.update(subgraph.layer.stale)
    kept = len(outputs[0])
    effects.write_back(tracing, [tracing.proxy_of(v) for v in metadata[kept:]])
    return metadata[:kept]


def sized(stack: torch.Tensor, row: Sequence[Any], tracing: Tracing, first_symbol: int) -> torch.Tensor:
    """Stacked rows with the sizes that are known outside the loop, which has symbols of its own for them."""
    if all(isinstance(s, int) for s in row):
        return stack
    sizes = [own if tracing.is_younger(s, first_symbol) else s for s, own in zip(row, stack.shape[1:], strict=True)]
    result: torch.Tensor = sized_op(stack, [stack.shape[0], *sizes])
    return result


@emitting()
def emit_loop(
    tracing: Tracing,
    parent: Subgraph,
    body: Subgraph,
    inputs: Sequence[fx.Node],
    trips: Any,
    go: torch.Tensor | None,
    initial: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor],
    rows: Sequence[torch.Tensor],
    vary: Sequence[Sequence[Varying]],
    can_stop: bool,
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Emit a loop.

    ``inputs`` are the body's placeholders (counter, then carried), ``outputs`` its go and carried values. Returns
    the final carried tensors and the stacked rows. ``parent`` is being traced into.
    """
    check_repeated(body)
    effects, row_writes = Effects.of([body]).without_row_writes(body, inputs[0])
    check_written([base for base in effects.bases if base not in effects.stopped])
    body.hoist_constants()
    body.drop_grad_mode()
    nodes = [body.layer.tensors[v].proxy.node for v in outputs]
    check_carried(inputs[1:], [tracing.node_of(each) for each in initial], nodes[1:], tracing.tracer.root)
    row_nodes = [body.layer.tensors[v].proxy.node for v in rows]
    own_rows = len(row_nodes)
    row_nodes += [write.remove(body) for write in row_writes]
    leading = list(inputs)
    written: list[fx.Node] = []
    if effects.bases:
        copies = effects.localise(body)
        for base, copy in zip(effects.bases, copies, strict=True):
            with body.graph.inserting_after(leading[-1]):
                placeholder = new_input(body.graph, "written", len(written))
            placeholder.meta["val"] = base.meta["val"]
            copy.replace_input_with(base, placeholder)
            leading.append(placeholder)
            written.append(output_copy(body, copy))
    captured = body.nodes_outside()
    body.check_captures(captured)
    module = body.module(captured, [*nodes, *written, *row_nodes], leading)
    module.meta["first_symbol"] = body.layer.first_symbol
    name = tracing.register("body", module, parent.modules)
    tracer = tracing.tracer
    bases = effects.operands(tracing, effects.bases)
    all_vary = tuple(tuple(pairs) for pairs in [*vary, *([()] * len(bases))])
    carried_metadata = [*initial, *(n.meta["val"] for n in effects.bases)]
    with tracing.untraced():
        metadata = loop_results(
            tracing.shape_env,
            trips,
            go,
            carried_metadata,
            [n.meta["val"] for n in [*nodes, *written, *row_nodes]],
            all_vary,
            len(row_nodes),
            can_stop,
        )
    proxy = tracer.create_proxy(
        "call_function",
        loop_op,
        (
            tracer.create_proxy("get_attr", name, (), {}),
            None if trips is None else tracing.proxy_of(trips),
            None if go is None else tracing.proxy_of(go),
            (*(tracing.proxy_of(t) for t in initial), *bases),
            tuple(effects.operands(tracing, captured)),
            all_vary,
            len(row_nodes),
        ),
        {},
        name="loop",
    )
    tracing.track(metadata, proxy)
    parent.layer.stale.update(body.layer.stale)
    k = len(initial)
    effects.write_back(tracing, [tracing.proxy_of(v) for v in metadata[k : k + len(bases)]])
    stacks = [
        sized(stack, node.meta["val"].shape, tracing, body.layer.first_symbol)
        for stack, node in zip(metadata[k + len(bases) :], row_nodes, strict=True)
    ]
    for write, stack in zip(row_writes, stacks[own_rows:], strict=True):
        # A number read from a tensor is a tensor here: which size has it is not known.
        counted = go is None and not can_stop and not isinstance(trips, torch.Tensor)
        whole = counted and same_size(trips, write.base.meta["val"].shape[write.dim])
        write.write_back(tracing, stack, all_rows=whole)
    return list(metadata[:k]), stacks[:own_rows]
