"""What ``dy2st check`` costs with many small targets: against running each eagerly and on onnxruntime by itself.

    python tests/benchmarks/sweep.py [--targets 200 --jobs 2]

The bare runs are what one does without dy2st: for each target a process that imports torch and onnxruntime, runs the
model on its inputs, loads the target's ONNX file (which is written here, by dy2st) and runs that. A few are measured,
and stand for all. The sweep should take at most three times that, on as many processors; it should take less, since its
processes serve many targets. The same runs without the starts of processes are printed, too, and a second sweep, whose
results are known.
"""

# ruff: noqa: T201 - what a script prints is its result
from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MEASURED = 10

TARGET = """\
import torch

def model(x):
    if x.sum() > {number}:
        return x * {number}
    return x - {number}

example_inputs = [(torch.full((3,), 1000.0),), (torch.full((3,), -1.0),)]
"""
BARE = """\
import sys
import time
import numpy
import onnxruntime
import torch

torch.set_num_threads(1)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
for name in sys.argv[1:]:
    begun = time.perf_counter()
    scope = {}
    exec(open(name + ".py").read(), scope)
    session = onnxruntime.InferenceSession(name + ".onnx", options, providers=["CPUExecutionProvider"])
    for (x,) in scope["example_inputs"]:
        expected = scope["model"](x)
        (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        assert torch.equal(expected, torch.from_numpy(found))
    print(time.perf_counter() - begun)
"""


def timed(*command: str, folder: Path, cache: str = "cache") -> tuple[float, str]:
    """How long a command takes, and what it prints."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / cache), "OMP_NUM_THREADS": "1"}
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return time.perf_counter() - begun, done.stdout


def main() -> None:
    """Print times and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("targets", 200), ("jobs", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    count, jobs = options.targets, options.jobs
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "models").mkdir()
        for number in range(count):
            (folder / "models" / f"m{number:03}.py").write_text(TARGET.format(number=number + 1))
        names = [f"models/m{number:03}" for number in range(min(MEASURED, count))]
        (folder / "bare.py").write_text(BARE)
        for each in names:
            timed(sys.executable, "-m", "dy2st", "convert", f"{each}.py", "-o", f"{each}.onnx", folder=folder)
        alone = statistics.median(timed(sys.executable, "bare.py", each, folder=folder)[0] for each in names)
        together = [float(line) for line in timed(sys.executable, "bare.py", *names, folder=folder)[1].split()]
        inside = statistics.median(together)

        command = [sys.executable, "-m", "dy2st", "check", "models", "--jobs", str(jobs)]
        swept, said = timed(*command, folder=folder)
        again, _ = timed(*command, folder=folder)
        assert said.splitlines()[-1] == f"{count} of {count} targets are equal to eager", said[-200:]

    bare = count * alone / jobs
    print(f"{count} targets, {jobs} processes")
    print(f"bare, a process each   {alone:8.3f} s a target, {bare:7.1f} s on {jobs} processors")
    print(f"bare, without starts   {inside:8.4f} s a target, {count * inside / jobs:7.1f} s on {jobs} processors")
    print(f"dy2st check            {swept / count:8.3f} s a target, {swept:7.1f} s")
    print(f"dy2st check again      {again / count:8.4f} s a target, {again:7.1f} s, all cached")
    print(f"sweep to bare runs:    {swept / bare:.2f}x their time (goal: at most 3)")


if __name__ == "__main__":
    main()
