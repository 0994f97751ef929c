"""The inputs and outputs of a file that are its model's state: their names, their first values, and what tells of them.

An input that is state has its first value as a default: an initializer of the same name, as ONNX has it since IR
version 4. So the file runs without being fed any state, as in the first call, and needs nothing beside it; what its
outputs end with says that it has state, and whoever feeds them to the next call carries it on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir
from torch.onnx._internal.exporter import _core

from dy2st.capture.carried_state import PREFIX, CarriedState
from dy2st.embedded.array_session import STATE
from dy2st.onnx.passes.value_names import named_results


@dataclass(frozen=True)
class Names:
    """The names of a graph's inputs and outputs, None where they stay; and those that outputs get from a result."""

    inputs: Sequence[str] | None
    outputs: Sequence[str] | None
    results: Sequence[str | None]


def name_state(
    model: ir.Model,
    carried: CarriedState | None,
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
    results: Sequence[str | None],
) -> Names:
    """The names, with those of the state behind the user's own."""
    if carried is None:
        return Names(input_names, output_names, results)
    graph, parts = model.graph, carried.parts
    count = len(graph.outputs) - len(parts)
    own_inputs = [str(value.name) for value in graph.inputs if not str(value.name).startswith(PREFIX)]
    own_outputs = [str(value.name) for value in graph.outputs[:count]]
    given_inputs = [*(input_names or ()), *own_inputs[len(input_names or ()) :]]
    given_outputs = [*(output_names or ()), *own_outputs[len(output_names or ()) :]]
    named: list[str] = []
    if not output_names and len(results) == count:
        found = named_results(results, own_outputs)
        named = _outputs_apart([name or own for name, own in zip(found, own_outputs, strict=True)], given_inputs)
    taken = {*given_inputs, *given_outputs, *named}
    names = list(_apart([part.name for part in parts], taken))
    following = list(_apart([f"{name}_next" for name in names], taken))
    by_input = {f"{PREFIX}{number}": name for number, name in enumerate(names)}
    own = iter(given_inputs)
    inputs = [by_input.get(str(value.name)) or next(own) for value in graph.inputs]
    return Names(inputs, [*(named or given_outputs), *following], ())


def _outputs_apart(names: Sequence[str], inputs: Sequence[str]) -> list[str]:
    """Names for outputs that nothing else has, an input that is returned as it is among them."""
    taken, found = set(inputs), list[str]()
    for wanted in names:
        name = wanted
        while name in taken:
            name += "_out"
        taken.add(name)
        found.append(name)
    return found


def tell_state(model: ir.Model, carried: CarriedState | None) -> None:
    """Give inputs that are state their first values, and say in the metadata what is what."""
    if carried is None:
        return
    graph, parts = model.graph, carried.parts
    _sizes_of_arguments(graph, len(parts))
    told: list[dict[str, Any]] = []
    pairs = zip(parts, graph.inputs[-len(parts) :], graph.outputs[-len(parts) :], strict=True)
    for part, given, following in pairs:
        given.const_value = _core.TorchTensor(part.initial.contiguous(), name=given.name)
        graph.register_initializer(given)
        told.append(
            {
                "input": given.name,
                "output": following.name,
                "path": part.name,
                "kind": part.kind,
                "dtype": str(part.dtype).removeprefix("torch."),
                "shape": [size if isinstance(size, int) else str(size) for size in given.shape or ()],
            }
        )
    model.metadata_props[STATE] = json.dumps(told)


def _sizes_of_arguments(graph: ir.Graph, count: int) -> None:
    """Take sizes that a part of the state shares with an argument from the argument.

    Before the first call a part may have no value yet: what stands in its place has the sizes of the example.
    """
    known: dict[str, tuple[ir.Value, int]] = {}
    for value in graph.inputs[:-count]:
        for d, size in enumerate(value.shape or ()):
            if isinstance(size, ir.SymbolicDim) and size.value is not None:
                known.setdefault(size.value, (value, d))
    state = {id(value): value for value in graph.inputs[-count:]}
    for node in list(graph.all_nodes()):
        if node.op_type != "Shape" or node.inputs[0] is None or id(node.inputs[0]) not in state:
            continue
        shape = node.inputs[0].shape
        start, end = node.attributes.get_int("start", 0), node.attributes.get_int("end", len(shape or ()))
        found = shape[start] if shape is not None and end == start + 1 else None
        if isinstance(found, ir.SymbolicDim) and found.value in known:
            value, d = known[found.value]
            node.replace_input_with(0, value)
            node.attributes["start"], node.attributes["end"] = ir.AttrInt64("start", d), ir.AttrInt64("end", d + 1)


def _apart(names: Iterable[str], taken: set[str]) -> Iterator[str]:
    for name in names:
        made = name
        while made in taken:
            made += "_"
        taken.add(made)
        yield made
