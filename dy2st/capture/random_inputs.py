"""The random numbers of a program as inputs of it, so that two who run it can be given the same.

Each operator that draws becomes an input ``random_0``, ``random_1`` in the order of the graph, which is that in which
eager draws. A dropout is the mask that it draws, of ones and zeros, and what eager computes with it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils import _pytree as pytree

from dy2st.capture.carried_state import PREFIX
from dy2st.errors import RandomInputError
from dy2st.sizes.lowering import place_of
from dy2st.tracing.named_tuples import with_leaves
from dy2st.tracing.random_ops import DROPOUT, draws, is_drawn, is_written
from dy2st.tracing.subgraph import graph_modules

# Where a program's graph module keeps the names of such inputs, in order.
RANDOM = "dy2st.random_inputs"


def random_inputs_of(program: ExportedProgram | None) -> list[str]:
    """The names of a program's inputs that are random numbers, in the order in which they are drawn."""
    return [] if program is None else list(program.graph_module.meta.get(RANDOM, []))


def with_random_inputs(program: ExportedProgram) -> ExportedProgram:
    """Make inputs of what a program draws, in place; they are keyword arguments behind those of the model.

    Raises:
        RandomInputError: what is drawn has no place among the inputs.
    """
    graph = program.graph_module.graph
    nodes = [node for node in graph.nodes if _draws(node)]
    _require(program, nodes)
    taken = {node.name for node in graph.nodes}
    names: list[str] = []
    for number in range(len(nodes)):
        name = f"random_{number}"
        while name in taken:
            name += "_"
        names.append(name)
        taken.add(name)
    own = [each for each in graph.nodes if each.op == "placeholder" and not each.name.startswith(PREFIX)]
    last = own[-1] if own else graph._root
    made = []
    for name, node in zip(names, nodes, strict=True):
        with graph.inserting_after(last):
            last = graph.placeholder(name)
        last.meta["val"] = node.meta["val"]
        made.append(last)
    for given, node in zip(made, nodes, strict=True):
        _replace(graph, node, given)
    program.graph_module.recompile()
    _tell(program, made)
    program.graph_module.meta[RANDOM] = names
    return program


def _draws(node: fx.Node) -> bool:
    return node.op == "call_function" and draws(node.target, node.args, node.kwargs)


def _require(program: ExportedProgram, nodes: list[fx.Node]) -> None:
    """Accept what is drawn, each in every call, by operators that draw nothing else."""
    hint = "draw the numbers before it, as many as it may need, and use them inside"
    for module in graph_modules(program.graph_module):
        for node in module.graph.nodes if module is not program.graph_module else ():
            if _draws(node):
                what = "random numbers are drawn under a tensor condition or in a staged loop, and can't be inputs"
                raise RandomInputError(what, hint=hint, location=place_of(node))
    for node in nodes:
        value = node.meta["val"]
        if not is_drawn(node.target):
            raise RandomInputError(
                f"{node.target} draws random numbers that can't be inputs",
                hint="draw a tensor with torch.rand or torch.bernoulli, and compute with it",
                location=place_of(node),
            )
        if any(free_unbacked_symbols(size) for size in value.shape if isinstance(size, torch.SymInt)):
            what = "as many random numbers are drawn as data decides, and can't be inputs"
            raise RandomInputError(
                what, hint="draw as many as there may be, and take what is needed", location=place_of(node)
            )


def _replace(graph: fx.Graph, node: fx.Node, given: fx.Node) -> None:
    aten = torch.ops.aten
    with graph.inserting_before(node):
        if node.target is DROPOUT:
            x, p = node.args[0], node.args[1]
            assert isinstance(x, fx.Node)
            assert isinstance(p, float | int)
            mask = graph.call_function(aten.div.Tensor, (given, 1 - p))
            made = graph.call_function(aten.mul.Tensor, (x, mask))
            mask.meta.update(node.meta)
        elif is_written(node.target):
            made = graph.call_function(aten.copy_.default, (node.args[0], given))
        else:
            made = graph.call_function(aten.clone.default, (given,))
    made.meta.update(node.meta)
    node.replace_all_uses_with(made)
    graph.erase_node(node)


def _tell(program: ExportedProgram, made: list[fx.Node]) -> None:
    """Add the inputs to the signatures of a program, before those that are state."""
    # Those of the capture know nothing of what is drawn.
    program._example_inputs = None
    specs = program.graph_signature.input_specs
    state = [each for each in specs if each.kind is InputKind.USER_INPUT and str(each.arg.name).startswith(PREFIX)]
    place = specs.index(state[0]) if state else len(specs)
    specs[place:place] = [InputSpec(InputKind.USER_INPUT, TensorArgument(each.name), None) for each in made]
    signature: Any = program.module_call_graph[0].signature
    spec = signature.in_spec
    args, kwargs = with_leaves(range(spec.num_leaves), spec)
    following = {name: value for name, value in kwargs.items() if name.startswith(PREFIX)}
    own = {name: value for name, value in kwargs.items() if name not in following}
    added = {each.name: 0 for each in made}
    signature.in_spec = pytree.tree_structure((args, {**own, **added, **following}))
    if signature.forward_arg_names is not None:
        names = signature.forward_arg_names
        cut = next((i for i, name in enumerate(names) if name.startswith(PREFIX)), len(names))
        signature.forward_arg_names = [*names[:cut], *added, *names[cut:]]
