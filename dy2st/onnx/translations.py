"""Our graph operators as ONNX ``If`` and ``Loop``.

torch.onnx turns each subgraph into a local function; a translation makes the bodies of ``If`` and ``Loop`` from calls
of these functions, which its inliner then replaces by their nodes. What a subgraph captures is passed as an input of
the call and so ends as a reference to the value of the graph around it: weights are shared between arms, not copied.

Source: ONNX operators If-21 and Loop-21, https://onnx.ai/onnx/operators/.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch

from dy2st.graph.guards import require_op, tied_op
from dy2st.graph.ops import branch_op, loop_op
from dy2st.graph.lengths import length_op
from dy2st.graph.sized import sized_op
from dy2st.onnx.guards import onnx_require, onnx_tied
from dy2st.onnx.nextafter import onnx_nextafter
from dy2st.onnx.nodes import constant, node, recorder


def _call(function: ir.Function, inputs: Sequence[Any]) -> ir.Node:
    called = ir.Node(function.domain, function.name, list(inputs), num_outputs=len(function.outputs))
    for source, out in zip(function.outputs, called.outputs, strict=True):
        out.name = f"{source.name}_{function.name}"
        out.type, out.shape = source.type, source.shape
    return called


def onnx_branch(pred: ir.Value, then: ir.Function, orelse: ir.Function, operands: Sequence[Any]) -> Sequence[ir.Value]:
    """``branch`` as ``If``."""
    graphs = []
    for function in (then, orelse):
        called = _call(function, operands)
        graphs.append(ir.Graph((), called.outputs, nodes=[called], name=function.name))
    tracer = recorder()
    made = ir.Node(
        "",
        "If",
        [pred],
        attributes=[ir.AttrGraph("then_branch", graphs[0]), ir.AttrGraph("else_branch", graphs[1])],
        num_outputs=len(then.outputs),
        version=tracer.opset.version,
    )
    tracer.nodes.append(made)
    return made.outputs


def onnx_loop(
    body: ir.Function,
    trips: Any,
    go: ir.Value | None,
    carried: Sequence[ir.Value],
    operands: Sequence[Any],
    vary: Sequence[Sequence[tuple[int, int]]],
    stacked: int,
) -> Sequence[ir.Value]:
    """``loop`` as ``Loop``."""
    tracer = recorder()
    if isinstance(trips, int):
        trips = constant(trips)
    step = ir.Value(name=f"step_{body.name}", shape=ir.Shape([]), type=ir.TensorType(ir.DataType.INT64))
    going = ir.Value(name=f"going_{body.name}", shape=ir.Shape([]), type=ir.TensorType(ir.DataType.BOOL))
    inside = []
    for value, pairs in zip(carried, vary, strict=True):
        changing = {d for d, _ in pairs}
        assert value.shape is not None
        inside.append(
            ir.Value(
                name=f"{value.name}_{body.name}_in",
                shape=ir.Shape([None if d in changing else s for d, s in enumerate(value.shape)]),
                type=value.type,
            )
        )
    called = _call(body, [step, *inside, *operands])
    graph = ir.Graph([step, going, *inside], called.outputs, nodes=[called], name=body.name)
    if go is None and not carried:
        # ONNX wants two inputs at least.
        go = constant(True, ir.DataType.BOOL)
    made = ir.Node(
        "",
        "Loop",
        [trips, go, *carried],
        attributes=[ir.AttrGraph("body", graph)],
        num_outputs=len(carried) + stacked,
        version=tracer.opset.version,
    )
    tracer.nodes.append(made)
    return made.outputs


def onnx_sized(x: ir.Value, size: Sequence[Any]) -> ir.Value:
    """``sized`` as ``Reshape``; a size of zero means zero."""
    one = constant([1])
    parts = [constant([s]) if isinstance(s, int) else node("Reshape", [s, one]) for s in size]
    shape = node("Concat", parts, axis=(ir.AttributeType.INT, 0))
    return node("Reshape", [x, shape], allowzero=(ir.AttributeType.INT, 1))


def onnx_length(x: ir.Value, dim: int) -> ir.Value:
    """``length`` as ``Shape``."""
    index = dim if x.shape is None else dim % len(x.shape)
    bounds = {"start": (ir.AttributeType.INT, index), "end": (ir.AttributeType.INT, index + 1)}
    return node("Squeeze", [node("Shape", [x], **bounds), constant([0])])


def _count(x: ir.Value, dim: Any, keepdim: bool, *, negate: bool) -> ir.Value:
    """How many elements are true (or false), as int64: 0 for none at all."""
    flags = x if x.dtype == ir.DataType.BOOL else node("Cast", [x], to=(ir.AttributeType.INT, ir.DataType.BOOL))
    if negate:
        flags = node("Not", [flags])
    counted = node("Cast", [flags], to=(ir.AttributeType.INT, ir.DataType.INT64))
    axes = [] if dim is None else [constant([dim] if isinstance(dim, int) else list(dim))]
    return node("ReduceSum", [counted, *axes], keepdims=(ir.AttributeType.INT, int(keepdim)))


def onnx_any(x: ir.Value, dim: Any = None, keepdim: bool = False) -> ir.Value:
    """``any``; of nothing it is False (onnxruntime's ReduceMax of nothing would be True)."""
    return node("Greater", [_count(x, dim, keepdim, negate=False), constant(0)])


def onnx_all(x: ir.Value, dim: Any = None, keepdim: bool = False) -> ir.Value:
    """``all``; of nothing it is True."""
    return node("Equal", [_count(x, dim, keepdim, negate=True), constant(0)])


def onnx_item(x: ir.Value) -> ir.Value:
    """``item()``: a 0-d tensor is its own number; it stands in every ``x[t]`` of a loop."""
    if x.shape is not None and len(x.shape) == 0:
        return node("Identity", [x])
    return node("Reshape", [x, constant([])])


def onnx_mean(x: ir.Value, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> ir.Value:
    """``mean``; of nothing it is NaN (onnxruntime's ReduceMean of nothing is 0)."""
    if isinstance(dtype, int) and dtype > 0 and x.dtype != dtype:
        kind = ir.DataType(dtype)
        shape = x.shape
        x = node("Cast", [x], to=(ir.AttributeType.INT, int(dtype)))
        x.dtype, x.shape = kind, shape
    dims = None if dim is None or dim == [] else [dim] if isinstance(dim, int) else list(dim)
    axes = [] if dims is None else [constant(dims)]
    mean = node("ReduceMean", [x, *axes], keepdims=(ir.AttributeType.INT, int(keepdim)))
    sizes = list(x.shape) if x.shape is not None else [None]
    if all(isinstance(sizes[d], int) and sizes[d] for d in (range(len(sizes)) if dims is None else dims)):
        return mean
    lengths = node("Shape", [x])
    picked = lengths if dims is None else node("Gather", [lengths, *axes], axis=(ir.AttributeType.INT, 0))
    number = node("ReduceProd", [picked], keepdims=(ir.AttributeType.INT, 0))
    count = node("CastLike", [number, x])
    zero, one = (node("CastLike", [constant(value, ir.DataType.FLOAT), x]) for value in (0.0, 1.0))
    # Zero times infinity is NaN: what is added is NaN for no elements, and nothing otherwise.
    return node("Add", [mean, node("Mul", [zero, node("Div", [one, count])])])


def onnx_stable_sort(
    x: ir.Value, *, stable: bool | None = None, dim: int = -1, descending: bool = False  # noqa: ARG001
) -> tuple[ir.Value, ir.Value]:
    """``sort`` as ``TopK``, which by its definition leaves equal values in their order."""
    size = node("Gather", [node("Shape", [x]), constant([dim])], axis=(ir.AttributeType.INT, 0))
    tracer = recorder()
    flags = {"axis": dim, "largest": int(descending), "sorted": 1}
    made = ir.Node(
        "",
        "TopK",
        [x, size],
        attributes=[ir.AttrInt64(name, value) for name, value in flags.items()],
        num_outputs=2,
        version=tracer.opset.version,
    )
    tracer.nodes.append(made)
    return made.outputs[0], made.outputs[1]


def onnx_cat(tensors: Sequence[ir.Value], dim: int = 0) -> ir.Value:
    """``cat``, which passes over tensors of shape [0]; so the result of such tensors alone is the first of them."""
    parts = [t for t in tensors if t.shape is None or list(t.shape) != [0]]
    if not parts:
        return node("Identity", [tensors[0]])
    return parts[0] if len(parts) == 1 else node("Concat", parts, axis=(ir.AttributeType.INT, dim))


TRANSLATIONS: dict[Any, Any] = {
    torch.ops.aten.cat.default: onnx_cat,
    branch_op: onnx_branch,
    loop_op: onnx_loop,
    sized_op: onnx_sized,
    length_op: onnx_length,
    require_op: onnx_require,
    tied_op: onnx_tied,
    torch.ops.aten.nextafter.default: onnx_nextafter,
    torch.ops.aten.mean.default: lambda x, dtype=None: onnx_mean(x, dtype=dtype),
    torch.ops.aten.mean.dim: onnx_mean,
    torch.ops.aten._local_scalar_dense.default: onnx_item,
    torch.ops.aten.sort.stable: onnx_stable_sort,
    torch.ops.aten.any.default: onnx_any,
    torch.ops.aten.any.dim: onnx_any,
    torch.ops.aten.any.dims: onnx_any,
    torch.ops.aten.all.default: onnx_all,
    torch.ops.aten.all.dim: onnx_all,
    torch.ops.aten.all.dims: onnx_all,
}
