"""Sigmoids whose small values matter: onnxruntime 1.31 computes 0 below -18, where eager has up to 1.5e-8.

Before::

    p = Sigmoid(x)
    y = Log(p)

After::

    p = Reciprocal(Add(Exp(Neg(x)), 1))
    y = Log(p)

The logarithm of 0 is -inf, and of 1e-13 it is -30. A value that is only added up, or multiplied as a gate is, is as
good by onnxruntime's kernel, which takes a quarter of the time, and stays as it is.
"""

from __future__ import annotations

import onnx_ir as ir

from dy2st.onnx.building import FLOAT, op, put_in_place, recording
from dy2st.onnx.passes.graph_facts import is_onnx

# What tells numbers apart that are almost equal, or small ones from 0; of Div and Pow it is one operand.
_LOOKING = frozenset(
    """ArgMax ArgMin Ceil Equal Floor Greater GreaterOrEqual Less LessOrEqual Log NonZero Reciprocal Round Sign Sqrt
    TopK Unique""".split()
)
# What changes the numbers, but not how small they are.
_MOVING = frozenset(
    """Concat Expand Flatten Gather GatherElements GatherND Identity Neg ReduceMax ReduceMin Reshape Slice Split Squeeze
    Tile Transpose Unsqueeze Abs""".split()
)
# Behind these the small ones may be lost among others, and mostly are.
_MIXING = frozenset("Add Clip Div Max Min Mul ReduceMean ReduceProd ReduceSum Sub Where".split())
_MOST_STEPS = 8


def keep_tails(model: ir.Model, opset: int) -> None:
    """Write such nodes so; in place, subgraphs included."""
    for node in list(ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type == "Sigmoid" and is_onnx(node) and node.outputs[0].dtype == FLOAT and _matters(node.outputs[0]):
            with recording(opset) as made:
                found = op("Reciprocal", op("Add", op("Exp", op("Neg", node.inputs[0])), 1.0))
            found.shape = node.outputs[0].shape
            put_in_place(node, made.nodes, [found])


def _matters(value: ir.Value, *, mixed: bool = False, steps: int = _MOST_STEPS) -> bool:
    """Whether somebody may look at how small a value is; ``mixed`` with others it matters to who looks closely."""
    if not mixed and (value.is_graph_output() or not steps):
        return True
    return steps > 0 and any(_use_matters(use.node, use.idx, mixed=mixed, steps=steps) for use in value.uses())


def _use_matters(node: ir.Node, place: int, *, mixed: bool, steps: int) -> bool:
    kind = node.op_type
    if not is_onnx(node):
        return not mixed
    if kind in _LOOKING or (kind in ("Div", "Pow") and place == (kind == "Div")):
        return True
    if kind in _MOVING or kind in _MIXING:
        mixed = mixed or kind in _MIXING
        return any(_matters(out, mixed=mixed, steps=steps - 1) for out in node.outputs)
    return not mixed and kind not in ("MatMul", "Gemm", "Conv", "Cast", "CumSum", "Exp", "Tanh", "Sigmoid", "Softmax")
