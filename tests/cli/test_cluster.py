"""``--scheduler``: a Dask cluster of this machine, with a scheduler and two workers that are processes of their own."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="Dask is not installed: pip install dy2st[cluster]")

ROOT = Path(__file__).resolve().parents[2]
GOOD = """\
import torch

def model(x):
    if x.sum() > 0:
        return x * {factor}
    return -x

example_inputs = [(torch.ones(3),), (-torch.ones(3),)]
"""
BAD = """\
import os
import torch

def refused(x):
    return torch.from_numpy(x.numpy())

def ends(x):
    os._exit(7)

example_inputs = [(torch.ones(3),)]
"""
# The first time it takes for ever; it says in which Dask worker.
SLOW = """\
import os
import time
from pathlib import Path
import torch

if not Path("killed").exists():
    Path("started").write_text(f"{os.getppid()} {os.getpid()}")
    time.sleep(600)

def model(x):
    return x + 1

example_inputs = [(torch.ones(3),)]
"""


def lines_until(process, pattern):
    """What a process says, up to a line that matches."""
    said = []
    for line in process.stderr:
        said.append(line)
        if re.search(pattern, line):
            return line
    raise AssertionError("".join(said))


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """A function that starts ``dask ARGUMENT …``, and waits for what it says; all end with the module."""
    processes = []
    folder = tmp_path_factory.mktemp("dask")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "DASK_TEMPORARY_DIRECTORY": str(folder)}

    def started(*arguments, until):
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *arguments],
            env=environment,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            cwd=folder,
        )
        processes.append(process)
        line = lines_until(process, until)
        return process, line

    yield started
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def dy2st():
    """A function that starts ``dy2st ARGUMENT …`` in a process, which ends with the test."""
    processes = []

    def started(*arguments):
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "dy2st", *arguments]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        return process

    yield started
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def scheduler(start):
    """The address of a scheduler with two workers."""
    _, line = start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", until=r"Scheduler at: +tcp://")
    address = re.search(r"tcp://\S+", line)[0]
    for _ in range(2):
        start("worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard", until="Starting established")
    return address


def without_times(text):
    return re.sub(r'"seconds": [\d.]+', '"seconds": 0', text)


@pytest.mark.slow
def test_the_verdicts_are_those_of_this_machine(scheduler, write, dy2st):
    for number in range(2):
        write(f"models/net{number}.py", GOOD.format(factor=number + 1))
    write("bad.py", BAD)
    arguments = ["check", "models", "bad.py:refused", "bad.py:missing", "bad.py:ends", "--no-cache"]
    found = []
    for more in (["--jobs", "1"], ["--scheduler", scheduler]):
        process = dy2st(*arguments, *more, "--json")
        out, err = process.communicate()
        found.append((process.returncode, without_times(out), err))
    assert found[0] == found[1]
    assert [each["outcome"] for each in json.loads(found[1][1])["targets"]] == ["equal"] * 2 + ["error"] * 3


@pytest.mark.slow
def test_what_a_lost_worker_had_to_do_is_done_again(scheduler, start, write, dy2st):
    write("slow.py", SLOW)
    write("good.py", GOOD.format(factor=2))
    process = dy2st("check", "slow.py", "good.py", "--scheduler", scheduler)
    while not Path("started").exists() or not Path("started").read_text():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    Path("killed").touch()
    os.kill(int(Path("started").read_text().split()[0]), signal.SIGKILL)
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert out.splitlines()[-1] == "2 of 2 targets are equal to eager"
    start("worker", scheduler, "--no-nanny", "--nthreads", "1", "--no-dashboard", until="Starting established")


@pytest.mark.slow
def test_an_interrupt_leaves_the_cluster_as_it_was(scheduler, write, dy2st):
    write("slow.py", SLOW)
    write("good.py", GOOD.format(factor=2))
    process = dy2st("check", "good.py", "slow.py", "good.py:model", "--scheduler", scheduler)
    assert process.stdout.readline().startswith("good.py: equal to eager")
    while not Path("started").exists():
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, err) == (130, "dy2st: interrupted\n")
    assert "interrupted: " in out
    busy = int(Path("started").read_text().split()[1])
    deadline = time.monotonic() + 30
    while is_running(busy) and time.monotonic() < deadline:  # the process beside the worker, which slept on
        time.sleep(0.1)
    assert not is_running(busy)


def is_running(process):
    """Whether a process runs; one that has ended and that nobody has asked for does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_nothing_is_said_but_by_dy2st(scheduler):
    lines = [
        "import asyncio, logging, sys, time",
        "from dy2st.sweep.cluster import Cluster",
        "async def fails(): raise ValueError('in the loop')",
        "with Cluster(sys.argv[1], '.') as cluster:",
        "    cluster._client.loop.add_callback(lambda: 1 / 0)",
        "    cluster._client.loop.add_callback(fails)",
        "    logging.getLogger('distributed.client').error('lost')",
        "    time.sleep(0.5)",
    ]
    command = [sys.executable, "-c", "\n".join(lines), scheduler]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert process.stderr == process.stdout == ""


@pytest.mark.slow
def test_a_target_is_divided_among_workers_without_work(scheduler, write, dy2st):
    sets = ", ".join(f"(torch.full(({n},), {v}.0),)" for n, v in ((2, 1), (3, -1), (4, 2), (5, -7)))
    write("net.py", GOOD.format(factor=2).partition("example_inputs")[0] + f"example_inputs = [{sets}]\n")
    wrong = "rtol = 0.0\natol = 0.0\n"
    write("pyproject.toml", f"[tool.dy2st]\n{wrong}opsets = [18, 19, 21]\n")
    found = []
    for more in (["--jobs", "1"], ["--scheduler", scheduler]):
        process = dy2st("check", "net.py", "--optimization-levels", "--no-cache", *more, "--json")
        out, err = process.communicate()
        found.append((process.returncode, without_times(out), err))
    assert found[0] == found[1]
    (target,) = json.loads(found[1][1])["targets"]
    assert [each["name"] for each in target["inputs"]] == ["0", "1", "2", "3"]
    assert [each["stage"] for each in target["inputs"][3]["stages"]][-3:] == ["opset 18", "opset 19", "opset 21"]


def test_no_scheduler(write, dy2st_command, monkeypatch):
    write("good.py", GOOD.format(factor=2))
    monkeypatch.setattr("dy2st.sweep.cluster.PATIENCE", 0.5)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{unused.getsockname()[1]}"
        done = dy2st_command("check", "good.py", "--scheduler", address)
    assert (done.code, done.out) == (2, "")
    said = f"dy2st: D2S908: there is no scheduler at {address} (instead: its address: tcp://HOST:PORT)\n"
    assert done.err == said


@pytest.mark.slow
def test_what_listens_and_is_no_scheduler(write, dy2st):
    write("good.py", GOOD.format(factor=2))
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        process = dy2st("check", "good.py", "--scheduler", address)
        out, err = process.communicate(timeout=90)
    said = f"dy2st: D2S908: there is no scheduler at {address} (instead: its address: tcp://HOST:PORT)\n"
    assert (process.returncode, out, err) == (2, "", said)


@pytest.mark.slow
def test_no_workers(start, write, dy2st_command, monkeypatch):
    write("good.py", GOOD.format(factor=2))
    monkeypatch.setattr("dy2st.sweep.cluster.PATIENCE", 2)
    _, line = start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", until=r"Scheduler at: +tcp://")
    address = re.search(r"tcp://\S+", line)[0]
    done = dy2st_command("check", "good.py", "--scheduler", address)
    assert (done.code, done.err) == (2, f"dy2st: D2S908: the scheduler at {address} has no workers\n")


def test_without_dask(write, dy2st_command, monkeypatch):
    write("good.py", GOOD.format(factor=2))
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = dy2st_command("check", "good.py", "--scheduler", "tcp://127.0.0.1:1")
    assert (done.code, done.err) == (
        2,
        "dy2st: D2S908: --scheduler needs Dask (instead: pip install 'dy2st[cluster]')\n",
    )


class Given:
    """A task that is done."""

    def __init__(self, told):
        self.told = told

    def result(self):
        return self.told


def test_a_worker_with_other_files(folder, write):
    from dy2st.errors import ClusterError
    from dy2st.sweep.cluster import _told

    path = write("net.py", "here")
    told = {"answer": {}, "digests": {str(path): "of another"}, "worker": "tcp://there:1"}
    with pytest.raises(ClusterError, match=r"the worker tcp://there:1 has another net\.py than there is here"):
        _told(Given(told), str(folder))


def test_a_worker_with_another_torch(folder, monkeypatch):
    from types import SimpleNamespace

    import distributed

    from dy2st.sweep import cluster

    monkeypatch.setattr(distributed, "get_worker", lambda: SimpleNamespace(address="tcp://there:1"))
    ours = cluster.versions()
    told = cluster.checked_on_worker({}, "", str(folder), ours | {"torch": "1.0"})
    assert told == {"refused": f"the worker tcp://there:1 has torch {ours['torch']}, and here is 1.0"}
    told = cluster.checked_on_worker({}, "", str(folder), ours | {"source of dy2st": "x"})
    assert told == {"refused": "the worker tcp://there:1 has another source of dy2st than there is here"}
    told = cluster.checked_on_worker({}, "", str(folder / "none"), ours)
    assert told == {"refused": f"the worker tcp://there:1 has no folder {folder}/none"}
