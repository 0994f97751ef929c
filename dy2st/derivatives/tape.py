"""Reverse mode over a graph: it is run node by node, and what the derivative needs is kept on a tape.

The derivative of a single operator is autograd's own, on one operator at a time; that of a branch or loop is a rule of
ours (``Rules``), which differentiates its subgraphs with tapes of their own. Everything is traced: the graph and its
derivative end in the graph that is being made.

Source: reverse accumulation on a Wengert list; Griewank and Walther, "Evaluating Derivatives", 2008, chapter 3.
"""

from __future__ import annotations

import contextlib
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import fx
from torch.autograd import grad  # a capture puts another function in its place
from torch.fx import traceback
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from dy2st.derivatives.gradient_values import Gradient, either, fitted, is_real, summed
from dy2st.errors import Dy2stError, Location, NoGradientError
from dy2st.sizes.lowering import place_of
from dy2st.tracing.custom_functions import CustomFunction
from dy2st.tracing.graph_ops import InStep, branch_op, loop_op, trace_branch, trace_loop
from dy2st.values.describing import one_line

# A value of a graph: a node, or one of the results of a node that has several.
Key = tuple[fx.Node, int | None]
Rules = dict[Any, Callable[["Tape", fx.Node, fx.GraphModule, Sequence[Any]], "Record"]]


class Record(ABC):
    """A node on the tape: which values it took and gave that have gradients."""

    def __init__(self, node: fx.Node, inputs: Sequence[Key], results: Sequence[Any], outputs: Sequence[Key]) -> None:
        self.node, self.inputs, self.results, self.outputs = node, inputs, results, outputs

    @abstractmethod
    def pull(self, tangents: Sequence[Gradient | None]) -> Sequence[Gradient | None]:
        """The gradients of ``inputs``, from those of ``outputs``."""


class OperatorRecord(Record):
    """An operator with autograd's own derivative: ``leaves`` are its inputs, ``made`` its outputs, apart."""

    def __init__(self, node: fx.Node, leaves: dict[Key, torch.Tensor], results: Any) -> None:
        parts = list(results) if isinstance(results, (list, tuple)) else [results]
        several = isinstance(results, (list, tuple))
        keys = [(i, (node, i if several else None)) for i, each in enumerate(parts) if _has_gradient(each)]
        super().__init__(node, list(leaves), results, [key for _, key in keys])
        self.leaves, self.made = list(leaves.values()), [parts[i] for i, _ in keys]

    def pull(self, tangents: Sequence[Gradient | None]) -> Sequence[Gradient | None]:
        """By autograd."""
        given = [(made, found) for made, found in zip(self.made, tangents, strict=True) if found is not None]
        gradients: Any = grad(
            [made for made, _ in given],
            self.leaves,
            [fitted(found.value, made) for made, found in given],
            allow_unused=True,
            retain_graph=True,
        )
        there = either([found.there for _, found in given])
        return [None if each is None else Gradient(each, there) for each in gradients]


def _has_gradient(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


class Tape:
    """One run of a graph, and back. What nodes are ``known`` to give is not computed again."""

    def __init__(self, module: fx.GraphModule, rules: Rules) -> None:
        self.module, self.rules = module, rules
        self.values: dict[fx.Node, Any] = {}
        self.known: dict[fx.Node, Any] = {}
        self.active: set[Key] = set()
        self.records: list[Record] = []
        self.found: dict[Key, Gradient | None] = {}
        self.inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
        output = next(node for node in reversed(module.graph.nodes) if node.op == "output")
        self.outputs: list[Any] = list(output.args[0])

    def run(self, inputs: Sequence[Any], wanted: Sequence[int]) -> list[Any]:
        """Run the graph; the inputs of these indices are to have gradients. Gives its results."""
        self.values.update(zip(self.inputs, inputs, strict=True))
        self.active.update((self.inputs[i], None) for i in wanted)
        for node in self.module.graph.nodes:
            if node.op == "get_attr":
                self.values[node] = operator.attrgetter(node.target)(self.module)
            elif node.op == "call_function":
                with at_node(node):
                    self._call(node)
        return [self.value(each) for each in self.outputs]

    def value(self, argument: Any) -> Any:
        """The value of an argument."""
        return fx.node.map_arg(argument, lambda node: self.values[node])

    def _call(self, node: fx.Node) -> None:
        source = node.args[0] if node.args else None
        if node in self.known:
            self.values[node] = self.known[node]
        elif node.target is operator.getitem and isinstance(source, fx.Node) and source.op == "call_function":
            self.values[node] = self.values[source][node.args[1]]
        elif node.target in self.rules:
            self._note(self.rules[node.target](self, node, self.module, self.value(node.args)))
        else:
            self._operator(node)

    def _operator(self, node: fx.Node) -> None:
        target = callable_of(node)
        leaves: dict[Key, torch.Tensor] = {}

        def given(argument: fx.Node) -> Any:
            key = key_of(argument)
            if key not in self.active:
                return self.values[argument]
            if key not in leaves:
                leaves[key] = self.values[argument].detach().requires_grad_()
            return leaves[key]

        args, kwargs = fx.node.map_arg((node.args, node.kwargs), given)
        if not leaves:
            self.values[node] = target(*args, **kwargs)
            return
        if isinstance(target, torch._ops.OpOverload) and target._schema.is_mutable:
            raise NoGradientError(
                f"{target} writes to a tensor in place, through which there is no derivative",
                hint="compute a new tensor",
            )
        with torch.enable_grad():
            results = target(*args, **kwargs)
        self._note(OperatorRecord(node, leaves, results))

    def _note(self, record: Record) -> None:
        def apart(value: Any) -> Any:
            return value.detach() if _has_gradient(value) else value

        results = record.results
        several = isinstance(results, (list, tuple))
        self.values[record.node] = tuple(map(apart, results)) if several else apart(results)
        if record.outputs:
            self.active.update(record.outputs)
            self.records.append(record)

    def pull(self, tangents: Sequence[Gradient | None]) -> list[Gradient | None]:
        """The gradients of all inputs, from those of the results; None where there is none."""
        found = self.found = {}
        for node, tangent in zip(self.outputs, tangents, strict=True):
            if tangent is not None and isinstance(node, fx.Node) and key_of(node) in self.active:
                made = Gradient(fitted(tangent.value, self.values[node]), tangent.there)
                found[key_of(node)] = summed(found.get(key_of(node)), made)
        for record in reversed(self.records):
            given = [found.get(key) for key in record.outputs]
            if all(each is None for each in given):
                continue
            with at_node(record.node):
                for key, gradient in zip(record.inputs, record.pull(given), strict=True):
                    found[key] = summed(found.get(key), gradient)
        return [found.get((node, None)) for node in self.inputs]

    def by_result(self, number: int) -> Gradient | None:
        """After ``pull``, the gradient by one of the results."""
        return self.found.get(key_of(self.outputs[number]))


def _copied(x: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    return fitted(torch.broadcast_to(source.to(x.dtype), x.shape), x).clone()


def _filled(x: torch.Tensor, value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return _copied(x, value)
    return torch.full_like(x, value)


# What is left of a write in place has no derivative of its own in torch.
STAND_INS: dict[Any, Callable[..., Any]] = {
    torch.ops.aten.copy.default: _copied,
    torch.ops.aten.fill.Tensor: _filled,
    torch.ops.aten.fill.Scalar: _filled,
}


def callable_of(node: fx.Node) -> Any:
    """The function of a node that autograd has a derivative of."""
    target: Any = node.target
    return target.apply if isinstance(target, CustomFunction) else STAND_INS.get(target, target)


class Plain(InStep):
    """Runs a graph, and traces it anew: functions with a derivative of their own are no operators from here on."""

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run one node."""
        if isinstance(target, CustomFunction):
            return target.apply(*args)
        if target is branch_op:
            condition, then, orelse, operands = args
            return trace_branch(get_proxy_mode(), condition, Plain(then).run, Plain(orelse).run, operands)
        if target is loop_op:
            body, *rest = args
            return trace_loop(get_proxy_mode(), Plain(body).run, *rest)
        return super().call_function(target, args, kwargs)


def key_of(node: fx.Node) -> Key:
    """Which value a node stands for."""
    source = node.args[0] if node.args else None
    if node.target is operator.getitem and isinstance(source, fx.Node) and source.op == "call_function":
        return source, node.args[1]  # type: ignore[return-value]
    return node, None


def place_in(node: fx.Node, module: torch.nn.Module | None) -> Location | None:
    """The user's line of a node; of a branch or loop, which have none, that of the first line in it."""
    found = place_of(node)
    if found is None and module is not None:
        for each in node.all_input_nodes:
            inner = getattr(module, str(each.target), None) if each.op == "get_attr" else None
            for part in inner.graph.nodes if isinstance(inner, fx.GraphModule) else ():
                found = found or place_of(part)
    return found


@contextlib.contextmanager
def at_node(node: fx.Node) -> Iterator[None]:
    """What is made here comes from where ``node`` does, and what fails here does so at the user's line."""
    try:
        with traceback.set_current_meta(node):
            yield
    except Dy2stError as error:
        error.location = error.location or place_in(node, node.graph.owning_module)
        raise
    except Exception as error:
        raise NoGradientError(
            f"{name_of(node)} has no derivative that a graph can compute: {one_line(error)}",
            hint="compute it with other functions, or under torch.no_grad()",
            location=place_in(node, node.graph.owning_module),
        ) from error


def name_of(node: fx.Node) -> str:
    """The operator of a node, as it is called."""
    name = str(getattr(node.target, "_opname", None) or getattr(node.target, "__name__", node.target))
    return name.removeprefix("dy2st_")


def differentiable(values: Sequence[Any]) -> list[int]:
    """The indices of what can have gradients."""
    return [i for i, value in enumerate(values) if is_real(value)]
