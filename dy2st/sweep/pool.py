"""Processes that check targets: a few, each for many targets, replaced where they die or take too long.

They are started anew, never forked, in process groups of their own: an interrupt from the terminal reaches this process
alone, which ends them with all that they have started.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dy2st.sweep.job import GRACE, STARTING, Answer, Death, how_ended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from dy2st.sweep.job import Job

# What a process of ours begins with: this one's path, so that it finds the same modules.
_BEGIN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from dy2st.sweep.worker import main; main(sys.argv[2])"
)
# A process is replaced after so many targets, in case they leave something behind.
_MOST_JOBS = 100

# Work under way: the number of the job, and what it does.
Steps = dict[int, str]


def cores() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Pool:
    """As many processes as asked for, each with its share of the processors.

    ``work`` names, as ``module:function``, what takes a job and a function that is told each step, and gives the
    result. The processes work in ``folder``, by default in this one's working folder.
    """

    def __init__(self, count: int, work: str, *, folder: str | None = None) -> None:
        self._count, self._work, self._working_folder = count, work, folder
        self._workers: list[_Worker] = []
        self._messages: queue.Queue[tuple[_Worker, Any]] = queue.Queue()
        self._folder = tempfile.TemporaryDirectory(prefix="dy2st-", ignore_cleanup_errors=True)
        # what they put into temporary folders goes with ours, even where they are ended at once
        self._environment = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), self._folder.name)}
        if folder is not None:
            self._environment["PWD"] = folder
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
            self._environment.setdefault(name, str(max(1, cores() // count)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.end()
        self._workers.clear()
        self._folder.cleanup()

    def idle(self, jobs: int) -> int:  # noqa: ARG002 - as of a cluster
        """How many parts a job may be divided into, if there are so many: one, since each would load the libraries."""
        return 1

    def run(
        self, jobs: Iterable[tuple[int, Job]], shown: Callable[[Steps], None] = lambda _: None
    ) -> Iterator[tuple[int, Answer | Death]]:
        """The answers as they come, with the numbers of their jobs; ``shown`` is told what is under way."""
        waiting = deque(jobs)
        while waiting or self._busy():
            self._hand_out(waiting)
            shown({worker.number: worker.step for worker in self._busy()})
            message = self._next()
            if message is None:
                continue
            worker, told = message
            if worker not in self._workers:  # it was ended meanwhile
                continue
            if told is None and worker.job is not None and (worker.step != STARTING or not worker.done):
                yield worker.number, worker.death()
                self._drop(worker)
            elif told is None:  # it has died between two jobs
                if worker.job is not None:
                    waiting.appendleft((worker.number, worker.job))
                self._drop(worker)
            elif "step" in told:
                worker.told(told["step"])
            else:
                number, job, answer = worker.number, worker.job, worker.answered(told["answer"])
                if job is not None and worker.done > 1 and _may_be_anothers(answer):
                    self._drop(worker)
                    waiting.appendleft((number, job))
                    continue
                yield number, answer
                if worker.done >= _MOST_JOBS:
                    self._drop(worker)

    def _busy(self) -> list[_Worker]:
        return [worker for worker in self._workers if worker.job is not None]

    def _hand_out(self, waiting: deque[tuple[int, Job]]) -> None:
        while waiting and len(self._busy()) < self._count:
            idle = next((worker for worker in self._workers if worker.job is None), None)
            if idle is None:
                idle = _Worker(
                    self._work, self._environment, self._messages, Path(self._folder.name), self._working_folder
                )
                self._workers.append(idle)
            idle.begin(*waiting.popleft())

    def _next(self) -> tuple[_Worker, Any] | None:
        """The next message; where a process is over its time, it is ended instead."""
        deadlines = [worker.deadline for worker in self._busy() if worker.deadline is not None]
        # never without an end: only so an interrupt is seen on all systems
        left = min([1.0, *(deadline - time.monotonic() for deadline in deadlines)])
        with contextlib.suppress(queue.Empty):
            return self._messages.get(timeout=max(0.01, left))
        for worker in self._busy():
            if worker.deadline is not None and worker.deadline <= time.monotonic():
                worker.stop()
        return None

    def _drop(self, worker: _Worker) -> None:
        worker.end()
        self._workers.remove(worker)


def _may_be_anothers(answer: Answer) -> bool:
    """Whether a target may have failed for what an earlier one in the same process has left behind."""
    return any(
        each.code is None or (each.code == "D2S902" and ("can't be imported" in each.what or " raises " in each.what))
        for each in answer.result.failures
    )


class _Worker:
    """One process, and the job that it has, if any. What comes from it goes to ``messages``; None when it has ended."""

    def __init__(
        self,
        work: str,
        environment: dict[str, str],
        messages: queue.Queue[tuple[_Worker, Any]],
        folder: Path,
        working_folder: str | None,
    ) -> None:
        self.job: Job | None = None
        self.number = -1
        self.step = ""
        self.done = 0
        self.deadline: float | None = None
        self._begun = 0.0
        self._timed_out = False
        handle, self._said = tempfile.mkstemp(prefix="said-", dir=folder)
        self._heard = 0
        options = [f"-W{each}" for each in sys.warnoptions]
        self._process = subprocess.Popen(  # noqa: S603 - this Python, and our own module
            [sys.executable, *options, "-c", _BEGIN, json.dumps(sys.path), work],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=handle,
            env=environment,
            cwd=working_folder,
            process_group=0 if os.name == "posix" else None,
        )
        os.close(handle)
        threading.Thread(target=self._read, args=(messages,), daemon=True).start()

    def _read(self, messages: queue.Queue[tuple[_Worker, Any]]) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(ValueError), self._process.stdout as lines:  # half a message, where it was ended
            for line in lines:
                messages.put((self, json.loads(line)))
        messages.put((self, None))

    def begin(self, number: int, job: Job) -> None:
        """Give it a job."""
        self.number, self.job, self.step, self.deadline = number, job, STARTING, None
        self._begun = time.monotonic()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # its end is told by its other stream
            self._process.stdin.write(json.dumps(job.to_plain()).encode() + b"\n")
            self._process.stdin.flush()

    def told(self, step: str) -> None:
        """It has begun a step. Its time begins with the first: before that it imports what all targets need."""
        assert self.job is not None
        limit = self.job.options.get("timeout")
        if self.step == STARTING:
            self._begun = time.monotonic()
            self.deadline = None if limit is None else self._begun + limit + GRACE
        self.step = step

    def answered(self, plain: Any) -> Answer:
        """It has an answer, and is free."""
        self.job, self.deadline = None, None
        self.done += 1
        return Answer.from_plain({**plain, "said": self._new_text()})

    def stop(self) -> None:
        """End it for the time that it takes."""
        self._timed_out, self.deadline = True, None
        self._kill()

    def death(self) -> Death:
        """How it has ended."""
        code = self._process.wait()
        return Death(how_ended(code), self.step, self._new_text(), self._timed_out, time.monotonic() - self._begun)

    def end(self) -> None:
        """End it, and all that it has started."""
        self._kill()
        self._process.wait()
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # something was still to be written
            self._process.stdin.close()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    def _new_text(self) -> str:
        """What was printed since it was asked last."""
        with Path(self._said).open("rb") as file:
            file.seek(self._heard)
            found = file.read()
        self._heard += len(found)
        return found.decode(errors="replace")
