"""Targets that are checked in this process."""

from __future__ import annotations

import contextlib
import io
import json
from importlib import import_module

import pytest


class HerePool:
    """In place of a pool of processes: each job is done here, by what a process would do with it.

    Starting a process that loads torch takes far longer than a job. ``test_jobs.py`` has the processes themselves.
    """

    def __init__(self, count, work):
        module, _, name = work.partition(":")
        self.function = getattr(import_module(module), name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def idle(self, jobs):
        return 1

    def run(self, jobs, shown=lambda _: None):
        from dy2st.sweep.job import Answer, Job
        from dy2st.sweep.worker import answered

        for number, job in jobs:
            said = io.StringIO()
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                answer = answered(
                    Job.from_plain(json.loads(json.dumps(job.to_plain()))),
                    self.function,
                    lambda step, number=number: shown({number: step}),
                )
            yield number, Answer.from_plain({**json.loads(json.dumps(answer.to_plain())), "said": said.getvalue()})


@pytest.fixture
def in_this_process(monkeypatch):
    """Several targets are checked one after the other in this process."""
    monkeypatch.setattr("dy2st.cli.sweeping.Pool", HerePool)
