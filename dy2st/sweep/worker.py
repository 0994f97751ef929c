"""A process that checks one target after the other: jobs come as lines of JSON on stdin, answers go to what was stdout.

What anything prints goes to stderr. It ends when there are no more jobs, in the middle of one, too: then nobody waits
for the answer.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import itertools
import json
import os
import queue
import sys
import threading
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any

from dy2st.sweep.isolation import isolated
from dy2st.sweep.job import Answer, Job
from dy2st.sweep.watching import Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from dy2st.report.run import TargetResult


def main(work: str) -> None:
    """Answer jobs until there are no more. ``work`` is ``module:function``, as for :class:`dy2st.sweep.pool.Pool`."""
    requests, answers = os.fdopen(os.dup(0), "r", encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a device
        os.dup2(nothing.fileno(), 0)
    sys.argv = ["dy2st"]  # a module that parses arguments when it is imported has none
    faulthandler.enable()  # the line of a crash
    jobs: queue.SimpleQueue[Job] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests, jobs), daemon=True).start()
    module, _, name = work.partition(":")
    function: Callable[[Job, Callable[[str], None]], TargetResult] = getattr(import_module(module), name)
    _keep_what_is_there()

    def send(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    for number in itertools.count():
        job = jobs.get()
        answer = answered(job, function, lambda step: send({"step": step}))
        sys.stderr.flush()
        send({"answer": answer.to_plain()})
        if number == 0:  # it has made libraries load the rest of themselves
            _keep_what_is_there()


def answered(
    job: Job, function: Callable[[Job, Callable[[str], None]], TargetResult], shown: Callable[[str], None]
) -> Answer:
    """The answer to one job, after which this process is as it was before."""
    with isolated(), Watch() as watch:
        shown("importing")
        result = function(job, shown)
        files, unsure = watch.found()
    return Answer(result, files=files, unsure=unsure)


def _keep_what_is_there() -> None:
    """The libraries stay: what is looked for after each target is what that has left."""
    gc.collect()
    gc.freeze()


def _read(requests: IO[str], jobs: queue.SimpleQueue[Job]) -> None:
    for line in requests:
        jobs.put(Job.from_plain(json.loads(line)))
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    os._exit(0)
