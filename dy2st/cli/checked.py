"""One target, converted and compared with eager: what ``dy2st check`` does for each, here or in a worker process."""

from __future__ import annotations

import random
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from dy2st.cli.console import progress
from dy2st.cli.convert import export_and_check
from dy2st.cli.definitions import definition_of, failed
from dy2st.cli.failures import DIFFERS, EXIT_CODES, OK
from dy2st.cli.given_file import given_file
from dy2st.cli.planning import as_options
from dy2st.cli.target import load_target
from dy2st.parity.graph_boxes import graph_drawing
from dy2st.parity.listings import source_listings
from dy2st.parity.stages import SEED
from dy2st.parity.time_limit import limited
from dy2st.report.run import TargetResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from dy2st.sweep.job import Job


def checked(job: Job, shown: Callable[[str], None]) -> TargetResult:
    """The result of a job; ``shown`` is told each step.

    Raises:
        Dy2stError: the target can't be checked; and whatever a defect of ours raises.
    """
    begun = time.perf_counter()
    options = as_options(job.options)
    with (
        tempfile.TemporaryDirectory(prefix="dy2st-") as folder,
        limited(options.timeout, shown) as step,
    ):
        step("importing")
        _seed()
        target = load_target(job.target, job.folder)
        given = given_file(options)
        file = Path(folder) / "model.onnx" if given is None else given
        report = export_and_check(target, options, file, step)
        listings = source_listings(target.model, report.paths, file) if job.listings else ()
        drawing = graph_drawing(file) if job.listings else None
    uncovered = not (options.allow_uncovered or report.covered)
    return TargetResult(
        job.target,
        max(EXIT_CODES[report.outcome], DIFFERS if uncovered else OK),
        report if given is not None else replace(report, onnx_file=None),
        definition=definition_of(target),
        seconds=time.perf_counter() - begun,
        uncovered_fails=not options.allow_uncovered,
        listings=listings,
        drawing=drawing,
    )


def _seed() -> None:
    """Weights and inputs that are drawn on import are the same every time."""
    torch.manual_seed(SEED)
    random.seed(SEED)
    np.random.seed(SEED)  # noqa: NPY002 - the generator that everyone shares


def checked_or_failed(job: Job, shown: Callable[[str], None]) -> TargetResult:
    """The same, where what stops the target is its result, and is said on stderr."""
    begun = time.perf_counter()
    try:
        return checked(job, shown)
    except Exception as error:  # noqa: BLE001 - one target that fails does not stop the others
        options = as_options(job.options)
        return replace(failed(error, job.target, options, about=job.about), seconds=time.perf_counter() - begun)


def worker_result(job: Job, shown: Callable[[str], None]) -> TargetResult:
    """The same in a worker process, whose output is for stderr."""
    with progress(job.target, enabled=False):
        return checked_or_failed(job, shown)
