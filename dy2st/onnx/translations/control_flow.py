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

from dy2st.onnx.building import BOOL, constant, length, op, recorder, shape_of
from dy2st.onnx.translations import (
    activations,
    bits,
    elementwise,
    elementwise_arithmetic,
    factories,
    index_nodes,
    linear_algebra,
    lookups,
    norms,
    random_numbers,
    rearranging,
    recurrent,
    scans,
    scattering,
    size_arithmetic,
    solvers,
    sorting,
    special_functions,
    spectra,
    tensor_reductions,
)
from dy2st.onnx.translations.doubles import doubles_for
from dy2st.onnx.translations.elementwise import onnx_nextafter
from dy2st.onnx.translations.guard_nodes import onnx_require, onnx_tied
from dy2st.tracing.graph_ops import branch_op, loop_op
from dy2st.tracing.guards import require_op, tied_op
from dy2st.tracing.size_ops import length_op, sized_op


def _call(function: ir.Function, inputs: Sequence[Any]) -> ir.Node:
    # A size that the graph around has as a number is one of the operands.
    inputs = doubles_for(function, [constant(each) if isinstance(each, int) else each for each in inputs])
    called = ir.Node(function.domain, function.name, inputs, num_outputs=len(function.outputs))
    for source, out in zip(function.outputs, called.outputs, strict=True):
        out.name = f"{source.name}_{function.name}"
        out.type, out.shape = source.type, source.shape
    return called


def _record(kind: str, inputs: Sequence[Any], graphs: dict[str, ir.Graph], results: int) -> Sequence[ir.Value]:
    """A node with subgraphs, of whose results torch's exporter says what they are."""
    tracer, attributes = recorder(), [ir.AttrGraph(name, graph) for name, graph in graphs.items()]
    made = ir.Node("", kind, inputs, attributes=attributes, num_outputs=results, version=tracer.opset.version)
    tracer.nodes.append(made)
    return made.outputs


def onnx_branch(pred: ir.Value, then: ir.Function, orelse: ir.Function, operands: Sequence[Any]) -> Sequence[ir.Value]:
    """``branch`` as ``If``."""
    graphs = []
    for function in (then, orelse):
        called = _call(function, operands)
        graphs.append(ir.Graph((), called.outputs, nodes=[called], name=function.name))
    return _record("If", [pred], {"then_branch": graphs[0], "else_branch": graphs[1]}, len(then.outputs))


def onnx_loop(
    body: ir.Function,
    trips: Any,
    go: ir.Value | None,
    carried: Sequence[ir.Value],
    operands: Sequence[Any],
    vary: Sequence[Sequence[tuple[int, int, int]]],
    stacked: int,
) -> Sequence[ir.Value]:
    """``loop`` as ``Loop``."""
    if isinstance(trips, int):
        trips = constant(trips)
    step = ir.Value(name=f"step_{body.name}", shape=ir.Shape([]), type=ir.TensorType(ir.DataType.INT64))
    going = ir.Value(name=f"going_{body.name}", shape=ir.Shape([]), type=ir.TensorType(ir.DataType.BOOL))
    inside = []
    for value, varying in zip(carried, vary, strict=True):
        changing = {d for d, *_ in varying}
        sizes = ir.Shape([None if d in changing else s for d, s in enumerate(shape_of(value))])
        inside.append(ir.Value(name=f"{value.name}_{body.name}_in", shape=sizes, type=value.type))
    called = _call(body, [step, *inside, *operands])
    graph = ir.Graph([step, going, *inside], called.outputs, nodes=[called], name=body.name)
    if go is None and not carried:
        # ONNX wants two inputs at least.
        go = constant(True, BOOL)
    return _record("Loop", [trips, go, *carried], {"body": graph}, len(carried) + stacked)


def onnx_sized(x: ir.Value, size: Sequence[Any]) -> ir.Value:
    """``sized`` as ``Reshape``; a size of zero means zero."""
    parts = [constant([s]) if isinstance(s, int) else op("Reshape", s, [1]) for s in size]
    return op("Reshape", x, op("Concat", *parts, axis=0), allowzero=1)


def onnx_length(x: ir.Value, dim: int) -> ir.Value:
    """``length`` as ``Shape``."""
    return op("Squeeze", length(x, dim), [0])


TRANSLATIONS: dict[Any, Any] = {
    branch_op: onnx_branch,
    loop_op: onnx_loop,
    sized_op: onnx_sized,
    length_op: onnx_length,
    require_op: onnx_require,
    tied_op: onnx_tied,
    torch.ops.aten.nextafter.default: onnx_nextafter,
    **activations.TRANSLATIONS,
    **bits.TRANSLATIONS,
    **elementwise_arithmetic.TRANSLATIONS,
    **scattering.TRANSLATIONS,
    **elementwise.TRANSLATIONS,
    **factories.TRANSLATIONS,
    **linear_algebra.TRANSLATIONS,
    **lookups.TRANSLATIONS,
    **random_numbers.TRANSLATIONS,
    **index_nodes.TRANSLATIONS,
    **norms.TRANSLATIONS,
    **rearranging.TRANSLATIONS,
    **recurrent.TRANSLATIONS,
    **tensor_reductions.TRANSLATIONS,
    **scans.TRANSLATIONS,
    **solvers.TRANSLATIONS,
    **spectra.TRANSLATIONS,
    **sorting.TRANSLATIONS,
    **special_functions.TRANSLATIONS,
    **size_arithmetic.TRANSLATIONS,
}
