"""``dy2st check --reproducer FILE``: a mismatch as a small script of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dy2st import __version__
from dy2st.cli.output import StagedOutput
from dy2st.cli.planning import as_options
from dy2st.errors import Dy2stError, UsageError
from dy2st.errors.places import from_here

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dy2st.report.run import TargetResult
    from dy2st.sweep.job import Job

# How long a script is made smaller if there is no --timeout.
_SECONDS = 60.0
# A line that every script has, and by which an older one is known.
_MARK = "Exits with 1 while it does, else with 0."


class ScriptOutput(StagedOutput):
    """The same for a script, which takes the place of an older one of ours and of no other source."""

    example = "reproducer.py"

    def _not_overwritten(self) -> str:
        ours = _MARK in self.target.read_text(encoding="utf-8", errors="replace")
        return "" if ours else "no reproducer"


class Reproducer:
    """Writes the script once the result is there; made before, so that what can't be is said at once.

    Raises:
        UsageError: there are several targets, the file is no Python file, or lines are named that a script has not.
        SaveError: the file can't be written.
    """

    def __init__(self, file: str, jobs: Sequence[Job]) -> None:
        if len(jobs) > 1:
            raise UsageError(f"--reproducer is for one target, and there are {len(jobs)}", hint="name one")
        if not file.endswith(".py"):
            raise UsageError(f"--reproducer {file} is no Python file", hint=f"{file}.py")
        if jobs[0].options.get("allow_specialize"):
            raise UsageError("--reproducer and --allow-specialize exclude each other: a script has other lines")
        if jobs[0].options.get("onnx") is not None:
            raise UsageError("--reproducer and --onnx exclude each other: a script exports its model itself")
        self._output = ScriptOutput(file)
        self._job = jobs[0]
        self._output.probe()

    def write(self, result: TargetResult, step: Callable[[str], None]) -> str:
        """Write the script if a value differs; the line that says what was done."""
        report = result.report
        if report is None or report.outcome != "differs":
            why = "there is no mismatch" if report is not None and report.ok else "nothing was compared"
            return f"{why}: {self._output.target} is not written"
        try:
            return self._written(report.problems(), step)
        except Dy2stError as error:
            hint = f" (instead: {error.hint})" if error.hint else ""
            return f"{self._output.target} is not written: {error.what}{hint}"

    def _written(self, problems: Sequence[str], step: Callable[[str], None]) -> str:
        import torch

        from dy2st.cli.inputs import example_inputs
        from dy2st.cli.target import load_target
        from dy2st.reproducer import reproduce

        options = as_options(self._job.options)
        torch.manual_seed(0)  # weights that a factory draws are the same every time
        target = load_target(self._job.target, self._job.folder)
        given = example_inputs(target, options)
        names = {
            "rtol": options.rtol,
            "atol": options.atol,
            "opset_version": options.opset,
            "state": options.state,
            "optional_outputs": options.optional_outputs,
            "inputs_as": dict(options.inputs_as) or None,
            "random_inputs": options.random_inputs or None,
        }
        passed = {name: value for name, value in names.items() if value is not None}
        with self._output as output:
            done = reproduce(
                output.path,
                target.module,
                target.name,
                target.model,
                given.sets,
                by=f"dy2st {__version__}",
                about=[line.replace(f"{Path.cwd()}/", "") for line in problems[:3]],
                dynamic_shapes=given.dynamic_shapes,
                options={**passed, **({"drop_guards": True} if options.drop_guards else {})},
                seconds=options.timeout or _SECONDS,
                progress=step,
            )
            written = output.commit()
        beside = f", and {from_here(str(written[1]))}" if done.saved else ""
        return (
            f"wrote {from_here(str(written[0]))}{beside}: {done.lines} lines, "
            f"of code that had {done.lines_at_first}; {done.trials} trials"
        )


def say(line: str, *, quiet: bool) -> None:
    """On stdout where that is for people, else on stderr."""
    (sys.stderr if quiet else sys.stdout).write(f"dy2st: {line}\n" if quiet else f"{line}\n")
