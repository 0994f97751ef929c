"""``check``: eager against the exported program and onnxruntime, on every set of inputs."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import onnx
import torch

from dy2st.capture.diagnosis import diagnosing
from dy2st.capture.number_inputs import InputsAs
from dy2st.capture.stateful_program import StateOption, carried_by, export_stateful, warn_of_forgotten
from dy2st.capture.unexportable import require_values
from dy2st.errors import Dy2stError, OnnxError, UsageError
from dy2st.onnx.exporting import LOWEST_OPSET
from dy2st.onnx.exporting import export as export_onnx
from dy2st.onnx.passes.varying_outputs import OptionalOutputs
from dy2st.parity.examples import example_for, nothing_usable
from dy2st.parity.file_coverage import file_coverage
from dy2st.parity.file_facts import dropped_in, graph_counts, specialized_in, state_in
from dy2st.parity.gradient_mode import gradients_as_asked
from dy2st.parity.inputs import called_alike, describe, input_sets
from dy2st.parity.isolated import isolated_session
from dy2st.parity.lost_paths import no_evidence
from dy2st.parity.missing_paths import find_missing
from dy2st.parity.more_sets import MoreSets
from dy2st.parity.number_calls import numbers_as_inputs, without_numbers
from dy2st.parity.outputs import blank_outputs
from dy2st.parity.paths import path_coverage
from dy2st.parity.raising import otherwise, with_guards
from dy2st.parity.random_calls import with_draws
from dy2st.parity.stage_runs import StageRuns, require_outputs
from dy2st.parity.stages import OnnxSession, Reference, eager_reference
from dy2st.parity.state import Reached, as_before
from dy2st.parity.stateful_calls import continued
from dy2st.parity.time_limit import limited
from dy2st.parity.tolerances import TOLERANCES, Bound, bound_for, require_bounds, tolerance_for
from dy2st.report.file_arms import blamed_inputs
from dy2st.report.model import NO_EVIDENCE, InputResult
from dy2st.report.parity_report import ParityReport
from dy2st.sizes.allowed_lines import AllowedLines
from dy2st.source.torch_made import in_python

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from torch.export import ExportedProgram

    from dy2st.parity.variants import Variant


def check(  # noqa: PLR0913 - each is an option of its own
    model: Any,
    inputs: Any,
    *,
    program: ExportedProgram | None = None,
    onnx_file: str | Path | None = None,
    rtol: Bound = None,
    atol: Bound = None,
    dynamic_shapes: Any = None,
    opset_version: int | None = None,
    allow_specialize: Iterable[int | str] = (),
    drop_guards: bool = False,
    search: float | None = None,
    seed: int = 0,
    isolated: bool = False,
    timeout: float | None = None,
    state: StateOption = None,
    optional_outputs: OptionalOutputs = "optional",
    inputs_as: InputsAs = MappingProxyType({}),
    random_inputs: bool = False,
) -> ParityReport:
    """Compare eager with the exported program and with the ONNX file on onnxruntime.

    Args:
        model: an ``nn.Module``, a function, a bound method or a callable object. It runs eagerly without gradients,
            in its own train or eval mode, and its state is put back after every run.
        inputs: an iterable of sets, each a tuple of arguments or a dict of keyword arguments; or a dict of named sets.
        program: compare this program; without it and without ``onnx_file``, the model is exported here.
        onnx_file: compare this file; without it and without ``program``, one is written to a temporary folder.
        rtol: relative tolerance in place of the table's (:mod:`dy2st.parity.tolerances`); integers stay exact. A dict
            has one for each output by name, and under the empty name one for the rest.
        atol: absolute tolerance, likewise.
        dynamic_shapes: as for ``torch.export.export``; without it, the sizes that differ between sets are dynamic.
        opset_version: of the file that is written here.
        allow_specialize: lines at which a dynamic size may be fixed, as for ``dy2st.onnx.export``.
        drop_guards: leave out the tests at which eager may raise, likewise.
        search: look for inputs that take the paths which none takes, for at most this many seconds and a hundred runs
            for each, and compare these too; not with ``program`` or ``onnx_file``. It needs arguments that are tensors.
        seed: of the search.
        isolated: run onnxruntime in a process of its own, where a crash is a stage that fails and not the end of this
            one. All such checks share the process.
        timeout: stop after so many seconds, in the main thread; onnxruntime is isolated then.
        state: what becomes of state in what is exported here, as for ``dy2st.onnx.export``. Where it is inputs and
            outputs, a list of sets in a set's place is a sequence of calls, and any other set is called three times;
            each call is compared, the state included.
        optional_outputs: how results that are None on some paths are written in what is exported here, likewise.
        inputs_as: the arguments whose Python numbers are inputs, likewise; a file or program that is given takes them.
        random_inputs: compare on the random numbers that eager has drawn, as inputs of the file, likewise.

    Raises:
        TimeLimitError: the time was up.
        ExampleInputsError: ``inputs`` has another form, or its sets can't share one program.
        UnusableInputError: there is no set that eager accepts.
        UsageError: a tolerance is negative, the opset is below 18 or above what onnx knows, or there is nothing to
            search in.
        Dy2stError: the model can't be exported (see ``dy2st.export`` and ``dy2st.onnx.export``).
    """
    require_bounds(rtol=rtol, atol=atol)
    if search is not None and (program is not None or onnx_file is not None):
        raise UsageError("a search is for what is exported here, not for a program or file that is given")
    model, inputs = numbers_as_inputs(in_python(model), inputs, inputs_as)
    make = OnnxSession if not isolated and timeout is None else isolated_session
    with (
        as_before(model),
        tempfile.TemporaryDirectory(prefix="dy2st-") as folder,
        limited(timeout, _nobody, option="timeout") as step,
    ):
        step("running eagerly")
        references = eager_references(model, inputs)
        line, more = "", None
        temporary = None
        if program is None and onnx_file is None:
            onnx_file = temporary = Path(folder) / "model.onnx"
            program = export_for(
                model,
                references,
                onnx_file,
                dynamic_shapes=dynamic_shapes,
                opset_version=opset_version,
                allow_specialize=allow_specialize,
                drop_guards=drop_guards,
                progress=step,
                state=state,
                optional_outputs=optional_outputs,
                random_inputs=random_inputs,
            )
            if search is not None:
                step("searching for inputs")
                found = find_missing(model, references, program, seconds=search, seed=seed)
                line, references = found.line, references + [eager_reference(model, each) for each in found.sets]
                more = MoreSets(model, found.more, program, search)
            model, references = with_draws(*continued(model, references, program), program)
        elif program is None and onnx_file is not None and (random_inputs or _has_state(Path(onnx_file))):
            step("capturing")
            beside, _ = captured(model, references, dynamic_shapes=dynamic_shapes, random_inputs=random_inputs)
            model, references = with_draws(*continued(model, references, beside), beside)
        report = compare_stages(
            model,
            references,
            program=program,
            onnx_file=onnx_file,
            rtol=rtol,
            atol=atol,
            make=make,
            progress=step,
            others=more,
        )
    if temporary is None:
        return report
    line += "" if more is None else more.told()
    return replace(report, onnx_file=None, searched=line)  # a file that is gone


def require_state(file: Path, program: ExportedProgram) -> None:
    """Accept a file that has its model's state.

    Raises:
        OnnxError: the model has state, and the file has none.
    """
    carried = carried_by(program)
    if carried is not None and not state_in(file):
        names = ", ".join(repr(unit.name) for unit in carried.units)
        raise OnnxError(
            f"{file} starts afresh in each call, and the model does not: it carries {names} from call to call",
            hint='state="forget" (--state forget) compares single calls, each from the first state',
        )


def _has_state(file: Path) -> bool:
    """Whether a file says that it has state; what is no ONNX file is onnxruntime's to refuse."""
    try:
        return bool(state_in(file))
    except OnnxError:
        return False


def _nobody(_: str) -> None:
    """Who is told the steps of a check in Python."""


def eager_references(model: Any, inputs: Any) -> list[Reference]:
    """What eager does with every set.

    Raises:
        ExampleInputsError: ``inputs`` has another form.
    """
    if isinstance(model, torch.nn.Module):
        require_values(dict(model.state_dict(keep_vars=True)))
    reached, found = Reached(model), []
    for each in called_alike(model, input_sets(inputs)):
        found.append(eager_reference(model, each))
        reached.restore()
    return found


def export_for(
    model: Any,
    references: Sequence[Reference],
    file: Path,
    *,
    dynamic_shapes: Any = None,
    opset_version: int | None = None,
    allow_specialize: Iterable[int | str] = (),
    drop_guards: bool = False,
    progress: Callable[[str], None] = lambda _: None,
    state: StateOption = None,
    optional_outputs: OptionalOutputs = "optional",
    random_inputs: bool = False,
) -> ExportedProgram:
    """Export the model to a program and an ONNX file that serve every usable set. ``progress`` is told each step."""
    if opset_version is not None and not LOWEST_OPSET <= opset_version <= onnx.defs.onnx_opset_version():
        highest = onnx.defs.onnx_opset_version()
        raise UsageError(f"opset {opset_version} can't be written", hint=f"one from {LOWEST_OPSET} to {highest}")
    rejected = all(each.problem for each in references)
    try:
        plain, _ = without_numbers(model)
        with diagnosing(), gradients_as_asked(plain):
            lines = AllowedLines(plain, allow_specialize)
            program, shapes = captured(
                model,
                references,
                dynamic_shapes=dynamic_shapes,
                allow_specialize=lines,
                drop_guards=drop_guards,
                progress=progress,
                state=state,
                random_inputs=random_inputs,
            )
            if state == "forget":
                warn_of_forgotten(program, without_numbers(model)[0])
            progress("writing ONNX")
            # the shapes once more: the file's dimensions are named after them
            export_onnx(
                program,
                f=file,
                dynamic_shapes=shapes,
                opset_version=opset_version,
                allow_specialize=lines,
                optional_outputs=optional_outputs,
            )
            lines.require_used()
    except Dy2stError as error:
        if rejected:
            raise nothing_usable(model, references) from error
        raise
    if rejected and all(each.problem for each in with_guards(references, program)):
        raise nothing_usable(model, references)
    return program


def captured(
    model: Any,
    references: Sequence[Reference],
    *,
    dynamic_shapes: Any = None,
    allow_specialize: Iterable[int | str] | AllowedLines = (),
    drop_guards: bool = False,
    progress: Callable[[str], None] = lambda _: None,
    state: StateOption = None,
    random_inputs: bool = False,
) -> tuple[ExportedProgram, Any]:
    """The program that serves every usable set, and the dynamic shapes that it was made with."""
    example, shapes = example_for(model, references, dynamic_shapes)
    model, inputs_as = without_numbers(model)
    progress("capturing")
    with gradients_as_asked(model):  # as eager runs here, in case the model asks
        program = export_stateful(
            model,
            example.args,
            example.kwargs,
            dynamic_shapes=shapes,
            allow_specialize=allow_specialize,
            drop_guards=drop_guards,
            state=state,
            inputs_as=inputs_as,
            random_inputs=random_inputs,
        )
    return program, shapes


def compare_stages(
    model: Any,
    references: Sequence[Reference],
    *,
    program: ExportedProgram | None = None,
    onnx_file: str | Path | None = None,
    rtol: Bound = None,
    atol: Bound = None,
    more: Sequence[Variant] = (),
    make: Callable[..., OnnxSession] = OnnxSession,
    paths_problem: str = "",
    progress: Callable[[str], None] = lambda _: None,
    others: MoreSets | None = None,
) -> ParityReport:
    """Run the stages that are given on every usable set and compare them with eager's outputs.

    The model itself, converted but eager, is the first of them where the program is ours; ``more`` come last.
    ``make`` makes the sessions of onnxruntime; of ``others`` those are compared on which the file differs;
    ``paths_problem`` says why there is no program to follow the paths of.

    Raises:
        UsageError: a tolerance is for an output that there is none of.
    """
    runs = StageRuns(model, program=program, onnx_file=onnx_file, rtol=rtol, atol=atol, more=more, make=make)
    if others is not None:
        progress("comparing the file on more inputs")
        references = [*references, *others.differing(runs)]
    references = with_guards(references, program, uneven=bool(runs.places))
    for bound in (rtol, atol):
        require_outputs(bound, references, runs.output_names)
    results, kept = [], []
    for number, reference in enumerate(references, 1):
        begun = time.perf_counter()
        progress(f"comparing input {number} of {len(references)}")
        stages = runs.results(reference, progress)
        description = describe(model, reference.inputs)
        seconds = round(time.perf_counter() - begun, 6)
        problem = reference.problem or otherwise(reference, stages) or no_evidence(stages)
        if not reference.inputs.asked and problem.startswith(NO_EVIDENCE):
            continue  # a search has found it, and it is no good
        kept.append(reference)
        results.append(
            InputResult(
                reference.inputs.name,
                description,
                () if problem else stages,
                problem,
                seconds,
                reference.raises,
                blank_outputs(reference.outputs),
            )
        )
    nodes, opset = ({}, None) if onnx_file is None else graph_counts(Path(onnx_file))
    specialized = () if onnx_file is None else specialized_in(Path(onnx_file))
    names = ("torch", "onnx", "onnxruntime")
    progress("following the paths")
    paths, why = path_coverage(model, kept, program, runs.seen)
    arms, arms_problem = file_coverage(model, kept, results, onnx_file, program, make)
    return ParityReport(
        model=getattr(model, "__qualname__", type(model).__qualname__),
        inputs=tuple(results),
        onnx_file=None if onnx_file is None else str(onnx_file),
        tolerances={
            str(d).removeprefix("torch."): tolerance_for(d, rtol=bound_for(rtol, ""), atol=bound_for(atol, ""))
            for d in TOLERANCES
        },
        versions={name: version(name) for name in names},
        graph=nodes,
        opset=opset,
        specialized=specialized,
        dropped_guards=() if onnx_file is None else dropped_in(Path(onnx_file)),
        paths=paths,
        paths_problem=paths_problem or why,
        arms=arms,
        arms_problem=arms_problem,
        blame=blamed_inputs(arms, results),
    )
