"""Names of values, each used once in a whole model; and of outputs, by the keys and fields of what a model returns.

ONNX wants a name in a subgraph to differ from all around it, those of values that come later included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir
from torch.fx import GraphModule

from dy2st.onnx.passes.result_layout import Result
from dy2st.tracing.graph_functions import variable_of
from dy2st.tracing.graph_ops import loop_op

_STEP = re.compile(r"\['([^']*)'\]|\.(\w+)|\[(\d+)\]", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)

# How torch calls one of the results of a branch or loop, and what is returned by operators of ours.
_OF_A_BODY = re.compile(r"\bbody_\d+$|__body_\d+$")
_OF_A_CONSTRUCT = re.compile(r"(getitem|tied|sized|clone)(_\d+)?")


def result_name(path: str) -> str | None:
    """``state.h`` of ``output['state'].h``; None of what is in a tuple or list alone, or has keys that are no names."""
    rest = path.removeprefix("output")
    steps = ["".join(step) for step in _STEP.findall(rest)]
    whole = "".join(found[0] for found in _STEP.finditer(rest)) == rest
    names = all(_NAME.fullmatch(step) or step.isdecimal() for step in steps)
    return ".".join(steps) if whole and names and steps and not steps[0].isdecimal() else None


def result_names(layout: Sequence[Result], returned: Mapping[str, str]) -> list[str | None]:
    """The names of the outputs that a file has, by where they are in what the model returns; None for no such name.

    Parts of the elements of a list are named by the list and the part: ``found.score``. What is in a tuple or list has
    the name of the variable that is ``returned`` at this place.
    """
    places = [each.place + each.inner for each in layout if not each.is_state]
    return [result_name(place) or _by_variable(place, returned) for place in places]


def _by_variable(place: str, returned: Mapping[str, str]) -> str | None:
    """A name that begins with that of a variable: ``state.0`` of ``output[1][0]``, if ``output[1]`` is ``state``."""
    for start in (found[0] if (found := re.match(r"output\[\d+\]", place)) else "output", "output"):
        if start in returned:
            steps = ["".join(step) for step in _STEP.findall(place.removeprefix(start))]
            return (
                ".".join([returned[start], *steps]) if all(_NAME.fullmatch(s) or s.isdecimal() for s in steps) else None
            )
    return None


def state_names(module: GraphModule) -> list[list[str]]:
    """The variables that each loop of a program carries, in the order of the loops; lowering renames all of them."""
    found = []
    for node in module.graph.nodes:
        functions = [getattr(module, each.target) for each in node.all_input_nodes if each.op == "get_attr"]
        bodies = [each for each in functions if isinstance(each, GraphModule)]
        if node.target is loop_op:
            inputs = bodies[0].graph.find_nodes(op="placeholder")
            found.append([variable_of(each) for each in inputs[1 : 1 + len(node.args[3])]])
        for body in bodies:
            found += state_names(body)
    return found


def name_states(model: ir.Model, names: Sequence[Sequence[str]]) -> None:
    """Give the states of loops the names of the variables: ``total_body_0_in`` and ``total_body_0_out``."""
    graphs = [
        node.attributes["body"].as_graph()
        for node in ir.traversal.RecursiveGraphIterator(model.graph)
        if node.op_type == "Loop" and node.domain == ""
    ]
    bodies = [each for each in graphs if _OF_A_BODY.search(each.name or "")]
    if [len(each.inputs) - 2 for each in bodies] != list(map(len, names)):
        return
    taken: set[str] = set()
    for body, known in zip(bodies, names, strict=True):
        for variable, before, after in zip(known, body.inputs[2:], body.outputs[1:], strict=False):
            name, count = f"{variable}_{body.name}", 2
            while name in taken:  # the parts of a tuple
                name, count = f"{variable}_{count}_{body.name}", count + 1
            taken.add(name)
            before.name = f"{name}_in"
            producer = after.producer()
            if producer is not None and producer.graph is body:
                after.name = f"{name}_out"


def named_results(names: Sequence[str | None], values: Sequence[str]) -> list[str | None]:
    """The names of results, with one for each whose value is called by what made it.

    A result of a branch, loop or guard for which the source has no name is ``output``, or ``output_0``, ``output_1``.
    """
    plain = ["output"] if len(names) == 1 else [f"output_{i}" for i in range(len(names))]
    return [
        place if name is None and _OF_A_CONSTRUCT.fullmatch(value) else name
        for name, place, value in zip(names, plain, values, strict=True)
    ]


def name_results(model: ir.Model, names: Sequence[str | None]) -> None:
    """Give outputs these names, where they are unique. Inputs and weights keep theirs.

    Those for which the source has no name are named as :func:`named_results` has it.
    """
    graph = model.graph
    if len(names) != len(graph.outputs) or len(set(map(id, graph.outputs))) < len(graph.outputs):
        return
    names = named_results(names, [value.name or "" for value in graph.outputs])
    named = {
        id(value): name
        for value, name in zip(graph.outputs, names, strict=True)
        if name is not None and names.count(name) == 1 and not value.is_graph_input()
    }
    others = [value for value in graph.outputs if id(value) not in named]
    initial = [value for value in graph.initializers.values() if id(value) not in named]
    taken = {value.name for value in (*graph.inputs, *initial, *others)}
    for value in graph.outputs:
        if id(value) in named:
            while named[id(value)] in taken:
                named[id(value)] += "_out"
            taken.add(named[id(value)])
    inner = [value for node in graph for value in node.outputs if id(value) not in named]
    clashing = [value for value in inner if value.name in named.values()]
    taken |= {value.name for value in inner}
    for value in clashing:
        name = f"{value.name}_inner"
        while name in taken:
            name += "_"
        value.name = name
        taken.add(name)
    for value in graph.outputs:
        value.name = named.get(id(value), value.name)


def make_names_unique(model: ir.Model) -> None:
    """Rename values whose names are taken; inputs, outputs and weights of the main graph keep theirs."""
    main, *inner = _graphs(model.graph)
    kept = [*main.inputs, *main.initializers.values(), *main.outputs]
    taken: set[str] = {value.name for value in kept if value.name}
    own = {id(value) for value in kept}
    every = {value.name for graph in (main, *inner) for value in _values(graph) if value.name}
    for graph in (main, *inner):
        for value in _values(graph):
            if id(value) in own:
                continue
            name, count = value.name or "value", 2
            while name in taken or (count > 2 and name in every):
                name, count = f"{value.name or 'value'}_{count}", count + 1
            value.name = name
            taken.add(name)


def make_node_names_unique(model: ir.Model) -> None:
    """Rename nodes whose names are taken: onnxruntime refuses two of one name, and reports tell them apart."""
    taken = {node.name for graph in _graphs(model.graph) for node in graph if node.name}
    seen: set[str] = set()
    for graph in _graphs(model.graph):
        for node in graph:
            name, count = node.name, 2
            if name is None or name not in seen:
                seen.add(name or "")
                continue
            while name in taken:
                name, count = f"{node.name}_{count}", count + 1
            node.name = name
            taken.add(name)
            seen.add(name)


def _graphs(graph: ir.Graph) -> Iterator[ir.Graph]:
    """A graph, then those inside it."""
    yield graph
    for node in graph:
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.GRAPH:
                yield from _graphs(attribute.as_graph())


def _values(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from graph.inputs
    for node in graph:
        yield from node.outputs
