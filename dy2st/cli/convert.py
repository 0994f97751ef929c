"""``dy2st convert``: export, check, and only then put the file where it was asked for."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dy2st.cli.console import graph_facts, print_report, progress
from dy2st.cli.definitions import definition_of, failed
from dy2st.cli.failures import EXIT_CODES, RefusalsError
from dy2st.cli.file_options import inputs_as
from dy2st.cli.formats import Formats
from dy2st.cli.given_file import program_beside
from dy2st.cli.inputs import example_inputs
from dy2st.cli.output import StagedOutput
from dy2st.cli.planning import as_options, options_for
from dy2st.cli.searching import searched
from dy2st.cli.settings import load_settings
from dy2st.cli.shares import OPTION, Share
from dy2st.cli.target import load_target
from dy2st.embedded.recorded import path_of_tests
from dy2st.errors import UsageError
from dy2st.errors.places import from_here
from dy2st.parity.checking import compare_stages, eager_references, export_for
from dy2st.parity.embedding import Proof
from dy2st.parity.file_facts import dropped_in, graph_counts, specialized_in
from dy2st.parity.inputs import input_sets
from dy2st.parity.isolated import IsolatedSession
from dy2st.parity.listings import source_listings
from dy2st.parity.number_calls import numbers_as_inputs
from dy2st.parity.random_calls import with_draws
from dy2st.parity.refused import refusals_for
from dy2st.parity.stages import Reference
from dy2st.parity.stateful_calls import continued
from dy2st.parity.tolerances import require_bounds
from dy2st.parity.variants import variants
from dy2st.report.parity_report import ParityReport, fixed_lines
from dy2st.report.run import TargetResult

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from torch.export import ExportedProgram

    from dy2st.cli.target import Target


def convert(options: argparse.Namespace) -> int:
    """Write the ONNX file of one target. A file that differs from eager is left only with ``--keep``."""
    own = as_options(options_for(options.target, options, load_settings(Path.cwd())))
    own.no_check = options.no_check
    own.onnx = None
    own.embed_tests = options.embed_tests
    if options.embed_tests and options.no_check:
        raise UsageError("--embed-tests writes what the check has found, and --no-check makes none")
    formats = Formats(options)
    if options.output is not None:
        StagedOutput(options.output).probe()  # a wrong folder is said before a large model is imported
    begun = time.perf_counter()
    try:
        result = _converted(options, own, formats)
    except Exception as error:
        if not formats:
            raise
        result = failed(error, options.target, options)
    formats.write("convert", [replace(result, seconds=time.perf_counter() - begun)])
    return result.exit_code


def _converted(options: argparse.Namespace, own: argparse.Namespace, formats: Formats) -> TargetResult:
    with progress(options.target, enabled=not formats.takes_stdout) as step:
        step("importing")
        target = load_target(options.target)
        with StagedOutput(target.default_output if options.output is None else options.output) as output:
            report = export_and_check(target, own, output.path, step)
            code = 0 if options.no_check else EXIT_CODES[report.outcome]
            listings = source_listings(target.model, report.paths, output.path) if formats.has("html") else ()
            written = output.commit() if code == 0 or options.keep else []
    size = sum(path.stat().st_size for path in written)
    _print(options, report, written, size, code, quiet=formats.takes_stdout)
    return TargetResult(
        options.target,
        code,
        report,
        definition=definition_of(target),
        listings=listings,
        written={
            "onnx_file": str(written[0]) if written else None,
            "files": [str(path) for path in written],
            "bytes": size,
        },
    )


def export_and_check(
    target: Target, options: argparse.Namespace, file: Path, step: Callable[[str], None]
) -> ParityReport:
    """Export one target to ``file`` and compare it with eager; with ``--no-check`` the report has no inputs.

    With ``--onnx`` the file is there already, and is compared as it is.
    ``options`` are the target's own: those of the command line and of the settings in one.
    """
    given = example_inputs(target, options)
    own = target.model
    model, sets = numbers_as_inputs(own, given.sets, inputs_as(options))
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
    line = ""
    if program is not None:
        references, line = searched(target, options, given, references, program, step)
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
            dynamic_shapes=given.dynamic_shapes,
            make=IsolatedSession,
        ),
        make=IsolatedSession,
        paths_problem=paths_problem,
        progress=step,
    )
    report = replace(report, searched=line)
    if getattr(options, "embed_tests", False):
        proof = Proof(model, references, report, program, rtol, atol, IsolatedSession, step)
        proof.write(file, file)
    return report


def _print(
    options: argparse.Namespace, report: ParityReport, written: list[Path], size: int, code: int, *, quiet: bool
) -> None:
    if options.json:
        return
    if not quiet:
        if not options.no_check:
            print_report(report)
        else:
            sys.stdout.writelines(f"{line}\n" for line in fixed_lines(report))
    if written and not quiet:
        tests = [path for path in written if path == path_of_tests(written[0])]
        size -= sum(path.stat().st_size for path in tests)
        sys.stdout.write(f"wrote {from_here(str(written[0]))}, {_readable(size)}{graph_facts(report)}\n")
        sys.stdout.writelines(f"wrote {from_here(str(path))}, {_readable(path.stat().st_size)}\n" for path in tests)
    sys.stdout.flush()
    if code:
        kept = "the file is kept" if written else "no file was written"
        said = not quiet and report.outcome == "differs"  # below the table
        what = "it differs from eager" if said else from_here(report.problems()[0])
        sys.stderr.write(f"dy2st: {options.target}: {what}; {kept}\n")


def _readable(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:  # noqa: PLR2004 - the next unit
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
