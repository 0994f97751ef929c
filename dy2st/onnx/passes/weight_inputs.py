"""Weights that are inputs of the file: whoever runs it may give others, and all of the graph then computes with those.

While the passes run, such a weight has no value. Otherwise they would fold it, or share it with an equal one, and a
value that is given later would be used in some places and not in others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir
import torch

from dy2st.capture.carried_state import PREFIX


@dataclass(frozen=True)
class Weight:
    """An input that is a parameter or buffer, and the value that it has by default."""

    value: ir.Value
    initial: ir.TensorProtocol


def open_weights(model: ir.Model, program: torch.export.ExportedProgram) -> Sequence[Weight]:
    """Make parameters and buffers inputs, in place: behind the model's own, and before those that are state."""
    graph, found = model.graph, list[Weight]()
    place = next((i for i, value in enumerate(graph.inputs) if str(value.name).startswith(PREFIX)), len(graph.inputs))
    for name in (*program.graph_signature.parameters, *program.graph_signature.buffers):
        value = graph.initializers.get(name)
        if value is None or value.const_value is None or not (value.uses() or value.is_graph_output()):
            continue
        found.append(Weight(value, value.const_value))
        del graph.initializers[name]
        value.const_value = None
        graph.inputs.insert(place, value)
        place += 1
    return found


def give_values(model: ir.Model, weights: Sequence[Weight]) -> None:
    """Make the values the inputs' defaults: initializers of the same names, as ONNX has it since IR version 4."""
    for weight in weights:
        weight.value.const_value = weight.initial
        model.graph.register_initializer(weight.value)


def without_values(model: ir.Model, program: torch.export.ExportedProgram) -> None:
    """Take the defaults from inputs that are parameters or buffers, in place: the file has no weights."""
    names = {*program.graph_signature.parameters, *program.graph_signature.buffers}
    for value in model.graph.inputs:
        name = str(value.name)
        if name in names and name in model.graph.initializers:
            del model.graph.initializers[name]
            value.const_value = None
