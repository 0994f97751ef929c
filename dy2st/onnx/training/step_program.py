"""The program of a training step: the graph of the loss, differentiated and followed by the optimiser's update."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch.export.graph_signature import (
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import traceback
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from dy2st.capture.reassembling import reassembled
from dy2st.derivatives.backward_rules import RULES
from dy2st.derivatives.branch_gradients import branch_rule
from dy2st.derivatives.decomposing import decided
from dy2st.derivatives.gradient_values import Gradient
from dy2st.derivatives.links import Links
from dy2st.derivatives.loop_gradients import loop_rule
from dy2st.derivatives.pruning import prune
from dy2st.derivatives.tape import Tape, differentiable
from dy2st.errors import NoGradientError
from dy2st.onnx.training.optimisers import State, Update
from dy2st.tracing.graph_ops import branch_op, loop_op


@dataclass
class Trained:
    """A parameter that the step changes: its name, its update and state, and which learning rate is its own."""

    name: str
    update: Update | None
    state: State
    rate: int


@dataclass
class Step:
    """The program, and the names of what it takes and gives, in order.

    ``values`` are what the inputs that are state begin with; ``feeds`` says which output is each's next value.
    """

    program: torch.export.ExportedProgram
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    values: dict[str, torch.Tensor] = field(default_factory=dict)
    feeds: dict[str, str] = field(default_factory=dict)


@dataclass
class _Slot:
    """An input of the graph: its value in the trace, what it is in the program, and what it is called in the file."""

    value: Any
    spec: InputSpec | None
    name: str


def step_program(
    program: torch.export.ExportedProgram, trained: dict[str, Trained], rates: dict[str, float], prefix: str
) -> Step:
    """The step as a program.

    ``program`` computes the loss, without writing in place; ``trained`` are parameters by their names in it, ``rates``
    the learning rates by their names in the file. Names in the file are those in the program without ``prefix``.

    Raises:
        NoGradientError: there is no derivative.
    """
    return _Building(program, trained, rates, prefix).step()


class _Building:
    def __init__(
        self, program: torch.export.ExportedProgram, trained: dict[str, Trained], rates: dict[str, float], prefix: str
    ) -> None:
        self.program, self.trained, self.rates, self.prefix = program, trained, rates, prefix
        self.nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
        self.specs = program.graph_signature.input_specs
        self.mode = next(v.fake_mode for n in self.nodes.values() if hasattr(v := n.meta["val"], "fake_mode"))
        self.buffers = {
            spec.target: i
            for i, spec in enumerate(program.graph_signature.output_specs)
            if spec.kind == OutputKind.BUFFER_MUTATION
        }
        self.found: list[tuple[str, Any]] = []

    def name(self, target: Any) -> str:
        """What something of the program is called in the file."""
        return str(target).removeprefix(self.prefix)

    def step(self) -> Step:
        """Trace it."""
        self.wanted = [
            i for i, each in enumerate(self.specs) if each.kind == InputKind.PARAMETER and each.target in self.trained
        ]
        values = [self.nodes[spec.arg.name].meta["val"] for spec in self.specs]
        with self.mode:
            rates = [torch.empty((), dtype=torch.float32) for _ in self.rates]
            states = {
                name: {key: torch.empty_like(value, device="cpu") for key, value in each.state.items()}
                for name, each in self.trained.items()
            }
        flat, shape = pytree.tree_flatten((values, rates, states))

        def traced(*given: Any) -> list[Any]:
            self.found = self._results(*pytree.tree_unflatten(given, shape))
            return [value for _, value in self.found]

        with self.mode, torch.no_grad(), decided(self.mode.shape_env), traceback.preserve_node_meta():
            module = make_fx(traced, decomposition_table=RULES, _allow_non_fake_inputs=True)(*flat)
        output = next(node for node in reversed(module.graph.nodes) if node.op == "output")
        output.args = (tuple(output.args[0]),)
        prune(module)
        return self._assembled(module)

    def _results(self, values: Sequence[Any], rates: Sequence[Any], states: dict[str, State]) -> list[tuple[str, Any]]:
        """What the step gives, by names in the file."""
        links = Links()
        tape = Tape(self.program.graph_module, {branch_op: branch_rule(links), loop_op: loop_rule(links)})
        results = tape.run(values, self.wanted)
        place = next(
            i for i, each in enumerate(self.program.graph_signature.output_specs) if each.kind == OutputKind.USER_OUTPUT
        )
        if not differentiable([results[place]]):
            raise NoGradientError("the loss is no tensor of floats", hint="return one")
        tangents: list[Gradient | None] = [None] * len(results)
        tangents[place] = Gradient(torch.ones_like(results[place]))
        gradients = tape.pull(tangents)
        made: list[tuple[str, Any]] = [("loss", results[place])]
        for i in self.wanted:
            target, gradient = str(self.specs[i].target), gradients[i]
            if gradient is not None:
                made += self._updated(values[i], gradient.settled(), self.trained[target], rates, states[target])
        for target, i in self.buffers.items():
            made.append((f"{self.name(target)}_next", results[i].clone()))
        return made

    def _updated(
        self, value: torch.Tensor, gradient: Gradient, trained: Trained, rates: Sequence[Any], state: State
    ) -> list[tuple[str, Any]]:
        """A parameter after the step, and its state; both as before where there is no gradient."""
        if trained.update is None:
            return [(f"{trained.name}_grad", gradient.value.clone())]
        new, following = trained.update.step(value, gradient.value, state, rates[trained.rate])
        if gradient.there is not True:
            new = torch.where(gradient.there, new, value)
            following = {key: torch.where(gradient.there, each, state[key]) for key, each in following.items()}
        return [
            (f"{trained.name}_next", new),
            *((f"{trained.name}.{key}_next", each) for key, each in following.items()),
        ]

    # ---- the program

    def _slots(self) -> list[_Slot]:
        """The inputs of the traced graph, in its order."""
        slots = []
        for spec in self.specs:
            target = str(spec.target)
            changes = target in self.trained if spec.kind == InputKind.PARAMETER else target in self.buffers
            initial = self.program.state_dict.get(target, self.program.constants.get(target)) if changes else None
            name = self.trained[target].name if target in self.trained else self.name(target)
            kept = spec.kind != InputKind.USER_INPUT and not (changes and self._is_fed(name))
            slots.append(_Slot(initial, spec if kept else None, name if changes else spec.arg.name))
        slots += [_Slot(torch.tensor(rate, dtype=torch.float32), None, name) for name, rate in self.rates.items()]
        flat: list[tuple[str, torch.Tensor]] = []
        for each in self.trained.values():
            flat += [(f"{each.name}.{key}", value) for key, value in each.state.items()]
        return slots + [_Slot(value, None, name) for name, value in flat]

    def _is_fed(self, name: str) -> bool:
        return any(given == f"{name}_next" for given, _ in self.found)

    def _assembled(self, module: fx.GraphModule) -> Step:
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        kept: list[tuple[fx.Node, InputSpec]] = []
        inputs: list[tuple[fx.Node, _Slot]] = []
        for node, slot in zip(placeholders, self._slots(), strict=True):
            if slot.spec is None and (node.users or slot.value is None or self._is_fed(slot.name)):
                inputs.append((node, slot))
            elif node.users:
                assert slot.spec is not None
                kept.append((node, slot.spec))
            else:
                module.graph.erase_node(node)
        inputs.sort(key=lambda pair: pair[1].value is not None)  # the batch first
        first = next(node for node in module.graph.nodes if node.op != "placeholder")
        for node, _ in (*kept, *inputs):
            first.prepend(node)
        specs = [InputSpec(s.kind, TensorArgument(n.name), s.target, s.persistent) for n, s in kept]
        specs += [InputSpec(InputKind.USER_INPUT, TensorArgument(n.name), None) for n, _ in inputs]
        output = next(node for node in reversed(module.graph.nodes) if node.op == "output")
        results: Any = output.args[0]
        gives = [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(node.name), None) for node in results]
        module.recompile()
        program = reassembled(self.program, module, specs, gives)
        names = [name for name, _ in self.found]
        state = {slot.name: slot.value for _, slot in inputs if slot.value is not None}
        feeds = {name: f"{name}_next" for name in state if f"{name}_next" in names}
        return Step(program, [slot.name for _, slot in inputs], names, state, feeds)
