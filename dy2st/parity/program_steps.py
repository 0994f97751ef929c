"""A lowered program run node by node, with every inner value: those of arms and of each iteration too."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from dy2st.onnx.runtime.stepping import Place
from dy2st.parity.budget import Budget
from dy2st.parity.inputs import InputSet, named_leaves
from dy2st.tracing.graph_ops import branch_op, loop_op


class ProgramSteps(fx.Interpreter):
    """Runs a graph module.

    ``values`` has what each node gave, by its place and name, in the order in which they ran; ``stacks`` has the
    tracebacks of these nodes, ``ends`` what each subgraph gave at its end. All of it is spent of ``budget``.
    """

    def __init__(
        self,
        module: fx.GraphModule,
        place: Place = (),
        values: dict[tuple[Place, str], Any] | None = None,
        stacks: dict[tuple[Place, str], str] | None = None,
        ends: dict[Place, tuple[fx.GraphModule, tuple[Any, ...]]] | None = None,
        budget: Budget | None = None,
    ) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.place = place
        self.budget = Budget() if budget is None else budget
        self.values: dict[tuple[Place, str], Any] = {} if values is None else values
        self.stacks: dict[tuple[Place, str], str] = {} if stacks is None else stacks
        self.ends: dict[Place, tuple[fx.GraphModule, tuple[Any, ...]]] = {} if ends is None else ends

    def run_node(self, n: fx.Node) -> Any:
        """One node; branches and loops are carried out here."""
        if n.op == "call_function" and n.target is branch_op:
            result = self._branch(n)
        elif n.op == "call_function" and n.target is loop_op:
            result = self._loop(n)
        else:
            result = super().run_node(n)
        if n.op not in ("placeholder", "get_attr", "output"):
            self.budget.spend(_count(result))
            self.values[self.place, n.name] = _kept(result)
            self.stacks[self.place, n.name] = str(n.meta.get("stack_trace") or "")
        return result

    def _branch(self, node: fx.Node) -> tuple[Any, ...]:
        (pred, then, orelse, operands), _ = self.fetch_args_kwargs_from_env(node)
        return self._inside((node.name, "then" if pred else "else"), then if pred else orelse, operands)

    def _loop(self, node: fx.Node) -> tuple[Any, ...]:
        (body, trips, go, carried, operands, _, stacked), _ = self.fetch_args_kwargs_from_env(node)
        trip = 0

        def traced(*arguments: Any) -> tuple[Any, ...]:
            nonlocal trip
            trip += 1
            return self._inside((node.name, trip - 1), body, arguments)

        traced.graph = body.graph  # type: ignore[attr-defined]  # where a loop looks that has made no trip
        return loop_op(traced, trips, go, carried, operands, [()] * len(carried), stacked)

    def _inside(self, step: tuple[str, str | int], module: fx.GraphModule, arguments: Any) -> tuple[Any, ...]:
        place = (*self.place, step)
        results = tuple(ProgramSteps(module, place, self.values, self.stacks, self.ends, self.budget).run(*arguments))
        self.ends[place] = module, _kept(results)
        return results


def _kept(value: Any) -> Any:
    """A value as it is now: later nodes may write to it."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return tuple(map(_kept, value)) if isinstance(value, (tuple, list)) else value


def _count(value: Any) -> int:
    """The numbers of a value."""
    if isinstance(value, torch.Tensor):
        return value.numel()
    return sum(map(_count, value)) if isinstance(value, (tuple, list)) else 1


def program_steps(program: ExportedProgram, model: Any, inputs: InputSet, budget: Budget | None = None) -> ProgramSteps:
    """Run a lowered program on a set.

    Raises:
        OverBudgetError: it takes more than the budget.
    """
    leaves = iter([leaf for _, leaf in named_leaves(model, inputs.copied())])
    known = {**program.state_dict, **program.constants}
    arguments = []
    for spec in program.graph_signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            arguments.append(next(leaves, None))
        else:
            value = known[str(spec.target)]
            arguments.append(value.detach().clone() if isinstance(value, torch.Tensor) else value)
    steps = ProgramSteps(program.graph_module, budget=budget)
    with torch.no_grad():
        steps.run(*arguments)
    return steps
