"""Operators in the bodies of loops and the arms of branches, in the form that the opset has for them.

torch's exporter writes operators of opset 18, and converts those of the main graph to the opset that is asked for;
what lies deeper it leaves. Two that it writes have another form from opset 20 on: ``DFT`` takes its axis as an input,
and the modes of ``GridSample`` have other names.

Source: the version converter of onnxscript 0.7, and ONNX's operators as of opsets 17 and 20.
"""

from __future__ import annotations

import onnx_ir as ir

from dy2st.onnx.building import constant, recording
from dy2st.onnx.passes.graph_facts import is_onnx

_CHANGED = 20
_MODES = {"bilinear": "linear", "bicubic": "cubic"}


def convert_nested(model: ir.Model, opset: int) -> None:
    """Write such operators as ``opset`` has them; in place, subgraphs included."""
    if opset < _CHANGED:
        return
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if not is_onnx(node):
            continue
        if node.op_type == "DFT" and len(node.inputs) < 3:
            _take_axis_as_input(node, opset)
        elif node.op_type == "GridSample" and "mode" in node.attributes:
            mode = node.attributes["mode"].as_string()
            node.attributes["mode"] = ir.AttrString("mode", _MODES.get(mode, mode))


def _take_axis_as_input(node: ir.Node, opset: int) -> None:
    given = node.attributes.pop("axis", None)
    with recording(opset) as made:
        # 1 is the attribute's default.
        axis = constant(1 if given is None else given.as_int())
    node.resize_inputs(3)
    node.replace_input_with(2, axis)
    axis.name = f"{node.outputs[0].name}_axis"
    assert node.graph is not None
    node.graph.insert_before(node, made.nodes)
    node.version = opset
