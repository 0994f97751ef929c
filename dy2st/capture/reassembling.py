"""A program with another graph, other inputs and other results."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from torch import fx
from torch.export import ExportedProgram
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import ExportGraphSignature, InputKind, InputSpec, OutputSpec
from torch.utils import _pytree as pytree


def reassembled(
    program: ExportedProgram, module: fx.GraphModule, inputs: Sequence[InputSpec], outputs: Sequence[OutputSpec]
) -> ExportedProgram:
    """The program of a graph that was made from another program's.

    Args:
        program: the other one; it keeps what it has.
        module: the graph.
        inputs: of the graph in its order, what the program holds before what it is given. The latter it takes by
            position. It holds what the other one held under these names.
        outputs: of the graph in its order; it gives them as a tuple.
    """
    made = copy.copy(program)
    made._graph_module = module
    made._graph_signature = ExportGraphSignature(list(inputs), list(outputs))
    taken = {spec.target for spec in inputs}
    made._state_dict = {name: value for name, value in program.state_dict.items() if name in taken}
    made._constants = {name: value for name, value in program.constants.items() if name in taken}
    made._example_inputs = None
    # Code that names the inputs of the other program.
    made._guards_code = []
    count = sum(spec.kind is InputKind.USER_INPUT for spec in inputs)
    in_spec = pytree.tree_flatten((tuple(range(count)), {}))[1]
    out_spec = pytree.tree_flatten(tuple(range(len(outputs))))[1]
    # As torch leaves it for a whole program: which nodes they are, the signature of the graph says.
    signature = ModuleCallSignature([], [], in_spec, out_spec, None)
    made._module_call_graph = [ModuleCallEntry("", signature)]
    return made
