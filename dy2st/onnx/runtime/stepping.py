"""An ONNX file run node by node on onnxruntime, with every inner value: those of arms and of iterations too.

Each node is a model of its own for onnxruntime, without optimisation. ``If``, ``Loop`` and ``Scan`` are carried out
here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
import torch
from onnx import helper

from dy2st.onnx.passes.node_constructs import ALL_TRIPS, LOOP_OR_NONE, NAMESPACE, RERUN
from dy2st.onnx.passes.source_lines import STACK
from dy2st.onnx.runtime.side_metadata import load_model

# Which arm or iteration of which construct, from the outermost on: the name of its fx node, and "then", "else" or the
# number of the trip.
Place = tuple[tuple[str, str | int], ...]
Run = Callable[[onnx.ModelProto, dict[str, torch.Tensor]], list[torch.Tensor]]

# The way through a loop of what is computed for all of its trips at once.
ALL = "all"


@dataclass(frozen=True)
class Step:
    """One node that has run: where, its own name and that of its fx node, its stack, and what it gave."""

    place: Place
    node: str
    fx_name: str
    stack: str
    values: tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class End:
    """The end of an arm or of an iteration, with what the subgraph gave."""

    place: Place
    node: str
    values: tuple[torch.Tensor, ...]


@dataclass
class Stepper:
    """Runs one file. ``run`` carries out a model of one node on tensors by name.

    ``entered`` is told of each arm and iteration before it runs; it may raise, to end the run.
    """

    model: onnx.ModelProto
    run: Run
    entered: Callable[[Place], None] = lambda _: None
    steps: list[Step | End] = field(default_factory=list)
    running: tuple[Place, onnx.NodeProto] = field(default_factory=lambda: ((), onnx.NodeProto()))
    _alone: dict[tuple[Any, ...], onnx.ModelProto] = field(default_factory=dict)

    @classmethod
    def of(cls, file: str | Path, run: Run, entered: Callable[[Place], None] = lambda _: None) -> Stepper:
        """A stepper of a file, its external data included."""
        return cls(load_model(file), run, entered)

    def outputs(self, feed: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """Run the whole; ``steps`` has what happened, in its order."""
        return self._graph(self.model.graph, {"": None, **feed}, ())

    def _graph(self, graph: onnx.GraphProto, outer: Mapping[str, Any], place: Place) -> list[torch.Tensor]:
        # An input that has a default value, as state has, is what it is given.
        given = {each.name for each in graph.input} & outer.keys()
        values = dict(outer) | {each.name: _constant(each) for each in graph.initializer if each.name not in given}
        for node in graph.node:
            results = self._node(node, values, place)
            values.update(zip(node.output, results, strict=False))
            made = tuple(value for name, value in zip(node.output, results, strict=False) if name)
            loop = _last_name(metadata(node, ALL_TRIPS))
            where = (*place, (loop, ALL)) if loop else place
            self.steps.append(Step(where, node.name, fx_name(node), metadata(node, STACK), made))
        return [values[output.name] for output in graph.output]

    def _node(self, node: onnx.NodeProto, values: dict[str, Any], place: Place) -> Sequence[torch.Tensor]:
        self.running = place, node
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        inputs = [values[name] for name in node.input]
        if node.op_type == "If":
            way = "then" if bool(inputs[0]) else "else"
            if metadata(node, RERUN) and way == "then":
                self._forget(place, fx_name(node))
            if metadata(node, LOOP_OR_NONE) or metadata(node, RERUN):  # what is in it stands where the loop stood
                return self._graph(attributes[f"{way}_branch"], values, place)
            return self._ended(node, attributes[f"{way}_branch"], values, (*place, (fx_name(node), way)))
        if node.op_type == "Loop":
            return self._loop(node, attributes["body"], inputs, values, place)
        if node.op_type == "Scan":
            return self._scan(node, attributes, inputs, values, place)
        feed = {name: value for name, value in zip(node.input, inputs, strict=True) if name}
        # Not by identity: protobuf makes an object anew each time that a node of a subgraph is looked at.
        key = (node.SerializeToString(), *((name, value.dtype, value.dim()) for name, value in feed.items()))
        if key not in self._alone:
            self._alone[key] = self._model_of(node, feed)
        return self.run(self._alone[key], feed)

    def _forget(self, place: Place, loop: str) -> None:
        """Take back the steps of a loop, and what it gave: it runs once more."""
        around = len(place)
        self.steps[:] = [
            step
            for step in self.steps
            if step.place[:around] != place
            or (step.place[around][0] != loop if step.place[around:] else getattr(step, "fx_name", "") != loop)
        ]

    def _ended(self, node: onnx.NodeProto, graph: Any, values: Mapping[str, Any], place: Place) -> list[torch.Tensor]:
        self.entered(place)
        results = self._graph(graph, values, place)
        self.steps.append(End(place, node.name, tuple(results)))
        return results

    def _trip(
        self, node: Any, body: Any, given: Sequence[Any], values: Mapping[str, Any], place: Place, trip: int
    ) -> list[torch.Tensor]:
        """What an iteration gives that is given these values of the body's inputs."""
        inside = {**values, **{each.name: value for each, value in zip(body.input, given, strict=True)}}
        return self._ended(node, body, inside, (*place, (fx_name(node), trip)))

    def _loop(
        self, node: Any, body: Any, inputs: list[Any], values: dict[str, Any], place: Place
    ) -> list[torch.Tensor]:
        limit = None if inputs[0] is None else int(inputs[0])
        going = True if inputs[1] is None else bool(inputs[1])
        state = list(inputs[2:])
        rows: list[list[torch.Tensor]] = [[] for _ in range(len(body.output) - 1 - len(state))]
        trip = 0
        while going and (limit is None or trip < limit):
            given = [torch.tensor(trip), torch.tensor(going), *state]
            results = self._trip(node, body, given, values, place, trip)
            going, state = bool(results[0]), results[1 : 1 + len(state)]
            for kept, row in zip(rows, results[1 + len(state) :], strict=True):
                kept.append(row)
            trip += 1
        outputs = body.output[1 + len(state) :]
        return [*state, *(_stacked(kept, output) for kept, output in zip(rows, outputs, strict=True))]

    def _scan(
        self, node: Any, attributes: dict[str, Any], inputs: list[Any], values: dict[str, Any], place: Place
    ) -> list[torch.Tensor]:
        body, count = attributes["body"], attributes["num_scan_inputs"]
        state, scanned = inputs[: len(inputs) - count], inputs[len(inputs) - count :]
        axes = attributes.get("scan_input_axes", [0] * count)
        back = attributes.get("scan_input_directions", [0] * count)
        width = len(body.output) - len(state)
        rows: list[list[torch.Tensor]] = [[] for _ in range(width)]
        length = scanned[0].shape[axes[0]]
        for trip in range(length):
            slices = [
                each.select(axis, length - 1 - trip if reverse else trip)
                for each, axis, reverse in zip(scanned, axes, back, strict=True)
            ]
            results = self._trip(node, body, [*state, *slices], values, place, trip)
            state = results[: len(state)]
            for kept, row in zip(rows, results[len(state) :], strict=True):
                kept.append(row)
        reverse_out = attributes.get("scan_output_directions", [0] * width)
        stacks = []
        for kept, output, reverse in zip(rows, body.output[len(state) :], reverse_out, strict=True):
            stacks.append(_stacked(kept[::-1] if reverse else kept, output))
        return [*state, *stacks]

    def _model_of(self, node: onnx.NodeProto, feed: Mapping[str, torch.Tensor]) -> onnx.ModelProto:
        inputs = [
            helper.make_tensor_value_info(name, _ELEMENT[value.dtype], [None] * value.dim())
            for name, value in feed.items()
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([node], "node", inputs, outputs)
        model = helper.make_model(graph, opset_imports=self.model.opset_import, ir_version=self.model.ir_version)
        model.functions.extend(self.model.functions)
        return model


_ELEMENT: dict[torch.dtype, int] = {
    getattr(torch, name): getattr(onnx.TensorProto, {"float32": "FLOAT", "float64": "DOUBLE"}.get(name, name.upper()))
    for name in "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool".split()
}
_DTYPES = {element: dtype for dtype, element in _ELEMENT.items()}


def metadata(node: onnx.NodeProto, key: str) -> str:
    """An entry of a node's metadata, or nothing."""
    return next((entry.value for entry in node.metadata_props if entry.key == key), "")


def fx_name(node: onnx.NodeProto) -> str:
    """The name of the fx node that an ONNX node was made from, or nothing."""
    return _last_name(metadata(node, NAMESPACE))


def _last_name(namespace: str) -> str:
    return namespace.rpartition("/")[2].partition(":")[0]


def _constant(tensor: onnx.TensorProto) -> torch.Tensor:
    if tensor.data_type == onnx.TensorProto.BFLOAT16:
        flat = torch.frombuffer(bytearray(tensor.raw_data), dtype=torch.bfloat16)
        return flat.reshape(tuple(tensor.dims))
    return torch.from_numpy(onnx.numpy_helper.to_array(tensor).copy())


def _stacked(rows: list[torch.Tensor], output: onnx.ValueInfoProto) -> torch.Tensor:
    """The rows of a scan output; without any, what the graph says of them."""
    if rows:
        return torch.stack(rows)
    kind = output.type.tensor_type
    return torch.empty([0, *(dim.dim_value for dim in kind.shape.dim)], dtype=_DTYPES[kind.elem_type])
