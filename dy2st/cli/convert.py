"""``dy2st convert``: export, check, and only then put the file where it was asked for."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dy2st.cli.console import progress
from dy2st.cli.definitions import definition_of, failed
from dy2st.cli.failures import EXIT_CODES, RefusalsError
from dy2st.cli.formats import Formats
from dy2st.cli.given_file import program_beside
from dy2st.cli.inputs import example_inputs
from dy2st.cli.output import StagedOutput
from dy2st.cli.planning import as_options, expanded, options_for
from dy2st.cli.searching import searched
from dy2st.cli.settings import load_settings
from dy2st.cli.shares import OPTION, Share
from dy2st.cli.suggesting import with_ranges
from dy2st.cli.target import default_output, load_target
from dy2st.cli.written import print_written
from dy2st.errors import SaveError, UsageError
from dy2st.onnx.passes.pipeline import NAMES, choosing
from dy2st.onnx.runtime.side_metadata import place_metadata
from dy2st.parity.checking import compare_stages, eager_references, export_for
from dy2st.parity.embedding import Proof
from dy2st.parity.file_facts import dropped_in, graph_counts, specialized_in
from dy2st.parity.graph_boxes import graph_drawing
from dy2st.parity.inputs import input_sets
from dy2st.parity.isolated import isolated_session
from dy2st.parity.listings import source_listings
from dy2st.parity.number_calls import numbers_as_inputs
from dy2st.parity.other_runtimes import installed_runtimes
from dy2st.parity.random_calls import with_draws
from dy2st.parity.refused import refusals_for
from dy2st.parity.stages import Reference
from dy2st.parity.stateful_calls import continued
from dy2st.parity.tolerances import require_bounds
from dy2st.parity.variants import variants
from dy2st.report.parity_report import ParityReport
from dy2st.report.run import TargetResult

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from torch.export import ExportedProgram

    from dy2st.cli.settings import Settings
    from dy2st.cli.target import Target
    from dy2st.onnx.passes.pipeline import Done


def convert(options: argparse.Namespace) -> int:
    """Write the ONNX file of a target, or of each in a folder: there, one that fails does not stop the others.

    A file that differs from eager is left only with ``--keep``.
    """
    settings = load_settings(Path.cwd())
    if options.embed_tests and options.no_check:
        raise UsageError("--embed-tests writes what the check has found, and --no-check makes none")
    if options.search is not None and options.no_check:
        raise UsageError("--search looks for inputs to check, and --no-check makes no check")
    formats = Formats(options)
    several = bool(options.target) and Path(options.target).is_dir()
    files = _files(options, settings) if several else {options.target: options.output}
    for file in files.values():
        if file is not None:
            StagedOutput(file).probe()  # a wrong folder is said before a large model is imported
    results = []
    for target, file in files.items():
        begun = time.perf_counter()
        own = as_options(options_for(target, options, settings))
        own.no_check, own.onnx, own.embed_tests = options.no_check, None, options.embed_tests
        own.metadata = options.metadata
        try:
            result = _converted(target, file, options, own, formats, several=several)
        except Exception as error:
            if not (formats or several):
                raise
            result = failed(error, target, options, about=target if several else "")
        results.append(replace(result, seconds=time.perf_counter() - begun))
    return formats.write("convert", results).exit_code


def _files(options: argparse.Namespace, settings: Settings) -> dict[str, str]:
    """The targets of a folder, and the file of each: in the folder that ``--output`` names, or the working folder.

    Raises:
        UsageError: two would be written to one file.
        SaveError: there is no such folder.
    """
    to = Path(options.output or "")
    if not to.is_dir():
        raise SaveError(f"{to}: there is no such folder, for the files of {options.target}", hint="make it first")
    files: dict[str, str] = {}
    for target in expanded([options.target], options, settings):
        file = str(to / default_output(target))
        other = next((each for each, known in files.items() if known == file), None)
        if other is not None:
            raise UsageError(f"{other} and {target} would both be written to {file}", hint="convert one with -o FILE")
        files[target] = file
    return files


def _converted(
    text: str,
    file: str | None,
    options: argparse.Namespace,
    own: argparse.Namespace,
    formats: Formats,
    *,
    several: bool,
) -> TargetResult:
    with progress(text, enabled=not formats.takes_stdout) as step:
        step("importing")
        target = load_target(text)
        without = NAMES if "all" in options.without_pass else options.without_pass
        with choosing(without) as passes, StagedOutput(default_output(text) if file is None else file) as output:
            report = export_and_check(target, own, output.path, step)
            code = 0 if options.no_check else EXIT_CODES[report.outcome]
            shows = formats.has("html")
            listings = source_listings(target.model, report.paths, output.path) if shows else ()
            drawing = graph_drawing(output.path) if shows else None
            written = output.commit() if code == 0 or options.keep else []
    result = TargetResult(
        text,
        code,
        report,
        definition=definition_of(target),
        listings=listings,
        drawing=drawing,
        written={
            "onnx_file": str(written[0]) if written else None,
            "files": [str(path) for path in written],
            "bytes": sum(path.stat().st_size for path in written),
        },
    )
    if not options.json:
        print_written(result, written, checked=not options.no_check, quiet=formats.takes_stdout, several=several)
        if options.verbose and not formats.takes_stdout:
            sys.stdout.writelines(f"{'  ' * (several + 1)}{line}\n" for line in _pass_lines(passes))
    return result


def _pass_lines(passes: Sequence[Done]) -> list[str]:
    """What each pass did, in a table."""
    rows = [(each.name, f"{each.before} to {each.after} nodes", each.gain) for each in passes]
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(2)]
    return [f"{name:<{widths[0]}}  {count:<{widths[1]}}  {gain}" for name, count, gain in rows]


def export_and_check(
    target: Target, options: argparse.Namespace, file: Path, step: Callable[[str], None]
) -> ParityReport:
    """Export one target to ``file`` and compare it with eager; with ``--no-check`` the report has no inputs.

    With ``--onnx`` the file is there already, and is compared as it is.
    ``options`` are the target's own: those of the command line and of the settings in one.
    """
    given = example_inputs(target, options)
    own = target.model
    model, sets = numbers_as_inputs(own, given.sets, dict(options.inputs_as))
    target, given = replace(target, model=model), replace(given, sets=sets)
    rtol, atol = options.rtol, options.atol
    require_bounds(rtol=rtol, atol=atol)
    step("running eagerly")
    checked = not getattr(options, "no_check", False)
    if checked:
        references = eager_references(target.model, given.sets)
    else:
        references = [Reference(each) for each in input_sets(given.sets)]
    if options.all_errors:
        step("looking for all that is refused")
        refused = refusals_for(own, references, given.dynamic_shapes)
        if refused:
            raise RefusalsError(refused)
    paths_problem = ""
    program: ExportedProgram | None
    if options.onnx is not None:
        program, paths_problem = program_beside(file, target, options, given, references, step)
    else:
        program = export_for(
            target.model,
            references,
            file,
            dynamic_shapes=given.dynamic_shapes,
            opset_version=options.opset,
            allow_specialize=options.allow_specialize,
            drop_guards=options.drop_guards,
            progress=step,
            state=options.state,
            optional_outputs=options.optional_outputs or "optional",
            random_inputs=options.random_inputs,
        )
        place_metadata(file, getattr(options, "metadata", "inside"))
    if not checked:
        graph, version = graph_counts(file)
        return ParityReport(
            target.text,
            (),
            graph=graph,
            opset=version,
            specialized=specialized_in(file),
            dropped_guards=dropped_in(file),
        )
    line, others = "", None
    if program is not None:
        references, line, others = searched(target, options, given, references, program, step)
    model, references = with_draws(*continued(target.model, references, program), program)
    share = Share.of(getattr(options, OPTION, None))
    report = compare_stages(
        model,
        references[share.first :: share.step],
        program=program,
        onnx_file=file,
        rtol=rtol,
        atol=atol,
        more=variants(
            file,
            program,
            levels=options.optimization_levels and not share.first_opset,
            opsets=options.opsets[share.first_opset :: share.step_opsets],
            providers=options.providers,
            runtimes=installed_runtimes(options.runtimes, _tell),
            dynamic_shapes=given.dynamic_shapes,
            make=isolated_session,
        ),
        make=isolated_session,
        paths_problem=paths_problem,
        progress=step,
        others=None if share.first else others,
    )
    report = replace(report, searched=line + ("" if others is None or share.first else others.told()))
    report = with_ranges(report, input_sets(given.sets), given.specs) if given.specs else report
    if getattr(options, "embed_tests", False):
        compared = () if others is None else others.agreed
        proof = Proof(model, references, report, program, rtol, atol, isolated_session, step, compared)
        proof.write(file, file)
    return report


def _tell(line: str) -> None:
    sys.stderr.write(f"dy2st: {line}\n")
