"""An ONNX model that also says which arms of its branches ran, and how many trips its loops made.

A copy of the model has one more output: a vector of int64 with the counts of :mod:`dy2st.onnx.runtime.arm_nodes`. Each
branch gives the counts of its arms as one more output of both; a loop carries those of its body, and counts its trips.
What the model computes is left alone.

Source: ONNX operators If-21, Loop-21, Scan-21 and SequenceMap-17, https://onnx.ai/onnx/operators/.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, inliner

from dy2st.errors import OnnxError
from dy2st.onnx.passes.node_constructs import ALL_TRIPS, LOOP_OR_NONE, PADDED, RERUN
from dy2st.onnx.runtime.arm_nodes import BRANCH, ArmNode, arm_nodes, bodies, is_counted
from dy2st.onnx.runtime.stepping import metadata

# From here on all operators that are written here are what they are today.
_LOWEST = 13
_ONNX = ("", "ai.onnx")


class CountedModel:
    """A copy of a model whose last output has the counts; ``nodes`` are its branches and loops.

    ``output`` names that output; it is empty, and there is no such output, where there are no nodes. External data is
    referred to as before.

    Raises:
        OnnxError: there is something of which it is not known what runs in it, or the opset is too old.
    """

    def __init__(self, model: ModelProto) -> None:
        if any(_has_arms(function.node) for function in model.functions):
            # the copy that the inliner makes has no functions any more
            model = inliner.inline_local_functions(model)
        self.nodes: list[ArmNode] = arm_nodes(model.graph)
        self.output = ""
        self.model = model
        if not self.nodes:
            return
        opset = next((each.version for each in model.opset_import if each.domain in _ONNX), 0)
        if opset < _LOWEST:
            raise OnnxError(f"arms are counted from opset {_LOWEST} on, and this is {opset}")
        _require_known(model.graph)
        self.model = ModelProto()
        self.model.CopyFrom(model)
        graph = self.model.graph
        total = _Writer(graph).count(graph)
        assert total is not None
        self.output = total.name
        graph.output.append(_info(total))


@dataclass(frozen=True)
class _Counts:
    """A value of a graph that is a vector of counts."""

    name: str
    size: int


class _Writer:
    """Writes what counts into the graphs of a model, under names that it doesn't have.

    All is put at the end of a graph; constants are initializers.
    """

    def __init__(self, graph: GraphProto) -> None:
        taken = set(_names(graph))
        candidates = (f"arms{'_' * count}" for count in itertools.count(1))
        prefix = next(each for each in candidates if not any(name.startswith(each) for name in taken))
        self._fresh = (f"{prefix}{number}" for number in itertools.count())

    def count(self, graph: GraphProto) -> _Counts | None:
        """Count in a graph and all that it holds; None if there is nothing to be counted."""
        kinds = {BRANCH: self._branch, "Loop": self._loop, "Scan": self._scan, "SequenceMap": self._map}
        found = [kinds[node.op_type](graph, node) for node in list(graph.node) if is_counted(node)]
        return self._joined(graph, found) if found else None

    def _branch(self, _: GraphProto, node: NodeProto) -> _Counts:
        """Each arm gives its own place as one, and the counts of what lies in it; zeros for the other arm.

        Where that has a loop and this one stands for none of its trips, the first of the loop's counts is one.
        """
        no_trip = 1 if metadata(node, LOOP_OR_NONE) else 0
        arms = [graph for _, graph in bodies(node)]
        inner = [self.count(arm) for arm in arms]
        for place, arm in enumerate(arms):
            parts = [self._constant(arm, [int(place == 0), int(place == 1)])]
            for each, counts in enumerate(inner):
                if counts is not None:
                    parts.append(counts if each == place else self._constant(arm, [no_trip, *[0] * (counts.size - 1)]))
            whole = self._op(arm, "Identity", self._joined(arm, parts).name)
            arm.output.append(_info(_Counts(whole, sum(part.size for part in parts))))
        return self._result(node, len(node.output), 2 + sum(counts.size for counts in inner if counts is not None))

    def _loop(self, graph: GraphProto, node: NodeProto) -> _Counts:
        ((_, body),) = bodies(node)
        node.input.extend([""] * (2 - len(node.input)))
        carried = len(body.input) - 2
        return self._in_classes(graph, self._carried(graph, node, carried, before=2, results=1))

    def _scan(self, graph: GraphProto, node: NodeProto) -> _Counts:
        ((_, body),) = bodies(node)
        scanned = next(each.i for each in node.attribute if each.name == "num_scan_inputs")
        has_rows = self._has_rows(graph, node) if metadata(node, PADDED) else None
        counts = self._carried(graph, node, len(body.input) - scanned, before=0, results=0)
        if has_rows is not None:
            counts = _Counts(self._op(graph, "Mul", counts.name, has_rows), counts.size)
        return self._in_classes(graph, counts)

    def _has_rows(self, graph: GraphProto, scan: NodeProto) -> str:
        """Of a ``Scan`` for which one row stands where there is none: 1 if there are some, else 0.

        What is made of that row is left out behind the ``Scan``: by the condition of a ``Where`` for the state, by the
        end of a ``Slice`` for the rows. Where there was NaN, they are the results of another ``Scan``; what is only
        stacked may be computed behind it.
        """
        outputs = set(scan.output)
        for node in graph.node:
            if metadata(node, RERUN) and any(outputs.intersection(each.input) for each in bodies(node)[1][1].node):
                outputs.update(node.output)
            late = metadata(node, ALL_TRIPS) and outputs.intersection(node.input)
            if late or (node.op_type == "Squeeze" and node.input[0] in outputs):
                outputs.update(node.output)
                continue
            if node.op_type == "Where" and node.input[1] in outputs:
                return self._op(graph, "Cast", node.input[0], to=TensorProto.INT64)
            if node.op_type == "Slice" and node.input[0] in outputs:
                return self._op(graph, "Min", node.input[2], self._constant(graph, [1]).name)
        raise OnnxError(f"it is not known whether there are rows for {scan.name or 'a Scan'}")

    def _carried(self, graph: GraphProto, node: NodeProto, carried: int, *, before: int, results: int) -> _Counts:
        """Carry the number of trips with the counts of the body, behind the ``carried`` values that there are.

        So many inputs stand before those, and so many results of the body.
        """
        ((_, body),) = bodies(node)
        counts = self.count(body)
        size = 1 if counts is None else 1 + counts.size
        so_far = next(self._fresh)
        parts = [self._constant(body, [1]), *([] if counts is None else [counts])]
        after = self._op(body, "Add", so_far, self._joined(body, parts).name)
        body.input.insert(before + carried, _info(_Counts(so_far, size)))
        body.output.insert(results + carried, _info(_Counts(after, size)))
        node.input.insert(before + carried, self._constant(graph, [0] * size).name)
        return self._result(node, carried, size)

    def _map(self, graph: GraphProto, node: NodeProto) -> _Counts:
        """Each element of the sequence gives a vector; these are summed, of which there may be none."""
        ((_, body),) = bodies(node)
        counts = self.count(body)
        parts = [self._constant(body, [1]), *([] if counts is None else [counts])]
        size = sum(part.size for part in parts)
        whole = self._op(body, "Identity", self._joined(body, parts).name)
        body.output.append(_info(_Counts(whole, size)))
        given = self._result(node, len(node.output), size)
        longer = self._op(graph, "SequenceInsert", given.name, self._constant(graph, [0] * size).name)
        rows = self._op(graph, "ConcatFromSequence", longer, axis=0, new_axis=1)
        total = self._op(graph, "ReduceSum", rows, self._constant(graph, [0]).name, keepdims=0)
        return self._in_classes(graph, _Counts(total, size))

    def _in_classes(self, graph: GraphProto, counts: _Counts) -> _Counts:
        """A number of trips, in front, as whether it is none, one or more."""
        zero, one = self._constant(graph, [0]).name, self._constant(graph, [1]).name
        trips = self._op(graph, "Slice", counts.name, zero, one)
        tests = [self._op(graph, kind, trips, one) for kind in ("Less", "Equal", "Greater")]
        parts = [_Counts(self._op(graph, "Cast", test, to=TensorProto.INT64), 1) for test in tests]
        if counts.size > 1:
            end = self._constant(graph, [counts.size]).name
            parts.append(_Counts(self._op(graph, "Slice", counts.name, one, end), counts.size - 1))
        return self._joined(graph, parts)

    def _result(self, node: NodeProto, place: int, size: int) -> _Counts:
        """One more result of a node, at a place among its outputs."""
        name = next(self._fresh)
        # trailing outputs that nobody reads may be left out
        node.output.extend(next(self._fresh) for _ in range(place - len(node.output)))
        node.output.insert(place, name)
        return _Counts(name, size)

    def _joined(self, graph: GraphProto, parts: Sequence[_Counts]) -> _Counts:
        if len(parts) == 1:
            return parts[0]
        whole = self._op(graph, "Concat", *(part.name for part in parts), axis=0)
        return _Counts(whole, sum(part.size for part in parts))

    def _constant(self, graph: GraphProto, values: Sequence[int]) -> _Counts:
        name = next(self._fresh)
        graph.initializer.append(helper.make_tensor(name, TensorProto.INT64, [len(values)], list(values)))
        return _Counts(name, len(values))

    def _op(self, graph: GraphProto, kind: str, *inputs: str, **attributes: Any) -> str:
        name = next(self._fresh)
        graph.node.append(helper.make_node(kind, list(inputs), [name], name=f"{name}_node", **attributes))
        return name


def _info(counts: _Counts) -> ValueInfoProto:
    return helper.make_tensor_value_info(counts.name, TensorProto.INT64, [counts.size])


def _subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _has_arms(nodes: Iterable[NodeProto]) -> bool:
    """Whether there is a branch or loop among nodes, or in what they hold."""
    return any(is_counted(node) or any(_has_arms(graph.node) for graph in _subgraphs(node)) for node in nodes)


def _require_known(graph: GraphProto) -> None:
    for node in graph.node:
        for inner in _subgraphs(node):
            if not is_counted(node) and _has_arms(inner.node):
                raise OnnxError(f"it is not known what runs in {node.name or 'a node'}, a {node.domain}.{node.op_type}")
            _require_known(inner)


def _names(graph: GraphProto) -> Iterator[str]:
    """All names of a graph and of what it holds."""
    for values in (graph.input, graph.output, graph.initializer, graph.value_info):
        yield from (value.name for value in values)
    yield from (sparse.values.name for sparse in graph.sparse_initializer)
    for node in graph.node:
        yield from (node.name, *node.input, *node.output)
        for inner in _subgraphs(node):
            yield from _names(inner)
