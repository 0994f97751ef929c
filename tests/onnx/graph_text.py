"""Graphs in ONNX's textual form, for tests of passes: parsed with the shapes of their values, shown, and run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnx_ir as ir
import onnx_ir.passes.common as passes
import onnxruntime
from onnx import parser

OPSET = 20


def parsed(text: str) -> ir.Model:
    """A model of a graph whose constants are written in it, which are made initializers."""
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["": {OPSET}]>\n{text}')
    onnx.checker.check_model(proto, full_check=True)
    model = ir.from_proto(onnx.shape_inference.infer_shapes(proto, data_prop=True))
    passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    passes.LiftSubgraphInitializersToMainGraphPass()(model)
    return model


def shown(graph: ir.Graph) -> list[str]:
    """The operators of a graph in order; those in a subgraph are behind its node, indented."""
    lines = []
    for node in graph:
        lines.append(node.op_type)
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                lines += [f"  {line}" for line in shown(attribute.as_graph())]
    return lines


def results(model: ir.Model, *args: np.ndarray) -> list[np.ndarray]:
    """What onnxruntime computes."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        ir.to_proto(model).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, {given.name: arg for given, arg in zip(session.get_inputs(), args, strict=True)}))


def changed(text: str, apply: Callable[[ir.Model], object], *calls: tuple[np.ndarray, ...]) -> list[str]:
    """The operators after a pass, which changes no bit of the results of these calls."""
    before, after = parsed(text), parsed(text)
    apply(after)
    onnx.checker.check_model(ir.to_proto(after), full_check=True)
    for args in calls:
        for one, other in zip(results(before, *args), results(after, *args), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
    return shown(after.graph)
