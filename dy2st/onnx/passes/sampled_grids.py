"""``grid_sample`` at places that are NaN, infinite or far away, as torch has it: a depth of almost zero makes such.

onnxruntime 1.31 takes these for places in the image. What torch gives, by mode and padding; far away is outside:

==========================  =============================================================
bilinear with zeros, cubic  NaN (images)
nearest with zeros          0
bilinear with zeros         0 (volumes)
border                      the edge, at infinity
border                      the last edge, for NaN (volumes; in images both have the first)
reflection                  the last edge (volumes; in images both have the first)
==========================  =============================================================

Source: ``grid_sampler`` in ATen/native/GridSampler.cpp and cpu/GridSamplerKernel.cpp, torch 2.13.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from dy2st.onnx.building import op, put_in_place, recording
from dy2st.onnx.passes.graph_facts import is_onnx

# Beyond the edges and their neighbours, whatever the sizes: coordinates in an image are from -1 to 1.
_OUTSIDE = 8.0


def sample_anywhere(model: ir.Model, opset: int) -> None:
    """Write such operators so; in place, subgraphs included."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type != "GridSample" or not is_onnx(node) or _is_near(node.inputs[1]):
            continue
        grid, shape = node.inputs[1], node.inputs[0].shape if node.inputs[0] is not None else None
        if grid is None or shape is None:
            continue
        with recording(opset) as made:
            value = _sampled(node, grid, is_volume=len(shape) == 5)
        if made.nodes:
            value.shape = node.outputs[0].shape
            put_in_place(node, made.nodes, [value])


def _sampled(node: ir.Node, grid: ir.Value, *, is_volume: bool) -> ir.Value:
    mode, padding = _text(node, "mode", "linear"), _text(node, "padding_mode", "zeros")
    # What is far outside may be too far for an integer.
    near = grid if padding == "reflection" else op("Min", op("Max", grid, -_OUTSIDE), _OUTSIDE)
    if "cubic" in mode or padding == "zeros":
        # Zero, and NaN where a coordinate is no number of finite size.
        distance = op("ReduceSum", op("Sub", grid, grid), [-1], keepdims=0)
        instead = 0.0 if is_volume or mode == "nearest" else float("nan")
        return op("Where", op("IsNaN", op("Unsqueeze", distance, [1])), instead, _again(node, near))
    if padding == "reflection":
        wild = op("IsNaN", op("Sub", grid, grid)) if is_volume else None
        return node.outputs[0] if wild is None else _again(node, op("Where", wild, 1.0, grid))
    return _again(node, op("Where", op("IsNaN", grid), _OUTSIDE, near) if is_volume else near)


def _again(node: ir.Node, grid: ir.Value) -> ir.Value:
    """The same operator, on another grid."""
    return op("GridSample", node.inputs[0], grid, **{name: each.value for name, each in node.attributes.items()})


def _text(node: ir.Node, name: str, default: str) -> str:
    return node.attributes[name].as_string() if name in node.attributes else default


def _is_near(grid: ir.Value | None) -> bool:
    """Whether a grid is a constant, and no place in it is far outside."""
    constant = ir.convenience.get_const_tensor(grid) if grid is not None else None
    return constant is not None and bool((np.abs(constant.numpy()) <= _OUTSIDE).all())
