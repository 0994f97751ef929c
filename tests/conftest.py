"""Settings for all suites. Nothing here imports torch: tests/python runs without it."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import logging
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from hypothesis import settings

# The feature tests and this file import what lies there, whatever pytest's import mode is.
sys.path.insert(0, str(Path(__file__).parent / "features"))

from feature_table import FeatureTable

# Each worker runs small graphs: more threads than one only make them wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("PYTHONHASHSEED", "0")
# Dozens of tests start Python: our code is compiled once for all of them, not in each.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# A run tests what the run before it did; `--hypothesis-profile=nightly` looks for more.
settings.register_profile("same", derandomize=True, deadline=None, database=None)
settings.load_profile("same")


class Done(NamedTuple):
    """What a command did: its exit code and what it printed, the temporary folder written as <tmp>."""

    code: int
    out: str
    err: str


def pytest_configure(config):
    config.pluginmanager.register(FeatureTable(), "feature-table")
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # a shell starts what runs in its background so, and the commands that tests interrupt would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before pytest looks which marks there are
def pytest_collection_modifyitems(items):
    """Of a test with parameters, those that take long are ``slow``, by the names that pytest prints in brackets."""
    for item in items:
        shown = getattr(getattr(item, "callspec", None), "id", None)
        some, but = item.get_closest_marker("slow_for"), item.get_closest_marker("slow_but_for")
        if (some and shown in some.args) or (but and shown not in but.args):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish():
    """What was imported stays: looking through it for garbage, over and over, takes a tenth of the time.

    An export makes many objects, most of which stay until it ends, or for good in a cache of torch's. Looking for
    garbage as often as Python does by itself takes another tenth.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    leave_torch_untraced()


def pytest_runtest_logstart():
    """What is imported by a test may have made torch's loggers anew."""
    leave_torch_untraced()


def leave_torch_untraced():
    """Nobody reads torch's trace of its own steps, which it makes ready for whatever handler its logger has.

    pytest gives handlers to loggers that don't propagate: before it runs the tests, and before each part of one.
    """
    logging.getLogger("torch.__trace").propagate = True


@pytest.fixture
def snapshot(request):
    """Compares a text with a file of the given name, in the folder ``snapshots`` beside the test.

    UPDATE_SNAPSHOTS=1 writes the file instead.
    """

    def compare(name, text):
        file = request.path.parent / "snapshots" / (name if Path(name).suffix else f"{name}.txt")
        if os.environ.get("UPDATE_SNAPSHOTS"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        assert text == file.read_text()

    return compare


@pytest.fixture
def forgotten(tmp_path):
    """The temporary folder; what is imported from it is forgotten afterwards."""
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]


@pytest.fixture
def folder(forgotten, monkeypatch, tmp_path_factory):
    """An empty working folder; what is imported from it is forgotten afterwards. Results are kept elsewhere."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.chdir(forgotten)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return forgotten


@pytest.fixture
def unhurried(monkeypatch):
    """Searches end after their number of runs, not by the clock: what they find doesn't hang on the machine's load."""
    from dy2st.parity import more_sets, search

    for module in (search, more_sets):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: 0.0))


@pytest.fixture
def dy2st_command(folder, capsys, unhurried):
    """A function that runs ``dy2st ARGUMENT …`` in the folder, in this process."""
    import torch  # noqa: F401  a process that has loaded it does not fork for a target: what that writes is read here

    from dy2st.cli.main import main

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Done(code, out.replace(str(folder), "<tmp>"), err.replace(str(folder), "<tmp>"))

    return run


@pytest.fixture
def write(folder):
    """A function that writes a file into the folder, parents included."""

    def make(name, text):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return make


class HerePool:
    """In place of a pool of processes: each job is done here, by what a process would do with it.

    Starting a process that loads torch takes far longer than a job. ``tests/cli/test_jobs.py`` has the processes
    themselves.
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
