"""Programs of static functions on their way into a file: which of them, and what each of them is."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from dy2st.capture.program import NUMBERS, SWITCHED
from dy2st.errors import UnsavableError, UsageError
from dy2st.guards.sources import World
from dy2st.static.function import StaticFunction
from dy2st.static.programs import Entry
from dy2st.static.saved_arguments import Dimension, TensorRule, tree_to_json
from dy2st.static.saved_format import encoded, graph_to_json
from dy2st.static.saved_results import result_to_json
from dy2st.static.saved_tensors import Held
from dy2st.static.specs import by_label
from dy2st.values.describing import describe

# What code that reads one of these depends on, beside the values of tensors.
_ASKS_FOR_MODE = ("is_grad_enabled", "is_inference_mode_enabled")
_ASKS_FOR_GRADIENT = ("requires_grad", "grad_fn", "is_leaf")
_LARGEST_SIZE = 2**31
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")

Examples = Iterable[Sequence[Any] | Mapping[str, Any]]


def saveable(function: StaticFunction) -> StaticFunction:
    """The function with programs of its own where those that it has are a compiler's.

    Raises:
        UnsavableError: a call of it is more than its programs.
    """
    owner = function._owner
    if isinstance(owner, torch.nn.Module) and function.__name__ == "forward" and any(vars(owner)[h] for h in _HOOKS):
        raise UnsavableError(
            f"{type(owner).__name__} has hooks of its own, which run before or after its program",
            hint="call what they do in forward, or save the module without them",
        )
    if function._options.backend == "eager":
        return function
    made = StaticFunction(function._function, dataclasses.replace(function._options, backend="eager"))
    return made if owner is None else made.__get__(owner)


def method_to_json(function: StaticFunction, examples: Examples | None, held: Held) -> Any:
    """A function: its parameters, and its programs for the examples, else those that it has and that hold now.

    Raises:
        UnsavableError: a program has what a file can't hold.
        UsageError: there is no program, or an example is no set of arguments.
        Dy2stError: an example can't be captured.
    """
    function._current_parameters()
    found: list[Any] = []
    for entry in _captured(function, examples):
        world = _now(function, entry)
        if world is not None:
            found.append(_Program(held, function, entry, world).to_json())
    if not found:
        raise UsageError(
            f"{function.__name__} has no program that holds now", hint="call it first, or give examples to save"
        )
    parameters = function._parameters.signature.parameters.values()
    return {"parameters": [_parameter(each) for each in parameters], "programs": found}


def _captured(function: StaticFunction, examples: Examples | None) -> list[Entry]:
    """The programs for the examples, or those that there are, the oldest first."""
    if examples is None and function._programs.entries:
        return list(reversed(function._programs.entries))
    sets: list[Any] = []
    if examples is not None:
        sets = [examples] if isinstance(examples, Mapping) else list(examples)
    elif function._options.specs:
        sets = [function._arguments((), {})[1]]
    found: list[Entry] = []
    for each in sets:
        if not isinstance(each, (tuple, list, Mapping)):
            raise UsageError(
                f"{function.__name__}: an example is {describe(each)}", hint="give a list of tuples, or of dicts"
            )
        args, kwargs = ((), dict(each)) if isinstance(each, Mapping) else (tuple(each), {})
        looked_for = function._looked_for(args, kwargs)
        if looked_for is None:
            raise UsageError("torch transforms this call (torch.func, torch.compile): save outside of it")
        entry = looked_for[0]
        if entry is None:
            raise function._programs.filled.refused
        if entry not in found:
            found.append(entry)
    return found


def _now(function: StaticFunction, entry: Entry) -> World | None:
    """The world as a program finds it now; None if it does not hold in it, whatever the arguments are."""
    world = function._call(entry.given.example()).world(entry.names, entry.sizes)
    return world if world.key == entry.key else None


def _parameter(parameter: inspect.Parameter) -> Any:
    found: dict[str, Any] = {"name": parameter.name, "kind": parameter.kind.name}
    if parameter.default is not parameter.empty:
        try:
            found["default"] = encoded(parameter.default)
        except UnsavableError:
            return found  # it has to be given, and will be refused
    return found


class _Program:
    """One program on its way into a file."""

    def __init__(self, held: Held, function: StaticFunction, entry: Entry, world: World) -> None:
        self.held, self.function, self.entry = held, function, entry
        self.program, self.sources = entry.program, world.tensors
        self.module = entry.program.graph_module
        self.nodes = [node for node in self.module.graph.nodes if node.op == "placeholder"]
        self.reads = {name for code in entry.names.seen for name in code.co_names}
        owner = function._owner
        state = [] if not isinstance(owner, torch.nn.Module) else [*_state(owner)]
        self.owned = {id(tensor): name for name, tensor in reversed(state)}

    def to_json(self) -> Any:
        """The program as JSON."""
        if self.entry.names.asks_for_memory() and any(each.value.storage_offset() for each in self.sources):
            raise UnsavableError(f"{self.function.__name__} asks where in its memory a tensor begins")
        numbers = self._arguments()
        graphs: list[Any] = []
        graph_to_json(self.module, graphs, self.held.constant)
        modes = dict(self.entry.modes)
        if modes["torch's modes"]:
            raise UnsavableError("the program was captured under a mode of torch's that is an object of yours")
        if self.module.meta[SWITCHED] != (False, None):
            raise UnsavableError(
                f"{self.function.__name__} switches gradients on, and was captured in a call that has none",
                hint="call it with gradients before it is saved",
            )
        trees = self.entry.given.trees
        return {
            "arguments": [tree_to_json(tree, numbers, name) for name, tree in trees],
            "tensors": [self._rule(number).to_json() for number in numbers],
            "inputs": [
                self._input(node, numbers, *each)
                for node, each in zip(self.nodes, self.entry.executable.inputs, strict=True)
            ],
            "graphs": graphs,
            "result": result_to_json(self.program),
            "numbers": [kind is not None for kind in self.module.meta[NUMBERS]],
            "writes": self.entry.writes,
            "modes": {
                "gradients": modes["the mode of gradients"] if self.reads & {*_ASKS_FOR_MODE} else None,
                "default_dtype": encoded(modes["the default dtype"]),
                "default_device": encoded(modes["the default device"]),
                "autocast": encoded(modes["autocast"]),
            },
        }

    def _arguments(self) -> dict[int, int]:
        """The places of the tensors among the arguments, by their numbers."""
        found: dict[int, int] = {}

        def look(tree: Any) -> None:
            ((kind, content),) = tree.items()
            if kind == "tensor":
                found.setdefault(content, len(found))
            elif kind in ("list", "tuple", "dict"):
                for each in content:
                    look(each[1] if kind == "dict" else each)

        for _, tree in self.entry.given.trees:
            look(tree)
        return found

    def _input(self, node: fx.Node, numbers: dict[int, int], is_tensor: bool, value: Any) -> Any:
        if is_tensor and value in numbers:
            return ["argument", numbers[value]]
        if is_tensor:
            source = self.sources[value]
            wanted = self.owned.get(id(source.value)) or source.name.rpartition(": ")[2].removeprefix("self.")
            return ["state", self.held.state(source.value, wanted, writes=self.entry.writes)]
        if isinstance(value, torch.Tensor):
            return ["constant", self.held.constant(value)]
        try:
            return ["value", encoded(value)]
        except UnsavableError:
            if node.users:
                raise
            return ["value", None]

    def _rule(self, number: int) -> TensorRule:
        source = self.sources[number]
        tensor = source.value
        shape: list[Dimension] = list(tensor.shape)
        inputs = zip(self.nodes, self.entry.executable.inputs, strict=True)
        node = next((node for node, each in inputs if each == (True, number)), None)
        least = self.entry.sizes.get(source.name, ())
        for d, size in enumerate(() if node is None else node.meta["val"].shape):
            if isinstance(size, torch.SymInt):
                bounds = self.program.range_constraints.get(size.node.expr)
                low, high = (0, _LARGEST_SIZE) if bounds is None else (int(bounds.lower), bounds.upper)
                low = max(low, (least[d] if d < len(least) else None) or 0)
                shape[d] = (self._name(size), low, int(high) if high < _LARGEST_SIZE else None)
        is_open = any(not isinstance(each, int) for each in shape)
        strides = None if is_open or tensor.is_contiguous() else tensor.stride()
        gradient = tensor.requires_grad if self.reads & {*_ASKS_FOR_GRADIENT} else None
        return TensorRule(tensor.dtype, tensor.device, tuple(shape), strides, gradient)

    def _name(self, size: torch.SymInt) -> str:
        """What a spec calls an open size; else what torch does."""
        specs = by_label(self.function._specs)
        for node, (is_tensor, number) in zip(self.nodes, self.entry.executable.inputs, strict=True):
            spec = specs.get(self.sources[number].name) if is_tensor is True else None
            for each, found in zip(spec.dimensions if spec else (), node.meta["val"].shape, strict=False):
                if each.name and isinstance(found, torch.SymInt) and found.node.expr == size.node.expr:
                    return each.name
        name: str = str(size.node.expr)
        return name


def _state(owner: torch.nn.Module) -> Iterable[tuple[str, torch.Tensor]]:
    yield from owner.named_parameters(remove_duplicate=False)
    yield from owner.named_buffers(remove_duplicate=False)
