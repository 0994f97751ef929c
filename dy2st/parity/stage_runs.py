"""The stages of a check: each is run on a set, compared with eager, and explained where it differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from dy2st.capture.program import SITES
from dy2st.errors import UsageError
from dy2st.onnx.passes.value_names import result_name
from dy2st.parity.budget import Budget, OverBudgetError
from dy2st.parity.causes import Causes
from dy2st.parity.compare import compare
from dy2st.parity.eager_localising import converted_culprit, program_culprit
from dy2st.parity.isolated import CrashError
from dy2st.parity.localising import Localiser
from dy2st.parity.optimiser import UnoptimisedRuns
from dy2st.parity.outputs import placed
from dy2st.parity.paths import converted_run
from dy2st.parity.promoted_outputs import promoted_alike, promoted_dtypes
from dy2st.parity.raising import guards_of, raising_stage, uneven_places
from dy2st.parity.reductions import largest_sum
from dy2st.parity.stages import EndlessRunError, OnnxSession, Reference, one_line, program_outputs
from dy2st.parity.stateful_calls import OwnState, is_first_call, named_alike
from dy2st.parity.tolerances import Bound, short_name
from dy2st.report.model import Culprit, StageResult

if TYPE_CHECKING:
    from torch.export import ExportedProgram

    from dy2st.parity.inputs import InputSet
    from dy2st.parity.outputs import Output
    from dy2st.parity.variants import Variant
    from dy2st.staging.routes import Copy

CONVERTED, PROGRAM, ONNXRUNTIME = "converted", "program", "onnxruntime"

# The seconds that onnxruntime may take for a set where it can be stopped, the greater of the two.
LEAST_LIMIT, TIMES_EAGER = 60.0, 100.0

# A difference that is more than this share of what is tolerated may be too much on another machine.
NEAR = 0.1

Stage = tuple[str, Callable[["InputSet"], "list[Output]"]]


# What to do about a set that no caller would give.
NEVER_EMPTY = 'if such a size never comes, declare it: Dim("batch", min=1), or x=f32[batch:1..8,3]'


def has_no_elements(inputs: InputSet) -> bool:
    """Whether a tensor of a set has a size of 0."""
    leaves = pytree.tree_leaves((inputs.args, inputs.kwargs))
    return any(isinstance(each, torch.Tensor) and each.numel() == 0 for each in leaves)


_DEPARTED = "an earlier call has left another state"


class StageRuns:
    """The stages that there are for a program and a file; ``seen`` has the ways that each set took by its name.

    ``places`` has those of all outputs, where some are not one tensor in each call. ``localise`` looks for the line, or
    the optimisation, where only onnxruntime differs, which takes its time.
    """

    def __init__(
        self,
        model: Any,
        *,
        program: ExportedProgram | None = None,
        onnx_file: str | Path | None = None,
        rtol: Bound = None,
        atol: Bound = None,
        more: Sequence[Variant] = (),
        make: Callable[..., OnnxSession] = OnnxSession,
        localise: bool = True,
    ) -> None:
        self.model, self.rtol, self.atol, self._localise = model, rtol, atol, localise
        self.seen: dict[str, dict[Copy, set[str]]] = {}
        self.causes = Causes(model)
        self.output_names: set[str] = set()
        self.places = uneven_places(program)
        self._sums: dict[str, int] = {}
        self._localiser: Localiser | None = None
        self._program = program
        self._promoted = promoted_dtypes(program)
        self._own_state = OwnState(model)
        self._guards = guards_of(program)
        self._looked = False
        self._limit = LEAST_LIMIT
        self._order = None if program is None else [str(name) for name in program.graph_signature.user_inputs]
        ours = program is not None and SITES in program.graph_module.meta
        self._stages: list[Stage] = [(CONVERTED, self._converted)] if ours else []
        if program is not None:
            module = program.module()
            self._stages.append((PROGRAM, lambda inputs: self._placed(program_outputs(model, module, inputs))))
        if onnx_file is not None:
            session = make(onnx_file)
            self._unoptimised = UnoptimisedRuns(onnx_file, make)
            self._stages.append((ONNXRUNTIME, partial(self._on, lambda: session)))
            self.output_names = set(session.output_names)
            self.places = self.places or session.places()
            if program is not None and ours and localise:
                self._localiser = Localiser(model, program, onnx_file)
        self._stages += [(variant.name, partial(self._on, cache(variant.session))) for variant in more]

    def _converted(self, inputs: InputSet) -> list[Output]:
        outputs, self.seen[inputs.name] = converted_run(self.model, inputs)
        return self._placed(outputs)

    def _placed(self, outputs: list[Output]) -> list[Output]:
        """What a stage returns as eager does; lists and optionals are compared where they are."""
        named = named_alike(self.model, outputs)
        return placed(named) if self.places else named

    def _on(self, session: Callable[[], OnnxSession], inputs: InputSet) -> list[Output]:
        made = session()
        made.limit = self._limit
        feed = made.feed(self.model, inputs, self._order)
        return made.outputs(made.without_state(feed) if is_first_call(inputs) else feed)

    def disagrees(self, reference: Reference) -> bool:
        """Whether the file differs on a set that nobody has asked for, and neither luck nor rounding says why.

        Where the program fails as well, the set is none that the file has to take.
        """
        file = next((run for name, run in self._stages if name == ONNXRUNTIME), None)
        if file is None or reference.problem:
            return False
        self._limit = limit_for(reference)
        if reference.raises:
            return raising_stage(ONNXRUNTIME, file, reference, self._guards).status == "differs"
        result, outputs, _ = self._ran(ONNXRUNTIME, file, reference)
        if result.status == "error":
            program = next((run for name, run in self._stages if name == PROGRAM), None)
            return program is None or self._ran(PROGRAM, program, reference)[0].status != "error"
        if result.status != "differs":
            return False
        excused = (
            self._no_evidence(result, reference, outputs)
            or self.causes.unsteady(reference)
            or self.causes.may_be_rounding(reference, outputs)
        )
        if excused:
            self._own_state.forget(ONNXRUNTIME, reference.inputs)
        return not excused

    def surely_agrees(self, reference: Reference) -> bool:
        """Whether the file agrees, and would on a machine that rounds in other ways: well, and on a path that stays."""
        file = next((run for name, run in self._stages if name == ONNXRUNTIME), None)
        if file is None or reference.problem or reference.raises or self.causes.unsteady(reference):
            return False
        self._limit = limit_for(reference)
        result = self._ran(ONNXRUNTIME, file, reference)[0]
        near = any((each.of_tolerance or 0) > NEAR for each in result.outputs)
        return result.status == "equal" and not near and self.causes.keeps_path(reference.inputs)

    def _ran(
        self, name: str, run: Callable[[InputSet], list[Output]], reference: Reference
    ) -> tuple[StageResult, list[Output], Exception | None]:
        """One stage on one set, compared; what it raised, if it did."""
        outputs: list[Output] = []
        try:
            inputs = self._own_state.before(name, reference.inputs)
            outputs = run(inputs)
            self._own_state.note(name, inputs, outputs)
            return self._compared(name, reference, outputs), outputs, None
        except Exception as error:  # noqa: BLE001 - a stage that fails is a finding, whatever it raises
            known = isinstance(error, (CrashError, EndlessRunError))
            message = str(error) if known else one_line(error)
            took = f"; eager took {reference.seconds:.2g} s" if isinstance(error, EndlessRunError) else ""
            return StageResult(name, "error", message=f"{message}{took}"), outputs, error

    def results(self, reference: Reference, progress: Callable[[str], None]) -> tuple[StageResult, ...]:
        """Every stage on one set; none if the set is unusable."""
        self._limit = limit_for(reference)
        if reference.raises:
            return tuple(raising_stage(name, run, reference, self._guards) for name, run in self._stages)
        done: list[StageResult] = []
        for name, run in () if reference.problem else self._stages:
            departed = self._own_state.differs(name, reference.inputs)
            result, outputs, error = self._ran(name, run, reference)
            excused = self._no_evidence(result, reference, outputs)
            if excused:
                self._own_state.forget(name, reference.inputs)
            if result.status != "equal" and not excused:
                if not isinstance(error, EndlessRunError):  # without optimisation it would take as long once more
                    explained = replace(result, message=_DEPARTED) if departed else None
                    result = explained or self._explained(result, reference, outputs)
                agreed = all(each.status == "equal" for each in done)
                if agreed and not isinstance(error, CrashError) and not self.causes.unsteady(reference):
                    progress("looking for the line")
                    result = self._localised(result, reference)
            done.append(replace(result, message=excused or result.message))
        return tuple(done)

    def _no_evidence(self, result: StageResult, reference: Reference, outputs: Sequence[Output]) -> str:
        """Why a set says nothing of a stage that differs on it, if so; bounds that are given are kept.

        The converted model runs eager's own operators: nothing there is rounded in another way.
        """
        given = self.rtol is not None or self.atol is not None
        if result.status != "differs" or result.stage == CONVERTED or given:
            return ""
        expected = promoted_alike(reference.outputs, outputs, self._promoted)
        return self.causes.no_evidence(replace(reference, outputs=tuple(expected)), outputs)

    def _localised(self, result: StageResult, reference: Reference) -> StageResult:
        """With the line where it begins, or with why that isn't known."""
        try:
            return replace(result, culprit=self._culprit(result, reference, Budget()))
        except OverBudgetError as error:
            known = f"{result.message}; " if result.message else ""
            return replace(result, message=f"{known}the search for the line where it begins was given up: {error}")
        except Exception:  # noqa: BLE001 - what was compared does not depend on it: an operator that can't run alone
            return result

    def _culprit(self, result: StageResult, reference: Reference, budget: Budget) -> Culprit | None:
        """The line where the first stage that differs departs; of the first input alone: others tell little more."""
        if self._looked or not self._localise:
            return None
        if result.stage == ONNXRUNTIME and self._localiser is not None:
            self._looked = True
            return self._localiser.first(reference.inputs, self._order, budget, partial(self._terms, reference))
        if result.status != "differs" or result.stage not in (CONVERTED, PROGRAM):
            return None
        self._looked = True
        if result.stage == CONVERTED:
            return converted_culprit(self.model, reference.inputs, budget)
        return None if self._program is None else program_culprit(self.model, self._program, reference.inputs, budget)

    def _explained(self, result: StageResult, reference: Reference, outputs: Sequence[Output]) -> StageResult:
        cause = self.causes.unsteady(reference)
        if result.stage == ONNXRUNTIME and self._localise and not cause:
            cause = self._unoptimised.blame(result, partial(self._again, reference))
        if result.status == "differs" and not cause:
            cause = self.causes.explain(reference, outputs)
        message = cause or result.message
        if has_no_elements(reference.inputs):
            message = f"{message}; {NEVER_EMPTY}" if message else NEVER_EMPTY
        return replace(result, message=message)

    def _again(self, reference: Reference, session: OnnxSession) -> StageResult:
        outputs = self._on(lambda: session, reference.inputs)
        return self._compared(ONNXRUNTIME, reference, outputs)

    def _compared(self, stage: str, reference: Reference, outputs: Sequence[Output]) -> StageResult:
        terms = partial(self._terms, reference)
        spread = partial(self._spread, reference)
        bounds = {"rtol": self.rtol, "atol": self.atol}
        expected = promoted_alike(reference.outputs, outputs, self._promoted if stage != CONVERTED else ())
        return compare(stage, expected, outputs, **bounds, terms=terms, spread=spread, texts=self.places)

    def _spread(self, reference: Reference) -> Sequence[torch.Tensor] | None:
        """How far rounding may move eager's outputs; nobody knows of a model that is not the same twice."""
        return None if self.causes.unsteady(reference) else self.causes.rounding(reference.inputs)

    def _terms(self, reference: Reference) -> int:
        """The terms of the largest sum; not for a model that is not the same twice, whatever its sums."""
        name = reference.inputs.name
        if name not in self._sums:
            unsteady = self.causes.unsteady(reference)
            self._sums[name] = 1 if unsteady else largest_sum(self.model, reference.inputs)
        return self._sums[name]


def limit_for(reference: Reference) -> float:
    """The seconds that onnxruntime may take for a set."""
    return max(LEAST_LIMIT, float(round(TIMES_EAGER * reference.seconds)))


def require_outputs(bound: Bound, references: Sequence[Reference], others: set[str]) -> None:
    """Accept bounds for outputs that there are, by eager's names for them or the file's.

    Raises:
        UsageError: one is for an output that there is none of.
    """
    names = {short_name(output.name) for reference in references for output in reference.outputs} | others
    known = {output.name for reference in references for output in reference.outputs}
    known |= {result_name(name) or name for name in known} | names
    for name in bound if isinstance(bound, Mapping) and names else ():
        if name and name not in known:
            raise UsageError(f"there is no output {name!r} to compare", hint=f"one of {', '.join(sorted(names))}")
