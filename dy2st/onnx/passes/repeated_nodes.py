"""What is computed twice is computed once, in the bodies of loops and the arms of branches, too.

A node that equals one before it in its own graph, or in a graph around it, gives way to that one, and an ``Identity``
to its operand.

Before::

    row = Gather(x, i)                          # in the body of a loop
    again = Gather(x, i)
    product = Mul(row, again)

After::

    row = Gather(x, i)
    product = Mul(row, row)

A result that is an ``Identity`` of what another node of its graph gives is that, if it is no result yet.

An arm is not looked at from the other one, nor from behind the branch: it may not have run. Guards stay, each with its
line.
Source: dominator-based value numbering, Briggs, Cooper, Simpson, "Value Numbering", 1997.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Hashable

import onnx_ir as ir

from dy2st.onnx.passes.graph_facts import is_onnx
from dy2st.onnx.translations.guard_nodes import GUARD

# They give something else in each run.
DRAWS = frozenset("Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike".split())
_SUBGRAPHS = frozenset((ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS))
_TYPES = frozenset((ir.AttributeType.TYPE_PROTO, ir.AttributeType.TYPE_PROTOS, ir.AttributeType.SPARSE_TENSOR))


def compute_once(model: ir.Model) -> None:
    """Take out what was computed before; in place."""
    _once(model.graph, ChainMap())
    for graph in (model.graph, *model.graph.subgraphs()):
        _give_directly(graph)


def is_pure(node: ir.Node) -> bool:
    """Whether a node gives the same for the same operands, which are all that it takes, and is there for that only."""
    return (
        is_onnx(node)
        and node.op_type not in DRAWS
        and GUARD not in node.metadata_props
        and all(attribute.type not in _SUBGRAPHS for attribute in node.attributes.values())
    )


def _once(graph: ir.Graph, known: ChainMap[Hashable, ir.Node]) -> None:
    results = {id(value) for value in graph.outputs}
    for node in list(graph):
        for attribute in node.attributes.values():
            for inner in _graphs(attribute):
                _once(inner, known.new_child())
        # A result of a subgraph has to be computed in it, each in a node of its own.
        is_result = any(id(out) in results for out in node.outputs)
        key = _key(node) if is_pure(node) else None
        before = known.setdefault(key, node) if key is not None else node
        if is_result:
            continue
        same = node.inputs if node.op_type == "Identity" and node.domain == "" else before.outputs
        if same is not node.outputs and None not in same:
            ir.convenience.replace_all_uses_with(node.outputs, [value for value in same if value is not None])
            graph.remove(node, safe=True)


def _give_directly(graph: ir.Graph) -> None:
    """Let results of a graph be what they are copies of."""
    for place, result in enumerate(graph.outputs):
        node = result.producer()
        value = node.inputs[0] if node is not None and node.op_type == "Identity" and is_onnx(node) else None
        maker = value.producer() if value is not None else None
        if node is None or value is None or maker is None or maker.graph is not graph or value.is_graph_output():
            continue
        if sum(other is result for other in graph.outputs) > 1 or value.dtype != result.dtype:
            continue
        graph.outputs[place] = value
        result.replace_all_uses_with(value)
        if value.shape is None:
            value.shape = result.shape
        value.metadata_props.update(result.metadata_props)
        value.name, result.name = result.name, value.name
        graph.remove(node, safe=True)


def _graphs(attribute: ir.Attr) -> list[ir.Graph]:
    if attribute.type == ir.AttributeType.GRAPH:
        return [attribute.as_graph()]
    return list(attribute.as_graphs()) if attribute.type == ir.AttributeType.GRAPHS else []


def _key(node: ir.Node) -> Hashable | None:
    """What a node computes; None where that can't be told cheaply."""
    attributes = []
    for name, attribute in sorted(node.attributes.items()):
        value = attribute.value
        if attribute.type in _TYPES:
            return None
        if attribute.type == ir.AttributeType.TENSOR:
            if value.size > 16:
                return None
            value = (tuple(value.shape), value.dtype, value.numpy().tobytes())
        elif isinstance(value, (list, tuple)):
            value = tuple(value)
        elif isinstance(value, float):
            value = str(value)  # zeros of both signs are equal, and NaN is not equal to itself
        attributes.append((name, attribute.type, value))
    operands = tuple(id(value) if value is not None else None for value in node.inputs)
    return node.op_type, len(node.outputs), operands, tuple(attributes)
