"""Static modules in training that is spread over processes: eager's losses, gradients and weights, bit for bit."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.multiprocessing as mp

pytest.importorskip("torch.distributed.tensor", reason="torch was built without torch.distributed")
if not torch.distributed.is_gloo_available():
    pytest.skip("torch was built without gloo", allow_module_level=True)

from tests.static.distributed_workers import PROCESSES, STEPS, TALKING, work

# For starting two processes, which capture several modules.
SECONDS = 180
HITS, MISSES = 0, 1


def run(way: str, folder: Path) -> list[dict[str, Any]]:
    """What each process has found; no process is left, whatever happens."""
    context = mp.spawn(work, (way, str(folder)), nprocs=PROCESSES, join=False)
    end = time.monotonic() + SECONDS
    try:
        while not context.join(timeout=1, grace_period=5):
            if time.monotonic() > end:
                pytest.fail(f"{way}: not done in {SECONDS} s")
    finally:
        for process in context.processes:
            process.kill()
            process.join()
    return [torch.load(folder / f"{rank}.pt") for rank in range(PROCESSES)]


def assert_same(eager: dict[str, Any], static: dict[str, Any], name: str) -> None:
    for what in ("losses", "gradients", "weights"):
        torch.testing.assert_close(static[what], eager[what], rtol=0, atol=0, msg=lambda m: f"{name}, {what}: {m}")  # noqa: B023


def captured_once(static: dict[str, Any], calls: int) -> bool:
    """Whether each static module has one program, which ran in all calls but the first."""
    return bool(static["programs"]) and all((info[HITS], info[MISSES]) == (calls - 1, 1) for info in static["programs"])


def in_eager(static: dict[str, Any]) -> bool:
    return bool(static["programs"]) and all((info[HITS], info[MISSES]) == (0, 0) for info in static["programs"])


PROGRAMS, EAGER = "programs", "eager"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "module", "others"),
    [
        ("replicated", PROGRAMS, PROGRAMS),
        # The forward of DistributedDataParallel itself talks.
        ("replicated_then_static", EAGER, EAGER),
        ("sharded", PROGRAMS, PROGRAMS),
        # Where the blocks are sharded by themselves, the module around them sees sharded parameters.
        ("sharded_by_block", EAGER, PROGRAMS),
        # Its parameters are other tensors in each call.
        ("sharded_flat", PROGRAMS, PROGRAMS),
        ("tensor_parallel", EAGER, EAGER),
        ("pipelined", PROGRAMS, PROGRAMS),
    ],
)
def test_training(way: str, module: str, others: str, tmp_path: Path) -> None:
    for found in run(way, tmp_path):
        eager = found.pop("eager")
        for name, static in found.items():
            assert_same(eager, static, name)
            expected = module if name == "module" else others
            if expected == PROGRAMS:
                # A pipeline runs once to find shapes, and then each half of a batch by itself.
                calls = 2 * STEPS + 1 if way == "pipelined" else STEPS
                assert captured_once(static, calls), (name, static["programs"])
            else:
                assert in_eager(static), (name, static["programs"])


@pytest.mark.slow
def test_functions_that_talk(tmp_path: Path) -> None:
    for found in run("talking", tmp_path):
        for function in TALKING:
            name = function.__name__
            static = found[f"static {name}"]
            assert_same(found[f"eager {name}"], static, name)
            assert captured_once(static, 3) if name == "by_rank" else in_eager(static)
