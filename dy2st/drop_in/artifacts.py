"""What an export leaves beside the file: a report, a profile, the program, and lines on the console."""

from __future__ import annotations

import contextlib
import cProfile
import datetime as dt
import io
import os
import pstats
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from dy2st import __version__
from dy2st.errors import Dy2stError, SaveError
from dy2st.report.formats import render
from dy2st.report.parity_report import ParityReport
from dy2st.report.run import Failure, Run, TargetResult

_MOST_FUNCTIONS = 60  # of a profile


class Artifacts:
    """The files of one export, all in ``folder`` and with the time of its start in their names.

    ``told`` gets a line for each step and each file.

    Raises:
        SaveError: ``needed`` is said, and there can be no such folder.
    """

    def __init__(
        self, model: Any, folder: str | os.PathLike[str], *, needed: bool, told: Callable[[str], None]
    ) -> None:
        self._model = getattr(model, "__qualname__", type(model).__qualname__)
        self._folder, self._told = Path(folder), told
        self._begun = dt.datetime.now(dt.UTC)
        if needed:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise SaveError(f"artifacts_dir can't be {self._folder}: {error.strerror}") from error

    def _path(self, ending: str) -> Path:
        return self._folder / f"onnx_export_{self._begun:%Y-%m-%d_%H-%M-%S-%f}{ending}"

    def report(self, found: ParityReport | Dy2stError) -> None:
        """Write a check, or the error there is in place of one, as Markdown."""
        seconds = (dt.datetime.now(dt.UTC) - self._begun).total_seconds()
        if isinstance(found, ParityReport):
            result = TargetResult(self._model, 0 if found.ok else 1, found, seconds=seconds)
        else:
            result = TargetResult(self._model, 2, failures=(Failure.of(found),), seconds=seconds)
        run = Run("export", __version__, (result,), folder=str(Path.cwd()), started=f"{self._begun:%Y-%m-%dT%H:%M:%S}")
        path = self._path("_success.md" if result.passed else "_failure.md")
        path.write_text(render(run, "markdown"), encoding="utf-8")
        self._told(f"the report is {path}")

    def program(self, program: torch.export.ExportedProgram) -> None:
        """Write the program that was translated, as ``torch.export.save`` does."""
        path = self._path(".pt2")
        torch.export.save(program, path)
        self._told(f"the program is {path}")

    @contextlib.contextmanager
    def profiled(self, *, wanted: bool) -> Iterator[None]:
        """Write which functions take the time, if it is ``wanted``."""
        if not wanted:
            yield
            return
        profiler = cProfile.Profile()
        with profiler:
            yield
        text = io.StringIO()
        pstats.Stats(profiler, stream=text).sort_stats("cumulative").print_stats(_MOST_FUNCTIONS)
        path = self._path("_profile.txt")
        path.write_text(text.getvalue(), encoding="utf-8")
        self._told(f"the profile is {path}")
