"""``--baseline`` and ``--update-baseline``: the file that a run is compared with."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dy2st.cli.output import ReportOutput
from dy2st.errors import BaselineError
from dy2st.sweep.baseline import Baseline

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from dy2st.cli.settings import Settings
    from dy2st.report.run import TargetResult

DEFAULT = "dy2st-baseline.json"


class Comparison:
    """What a command compares its results with: a baseline, or nothing.

    Raises:
        BaselineError: the file is not there, can't be read, or is none.
        SaveError: it is to be written, and can't be.
    """

    def __init__(self, options: Namespace, settings: Settings) -> None:
        self._updates: bool = options.update_baseline
        self._whole = not options.targets
        file = settings.baseline if options.baseline is None else Path(options.baseline)
        if file is None and self._updates:
            file = (settings.folder or Path.cwd()) / DEFAULT
        self._file = file
        self._baseline = None if file is None else self._read(file)
        if file is not None and self._updates:
            ReportOutput(file).probe()

    def _read(self, file: Path) -> Baseline:
        folder = file.resolve().parent
        if self._updates and not file.exists():
            return Baseline(folder, {})
        try:
            return Baseline.from_plain(folder, json.loads(file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise BaselineError(f"{file}: there is no such baseline", hint="--update-baseline writes it") from None
        except (OSError, ValueError, RecursionError) as error:
            if self._updates and isinstance(error, ValueError):
                return Baseline(folder, {})
            raise BaselineError(f"{file} can't be read: {error}", hint="--update-baseline writes it anew") from error

    @property
    def is_made(self) -> bool:
        """Whether there is a baseline."""
        return self._baseline is not None

    def judged(self, result: TargetResult) -> TargetResult:
        """A result beside the baseline, if there is one that is not to be written."""
        return result if self._baseline is None or self._updates else self._baseline.judged(result)

    def finished(self, results: Sequence[TargetResult]) -> list[TargetResult]:
        """All results; the baseline is written, or what is missing is said.

        Raises:
            SaveError: the file can't be written.
        """
        if self._baseline is None or self._file is None:
            return list(results)
        if not self._updates:
            missing = self._baseline.missing(results) if self._whole else []
            for each in missing:
                failure = each.failures[0]
                sys.stderr.write(f"dy2st: {each.target}: {failure.code}: {failure.what} (instead: {failure.hint})\n")
            return [*results, *missing]
        updated = self._baseline.updated(results, whole=self._whole)
        with ReportOutput(self._file) as output:
            output.path.write_text(json.dumps(updated.to_plain(), indent=2) + "\n", encoding="utf-8", newline="\n")
            output.commit()
        return [updated.judged(each) for each in results]
