"""Inputs and outputs of a written graph: as the program declares them, and named as the user says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from torch.onnx._internal.exporter import _dynamic_shapes, _ir_passes
from torch.onnx._internal.exporter._core import torch_dtype_to_onnx_dtype

from dy2st.capture.diagnosis import tell_returns
from dy2st.errors import OnnxError


def declared_dtypes(program: torch.export.ExportedProgram) -> list[torch.dtype | None]:
    """The dtypes of the outputs that a file has; None for a number."""
    values: dict[str, Any] = {node.name: node.meta.get("val") for node in program.graph.nodes}
    return [
        getattr(values.get(spec.arg.name), "dtype", None)
        for spec in program.graph_signature.output_specs
        if spec.kind == OutputKind.USER_OUTPUT and not isinstance(spec.arg, ConstantArgument)
    ]


def filled_sizes(program: torch.export.ExportedProgram, graph: ir.Graph) -> set[str]:
    """The names of those sizes of inputs, as the graph calls them, that are never zero."""
    values: dict[str | None, Any] = {node.name: node.meta.get("val") for node in program.graph.nodes}
    found = set()
    for given in graph.inputs:
        value = values.get(given.name)
        if isinstance(value, torch.Tensor) and given.shape is not None:
            sizes: Sequence[Any] = value.shape
            # A complex input has one more dimension in the file: its real and imaginary parts.
            for size, name in zip(sizes, given.shape, strict=False):
                bounds = None if isinstance(size, int) else program.range_constraints.get(size.node.expr)
                if bounds is not None and bounds.lower >= 1:
                    found.add(str(name))
    return found


def shapes_of_inputs(program: torch.export.ExportedProgram, shapes: Any) -> Any:
    """Those of the ``dynamic_shapes`` that are of inputs of the file, after which torch's exporter names dimensions.

    It counts them, and names none where an argument is a constant of the program and no input.
    """
    kinds = [spec.arg for spec in program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]
    if not shapes or not any(isinstance(each, ConstantArgument) for each in kinds):
        return shapes
    axes, _ = _dynamic_shapes._flatten_dynamic_shapes_to_axes(shapes)
    if len(axes) != len(kinds):
        return shapes
    return [each for each, kind in zip(axes, kinds, strict=True) if not isinstance(kind, ConstantArgument)]


def restore_output_dtypes(model: ir.Model, dtypes: Sequence[torch.dtype | None]) -> None:
    """Cast an output to what the program declares.

    torch's exporter computes some reductions of float16 in float32, and forgets the way back for an output.
    """
    graph = model.graph
    if len(dtypes) != len(graph.outputs):
        return
    for index, dtype in enumerate(dtypes):
        value = graph.outputs[index]
        if dtype is None or dtype.is_complex or value.dtype is None:
            continue
        wanted = torch_dtype_to_onnx_dtype(dtype)
        if value.dtype == wanted:
            continue
        cast = ir.Node("", "Cast", [value], attributes=[ir.AttrInt64("to", int(wanted))])
        made = cast.outputs[0]
        made.name, made.dtype, made.shape = value.name, wanted, value.shape
        made.metadata_props.update(value.metadata_props)
        value.name = f"{value.name}_before"
        graph.append(cast)
        graph.outputs[index] = made


def separate_outputs(model: ir.Model) -> None:
    """Give an input that is an output too, as it is, another name as the latter: inputs keep the user's names."""
    graph = model.graph
    taken = {value.name for value in (*graph.inputs, *graph.outputs)}
    for index, value in enumerate(graph.outputs):
        if not value.is_graph_input():
            continue
        node = ir.Node("", "Identity", [value])
        name = f"{value.name}_out"
        while name in taken:
            name += "_"
        taken.add(name)
        made = node.outputs[0]
        made.name, made.type, made.shape = name, value.type, value.shape
        graph.append(node)
        graph.outputs[index] = made


def rename(model: ir.Model, input_names: Sequence[str] | None, output_names: Sequence[str] | None) -> None:
    """Name inputs and outputs as the user says, in order; what else is called so gets another name."""
    wanted, graph = {*(input_names or ()), *(output_names or ())}, model.graph
    outer = {id(value) for value in (*graph.inputs, *graph.outputs)}
    inner = [value for node in graph for value in node.outputs]
    taken = wanted | {value.name for value in (*graph.inputs, *graph.outputs, *inner, *graph.initializers.values())}
    for value in inner:
        if value.name in wanted and id(value) not in outer:
            name = f"{value.name}_inner"
            while name in taken:
                name += "_"
            value.name = name
            taken.add(name)
    if input_names:
        _ir_passes.rename_inputs(model, input_names)
    if output_names:
        _ir_passes.rename_outputs(model, output_names)


def without_texts(graph: torch.fx.Graph) -> None:
    """Leave texts out of a graph's results, in place: torch's exporter takes them for tensors."""
    output = graph.output_node()
    output.args = torch.fx.node.map_aggregate(output.args, lambda each: None if isinstance(each, str) else each)


def require_results(program: torch.export.ExportedProgram, model: Any) -> None:
    """Refuse a program of ``model`` that has no results, at the line of the model's return."""
    results = [spec.arg for spec in program.graph_signature.output_specs]
    if not all(isinstance(result, ConstantArgument) for result in results):
        return
    error = OnnxError(
        "the model returns nothing that is computed",
        hint="return what it computes: a tensor, a number or bool, or a container of them",
    )
    if not isinstance(model, torch.export.ExportedProgram):
        tell_returns(error, getattr(model, "forward", model))
    raise error
