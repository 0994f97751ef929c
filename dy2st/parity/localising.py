"""The first value of an ONNX file that is not the program's, at its line of the user's source.

The program is lowered once more, so that its nodes are those that the file was made from. Both run node by node; each
node of the file is compared with the node of the program that it was made from, in the same arm and iteration.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from dy2st.embedded.session_kernels import session_options
from dy2st.onnx.exporting import export as export_onnx
from dy2st.onnx.passes.source_lines import STACK, innermost
from dy2st.onnx.runtime.stepping import ALL, End, Place, Step, Stepper, fx_name, metadata
from dy2st.parity.budget import Budget, OverBudgetError
from dy2st.parity.compare import compare
from dy2st.parity.culprits import both_values, place_text, variable_of
from dy2st.parity.outputs import Output
from dy2st.parity.program_steps import ProgramSteps, program_steps
from dy2st.parity.stages import CPU, OnnxSession, one_line
from dy2st.report.model import Culprit

if TYPE_CHECKING:
    import onnx
    from torch.export import ExportedProgram

    from dy2st.parity.inputs import InputSet


# How many trips more than twice those of the program are followed.
_MORE_TRIPS = 100


class Localiser:
    """Looks for the culprits of one file and the program that it was made from."""

    def __init__(self, model: Any, program: ExportedProgram, file: str | Path) -> None:
        self.model, self.program, self.file = model, program, file
        self._lowered: Any = None
        self._run = _runner()

    def first(
        self,
        inputs: InputSet,
        order: list[str] | None = None,
        budget: Budget | None = None,
        terms: Callable[[], int] = lambda: 1,
    ) -> Culprit | None:
        """The first line whose value differs on this set, or at which onnxruntime fails; None if all agrees.

        ``terms`` counts those of the model's largest sum (:mod:`dy2st.parity.tolerances`).

        A file that runs on and on, where the program does not, is followed only so far: what departs comes first.

        Raises:
            OverBudgetError: it takes more than the budget, and nothing differs until then.
        """
        budget = Budget() if budget is None else budget

        if self._lowered is None:
            self._lowered = export_onnx(self.program).exported_program
        expected = program_steps(self._lowered, self.model, inputs, budget)
        most = _most_trips(expected)

        def run(model: onnx.ModelProto, feed: dict[str, torch.Tensor]) -> list[torch.Tensor]:
            found = self._run(model, feed)
            budget.spend(sum(each.numel() for each in found))
            return found

        def entered(place: Place) -> None:
            budget.spend()
            *around, (name, way) = place
            none = 0 if (tuple(around), name) in expected.values else math.inf
            if isinstance(way, int) and way > 2 * most.get((*around, name), none) + _MORE_TRIPS:
                raise _RunsOnError

        stepper = Stepper.of(self.file, run, entered)
        feed = OnnxSession(self.file).feed(self.model, inputs, order)
        try:
            stepper.outputs(feed)
        except _RunsOnError:
            return _first(stepper, expected, terms)
        except OverBudgetError:
            found = _first(stepper, expected, terms)
            if found is None:
                raise
            return found
        except Exception as error:  # noqa: BLE001 - what has run until then can be looked at
            place, node = stepper.running
            failed = Step(place, node.name, fx_name(node), metadata(node, STACK), ())
            stepper.steps.append(failed)
            message = f"onnxruntime fails: {one_line(error)}"
            return _first(stepper, expected, terms) or _culprit(place, node.name, failed.stack, message, stepper)
        return _first(stepper, expected, terms)


class _RunsOnError(BaseException):
    """A loop of the file makes far more trips than that of the program."""


def _most_trips(expected: ProgramSteps) -> dict[tuple[Any, ...], int]:
    """The trips that each loop of the program has made, by its place and name."""
    found: dict[tuple[Any, ...], int] = {}
    for *around, (name, way) in expected.ends:
        if isinstance(way, int):
            found[*around, name] = max(way + 1, found.get((*around, name), 0))
    return found


def _runner() -> Callable[[onnx.ModelProto, dict[str, torch.Tensor]], list[torch.Tensor]]:
    import onnxruntime

    sessions: dict[int, tuple[onnx.ModelProto, OnnxSession]] = {}

    def run(model: onnx.ModelProto, feed: dict[str, torch.Tensor]) -> list[torch.Tensor]:
        if id(model) not in sessions:
            options = session_options("ORT_DISABLE_ALL")
            options.intra_op_num_threads = 1
            session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=[CPU])
            sessions[id(model)] = model, OnnxSession(session)
        return [output.tensor for output in sessions[id(model)][1].outputs(feed)]

    return run


def _first(stepper: Stepper, expected: ProgramSteps, terms: Callable[[], int]) -> Culprit | None:
    last = {(step.place, step.fx_name): i for i, step in enumerate(stepper.steps) if isinstance(step, Step)}
    of_all_trips = _of_all_trips(expected)
    for i, step in enumerate(stepper.steps):
        if isinstance(step, End):
            found = _of_end(step, expected, terms)
        elif last[step.place, step.fx_name] != i:
            continue  # an inner node of several that stand for one
        else:
            want = expected.values.get((step.place, step.fx_name), of_all_trips.get((step.place, step.fx_name)))
            if want is None:
                continue
            wants = want if isinstance(want, tuple) else (want,)
            message = _apart(wants, step.values, terms)
            found = _culprit(step.place, step.node, step.stack, message, stepper) if message else None
        if found is not None:
            return found
    return None


def _of_all_trips(expected: ProgramSteps) -> dict[tuple[Place, str], torch.Tensor]:
    """What each node of a loop gives in all trips, stacked: a file may compute it for all of them at once."""
    trips: dict[tuple[Place, str], dict[int, torch.Tensor]] = {}
    for (place, node), value in expected.values.items():
        loop, way = place[-1] if place else ("", "")
        if isinstance(way, int) and isinstance(value, torch.Tensor):
            trips.setdefault(((*place[:-1], (loop, ALL)), node), {})[way] = value
    found = {}
    for key, by_trip in trips.items():
        rows = [by_trip[trip] for trip in sorted(by_trip)]
        if len({(row.shape, row.dtype) for row in rows}) == 1:
            found[key] = torch.stack(rows)
    return found


def _of_end(end: End, expected: ProgramSteps, terms: Callable[[], int]) -> Culprit | None:
    """An arm or iteration that gives something else although all of its nodes agree: a write is missing."""
    if end.place not in expected.ends:
        return None
    module, wants = expected.ends[end.place]
    if len(wants) != len(end.values):
        return None
    results = next(node for node in reversed(module.graph.nodes) if node.op == "output").args[0]
    for node, want, value in zip(results, wants, end.values, strict=True):
        message = _apart((want,), (value,), terms)
        if message:
            return _culprit(end.place, end.node, _stack_of(node), message, None)
    return None


def _stack_of(node: Any) -> str:
    """The stack of a node, or of what it copies."""
    while isinstance(node, fx.Node):
        stack = str(node.meta.get("stack_trace") or "")
        if innermost(stack) is not None and node.target is not torch.ops.aten.clone.default:
            return stack
        node = next(iter(node.all_input_nodes), None)
    return ""


def _apart(wants: tuple[Any, ...], values: tuple[torch.Tensor, ...], terms: Callable[[], int]) -> str:
    """How two results of a node differ, or nothing; what has another form can't be compared."""
    if len(wants) != len(values):
        return ""
    for want, value in zip(wants, values, strict=True):
        expected = want if isinstance(want, torch.Tensor) else _number(want, value)
        if expected is None or expected.dtype != value.dtype or expected.dim() != value.dim():
            continue
        if expected.shape != value.shape:
            return f"eager shape {list(expected.shape)} vs onnxruntime {list(value.shape)}"
        result = compare("", [Output("", expected)], [Output("", value)], terms=terms)
        if result.status != "equal":
            return both_values(expected, value, "onnxruntime")
    return ""


def _number(want: Any, like: torch.Tensor) -> torch.Tensor | None:
    if not isinstance(want, (bool, int, float)) or like.numel() != 1:
        return None
    return torch.full(like.shape, want, dtype=like.dtype)


def _culprit(place: Place, node: str, stack: str, message: str, stepper: Stepper | None) -> Culprit | None:
    frame = innermost(stack)
    if frame is None and stepper is not None:
        frame = _nearest(place, node, stepper)
    if frame is None:
        return None
    file, line = frame
    return Culprit(file, line, variable_of(file, line), message, node, place_text(place))


def _nearest(place: Place, node: str, stepper: Stepper) -> tuple[str, int] | None:
    """The line of what ran last before a node that has none, in its own subgraph or around it."""
    found = None
    for step in stepper.steps:
        if isinstance(step, Step):
            if step.node == node and step.place == place:
                break
            if step.place == place[: len(step.place)]:
                found = innermost(step.stack) or found
    return found
