"""A dimension of size 1 between rows and columns is left out where it is there for nothing: rows are a matrix.

Before::

    row = Unsqueeze(x, [1])                  # [batch, 1, 64]
    normed = LayerNormalization(row, scale, shift)
    product = MatMul(normed, w)
    sum = Add(product, b)
    y = Gather<axis = 1>(sum, 0)             # [batch, 64]

After::

    normed = LayerNormalization(x, scale, shift)
    product = MatMul(normed, w)
    y = Add(product, b)

onnxruntime makes one ``Gemm`` of a product of two matrices and a sum, which may round the sum otherwise. So it is with
one token per step in a loop. It is done where it takes no more nodes than before, and at least one product of matrices
gains by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from dy2st.onnx.building import op, recording
from dy2st.onnx.passes.expansions import ELEMENTWISE
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx

# Of one operand, element by element.
_OF_ONE = frozenset("Abs Cast Elu Erf Exp Gelu HardSigmoid HardSwish LeakyRelu Neg Relu Sigmoid Sqrt Tanh".split())

Uses = Mapping[ir.Value, Sequence[tuple[ir.Node, int]]]


def leave_out_unit_dimensions(model: ir.Model, opset: int) -> None:
    """Leave them out; in place, in each graph by itself."""
    for graph in (model.graph, *model.graph.subgraphs()):
        found = _Found(graph)
        if found.products and len(found.kept) <= len(found.dropped):
            found.rewrite(opset)


class _Found:
    """The values ``[rows, 1, columns]`` of a graph that can be ``[rows, columns]``, and what is gained by it."""

    def __init__(self, graph: ir.Graph) -> None:
        self.narrow: dict[ir.Value, None] = {}
        self.sources: list[ir.Node] = []
        self.products = 0
        for node in graph:
            if not is_onnx(node) or not _is_row(node.outputs[0]):
                continue
            if _makes_row(node):
                self.sources.append(node)
            elif not self._passes_on(node):
                continue
            self.products += node.op_type == "MatMul"
            self.narrow[node.outputs[0]] = None
        # What has to have the dimension, and the nodes that are there for it alone.
        self.kept = [value for value in self.narrow if self._others(value)]
        self.dropped = [node for node in self.sources if node.op_type == "Unsqueeze"]
        self.dropped += [use.node for value in self.narrow for use in value.uses() if _takes_row(use.node)]

    def _passes_on(self, node: ir.Node) -> bool:
        """Whether a node computes the same of rows without the dimension."""
        kind, inputs = node.op_type, node.inputs
        if not any(value in self.narrow for value in inputs) or any(value is None for value in inputs):
            return False
        first, rest = inputs[0], inputs[1:]
        if kind == "MatMul":
            return first in self.narrow and rest[0] not in self.narrow and _dims(rest[0]) == 2
        if kind in ELEMENTWISE:
            return all(value in self.narrow or _dims(value) in {0, 1} for value in inputs)
        if kind in {"LayerNormalization", "Softmax", "LogSoftmax"}:
            axis = node.attributes["axis"].as_int() if "axis" in node.attributes else -1
            alone = all(not out.uses() and not out.is_graph_output() for out in node.outputs[1:])
            return first in self.narrow and axis in {-1, 2} and alone and all(_dims(value) == 1 for value in rest)
        return kind in _OF_ONE

    def _others(self, value: ir.Value) -> list[tuple[ir.Node, int]]:
        """The uses that need a value with the dimension."""
        return [
            (use.node, use.idx)
            for use in value.uses()
            if use.node.outputs[0] not in self.narrow and not _takes_row(use.node) and not _reshapes(use.node)
        ]

    def rewrite(self, opset: int) -> None:
        """Write the graph without the dimension."""
        wide = {value: self._others(value) for value in self.narrow}
        takers = {value: [use.node for use in value.uses() if _takes_row(use.node)] for value in self.narrow}
        sources = set(self.sources)
        for source in self.sources:
            found = _matrix_of(source, opset)
            self._read(source.outputs[0], found, wide, takers)
        for value in self.narrow:
            node = value.producer()
            if node is None or node in sources:
                continue
            assert value.shape is not None
            before, value.shape = value.shape, ir.Shape([value.shape[0], value.shape[2]])
            if "axis" in node.attributes:
                node.attributes["axis"] = ir.AttrInt64("axis", -1)
            if wide[value]:
                with recording(opset) as made:
                    again = op("Unsqueeze", value, [1])
                again.shape = before
                _put_behind(node, made.nodes, str(value.name))
                for user, place in wide[value]:
                    user.replace_input_with(place, again)
            for taker in takers[value]:
                taker.outputs[0].replace_all_uses_with(value)

    def _read(self, row: ir.Value, found: ir.Value, wide: Uses, takers: Mapping[ir.Value, Sequence[ir.Node]]) -> None:
        """Let what needs no dimension read ``found`` instead of ``row``."""
        for taker in takers[row]:
            taker.outputs[0].replace_all_uses_with(found)
        for use in list(row.uses()):
            if (use.node, use.idx) not in wide[row]:
                use.node.replace_input_with(use.idx, found)


def _matrix_of(source: ir.Node, opset: int) -> ir.Value:
    """What a source makes a row of, as a matrix."""
    row, given = source.outputs[0], source.inputs[0]
    assert row.shape is not None
    assert given is not None
    if source.op_type == "Unsqueeze":
        return given
    sizes = constant_integers(source.inputs[1])
    assert sizes is not None
    with recording(opset) as made:
        found = op("Reshape", given, [sizes[0], sizes[2]], allowzero=1)
    found.shape = ir.Shape([row.shape[0], row.shape[2]])
    _put_behind(source, made.nodes, str(row.name))
    return found


def _put_behind(node: ir.Node, nodes: list[ir.Node], stem: str) -> None:
    graph = node.graph
    assert graph is not None
    for count, made in enumerate(nodes):
        made.metadata_props.update(node.metadata_props)
        made.outputs[0].name = f"{stem}_matrix_{count}"
        made.name = f"node_{made.outputs[0].name}"
    graph.insert_after(node, nodes)


def _dims(value: ir.Value | None) -> int | None:
    return None if value is None or value.shape is None else len(value.shape)


def _is_row(value: ir.Value) -> bool:
    """Whether a value is ``[rows, 1, columns]``, and no result of its graph."""
    return _dims(value) == 3 and value.shape is not None and value.shape[1] == 1 and not value.is_graph_output()


def _makes_row(node: ir.Node) -> bool:
    """Whether a node gives a matrix the dimension."""
    given = constant_integers(node.inputs[1]) if len(node.inputs) == 2 else None
    if node.op_type == "Unsqueeze":
        return given in ([1], [-2]) and _dims(node.inputs[0]) == 2
    return node.op_type == "Reshape" and given is not None and len(given) == 3 and given[1] == 1 and 0 not in given


def _takes_row(node: ir.Node) -> bool:
    """Whether a node takes the dimension away, and its result is none of its graph."""
    if not is_onnx(node) or node.op_type not in {"Gather", "Squeeze"} or len(node.inputs) != 2:
        return False
    given, value = constant_integers(node.inputs[1]), node.inputs[0]
    if value is None or not _is_row(value) or node.outputs[0].is_graph_output():
        return False
    if node.op_type == "Squeeze":
        return given in ([1], [-2])
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    return axis in {1, -2} and given in ([0], [-1]) and _dims(node.inputs[1]) == 0


def _reshapes(node: ir.Node) -> bool:
    """Whether a node gives the elements a shape that does not depend on the one before."""
    given = constant_integers(node.inputs[1]) if node.op_type == "Reshape" and is_onnx(node) else None
    return given is not None and 0 not in given
