"""Running the tests beside an ONNX file: without the model, its source, or torch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from dy2st.embedded import recorded
from dy2st.embedded.array_compare import compare_arrays
from dy2st.embedded.array_session import ArraySession, available_provider, told
from dy2st.embedded.fingerprints import file_sha256, has_weights_beside, loaded, node_counts, weights_sha256
from dy2st.embedded.recorded import RecordedOutput, RecordedTest, RecordedTests, path_of_tests
from dy2st.errors import EmbeddedTestsError, UsageError
from dy2st.report.model import Difference, InputResult, StageResult, Tolerance
from dy2st.report.parity_report import ParityReport

# One bound for all outputs, or one for each by name; the one under the empty name is for the rest.
Bound = float | Mapping[str, float] | None

ONNXRUNTIME = "onnxruntime"
# The levels of optimisation that are not the default.
LEVELS = {"no optimisation": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED"}


def check_embedded(
    onnx_file: str | Path,
    *,
    rtol: Bound = None,
    atol: Bound = None,
    levels: bool = False,
    providers: Sequence[str] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> ParityReport:
    """Run the tests that lie beside an ONNX file, and compare what it gives with what eager gave when they were made.

    Neither the model nor torch is needed. A file that has changed since is compared all the same; ``report.changed``
    says what has changed. Paths are those that the inputs took then.

    Args:
        onnx_file: the file; its tests are those of ``path_of_tests``.
        rtol: relative tolerance in place of the recorded ones; integers stay exact. A dict has one for each output by
            name, and under the empty name one for the rest.
        atol: absolute tolerance, likewise.
        levels: also run each of onnxruntime's levels of optimisation.
        providers: also run these execution providers (``"CUDA"``).
        progress: is told each step.

    Raises:
        EmbeddedTestsError: the tests are missing, damaged, of a newer version, or of a file with other inputs.
        UsageError: there is no such ONNX file, or onnxruntime has no such provider.
        OnnxError: it is no ONNX file, or onnxruntime can't load it.
    """
    file = Path(onnx_file)
    if not file.is_file():
        raise UsageError(f"{file}: there is no such file")
    beside = path_of_tests(file)
    if not beside.exists():
        raise EmbeddedTestsError(
            f"{file} has no tests: there is no {beside.name} beside it",
            hint=f"write both with dy2st convert MODEL -o {file.name} --embed-tests",
        )
    progress("reading the tests")
    tests = recorded.read(beside)
    model = loaded(file)
    session = ArraySession(file)
    _require_inputs(file, session, tests)
    sessions: list[tuple[str, Callable[[], ArraySession]]] = [(ONNXRUNTIME, lambda: session)]
    if levels:
        sessions += [(name, cache(partial(ArraySession, file, level=level))) for name, level in LEVELS.items()]
    for given in providers:
        sessions.append((given, cache(partial(ArraySession, file, provider=available_provider(given)))))
    results = []
    for number, test in enumerate(tests.tests, 1):
        progress(f"comparing input {number} of {len(tests.tests)}")
        begun = time.perf_counter()
        stages = tuple(_stage(name, made, test, tests.guards, (rtol, atol)) for name, made in sessions)
        stages = tuple(_going_on(stage, session, test, tests) for stage in stages)
        seconds = round(time.perf_counter() - begun, 6)
        blank = _blank(test.outputs)
        results.append(
            InputResult(test.name, test.description, stages, seconds=seconds, raises=test.raises, blank=blank)
        )
    graph, opset = node_counts(model)
    return ParityReport(
        tests.model,
        tuple(results),
        onnx_file=str(file),
        tolerances=_tolerances(tests, rtol, atol),
        versions={"numpy": np.__version__, "onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__},
        graph=graph,
        opset=opset,
        specialized=tests.specialized,
        dropped_guards=tests.dropped_guards,
        paths=tests.paths,
        paths_problem=tests.paths_problem,
        searched=tests.searched,
        recorded=dict(tests.versions),
        changed=_changed(file, model, tests),
    )


def _require_inputs(file: Path, session: ArraySession, tests: RecordedTests) -> None:
    """Accept tests whose inputs are those of the file; a first call leaves out what is state."""
    own = set(session.input_names)
    for test in tests.tests:
        if set(test.inputs) not in (own, own - set(session.state_names)):
            theirs, names = ", ".join(test.inputs) or "none", ", ".join(session.input_names) or "none"
            raise EmbeddedTestsError(
                f"{path_of_tests(file)} has the tests of another file: inputs {theirs}; this has {names}"
            )


def _stage(
    name: str,
    made: Callable[[], ArraySession],
    test: RecordedTest,
    guards: Sequence[str],
    bounds: tuple[Bound, Bound],
) -> StageResult:
    """One way to run the file, on one test."""
    try:
        found = made().outputs(test.inputs)
    except Exception as error:  # noqa: BLE001 - a run that fails is a finding, whatever it raises
        if test.raises and any(guard in str(error) for guard in guards):
            return StageResult(name, "equal")
        return StageResult(name, "error", message=told(error))
    if test.raises:
        message = f"eager raises {test.raises}, and this raises nothing"
        return StageResult(name, "differs", differences=(Difference("the call", "raises", message),))
    named = [each.file_name for each in test.outputs]
    session = made()
    if session.told and set(named) != set(found):
        uneven = min(set(named) ^ set(found))
        message = f"{uneven} is {'missing' if uneven in named else 'there, and eager returned none'}"
        return StageResult(name, "differs", differences=(Difference("output", "count", message),))
    actual = [found[each] for each in named] if set(named) == set(found) else list(found.values())
    return compare_arrays(
        name,
        [(each.name, each.value) for each in test.outputs],
        actual,
        [_bounded(each, each.tolerance, bounds) for each in test.outputs],
        [_bounded(each, each.scaled, bounds) for each in test.outputs],
        test.terms,
        _spread(test.outputs, bounds),
    )


def _going_on(stage: StageResult, session: ArraySession, test: RecordedTest, tests: RecordedTests) -> StageResult:
    """With the state that goes on in another way than it did; each test is one call, and shows none of that."""
    if tests.state is None or test.raises or stage.status == "error":
        return stage
    now = session.state
    found = tuple(
        Difference(each, "state", f"{each} goes on as {output}, and this file says {now.get(each, 'nothing')}")
        for each, output in tests.state.items()
        if now.get(each) != output
    )
    return replace(stage, status="differs", differences=(*stage.differences, *found)) if found else stage


def _spread(outputs: Sequence[RecordedOutput], bounds: tuple[Bound, Bound]) -> list[np.ndarray[Any, Any] | None] | None:
    """How far rounding may move each output; None if that is not known, or the user has said what is tolerated."""
    given = any(_bound(bound, each) is not None for bound in bounds for each in outputs)
    if given or all(each.rounding is None for each in outputs):
        return None
    return [None if each.rounding is None else each.rounding.bits for each in outputs]


def _bounded(output: RecordedOutput, tolerance: Tolerance, bounds: tuple[Bound, Bound]) -> Tolerance:
    """A tolerance with what the user has given in place of what was recorded; integers stay exact."""
    if not _is_float(output.value.dtype):
        return tolerance
    rtol, atol = (_bound(each, output) for each in bounds)
    return Tolerance(tolerance.rtol if rtol is None else rtol, tolerance.atol if atol is None else atol)


def _bound(bound: Bound, output: RecordedOutput) -> float | None:
    if not isinstance(bound, Mapping):
        return bound
    return next((bound[each] for each in (output.name, output.file_name) if each in bound), bound.get(""))


def _tolerances(tests: RecordedTests, rtol: Bound, atol: Bound) -> dict[str, Tolerance]:
    """Those applied, by dtype: the narrowest of each."""
    found: dict[str, Tolerance] = {}
    for output in (each for test in tests.tests for each in test.outputs):
        if _is_float(output.value.dtype):
            bounds, dtype = _bounded(output, output.tolerance, (rtol, atol)), output.value.dtype
            found[dtype] = min(found.get(dtype, bounds), bounds, key=lambda each: (each.rtol, each.atol))
    return found


def _is_float(dtype: str) -> bool:
    return "float" in dtype


def _blank(outputs: Sequence[RecordedOutput]) -> dict[str, str]:
    """The outputs without a value that could be compared, by name, with what they are instead."""
    found = {}
    for output in outputs:
        if not output.value.bits.size:
            found[output.name] = "empty"
        elif _is_float(output.value.dtype) and bool(np.isnan(output.value.numbers()).all()):
            found[output.name] = "NaN throughout"
    return found


def _changed(file: Path, model: onnx.ModelProto, tests: RecordedTests) -> tuple[str, ...]:
    """What of the file is not as it was when the tests were recorded."""
    same = file_sha256(file) == tests.onnx_sha256
    if same and not has_weights_beside(model):
        return ()
    if weights_sha256(model, file.parent) != tests.weights_sha256:
        return ("its weights are not those with which the tests were recorded",)
    if same:
        return ()
    return ("it is not the file with which the tests were recorded; its weights are the same",)
