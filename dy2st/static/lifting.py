"""A program that takes all tensors that it reads and gives all that it computes, as a file needs it.

A program holds the parameters and buffers that it reads, changes some of them in place, and gives back constants and
inputs as they are. A file does none of that: here what is read is an input of the graph, what is written is one of its
results, and it is told how the program's results come of these.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

from dy2st.capture.diagnosis import diagnosing
from dy2st.capture.reassembling import reassembled
from dy2st.onnx.exporting import quiet, settled_sizes
from dy2st.sizes.lowering import watching_lowering
from dy2st.sizes.shape_formulas import closed_forms
from dy2st.static.subgraphs import inputs_of, results_of
from dy2st.tracing.generated_code import generated_on_demand
from dy2st.tracing.input_names import inputs_apart
from dy2st.tracing.subgraph import written_inputs

ALIAS = torch.ops.aten.alias.default

# Where a result of the program comes from: a result of the lifted one or an input, by number, or a constant.
Origin = tuple[Literal["result", "input", "constant"], Any]


@dataclass(frozen=True)
class Lifted:
    """The program, and what its inputs and results are; inputs are told by their numbers in the original program.

    The first results are the new values of the inputs ``written``. ``values`` are what is known of each result. Of a
    program that computes nothing there is none.
    """

    program: ExportedProgram | None
    inputs: list[int]
    written: list[int]
    origins: list[Origin]
    values: list[Any]


def lifted(program: ExportedProgram, reads: Sequence[bool], *, writes: bool) -> Lifted:
    """The program with its tensors as inputs.

    ``reads`` says which of its inputs are tensors that may be others in each call; ``writes`` whether it changes any.
    """
    with generated_on_demand():
        module = copy.deepcopy(program.graph_module)
    origins, outputs = _with_results(program, module)
    if not outputs and not writes:
        return Lifted(None, [], [], origins, [])
    inputs = _with_inputs(program, module, reads)
    made = reassembled(program, module, [spec for _, spec in inputs], outputs)
    if writes:
        made = _without_writes(made)
    signature = made.graph_signature
    numbers = {spec.arg.name: i for (i, _), spec in zip(inputs, signature.input_specs, strict=True)}
    given = [numbers[spec.arg.name] for spec in signature.input_specs if spec.kind is InputKind.USER_INPUT]
    written = [numbers[str(spec.target)] for spec in signature.output_specs if spec.kind is not OutputKind.USER_OUTPUT]
    places = [(kind, each + len(written) if kind == "result" else each) for kind, each in origins]
    results = [OutputSpec(OutputKind.USER_OUTPUT, spec.arg, None) for spec in signature.output_specs]
    values = [node.meta.get("val") for node in results_of(made.graph_module)]
    return Lifted(reassembled(made, made.graph_module, signature.input_specs, results), given, written, places, values)


def _with_results(program: ExportedProgram, module: fx.GraphModule) -> tuple[list[Origin], list[OutputSpec]]:
    """Let the graph give what it computes only, each value once; and where all results are to be found."""
    numbers = {node: i for i, node in enumerate(inputs_of(module))}
    specs = program.graph_signature.output_specs
    found: dict[fx.Node, OutputSpec] = {}
    origins: list[Origin] = []
    for value, spec in zip(results_of(module), specs, strict=True):
        node = _itself(value)
        if not isinstance(node, fx.Node):
            origins.append(("constant", node))
        elif node in numbers:
            origins.append(("input", numbers[node]))
        else:
            found.setdefault(value, OutputSpec(OutputKind.USER_OUTPUT, spec.arg, None))
            origins.append(("result", list(found).index(value)))
    output = next(node for node in reversed(module.graph.nodes) if node.op == "output")
    output.args = (tuple(found),)
    return origins, list(found.values())


def _itself(value: Any) -> Any:
    """The node whose tensor a node gives back as it is, after it has written to it."""
    while isinstance(value, fx.Node) and (value.target is ALIAS or written_inputs(value)):
        returned = value.target._schema.returns  # type: ignore[union-attr]
        if len(returned) != 1 or returned[0].alias_info is None:
            break
        value = value.args[0]
    return value


def _with_inputs(
    program: ExportedProgram, module: fx.GraphModule, reads: Sequence[bool]
) -> list[tuple[int, InputSpec]]:
    """Make inputs of the tensors that are read, behind what stays in the program; leave out what nothing uses."""
    kept: list[tuple[int, InputSpec]] = []
    taken: list[tuple[int, InputSpec]] = []
    nodes = inputs_of(module)
    for i, (node, spec) in enumerate(zip(nodes, program.graph_signature.input_specs, strict=True)):
        if not node.users:
            module.graph.erase_node(node)
        elif reads[i]:
            taken.append((i, InputSpec(InputKind.USER_INPUT, TensorArgument(node.name), None)))
        else:
            kept.append((i, spec))
    first = next(node for node in module.graph.nodes if node.op != "placeholder")
    for i, _ in (*kept, *taken):
        first.prepend(nodes[i])
    module.recompile()
    return [*kept, *taken]


def _without_writes(program: ExportedProgram) -> ExportedProgram:
    """The program with what it writes to its inputs as results, before the others."""
    with (
        diagnosing(),
        quiet(),
        settled_sizes(program),
        closed_forms(),
        inputs_apart(),
        generated_on_demand(),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", message=".*treespec, LeafSpec.*", category=FutureWarning)
        with watching_lowering(program, lambda _: False):
            made: ExportedProgram = program.run_decompositions({})
            return made
