"""``embed_tests``: the inputs of a check and eager's outputs, written beside the ONNX file that was checked.

The format: ``docs/embedded-tests.md``; :mod:`dy2st.embedded` reads it without torch.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from dy2st.capture.stateful_program import StateOption
from dy2st.embedded import recorded
from dy2st.embedded.file_outputs import piece_at
from dy2st.embedded.fingerprints import PROOF, file_sha256, loaded, put_metadata, weights_sha256
from dy2st.embedded.recorded import RecordedOutput, RecordedTest, RecordedTests, path_of_tests
from dy2st.errors import Dy2stError, EmbeddedTestsError, SaveError
from dy2st.parity.causes import Causes
from dy2st.parity.checking import captured, compare_stages, eager_references
from dy2st.parity.file_dtypes import kinds_of, recorded_array
from dy2st.parity.file_facts import state_in
from dy2st.parity.inputs import describe
from dy2st.parity.missing_paths import find_missing
from dy2st.parity.more_sets import MoreSets
from dy2st.parity.paths import path_coverage
from dy2st.parity.promoted_outputs import promoted_dtypes, promoted_output
from dy2st.parity.raising import guards_of, with_guards
from dy2st.parity.reductions import largest_sum
from dy2st.parity.stage_runs import NEAR, StageRuns
from dy2st.parity.stages import OnnxSession, Reference, eager_reference
from dy2st.parity.stateful_calls import continued, is_first_call
from dy2st.parity.tolerances import Bound, bound_for, require_bounds, tolerance_for

if TYPE_CHECKING:
    from torch.export import ExportedProgram

    from dy2st.parity.outputs import Output
    from dy2st.report.model import PathSite
    from dy2st.report.parity_report import ParityReport


# What the inputs and outputs may take that a search has found beyond those that cover the paths.
_MOST_BYTES = 1 << 20


def embed_tests(
    model: Any,
    inputs: Any,
    onnx_file: str | Path,
    *,
    program: ExportedProgram | None = None,
    rtol: Bound = None,
    atol: Bound = None,
    dynamic_shapes: Any = None,
    search: float | None = None,
    seed: int = 0,
) -> ParityReport:
    """Compare an ONNX file with eager, and write its tests beside it, as ``FILE.tests.safetensors``.

    ``dy2st check FILE`` and :func:`dy2st.check_embedded` run them on any machine, without the model. The file's
    metadata says under ``dy2st.proof``, as JSON, what was covered, by which versions, and the hash of its weights.
    Both are written whole or not at all.

    Args:
        model: what the file was made from, as for ``dy2st.check``.
        inputs: the sets of inputs, likewise.
        onnx_file: the file, of dy2st or of any other exporter.
        program: what the file was made from, if it is there; else the model is captured, for its paths and guards.
        rtol: relative tolerance in place of the table's, as for ``dy2st.check``. It is recorded.
        atol: absolute tolerance, likewise.
        dynamic_shapes: as for ``torch.export.export``, where the model is captured.
        search: look for more inputs for at most this many seconds, as for ``dy2st.check``. Recorded are those that take
            paths which none has taken, those close to where a condition flips, and up to a megabyte of others.
        seed: of the search.

    Returns:
        What the comparison has found.

    Raises:
        ParityError: the file differs from eager; nothing is written then.
        UnusableInputError: an input is unusable, likewise.
        EmbeddedTestsError: the file takes or gives something else than tensors of numbers.
        SaveError: the tests or the file can't be written.
        OnnxError: it is no ONNX file.
    """
    require_bounds(rtol=rtol, atol=atol)
    file = Path(onnx_file)
    loaded(file)
    references = eager_references(model, inputs)
    problem = ""
    if program is None:
        try:
            told: StateOption = None if state_in(file) else "forget"
            program, _ = captured(model, references, dynamic_shapes=dynamic_shapes, state=told)
        except Dy2stError as error:
            problem = f"the paths are not known, since the model can't be captured: {error.code}: {error.what}"
    line, others = "", None
    if search is not None and program is not None:
        found = find_missing(model, references, program, seconds=search, seed=seed)
        references += [eager_reference(model, each) for each in found.sets]
        line, others = found.line, MoreSets(model, found.more, program, search)
    model, references = continued(model, references, program)
    report = compare_stages(
        model,
        references,
        program=program,
        onnx_file=file,
        rtol=rtol,
        atol=atol,
        paths_problem=problem,
        others=others,
    )
    report = replace(report, searched=line + ("" if others is None else others.told()))
    report.raise_if_different()
    try:
        with tempfile.TemporaryDirectory(prefix=".dy2st-", dir=file.parent) as folder:
            made = Path(folder) / file.name
            compared = () if others is None else others.agreed
            proof = Proof(model, references, report, program, rtol, atol, compared=compared)
            tests = proof.write(file, made)
            for each in (tests, made):
                with each.open("rb") as stream:
                    os.fsync(stream.fileno())
            for each in (tests, made):  # a file is never there before its tests
                each.replace(file.parent / each.name)
    except OSError as error:
        raise SaveError(f"the tests of {file} can't be written: {error.strerror or error}") from error
    return report


@dataclass(frozen=True)
class Proof:
    """What a check has compared: its references, those of a search included, and what it has found.

    ``compared`` are sets on which a search has compared the file beside these; as many are recorded as there is room
    for, if they say the same on every machine.
    """

    model: Any
    references: Sequence[Reference]
    report: ParityReport
    program: ExportedProgram | None = None
    rtol: Bound = None
    atol: Bound = None
    make: Callable[..., OnnxSession] = OnnxSession
    progress: Callable[[str], None] = field(default=lambda _: None)
    compared: Sequence[Reference] = ()

    def write(self, file: Path, made: Path) -> Path:
        """Write ``file`` once more as ``made``, with what its metadata says, and the tests beside that.

        Its data, if it lies in another file, is neither read into memory as a whole nor written again. Returns the file
        of tests.

        Raises:
            EmbeddedTestsError: the file takes or gives something else than tensors of numbers.
            OSError: there is no room.
        """
        proto = loaded(file)
        kinds = kinds_of(proto)
        session = self.make(file)
        references = with_guards(self.references, self.program, uneven=bool(session.told))
        references = [each for each in references if not each.problem]
        references += self._more(file, uneven=bool(session.told))
        tests = []
        causes = Causes(self.model)
        for number, reference in enumerate(references, 1):
            self.progress(f"recording input {number} of {len(references)}")
            tests.append(self._test(reference, session, kinds, causes))
        taken = self._taken(references)
        weights = weights_sha256(proto, file.parent)
        put_metadata(proto, PROOF, json.dumps(_summary(self.report, len(tests), weights)))
        made.write_bytes(proto.SerializeToString())
        found = RecordedTests(
            self.report.model,
            file_sha256(made),
            weights,
            tuple(tests),
            _versions(),
            guards_of(self.program),
            tuple(_portable(site) for site in self.report.paths),
            tuple(taken),
            _without_folders(self.report.paths_problem, self.report.paths),
            self.report.searched,
            self.report.specialized,
            self.report.dropped_guards,
            dict(zip(session.state_names, session.following, strict=True)),
        )
        path = path_of_tests(made)
        with path.open("wb") as stream:
            try:
                recorded.write(stream, found)
            except ValueError as error:
                raise EmbeddedTestsError(f"the tests are too many for one file: {error}") from error
        return path

    def _more(self, file: Path, *, uneven: bool) -> list[Reference]:
        """Those of the compared ones to record."""
        if not self.compared:
            return []
        self.progress("choosing inputs of the search to record")
        runs = StageRuns(
            self.model,
            program=self.program if uneven else None,
            onnx_file=file,
            rtol=self.rtol,
            atol=self.atol,
            make=self.make,
            localise=False,
        )
        left, found = _MOST_BYTES, []
        for each in self.compared:
            left -= _bytes_of(each)
            if left > 0 and runs.surely_agrees(each):
                found.append(each)
        return found

    def _test(self, reference: Reference, session: OnnxSession, kinds: dict[str, str], causes: Causes) -> RecordedTest:
        order = None if self.program is None else [str(name) for name in self.program.graph_signature.user_inputs]
        feed = session.feed(self.model, reference.inputs, order)
        missing = [name for name in session.input_names if name not in feed]
        if missing:
            raise EmbeddedTestsError(f"no argument of a call is the file's input {', '.join(missing)}")
        if is_first_call(reference.inputs):
            feed = session.without_state(feed)
        given = {name: recorded_array(tensor, f"the input {name}") for name, tensor in feed.items()}
        description = describe(self.model, reference.inputs)
        if reference.raises:
            raises = _without_place(reference.raises, reference.raised)
            return RecordedTest(reference.inputs.name, description, given, raises=raises)
        names = _names(reference, session)
        terms = largest_sum(self.model, reference.inputs)
        rounding = self._spread(reference, ["" if each is None else each[0] for each in names], causes)
        spread: Sequence[torch.Tensor | None] = [None] * len(reference.outputs) if rounding is None else rounding
        known = promoted_dtypes(self.program)
        outputs = tuple(
            replace(self._output(output, found[0], kinds.get(found[0]), terms, moved, known), file_name=found[1])
            for output, found, moved in zip(reference.outputs, names, spread, strict=True)
            if found is not None
        )
        return RecordedTest(reference.inputs.name, description, given, outputs, terms=terms)

    def _spread(self, reference: Reference, names: Sequence[str], causes: Causes) -> Sequence[torch.Tensor] | None:
        """How far rounding may move each output: asked where a stage comes near to what is tolerated, or beyond.

        Kernels of another machine round in other ways than those of this one.
        """
        stages = next((each.stages for each in self.report.inputs if each.name == reference.inputs.name), ())
        near = any((each.of_tolerance or 0) > NEAR for stage in stages for each in stage.outputs)
        given = any(
            bound_for(bound, output.name, name) is not None
            for output, name in zip(reference.outputs, names, strict=True)
            for bound in (self.rtol, self.atol)
        )
        if given or not near or causes.unsteady(reference):
            return None
        return causes.rounding(reference.inputs)

    def _output(
        self,
        output: Output,
        name: str,
        kind: str | None,
        terms: int,
        spread: torch.Tensor | None,
        known: Collection[torch.dtype],
    ) -> RecordedOutput:
        output = promoted_output(output, getattr(torch, kind or "", None), known)
        tensor = output.tensor.detach().cpu()
        rtol, atol = (bound_for(bound, output.name, name) for bound in (self.rtol, self.atol))
        if output.is_number and tensor.dtype is torch.float64 and kind == "float32":
            tensor = tensor.float()  # a Python float has no dtype: it is compared in the one that the file gives it
        return RecordedOutput(
            output.name,
            name,
            recorded_array(tensor, f"the output {name}"),
            tolerance_for(tensor.dtype, rtol=rtol, atol=atol),
            tolerance_for(tensor.dtype, rtol=rtol, atol=atol, terms=terms),
            None
            if spread is None or not tensor.is_floating_point()
            else recorded_array(spread.double(), f"the output {name}"),
        )

    def _taken(self, references: Sequence[Reference]) -> list[dict[str, tuple[str, ...]]]:
        """Which inputs took each way, for each place in the report's paths."""
        found: list[dict[str, list[str]]] = [{way: [] for way in site.taken} for site in self.report.paths]
        places = {_place(site): taken for site, taken in zip(self.report.paths, found, strict=True)}
        for reference in references if found else ():
            for site in path_coverage(self.model, [reference], self.program)[0]:
                copies = [way for copy in site.copies for way in copy.taken]
                for way in dict.fromkeys([*site.taken, *copies]):
                    if way in places.get(_place(site), {}):
                        places[_place(site)][way].append(reference.inputs.name)
        return [{way: tuple(names) for way, names in each.items()} for each in found]


def _bytes_of(reference: Reference) -> int:
    given = pytree.tree_leaves((reference.inputs.args, reference.inputs.kwargs))
    tensors = [*given, *(output.tensor for output in reference.outputs)]
    return sum(each.numel() * each.element_size() for each in tensors if isinstance(each, torch.Tensor))


def _place(site: PathSite) -> tuple[str, int, int | None, str]:
    return site.file, site.line, site.column, site.kind


def _names(reference: Reference, session: OnnxSession) -> list[tuple[str, str] | None]:
    """For each of eager's outputs that of the file, and the name of its piece; None for a text that is on all paths.

    Raises:
        EmbeddedTestsError: the file has another number of outputs.
    """
    if session.told:
        return [piece_at(session.told, output.name) for output in reference.outputs]
    own = iter(session.output_names)
    kept = [not output.is_text for output in reference.outputs]
    if sum(kept) != len(session.output_names):
        counts = f"eager returns {sum(kept)} tensors, the file {len(session.output_names)}"
        raise EmbeddedTestsError(f"{counts}: there are no tests of that")
    return [(name, name) if is_kept and (name := next(own)) else None for is_kept in kept]


def _versions() -> dict[str, str]:
    libraries = {name: version(name) for name in ("torch", "onnx", "onnxruntime")}
    machine = f"{platform.system()} {platform.machine()}"
    ours = import_module("dy2st").__version__  # the package, which is loaded, lies above this module
    return {"dy2st": ours, "python": platform.python_version(), **libraries, "platform": machine}


def _summary(report: ParityReport, tests: int, weights: str) -> dict[str, Any]:
    """What the file's metadata says of its proof: little, since it is read where the tests are not."""
    sites = [_portable(site) for site in report.paths]
    return {
        "format": recorded.VERSION,
        "outcome": report.outcome,
        "tests": tests,
        "covered": report.covered,
        "paths": {f"{site.file}:{site.line}: {site.code}": list(site.taken) for site in sites},
        "never": {f"{site.file}:{site.line}: {site.code}": list(site.uncovered) for site in sites if site.uncovered},
        "versions": _versions(),
        "weights_sha256": weights,
    }


def _portable(site: PathSite) -> PathSite:
    """With its file as from the working folder, or by its name alone: where it lies here is nobody's business."""
    return replace(site, file=_shortest(site.file))


def _shortest(file: str) -> str:
    path = Path(file)
    return (path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else Path(path.name)).as_posix()


def _without_folders(text: str, sites: Sequence[PathSite]) -> str:
    for file in {site.file for site in sites}:
        text = text.replace(file, _shortest(file))
    return text


def _without_place(raises: str, raised: tuple[str, int] | None) -> str:
    """What eager raises, with the place as from the working folder."""
    if raised is None:
        return raises
    return raises.replace(raised[0], _shortest(raised[0]))
