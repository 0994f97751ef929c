"""Targets checked by the workers of a Dask cluster: each by a process of ours beside the worker, as on one machine.

Workers have to see the target's files at the same place, on a shared file system or in a checkout of their own, and to
have the same dy2st and the same libraries. Both are compared, so that no other code is checked than what is here: a
result of other files is none. What a lost worker had to do is done again by another; Dask sees to that.

Source: https://distributed.dask.org/en/stable/resilience.html.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING, Any, Self

from dy2st.errors import ClusterError
from dy2st.report.plain import from_plain, to_plain
from dy2st.sweep.cache import digest, environment
from dy2st.sweep.job import Answer, Death, Job
from dy2st.sweep.pool import Pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from dy2st.sweep.pool import Steps

# How long a scheduler may take to answer, and how long there may be no worker.
PATIENCE = 10.0
_SOURCE = "source of dy2st"
_LIBRARIES = ("torch", "onnx", "onnxscript", "onnxruntime", "numpy")


class Cluster:
    """A connection to a scheduler, used like a :class:`dy2st.sweep.pool.Pool`.

    Raises:
        ClusterError: Dask is not installed; the scheduler does not answer, or has no workers.
    """

    def __init__(self, address: str, work: str) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            raise ClusterError("--scheduler needs Dask", hint="pip install 'dy2st[cluster]'") from error
        self._address, self._work = address, work
        for name in list(logging.root.manager.loggerDict):
            if name.partition(".")[0] in ("distributed", "tornado"):  # what they say is said here, in other words
                logging.getLogger(name).setLevel(logging.CRITICAL)
        self._client = Client.__new__(Client)
        failed = self._connected(address)
        if failed is not None:
            self._client.status = "closed"  # else it would wait for an answer once more when it is deleted
            raise ClusterError(f"there is no scheduler at {address}", hint="its address: tcp://HOST:PORT") from failed
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError as error:
            self._client.close()
            raise ClusterError(f"the scheduler at {address} has no workers") from error

    def _connected(self, address: str) -> Exception | None:
        """Connect; the error if that fails. What listens there and is no scheduler may never answer."""
        told: list[Exception | None] = []

        def connect() -> None:
            try:
                self._client.__init__(address, timeout=PATIENCE, set_as_default=False)  # type: ignore[misc]
            except (OSError, ValueError, TimeoutError) as error:
                told.append(error)
            else:
                told.append(None)

        thread = threading.Thread(target=connect, daemon=True)
        thread.start()
        thread.join(PATIENCE + 2)
        return told[0] if told else TimeoutError("no answer")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close(timeout=PATIENCE)

    def idle(self, jobs: int) -> int:
        """How many parts a job may be divided into, if there are so many, so that no thread of a worker has nothing."""
        threads: int = sum(each["nthreads"] for each in self._client.scheduler_info(n_workers=-1)["workers"].values())
        return max(1, threads // max(1, jobs))

    def run(
        self, jobs: Iterable[tuple[int, Job]], shown: Callable[[Steps], None] = lambda _: None
    ) -> Iterator[tuple[int, Answer | Death]]:
        """The answers as they come, with the numbers of their jobs.

        Raises:
            ClusterError: the scheduler or all workers are gone, or one has other files or another dy2st.
        """
        folder, ours, run = str(Path.cwd()), versions(), uuid.uuid4().hex
        waiting = {
            self._client.submit(
                checked_on_worker, job.to_plain(), self._work, folder, ours, key=f"dy2st-{run}-{number}", pure=False
            ): number
            for number, job in jobs
        }
        try:
            while waiting:
                shown(dict.fromkeys(list(waiting.values())[:1], "on the cluster"))
                for future in self._done(list(waiting)):
                    yield waiting.pop(future), _told(future, folder)
        finally:
            self._client.cancel(list(waiting))

    def _done(self, futures: list[Any]) -> list[Any]:
        """Those that are done, as soon as there is one."""
        from distributed import wait

        without = time.monotonic()
        while True:
            try:
                with self._client.as_current():
                    return list(wait(futures, timeout=1, return_when="FIRST_COMPLETED").done)
            except TimeoutError:
                if self._client.status != "running":
                    raise ClusterError(f"the scheduler at {self._address} is gone") from None
                if self._client.scheduler_info()["workers"]:
                    without = time.monotonic()
                elif time.monotonic() - without > PATIENCE:
                    raise ClusterError(f"the scheduler at {self._address} has no workers any more") from None


def _told(future: Any, folder: str) -> Answer | Death:
    """What a task has given.

    Raises:
        ClusterError: it can't be used.
    """
    from distributed.scheduler import KilledWorker

    try:
        told = future.result()
    except KilledWorker:
        return Death("has died with each Dask worker that tried", "under way")
    if "refused" in told:
        raise ClusterError(told["refused"])
    if "death" in told:
        return from_plain(Death, told["death"])
    for path, known in told["digests"].items():
        if Path(path).is_relative_to(folder) and digest(path) != known:
            raise ClusterError(
                f"the worker {told['worker']} has another {os.path.relpath(path)} than there is here",
                hint="a shared file system, or the same checkout at the same place",
            )
    return Answer.from_plain(told["answer"])


def versions() -> dict[str, str]:
    """What must be the same here and on a worker."""
    found = {"Python": python_version(), _SOURCE: str(environment()["dy2st"])}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


def checked_on_worker(job: dict[str, Any], work: str, folder: str, wanted: dict[str, str]) -> dict[str, Any]:
    """One job, on a worker: the answer with the hashes of its files, or how the process has died, or what is wrong."""
    from distributed import get_worker

    worker = str(get_worker().address)
    for name, found in versions().items():
        if wanted.get(name) != found:
            both = f"{name} {found}, and here is {wanted.get(name)}"
            other = f"another {name} than there is here" if name == _SOURCE else both
            return {"refused": f"the worker {worker} has {other}"}
    if not Path(folder).is_dir():
        return {"refused": f"the worker {worker} has no folder {folder}"}
    try:
        ((_, answer),) = list(_pool(work, folder).run([(0, Job.from_plain(job))], _require_wanted))
    except _UnwantedError:
        _drop_pool()
        return {"refused": "nobody waits for it any more"}
    if isinstance(answer, Death):
        return {"death": to_plain(answer)}
    return {"answer": answer.to_plain(), "digests": {path: digest(path) for path in answer.files}, "worker": worker}


class _UnwantedError(Exception):
    """Whoever has asked for a task has gone, or was interrupted."""


def _require_wanted(_: Steps) -> None:
    """Hear every second what the process beside a worker does: end it where its task was cancelled meanwhile.

    Raises:
        _UnwantedError: the task was cancelled.
    """
    from distributed import get_worker

    worker = get_worker()
    task = worker.state.tasks.get(worker.get_current_task())
    if task is not None and task.state == "cancelled":
        raise _UnwantedError


_THREADS = threading.local()


def _pool(work: str, folder: str) -> Pool:
    """The process of ours beside a worker's thread, which serves all its tasks of one folder."""
    known = getattr(_THREADS, "pool", None)
    if known is None or _THREADS.made_for != (work, folder):
        _drop_pool()
        known = _THREADS.pool = Pool(1, work, folder=folder)
        _THREADS.made_for = work, folder
    found: Pool = known
    return found


def _drop_pool() -> None:
    """End the process beside this thread, if there is one."""
    known = getattr(_THREADS, "pool", None)
    if known is not None:
        known.__exit__(None, None, None)
        _THREADS.pool = None
