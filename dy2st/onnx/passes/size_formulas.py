"""Sizes that a loop asks its tensors for, and that follow from those of the graph's inputs, are computed before it.

Before::

    y = Loop(trips, "", h) <body = step (i, go, state) {
        longer = Concat<axis = 0>(first, Slice(state, [0], [-2], [0]))     # a size of Max(0, S - 2) + 2
        size = Shape<start = 0, end = 1>(longer)
        ...
    }>

After, where an input ``labels`` of the graph has the size ``S``::

    s = Shape<start = 0, end = 1>(labels)
    size = Add(Max(Sub(s, 2), 0), 2)
    y = Loop(trips, "", h) <body = step (i, go, state) {
        ...
    }>

So what is asked of such sizes in each trip can be asked once (:mod:`dy2st.onnx.passes.loop_invariants`). The formulas
are those of torch's symbolic sizes. A size that is told where a guard fails afterwards, or before, is told to nobody.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence

import onnx_ir as ir

from dy2st.onnx.building import constant, op, put_before, recording
from dy2st.onnx.passes.graph_facts import is_onnx
from dy2st.onnx.passes.loop_invariants import LOOPS

# Where a size is a long formula, it costs more than it gains.
MOST_CHARACTERS = 60
_SUMS: dict[type, str] = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul"}
_EXTREMES = frozenset(("Max", "Min"))


def compute_sizes(model: ir.Model, opset: int) -> None:
    """Compute such sizes before the loops; in place."""
    inputs = {
        size.value: (value, axis)
        for value in model.graph.inputs
        if value.const_value is None and value.shape is not None
        for axis, size in enumerate(value.shape)
        if not isinstance(size, int) and size.value is not None
    }
    if inputs:
        _in_graph(model.graph, inputs, opset, loop=None)


def _in_graph(graph: ir.Graph, inputs: dict[str, tuple[ir.Value, int]], opset: int, loop: ir.Node | None) -> None:
    """``loop`` is the outermost one around a graph."""
    for node in list(graph):
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                around = node if loop is None and node.op_type in LOOPS and is_onnx(node) else loop
                _in_graph(attribute.as_graph(), inputs, opset, around)
        if loop is None or node.op_type != "Shape" or not is_onnx(node) or node.outputs[0].is_graph_output():
            continue
        with recording(opset) as made:
            found = _Sizes(inputs).of(node)
        if found is None:
            continue
        found.type, found.shape = node.outputs[0].type, node.outputs[0].shape
        put_before(loop, made.nodes, stem=str(node.outputs[0].name))
        node.outputs[0].replace_all_uses_with(found)
        graph.remove(node, safe=True)


class _Sizes:
    """Sizes that are computed from those of inputs, each an int64 vector of one element."""

    def __init__(self, inputs: dict[str, tuple[ir.Value, int]]) -> None:
        self.inputs = inputs

    def of(self, node: ir.Node) -> ir.Value | None:
        """What a ``Shape`` gives; None if that does not follow, or is what it is given."""
        value = node.inputs[0]
        if value is None or value.shape is None:
            return None
        dims = len(value.shape)
        start = node.attributes["start"].as_int() if "start" in node.attributes else 0
        end = node.attributes["end"].as_int() if "end" in node.attributes else dims
        formulas = [_formula(size) for size in list(value.shape)[start:end]]
        if not formulas or not all(each is not None and self._is_known(each) for each in formulas):
            return None
        sizes = [self._size(each) for each in formulas if each is not None]
        return sizes[0] if len(sizes) == 1 else _vector("Concat", sizes)

    def _is_known(self, formula: ast.expr) -> bool:
        """Whether all names in a formula are sizes of inputs, and all operators have one in ONNX."""
        match formula:
            case ast.Constant(int()):
                return True
            case ast.Name(name):
                return name in self.inputs
            case ast.BinOp(left, operator, right):
                return type(operator) in _SUMS and self._is_known(left) and self._is_known(right)
            case ast.UnaryOp(ast.USub(), operand):
                return self._is_known(operand)
            case ast.Call(ast.Name(name), [_, *_] as operands, []):
                return name in _EXTREMES and all(map(self._is_known, operands))
        return False

    def _size(self, formula: ast.expr) -> ir.Value:
        match formula:
            case ast.Constant(int(number)):
                return constant([number])
            case ast.Name(name):
                value, axis = self.inputs[name]
                found = op("Shape", value, start=axis, end=axis + 1)
                found.shape = ir.Shape([1])
                return found
            case ast.BinOp(left, operator, right):
                return _vector(_SUMS[type(operator)], [self._size(left), self._size(right)])
            case ast.UnaryOp(_, operand):
                return _vector("Sub", [constant([0]), self._size(operand)])
            case ast.Call(ast.Name(name), operands):
                combine: Callable[[ir.Value, ir.Value], ir.Value] = lambda one, other: _vector(name, [one, other])  # noqa: E731
                return functools.reduce(combine, map(self._size, operands))
        raise AssertionError(ast.dump(formula))


def _formula(size: int | ir.SymbolicDim) -> ast.expr | None:
    """A size as a formula of names and numbers."""
    text = str(size) if isinstance(size, int) else size.value
    if text is None or len(text) > MOST_CHARACTERS:
        return None
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        return None


def _vector(kind: str, values: Sequence[ir.Value]) -> ir.Value:
    found = op(kind, *values, axis=0) if kind == "Concat" else op(kind, *values)
    found.shape = ir.Shape([len(values) if kind == "Concat" else 1])
    return found
