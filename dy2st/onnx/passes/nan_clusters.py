"""A test of NaN with all that waits for it: found, copied, and replaced by forms that need no test.

::

    is_nan = IsNaN(x)
    first = ArgMax<axis = 1, keepdims = 1>(Cast<to = 2>(is_nan))
    found = Where(ReduceMax<keepdims = 1>(is_nan, [1]), first, ArgMax<axis = 1, keepdims = 1>(x))

is a cluster of the value ``x``; its result is ``found``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from dy2st.onnx.building import DOUBLE, FLOAT, op, put_before, recording
from dy2st.onnx.passes.graph_facts import is_onnx
from dy2st.onnx.passes.interval_analysis import Intervals
from dy2st.onnx.passes.number_facts import nan_fills
from dy2st.onnx.passes.without_nan import PARTS, WithoutNaN, again, made_by


@dataclass(frozen=True)
class Plain:
    """The results of a cluster without a test, with the nodes recorded for them.

    ``is_exact``: they are right whatever the value is, since there is no NaN in it, or as there may be.
    """

    nodes: Sequence[ir.Node]
    values: list[ir.Value]
    is_exact: bool

    def forget(self) -> None:
        """Let the nodes, which were only tried, read nothing any more."""
        for node in self.nodes:
            for place in range(len(node.inputs)):
                node.replace_input_with(place, None)


class Cluster:
    """The nodes that need a value and constants alone, down to those whose results wait for a test of NaN."""

    def __init__(self, test: ir.Node) -> None:
        self.test = test
        wide = test.inputs[0]
        assert wide is not None
        before = made_by(wide, "Cast")
        narrow = before.inputs[0] if before is not None else None
        is_wide = narrow is not None and narrow.dtype == FLOAT and wide.dtype == DOUBLE
        self.value: ir.Value = narrow if is_wide and narrow is not None else wide
        self.nodes: list[ir.Node] = []
        self.waiting: set[ir.Value] = set()
        known = {self.value}
        reached = [self.value]
        while reached:
            for node, _ in list(reached.pop(0).uses()):
                operands = [each for each in node.inputs if each is not None]
                if node.graph is not test.graph or node.outputs[0] in known or node.op_type not in PARTS:
                    continue
                constant = (each in known or ir.convenience.get_const_tensor(each) is not None for each in operands)
                if is_onnx(node) and all(constant):
                    self.nodes.append(node)
                    known.update(node.outputs)
                    reached += node.outputs
                    if node.op_type == "IsNaN" or self.waiting & set(operands):
                        self.waiting.update(node.outputs)
        own = set(self.nodes)
        self.results = [
            out
            for node in self.nodes
            for out in node.outputs
            if out in self.waiting and (out.is_graph_output() or any(use.node not in own for use in out.uses()))
        ]

    def plain(self, opset: int, intervals: Intervals | None = None) -> Plain | None:
        """The results without a test; None if there is no such form. Intervals may tell that it is exact."""
        x = self.value
        if not self.results or x.dtype not in {FLOAT, DOUBLE}:
            return None
        with recording(opset) as made:
            simple = WithoutNaN(x)
            values = [simple.of(result) for result in self.results]
        found = [value for value in values if value is not None]
        fills = simple.rows_only and all(nan_fills(x, axis) for axis in simple.axes)
        is_exact = fills or (intervals is not None and not intervals.of(x).nan)
        plain = Plain(made.nodes, found, is_exact)
        if len(found) < len(values) or not simple.axes or any(value in {x, *self.waiting} for value in found):
            plain.forget()
            return None
        return plain

    def filled(self, opset: int, intervals: Intervals) -> Plain | None:
        """The places of extremes with an infinity for NaN, where no element is as great, or as small.

        In torch NaN is where the greatest element is looked for, and where the least is; sorted, it is the greatest.
        """
        x = self.value
        if not self.results or x.dtype not in {FLOAT, DOUBLE}:
            return None
        own = set(self.nodes)
        kinds = {use.node.op_type for use in x.uses() if use.node in own} & {"ArgMax", "ArgMin"}
        kinds |= {node.op_type for node in self.nodes} & {"TopK"}
        fill = -math.inf if kinds == {"ArgMin"} else math.inf
        if fill in intervals.of(x) or ("ArgMin" in kinds and len(kinds) > 1):
            return None
        with recording(opset) as made:
            simple = WithoutNaN(x, op("Where", op("IsNaN", x), fill, x))
            values = [simple.of(result) for result in self.results]
        plain = Plain(made.nodes, [value for value in values if value is not None], is_exact=True)
        if None in values or not simple.axes or any(value in {x, *self.waiting} for value in plain.values):
            plain.forget()
            return None
        return plain

    def replace(self, nodes: Sequence[ir.Node], values: Sequence[ir.Value]) -> None:
        """Put ``nodes`` before the test, and let ``values`` be the results; what nothing reads then is taken out."""
        put_before(self.test, nodes, stem=str(self.results[0].name))
        for old, new in zip(self.results, values, strict=True):
            new.type, new.shape = old.type, old.shape
            old.replace_all_uses_with(new, replace_graph_outputs=True)
        for node in self.nodes[::-1]:
            if not any(out.uses() or out.is_graph_output() for out in node.outputs) and node.graph is not None:
                node.graph.remove(node, safe=True)


class CopiedCluster:
    """The nodes of a cluster once more, recorded."""

    def __init__(self, cluster: Cluster) -> None:
        self.own = {out for node in cluster.nodes for out in node.outputs}
        self.made: dict[ir.Value, ir.Value] = {}

    def of(self, value: ir.Value) -> ir.Value:
        """The copy of a value of the cluster; others are themselves."""
        if value not in self.own:
            return value
        if value not in self.made:
            node = value.producer()
            assert node is not None
            copies = again(node, [self.of(each) if each is not None else None for each in node.inputs])
            self.made.update(zip(node.outputs, copies, strict=True))
        return self.made[value]
