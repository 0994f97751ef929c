"""What dy2st made of one case, and a process of its own that finds it out."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import multiprocessing.connection
import os
import random
import resource
import signal
import sys
import time
import traceback
import warnings
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tests.real.case import load_cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from dy2st import ParityReport

# In the order of the table; what comes first is worst.
KINDS = ("wrong", "uncoded", "crashed", "timeout", "refused", "unusable", "no eager", "missing", "equal")
_LAST_LINES = 40
_GRACE = 5  # seconds
# A machine that does other things too gives a case its processor time later; one that waits for ever is ended.
_PATIENCE = 8


@dataclass
class Outcome:
    """How one case ended. ``text`` is all there is to say: the report's problems, the error or the traceback.

    ``seconds`` are those of the processor.
    """

    name: str
    kind: str
    code: str = ""
    location: str = ""
    text: str = ""
    seconds: float = 0.0

    @property
    def line(self) -> str:
        """The outcome in one line."""
        last = self.text.strip().rpartition("\n")[2] if self.kind == "uncoded" else ""
        beside = self.left_out if self.kind == "equal" else ""
        return " ".join(part for part in (self.kind, last or self.code, self.location, beside) if part)

    @property
    def left_out(self) -> str:
        """The inputs that are no evidence, as a remark; empty if there are none."""
        count = self.text.count(": no evidence: ")
        return f"({count} input{'s' * (count > 1)} left out: no evidence)" if count else ""


def short(path: str) -> str:
    """A path from the package on, so that it says the same on every machine."""
    for folder in ("site-packages", "dist-packages", "tests"):
        _, found, rest = path.rpartition(f"/{folder}/")
        if found:
            return rest
    return path


def eager_problem(name: str) -> Outcome | None:
    """Run a case eagerly on all of its inputs; what is wrong with that, if anything."""
    import torch

    _seed()
    try:
        given = load_cases()[name].make()
        for inputs in given.inputs:
            copied = [each.clone() if isinstance(each, torch.Tensor) else each for each in inputs]
            with torch.no_grad(), contextlib.suppress(Exception if given.may_raise else ()):
                given.model(*copied)
    except ImportError:
        return Outcome(name, "missing", text=traceback.format_exc())
    except Exception:  # noqa: BLE001 - the code is anybody's
        return Outcome(name, "no eager", text=traceback.format_exc())
    return None


def eager_only(name: str) -> Outcome:
    """Run a case eagerly, and nothing else."""
    return eager_problem(name) or Outcome(name, "equal")


def checked(name: str, search: float | None = None) -> Outcome:
    """Check a case as a user would; with ``search``, on inputs that so many seconds of search find as well."""
    import dy2st

    problem = eager_problem(name)
    if problem is not None:
        return problem
    _seed()
    given = load_cases()[name].make()
    try:
        report = dy2st.check(given.model, given.inputs, dynamic_shapes=given.dynamic_shapes, search=search)
    except dy2st.errors.Dy2stError as error:
        place = error.location
        where = "" if place is None else f"{short(place.filename)}:{place.line}"
        return Outcome(name, "refused", error.code, where, str(error))
    except Exception as error:  # noqa: BLE001 - the finding
        lines = traceback.format_exc().splitlines()[-_LAST_LINES:]
        return Outcome(name, "uncoded", type(error).__name__, text="\n".join(lines))
    return Outcome(name, judged(report), text="\n".join(report.problems()))


def judged(report: ParityReport) -> str:
    """What a report says of a case: sets that rounding alone takes to other paths are evidence of nothing.

    A case is equal only by the other sets, of which there has to be one.
    """
    from dy2st.report.model import NO_EVIDENCE

    others = {each.outcome for each in report.inputs if not each.problem.startswith(NO_EVIDENCE)}
    if report.outcome == "unusable" and others == {"equal"}:
        return "equal"
    return "wrong" if report.outcome == "differs" else report.outcome


def run_all(
    names: Iterable[str],
    *,
    jobs: int,
    limit: float,
    work: Callable[[str], Outcome],
    preload: Sequence[str] = ("torch", "dy2st"),
    patience: float = _PATIENCE,
) -> Iterator[Outcome]:
    """Each case in a process of its own, at most ``jobs`` at once; in the order in which they end.

    ``limit`` is in seconds of processor time, so that it is the same beside other work; ``patience`` times that may
    pass by the clock. The processes are forked from a server that has imported what all of them need, and computed
    nothing.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    waiting, running = list(names), []
    while waiting or running:
        while waiting and len(running) < jobs:
            running.append(_Run(context, waiting.pop(0), work, limit))
        multiprocessing.connection.wait(
            [run.process.sentinel for run in running] + [r.ours for r in running], timeout=1
        )
        for run in list(running):
            outcome = run.outcome(limit, patience * limit)
            if outcome is not None:
                running.remove(run)
                yield outcome


class _Run:
    """One case that is being run."""

    def __init__(self, context: Any, name: str, work: Callable[[str], Outcome], limit: float) -> None:
        self.name = name
        self.begun = time.monotonic()
        self.ours, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=_tell, args=(theirs, name, work, limit), daemon=True)
        self.process.start()
        theirs.close()

    def outcome(self, limit: float, longest: float) -> Outcome | None:
        """What came out, or None while it runs."""
        seconds = time.monotonic() - self.begun
        found = None
        with contextlib.suppress(EOFError):
            if self.ours.poll():
                found = Outcome(**self.ours.recv())
        if found is None and self.process.is_alive() and seconds < longest:
            return None
        if found is None and self.process.is_alive():
            found = Outcome(self.name, "timeout", f"{limit:.0f}s")
        self.process.join(_GRACE if found is None or found.kind != "timeout" else 0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        if found is None and self.process.exitcode == -signal.SIGXCPU:
            found = Outcome(self.name, "timeout", f"{limit:.0f}s", seconds=limit)
        if found is None:
            found = Outcome(self.name, "crashed", f"exit {self.process.exitcode}")
        return found


def _tell(pipe: Any, name: str, work: Callable[[str], Outcome], limit: float) -> None:
    """In the process of a case: what it prints is nobody's business."""
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), math.ceil(limit) + _GRACE))
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    sys.setrecursionlimit(3000)
    warnings.simplefilter("ignore")
    found = work(name)
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    found.seconds = round(sum(each.ru_utime + each.ru_stime for each in spent), 1)
    pipe.send(asdict(found))
    pipe.close()


def _seed() -> None:
    import numpy as np
    import torch

    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - what packages draw from
    torch.manual_seed(0)
    torch.set_num_threads(1)
