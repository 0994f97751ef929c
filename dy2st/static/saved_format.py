"""What programs are made of, as JSON and back: constants, operators, graphs.

What JSON has stands as it is (None, bools, ints, finite floats, texts, lists); all else is an object of one key that
says its kind. Nothing in a file is run or imported: operators are looked up by name among torch's own, ours, and a list
of Python's; names are checked before they stand in generated code.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

from dy2st.errors import UnsavableError
from dy2st.static.subgraphs import held
from dy2st.tracing.custom_functions import CustomFunction
from dy2st.tracing.grad_mode import HANDED_ON, WORKED_ON
from dy2st.tracing.graph_ops import branch_op, loop_op
from dy2st.tracing.guards import require_op, tied_op
from dy2st.tracing.layouts import needs_a_layout
from dy2st.tracing.messages import say_op
from dy2st.tracing.size_ops import length_op, sized_op
from dy2st.values.describing import describe

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TORCHS = {"dtype": torch.dtype, "layout": torch.layout, "memory_format": torch.memory_format}
_OURS: dict[str, Any] = {"dy2st_branch": branch_op, "dy2st_loop": loop_op} | {
    f"dy2st.{each._schema.name.partition('::')[2]}": each for each in (require_op, tied_op, length_op, sized_op)
}
_OPERATORS = (
    "add sub mul floordiv mod truediv pow neg pos abs eq ne lt le gt ge and_ or_ xor not_ invert lshift rshift getitem"
)
_PYTHONS: dict[str, Any] = {
    **{f"operator.{name}": getattr(operator, name) for name in _OPERATORS.split()},
    **{f"math.{name}": getattr(math, name) for name in ("floor", "ceil", "trunc")},
    **{f"torch.{name}": getattr(torch, name) for name in ("sym_ite sym_max sym_min sym_not sym_int sym_float").split()},
    **{f"torch.{name}": getattr(torch, name) for name in ("sym_sum", "_sym_sqrt") if hasattr(torch, name)},
}
_BY_TARGET = {target: name for name, target in (_OURS | _PYTHONS).items()}
# What a copy is for, in the meta data of its node and in a file.
_MARKS = {HANDED_ON: "handed_on", WORKED_ON: "worked_on"}
_NAMESPACES = ("aten", "prims")
# Operators of torch that reach outside of the program.
_OUTSIDE = ("from_file", "save", "set_data", "_resize_output_", "resize_", "set_")


def is_name(text: Any) -> bool:
    """Whether a text may be a name in generated code."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


# ---- constants


def encoded(value: Any, nodes: Mapping[fx.Node, int] | None = None) -> Any:
    """A constant, or an argument of a node, as JSON.

    Raises:
        UnsavableError: it is an object of another kind.
    """
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, fx.Node) and nodes is not None:
        return {"node": nodes[value]}
    if isinstance(value, list):
        return [encoded(each, nodes) for each in value]
    if type(value) in (tuple, torch.Size):
        return {"tuple": [encoded(each, nodes) for each in value]}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    for kind, cls in _TORCHS.items():
        if isinstance(value, cls):
            return {kind: str(value).removeprefix("torch.")}
    if type(value) is complex:
        return {"complex": [repr(value.real), repr(value.imag)]}
    if type(value) is slice:
        return {"slice": [encoded(each, nodes) for each in (value.start, value.stop, value.step)]}
    if value is Ellipsis:
        return {"ellipsis": []}
    raise UnsavableError(f"{describe(value)} is no constant that a file can hold")


def decoded(value: Any, nodes: Sequence[fx.Node] = ()) -> Any:
    """What :func:`encoded` has made JSON of.

    Raises:
        ValueError: it has not.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [decoded(each, nodes) for each in value]
    ((kind, content),) = value.items()
    if kind == "node" and type(content) is int and 0 <= content < len(nodes):
        return nodes[content]
    if kind in ("tuple", "slice"):
        parts = [decoded(each, nodes) for each in content]
        return tuple(parts) if kind == "tuple" else slice(*parts)
    if kind in _TORCHS:
        found = getattr(torch, content) if is_name(content) else None
        if isinstance(found, _TORCHS[kind]):
            return found
    simple: dict[str, Callable[[Any], Any]] = {
        "float": float,
        "device": torch.device,
        "complex": lambda parts: complex(*map(float, parts)),
        "ellipsis": lambda _: Ellipsis,
    }
    if kind not in simple:
        raise ValueError(kind)
    return simple[kind](content)


# ---- operators


def name_of(target: Any) -> str:
    """The name of what a node calls.

    Raises:
        UnsavableError: it is none of torch's operators, nor of ours.
    """
    if isinstance(target, CustomFunction):
        function: Any = target.function()
        name = getattr(function, "__name__", "a function")
        raise UnsavableError(
            f"the custom autograd function {name} is code of yours",
            hint="write it with operators of torch, or keep the program in Python",
        )
    if target is say_op:
        raise UnsavableError("it prints, logs or warns, which a saved program does not", hint="leave that out")
    known = _BY_TARGET.get(target)
    if known is not None:
        return known
    name = str(target)
    if isinstance(target, OpOverload) and _is_allowed(target):
        return name
    raise UnsavableError(f"the operator {name} is none of torch's own", hint="write it with operators of torch")


def target_of(name: str) -> Any:
    """What a name of a file stands for.

    Raises:
        ValueError: there is no such operator, or none that a file may call.
    """
    if name in _OURS or name in _PYTHONS:
        return (_OURS | _PYTHONS)[name]
    namespace, operator_name, overload = name.split(".")
    if namespace not in _NAMESPACES or not is_name(operator_name) or not is_name(overload):
        raise ValueError(name)
    found = getattr(getattr(getattr(torch.ops, namespace), operator_name), overload)
    if not isinstance(found, OpOverload) or not _is_allowed(found):
        raise ValueError(name)
    return found


def _is_allowed(target: OpOverload) -> bool:
    namespace, _, name = target._schema.name.partition("::")
    return namespace in _NAMESPACES and name not in _OUTSIDE and torch._C._dispatch_has_kernel(target.name())


# ---- graphs


def graph_to_json(module: fx.GraphModule, graphs: list[Any], hold: Callable[[torch.Tensor], str]) -> int:
    """Add a graph, and those inside of it, to ``graphs``; its place there. ``hold`` keeps a tensor under a name.

    Raises:
        UnsavableError: it has something that a file can't hold.
    """
    place = len(graphs)
    graphs.append(None)
    nodes: dict[fx.Node, int] = {}
    found = []
    for node in module.graph.nodes:
        name = node.name if is_name(node.name) else f"value_{len(nodes)}"
        made: dict[str, Any] = {"name": name, "op": node.op}
        if node.op == "get_attr":
            value = held(module, node)
            if isinstance(value, fx.GraphModule):
                made["graph"] = graph_to_json(value, graphs, hold)
            elif isinstance(value, torch.Tensor):
                made["tensor"] = hold(value)
            else:
                raise UnsavableError(f"{describe(value)} is a constant of the program")
        elif node.op in ("call_function", "output"):
            if node.op == "call_function":
                made["call"] = name_of(node.target)
            made["args"] = [encoded(each, nodes) for each in node.args]
            kwargs = {key: encoded(each, nodes) for key, each in node.kwargs.items()}
            if made.get("call") == "aten.clone.default" and not needs_a_layout(node):  # strides are not kept
                kwargs.pop("memory_format", None)
            if kwargs:
                made["kwargs"] = kwargs
        for mark, name in _MARKS.items():
            if mark in node.meta:
                made[name] = True
        if (value := _facts(node.meta.get("val"))) is not None:
            made["value"] = value
        nodes[node] = len(nodes)
        found.append(made)
    graphs[place] = found
    return place


def _facts(value: Any) -> Any:
    """What generated code asks of a value: what kind of tensor it is; a size that is not known is None."""
    if isinstance(value, torch.Tensor):
        facts = {
            "dtype": str(value.dtype).removeprefix("torch."),
            "shape": [size if type(size) is int else None for size in value.shape],
        }
        return facts if value.device.type == "cpu" else facts | {"device": str(value.device)}
    return "number" if isinstance(value, (int, torch.SymInt, torch.SymBool, torch.SymFloat)) else None


def graph_from_json(graphs: Sequence[Any], place: int, tensors: Mapping[str, torch.Tensor]) -> fx.GraphModule:
    """The graph at a place.

    Raises:
        ValueError: it is none (or another error of Python's, where it is not as it should be).
    """
    graph, nodes, root = fx.Graph(), list[fx.Node](), dict[str, Any]()
    for made in graphs[place]:
        op, name = made["op"], made["name"]
        if not is_name(name):
            raise ValueError(name)
        target: Any = name
        if op == "get_attr":
            target = f"held_{len(root)}"
            if "graph" in made and made["graph"] <= place:
                raise ValueError(name)
            is_graph = "graph" in made
            root[target] = graph_from_json(graphs, made["graph"], tensors) if is_graph else tensors[made["tensor"]]
        elif op == "call_function":
            target = target_of(made["call"])
        elif op not in ("placeholder", "output"):
            raise ValueError(op)
        args = tuple(decoded(each, nodes) for each in made.get("args", ()))
        kwargs = {key: decoded(each, nodes) for key, each in made.get("kwargs", {}).items() if is_name(key)}
        node = graph.create_node(op, target, args, kwargs, name=name)
        node.meta |= {mark: True for mark, name in _MARKS.items() if made.get(name)}
        if "value" in made:
            node.meta["val"] = _stand_in(made["value"])
        nodes.append(node)
    return fx.GraphModule(root, graph)


def _stand_in(facts: Any) -> Any:
    if facts == "number":
        return 0
    dtype = decoded({"dtype": facts["dtype"]})
    # One element, whatever the shape: it is asked what it is, not what is in it.
    return torch.empty((), dtype=dtype, device=facts.get("device", "cpu")).expand([s or 0 for s in facts["shape"]])
