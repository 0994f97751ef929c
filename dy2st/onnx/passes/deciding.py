"""Branches that are decided when the file is written: the condition depends on no input.

onnxruntime decides them itself when it loads a file, and puts the branch in the place of its ``If``. Version 1.31 ends
the process over such an ``If`` in a branch of another one: what an inner branch's own ``If`` or ``Loop`` takes from
outside is then read from memory that was given back, in ``Graph::InlineIfSubgraph``. So a file has no such ``If``: most
conditions are folded with the other constants, and onnxruntime computes here those that only it computes rightly.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import onnx_ir as ir

from dy2st.onnx.passes.missing_kernels import replace_missing_kernels
from dy2st.onnx.passes.optimizing import optimize
from dy2st.onnx.passes.repeated_nodes import DRAWS
from dy2st.onnx.passes.workarounds import positive_axes, vectors_as_matrices


def decide_branches(model: ir.Model, opset: int) -> None:
    """Put the branch in the place of every ``If`` whose condition depends on no input, in an optimised model."""
    while _decide(model, opset):
        optimize(model)


def _decide(model: ir.Model, opset: int) -> bool:
    """Make numbers of the conditions; whether there are any."""
    known: set[ir.Value] = set()
    found: dict[ir.Value, list[ir.Node]] = {}
    for node in ir.traversal.RecursiveGraphIterator(model.graph):
        condition = node.inputs[0] if node.op_type == "If" else None
        if condition is not None and condition in known:
            found.setdefault(condition, []).append(node)
        elif _is_plain(node) and all(value is None or value in known or _is_number(value) for value in node.inputs):
            known.update(node.outputs)
    numbers = {value: _computed(value, model, opset) for value in found}
    decided = {value: number for value, number in numbers.items() if number is not None}
    for count, (value, number) in enumerate(decided.items()):
        name = f"{value.name}_decided_{count}"
        made = ir.Value(name=name, type=value.type, shape=value.shape, const_value=ir.tensor(number, name=name))
        model.graph.register_initializer(made)
        for node in found[value]:
            node.replace_input_with(0, made)
    return bool(decided)


def _is_number(value: ir.Value) -> bool:
    return value.is_initializer() and not value.is_graph_input()


def _is_plain(node: ir.Node) -> bool:
    """Whether a node gives the same for the same operands, which are all that it takes."""
    return node.op_type not in DRAWS and all(a.type != ir.AttributeType.GRAPH for a in node.attributes.values())


def _computed(value: ir.Value, model: ir.Model, opset: int) -> Any:
    """What onnxruntime computes for a value that depends on no input; None where it fails."""
    import onnxruntime

    alone = _alone(value, model)
    for repair in (positive_axes, vectors_as_matrices):
        repair(alone)
    replace_missing_kernels(alone, opset)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        file = ir.to_proto(alone).SerializeToString()
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        (found,) = session.run(None, {})
    except Exception:  # noqa: BLE001 - onnxruntime's exceptions have no common base; the file will fail the same way
        return None
    return found


def _alone(value: ir.Value, model: ir.Model) -> ir.Model:
    """A model without inputs that computes a value."""
    copies: dict[ir.Value | None, ir.Value | None] = {None: None}
    nodes = []
    for node in _needed(value):
        for each in node.inputs:
            if each is not None and each not in copies:
                copies[each] = ir.Value(name=each.name, type=each.type, shape=each.shape, const_value=each.const_value)
        outputs = [ir.Value(name=each.name, type=each.type, shape=each.shape) for each in node.outputs]
        copies.update(zip(node.outputs, outputs, strict=True))
        inputs = [copies[each] for each in node.inputs]
        made = ir.Node(
            node.domain, node.op_type, inputs, node.attributes.values(), outputs=outputs, version=node.version
        )
        made.metadata_props.update(node.metadata_props)
        nodes.append(made)
    numbers = [each for each in copies.values() if each is not None and each.producer() is None]
    output = copies[value]
    assert output is not None
    graph = ir.Graph([], [output], nodes=nodes, initializers=numbers, opset_imports=model.graph.opset_imports)
    return ir.Model(graph, ir_version=model.ir_version)


def _needed(value: ir.Value) -> Iterable[ir.Node]:
    """The nodes that a value is computed by, each after those it takes from."""
    found: dict[ir.Node, None] = {}
    waiting = [value.producer()]
    while waiting:
        node = waiting[-1]
        before = [] if node is None else [each.producer() for each in node.inputs if each is not None]
        missing = [each for each in before if each is not None and each not in found]
        if missing and node not in found:
            waiting += missing
            continue
        if node is not None:
            found[node] = None
        waiting.pop()
    return found
