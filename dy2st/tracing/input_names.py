"""Names of a program's inputs and of its state, which may be called as something in the code that torch makes of it.

A program's graph is run as Python code that torch writes: a function with the inputs as parameters, in whose body
``inf``, ``device``, ``torch`` or ``self`` mean what torch means by them. An input of such a name, or one that is a
keyword once torch has made it lower case (``In``), gets an underscore. What a keyword argument is called is fixed by
the call: there such a name is refused. A buffer or a child called as an attribute of torch's modules of graphs
(``meta``, ``graph``) gets an underscore, too: beside it there is no place for it in ``program.module()``.

Source: ``placeholder_naming_pass`` and ``torch.fx.graph`` of torch 2.13, whose names these are.
"""

from __future__ import annotations

import builtins
import keyword
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import fx
from torch._export import utils
from torch.export import _trace, exported_program

from dy2st.errors import UsageError
from dy2st.tracing.replaced import replaced
from dy2st.tracing.subgraph import graph_modules

# What generated code reads by name, whatever the graph is.
READ = frozenset({"self", "getattr", *fx.graph._custom_builtins, *keyword.kwlist})


def read_by_name(module: torch.nn.Module) -> frozenset[str]:
    """The names that the code of a graph, or of one inside it, may read as something else than a value of the graph."""
    nodes = [node for each in graph_modules(module) for node in each.graph.nodes]
    called = (getattr(node.target, "__name__", "") for node in nodes)
    return READ | {name for name in called if hasattr(builtins, name)}


def inputs_apart() -> AbstractContextManager[None]:
    """While torch exports or lowers a program, its inputs have names that its code does not read otherwise."""
    # Of no type: torch's own, private to it.
    internals: Any = utils
    naming, without_collisions = internals.placeholder_naming_pass, internals._rename_without_collisions

    def named(module: fx.GraphModule, *args: Any) -> None:
        taken = read_by_name(module)

        def apart(names: Any, available: Any, used: Any, old: str, new: str, is_placeholder: bool = False) -> Any:
            new = f"{new}_" if is_placeholder and new in taken else new
            return without_collisions(names, available, used, old, new, is_placeholder)

        with replaced([(internals, "_rename_without_collisions", apart)]):
            naming(module, *args)
        for graph in [each.graph for each in graph_modules(module)]:
            # Nodes that are made later must not be called as one that torch has named behind the graph's back.
            graph._graph_namespace._used_names.update(node.name for node in graph.nodes)

    return replaced((user, "placeholder_naming_pass", named) for user in (_trace, exported_program))


def state_apart(program: torch.export.ExportedProgram) -> None:
    """Give parameters, buffers and constants other names where ``program.module()`` has attributes of these names."""
    holder, known = fx.GraphModule(torch.nn.Module(), fx.Graph()), {*program.state_dict, *program.constants}
    new: dict[str, str] = {}
    for old in known:
        first, dot, rest = old.partition(".")
        name = first
        while (name != first and f"{name}{dot}{rest}" in known) or hasattr(holder, name):
            name += "_"
        if name != first:
            new[old] = f"{name}{dot}{rest}"
    if not new:
        return
    signature = program.graph_signature
    for spec in (*signature.input_specs, *signature.output_specs):
        if spec.target in new:
            spec.target = new[spec.target]
    program._state_dict = {new.get(name, name): value for name, value in program.state_dict.items()}
    program._constants = {new.get(name, name): value for name, value in program.constants.items()}


def parameters_apart(program: torch.export.ExportedProgram, count: int) -> None:
    """The same for the function that ``program.module()`` makes, of ``count`` positional arguments.

    Raises:
        UsageError: a keyword argument has such a name.
    """
    signature = program.module_call_graph[0].signature
    if signature is None or not signature.forward_arg_names:
        return
    taken = set(read_by_name(program.graph_module))
    named = signature.forward_arg_names[count:]
    refused = [name for name in named if name in taken]
    if refused:
        raise UsageError(
            f"the argument {refused[0]!r} is given by keyword, and a program can't have a parameter of that name",
            hint="pass it by position, or call the parameter something else",
        )
    taken.update(named)
    for i, old in enumerate(signature.forward_arg_names[:count]):
        name = old
        while name in taken:
            name += "_"
        taken.add(name)
        signature.forward_arg_names[i] = name
        # What a program checks of its inputs is text, too.
        guards = program._guards_code
        program._guards_code = [code.replace(f"L[{old!r}]", f"L[{name!r}]") for code in guards]
