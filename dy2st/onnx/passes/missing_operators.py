"""An operator that ONNX does not have is written with others at its place; the rest of the program stays as it is.

torch traces a whole program again to that end. That is half of an export, and most programs have a few such operators
or none. A program that writes to views or inputs, that has other subgraphs than branches and loops of ours, or in
which a subgraph knows more of sizes than what is around it, is still traced again.

Source: ``ExportedProgram.run_decompositions`` of torch 2.13.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch._ops import HigherOrderOperator, OpOverload
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensorMode, dispatch_functionalize
from torch.export import exported_program
from torch.export.graph_signature import ExportGraphSignature
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import PropagateUnbackedSymInts
from torch.onnx._internal.exporter import _decomp, _fx_passes
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from dy2st.errors import Dy2stError
from dy2st.onnx.passes.functional_writes import without_writes
from dy2st.tracing.graph_functions import add_module
from dy2st.tracing.graph_ops import branch_op, loop_op
from dy2st.tracing.replaced import replaced
from dy2st.tracing.size_facts import LOCAL_FACTS
from dy2st.tracing.subgraph import graph_modules, storage_of, written_inputs

Decompositions = Mapping[Any, Callable[..., Any]]

# What a node's metadata say of its own value; the rest says where it comes from.
_OWN = ("val", "tensor_meta", "unbacked_bindings")
# Where a branch or loop has its subgraphs among its arguments, and how each is called.
_SUBGRAPHS: Mapping[Any, Sequence[tuple[int, str]]] = {branch_op: ((1, "then"), (2, "orelse")), loop_op: ((0, "body"),)}
_NUMBERS = (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)


class _RetraceError(Exception):
    """torch has to trace the whole program again."""


def decomposing_in_place() -> AbstractContextManager[None]:
    """Within, torch's exporter replaces the operators that ONNX does not have one by one."""
    native = _fx_passes.decompose_with_registry

    def decompose_with_registry(program: torch.export.ExportedProgram, registry: Any) -> torch.export.ExportedProgram:
        known = set(_decomp.get_onnx_implemented_overloads(registry))
        try:
            decompose(program, _decomp.create_onnx_friendly_decomposition_table(known))
        except _RetraceError:
            return native(program, registry)
        return program

    return replaced([(_fx_passes, "decompose_with_registry", decompose_with_registry)])


def decompose(program: torch.export.ExportedProgram, table: Decompositions) -> None:
    """Replace the operators of ``table`` in a program and its subgraphs.

    Raises:
        SpecializedError: an operator's replacement depends on a size that is dynamic.
        _RetraceError: it can't be done node by node; the program still computes what it did.
    """
    try:
        _decompose(program, table)
    finally:
        # Outputs are called otherwise even where torch goes on.
        program._graph_signature = _with_names(program.graph_signature, program.graph.output_node())


def _decompose(program: torch.export.ExportedProgram, table: Decompositions) -> None:
    modules = graph_modules(program.graph_module)
    if program.graph_module.meta.get(LOCAL_FACTS, True):
        raise _RetraceError
    if any(is_traceable_wrapper_subclass(value) for value in program.state_dict.values()):
        raise _RetraceError
    for module in modules:
        if not without_writes(module.graph, inputs_are_own=module is not program.graph_module):
            raise _RetraceError
    nodes = [node for module in modules for node in module.graph.nodes]
    for node in nodes:
        _require_plain(node)
    composite, others = exported_program._split_decomp_table_to_cia_and_python_decomp(dict(table))
    targets = {node.target for node in nodes if node.target in table or _is_always_decomposed(node.target, composite)}
    if targets:
        with exported_program._override_composite_implicit_decomp(composite):
            _decompose_graph(program.graph_module, targets, others)
    for module in modules:
        module.graph.eliminate_dead_code()
    for module in graph_modules(program.graph_module):
        _name_subgraphs(module)
        module.recompile()
    for spec, node in zip(program.graph_signature.input_specs, program.graph.find_nodes(op="placeholder"), strict=True):
        node.name = spec.arg.name


def _name_subgraphs(module: fx.GraphModule) -> None:
    """``then_0``, ``orelse_0``, ``body_0`` and ``body_1`` in the order in which they run, as torch numbers them."""
    found = {name: child for name, child in module.named_children() if isinstance(child, fx.GraphModule)}
    for name in found:
        delattr(module, name)
    for node in module.graph.nodes:
        for position, prefix in _SUBGRAPHS.get(node.target, ()):
            node.args[position].target = add_module(module, prefix, found[node.args[position].target])
        if node.name.startswith("dy2st_"):
            node._rename("branch" if node.target is branch_op else "loop")


def _with_names(signature: ExportGraphSignature, output: fx.Node) -> ExportGraphSignature:
    """A program's signature, with the names of the nodes that are its outputs now."""
    specs = [
        dataclasses.replace(spec, arg=dataclasses.replace(spec.arg, name=node.name))
        if isinstance(node, fx.Node)
        else spec
        for spec, node in zip(signature.output_specs, output.args[0], strict=True)  # type: ignore[arg-type]
    ]
    return dataclasses.replace(signature, output_specs=specs)


def _is_always_decomposed(target: Any, composite: Decompositions) -> bool:
    """Whether an operator is written with others in C++, and is none of those that torch can keep."""
    return isinstance(target, OpOverload) and target not in composite and target._can_decompose()


def _require_plain(node: fx.Node) -> None:
    """Raise for what is not an operator that makes new values, or a branch or a loop of ours."""
    target = node.target
    others = isinstance(target, HigherOrderOperator) and target not in _SUBGRAPHS
    if node.op == "call_module" or others:
        raise _RetraceError
    if isinstance(target, OpOverload):
        # torch makes tensors of numbers where an operator has nothing else.
        tensors = [
            given
            for each, given in zip(target._schema.arguments, node.args, strict=False)
            if isinstance(each.type, torch.TensorType)
        ]
        if target._schema.is_mutable or (tensors and all(isinstance(given, (int, float)) for given in tensors)):
            raise _RetraceError


def _decompose_graph(module: fx.GraphModule, targets: set[Any], table: Decompositions) -> None:
    """Replace the operators ``targets`` in a graph and its subgraphs."""
    for node in list(module.graph.nodes):
        inner = getattr(module, node.target, None) if node.op == "get_attr" else None
        if isinstance(inner, fx.GraphModule):
            _decompose_graph(inner, targets, table)
        elif node.target in targets:
            _put_in_place(node, _traced(node, table))


def _modes(values: Iterable[Any]) -> set[FakeTensorMode]:
    """The modes that made tensors."""
    return {leaf.fake_mode for leaf in pytree.tree_leaves(list(values)) if isinstance(leaf, FakeTensor)}


def _traced(node: fx.Node, table: Decompositions) -> fx.Graph:
    """What stands for a node: a graph of which the node's inputs, in order, are the inputs."""
    alone, inputs = fx.Graph(), node.all_input_nodes
    known = {each: alone.placeholder(f"input_{i}") for i, each in enumerate(inputs)}
    alone.output(alone.node_copy(node, known.__getitem__))
    values = [each.meta.get("val") for each in inputs]
    modes = _modes([*values, node.meta.get("val")])
    if len(modes) != 1 or not all(isinstance(value, (FakeTensor, *_NUMBERS)) for value in values):
        raise _RetraceError
    run = PropagateUnbackedSymInts(fx.GraphModule(torch.nn.Module(), alone)).run
    try:
        with modes.pop(), enable_python_dispatcher(), torch.no_grad():
            traced = make_fx(run, decomposition_table=dict(table))(*values).graph
            written = [each for node in traced.nodes for each in written_inputs(node)]
            if written:
                _require_own(written, traced)
                pure = dispatch_functionalize(run, FunctionalTensorMode())
                traced = make_fx(pure, decomposition_table=dict(table))(*values).graph
    except (Dy2stError, _RetraceError):
        raise
    except Exception as error:  # torch traces the whole program then, and says what is the matter
        raise _RetraceError from error
    for each in traced.nodes:
        _require_plain(each)
        if each.op == "get_attr":
            raise _RetraceError
    return traced


def _require_own(written: Sequence[fx.Node], graph: fx.Graph) -> None:
    """Raise for a write to an input, of which the schema says nothing: batch normalisation has running statistics."""
    given = {storage_of(each) for each in graph.find_nodes(op="placeholder")}
    if not given.isdisjoint(map(storage_of, written)):
        raise _RetraceError


def _put_in_place(node: fx.Node, written: fx.Graph) -> None:
    """Put the nodes of a graph in a node's place."""
    *inner, output = written.nodes
    inputs = iter(node.all_input_nodes)
    copies: dict[fx.Node, fx.Node] = {}
    with node.graph.inserting_before(node):
        for each in inner:
            if each.op == "placeholder":
                copies[each] = next(inputs)
            else:
                copies[each] = node.graph.node_copy(each, copies.__getitem__)
                own = {key: each.meta[key] for key in _OWN if key in each.meta}
                copies[each].meta = {key: value for key, value in node.meta.items() if key not in _OWN} | own
    result = output.args[0]
    if isinstance(result, fx.Node):
        if copies[result] not in node.all_input_nodes:
            copies[result].meta = dict(node.meta)
        node.replace_all_uses_with(copies[result])
    else:
        for user in list(node.users):
            if user.target is not operator.getitem or not isinstance(result, (tuple, list)):
                raise _RetraceError
            user.replace_all_uses_with(copies[result[user.args[1]]])  # type: ignore[index]
            user.graph.erase_node(user)
    node.graph.erase_node(node)
