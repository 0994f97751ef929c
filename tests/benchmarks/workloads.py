"""Ten workloads with control flow on tensors: dy2st's file beside the graph that an expert would write by hand.

    python tests/benchmarks/workloads.py [--seconds 1 --json FILE --only gru_cell --threads 1 --growth]

The variants run in one process and in turn, so that a busy moment hits all of them. Each call that is timed follows one
of the same variant that is not, so that none finds the processor's caches as another has left them. The figures are
medians in milliseconds, with half the distance of the quartiles in percent. The variants are

- ``eager``, and ``script``: ``torch.jit.script`` of the model, a dash where it does not compile;
- ``static``: ``dy2st.to_static`` with its own backend;
- ``ours``: the file of ``dy2st.onnx.export`` on onnxruntime;
- ``expert``: a file of the same model in ONNX's text form (``expert_*.py``): what needs no earlier step is computed
  before the loop, and steps are a ``Scan`` where there may be one (which onnxruntime can't run without a step);
- ``fused``: the same as one operator ``GRU`` or ``LSTM`` (``expert_fused.py``), where there is one;
- ``step``: an expert's model of one step, called from a loop of Python with its state bound to onnxruntime's memory.

All are compared with eager before they are timed. The second table gives the nodes, the size without weights and the
time to create a session. ``--growth`` times two recurrent models over the length of their sequence; the slope is that
of the logarithms: 1 is linear.
"""

# ruff: noqa: T201 - what a script prints is its result
from __future__ import annotations

import argparse
import json
import logging
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from workload_models import BATCH, WIDTH, Workload, recurrent, workloads
from workload_variants import (
    EXPERTS,
    FUSED,
    Run,
    bytes_without_weights,
    exported,
    loading_time,
    nodes,
    of_model,
    of_session,
    require_equal,
    scripted,
    session,
    stepped,
)

import dy2st

COLUMNS = ("eager", "script", "static", "ours", "expert", "fused", "step")
LENGTHS = (16, 64, 256, 1024, 4096)


def interleaved(variants: dict[str, Run], seconds: float) -> dict[str, dict[str, float]]:
    """Milliseconds of a call of each: median and quartiles over rounds in which each is called once."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    for run in variants.values():
        for _ in range(3):
            run()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times["eager"]) < 7:
        for name, run in variants.items():
            run()
            start = time.perf_counter()
            run()
            times[name].append((time.perf_counter() - start) * 1000)
    found = {}
    for name, values in times.items():
        low, median, high = statistics.quantiles(values, n=4)
        found[name] = {"median": median, "low": low, "high": high, "calls": len(values)}
    return found


def measure(workload: Workload, seconds: float, threads: int) -> dict[str, Any]:
    """The figures of a workload."""
    with torch.no_grad():
        files = {"ours": exported(workload), "expert": EXPERTS[workload.name](workload.model)}
    sessions = {name: session(made, threads) for name, made in files.items()}
    for args in [workload.args, *workload.more]:
        wanted = of_model(workload.model, args)()
        for name, running in sessions.items():
            require_equal(f"{workload.name}: {name}", of_session(running, args)(), wanted)
    variants: dict[str, Run | None] = {
        "eager": of_model(workload.model, workload.args),
        "script": scripted(workload),
        "static": of_model(dy2st.to_static(workload.model), workload.args),
        **{name: of_session(running, workload.args) for name, running in sessions.items()},
        "step": stepped(workload, threads),
    }
    if workload.name in FUSED:
        with torch.no_grad():
            variants["fused"] = of_session(session(FUSED[workload.name](workload.model), threads), workload.args)
    present = {name: run for name, run in variants.items() if run is not None}
    wanted = present["eager"]()
    for name, run in present.items():
        require_equal(f"{workload.name}: {name}", run(), wanted)
    times = interleaved(present, seconds)
    return {
        "times": times,
        "ours/expert": times["ours"]["median"] / times["expert"]["median"],
        "eager/ours": times["eager"]["median"] / times["ours"]["median"],
        "nodes": {name: nodes(made.graph) for name, made in files.items()},
        "bytes": {name: bytes_without_weights(made) for name, made in files.items()},
        "loading": {name: 1000 * loading_time(made, threads) for name, made in files.items()},
    }


def growth(workload: Workload, seconds: float, threads: int) -> dict[str, Any]:
    """Milliseconds of a recurrent workload by the length of its sequence, and the slopes of their logarithms."""
    with torch.no_grad():
        files = {"ours": exported(workload), "expert": EXPERTS[workload.name](workload.model)}
    sessions = {name: session(made, threads) for name, made in files.items()}
    found: dict[str, list[float]] = {}
    for length in LENGTHS:
        args = recurrent(length, masked=len(workload.args) > 1)
        runs = {name: of_session(running, args) for name, running in sessions.items()}
        times = interleaved({"eager": of_model(workload.model, args), **runs}, seconds)
        for name, figures in times.items():
            found.setdefault(name, []).append(figures["median"])
    slopes = {name: float(np.polyfit(np.log(LENGTHS), np.log(times), 1)[0]) for name, times in found.items()}
    return {"times": found, "slopes": slopes}


def machine(threads: int) -> dict[str, Any]:
    """Where the figures come from."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.processor(),
        "platform": platform.platform(),
        "threads": threads,
        "batch": BATCH,
        "width": WIDTH,
        "python": platform.python_version(),
        **{module.__name__: module.__version__ for module in (torch, onnx, onnxruntime, np, dy2st)},
    }


def _timed_row(name: str, found: dict[str, Any]) -> str:
    cells = []
    for column in COLUMNS:
        figures = found["times"].get(column)
        if figures is None:
            cells.append(f"{'-':>13}")
            continue
        spread = 50 * (figures["high"] - figures["low"]) / figures["median"]
        cells.append(f"{figures['median']:8.3f} ±{spread:2.0f}%")
    return f"{name:12}{''.join(cells)}{found['ours/expert']:13.2f}{found['eager/ours']:11.1f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; returns 1 if some file of ours takes more than twice the time of the expert's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each workload")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    parser.add_argument("--only", action="append", help="a workload; all, if it is not given")
    parser.add_argument("--threads", type=int, default=1, help="of torch and of onnxruntime")
    parser.add_argument("--growth", action="store_true", help="times over the length of the sequence instead")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    logging.getLogger("torch").setLevel(logging.ERROR)
    torch.set_num_threads(options.threads)
    all_of_them = workloads()
    known = [each.name for each in all_of_them]
    if unknown := set(options.only or []) - set(known):
        parser.error(f"no workload {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    figures: dict[str, Any] = {"machine": machine(options.threads), "workloads": {}, "growth": {}}
    wanted = [each for each in all_of_them if not options.only or each.name in options.only]
    if options.growth:
        _print_growth(wanted if options.only else wanted[:2], options.seconds, options.threads, figures["growth"])
    else:
        _print_workloads(wanted, options.seconds, options.threads, figures["workloads"])
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))
    return int(any(found["ours/expert"] > 2 for found in figures["workloads"].values()))


def _print_workloads(wanted: Sequence[Workload], seconds: float, threads: int, figures: dict[str, Any]) -> None:
    header = "".join(f"{column:>13}" for column in COLUMNS)
    print(f"{'milliseconds':12}{header}  ours/expert eager/ours")
    for workload in wanted:
        figures[workload.name] = measure(workload, seconds, threads)
        print(_timed_row(workload.name, figures[workload.name]), flush=True)
    kinds = {"nodes": ("nodes", 1.0), "bytes": ("kB", 1000.0), "loading": ("session, ms", 1.0)}
    print("\n" + f"{'':12}" + "".join(f"{title:>20}" for title, _ in kinds.values()))
    print(f"{'':12}" + f"{'ours':>12}{'expert':>8}" * len(kinds))
    for name, found in figures.items():
        cells = [
            f"{found[kind]['ours'] / unit:12.0f}{found[kind]['expert'] / unit:8.0f}"
            for kind, (_, unit) in kinds.items()
        ]
        print(f"{name:12}{''.join(cells)}")


def _print_growth(wanted: Sequence[Workload], seconds: float, threads: int, figures: dict[str, Any]) -> None:
    print(f"{'milliseconds':20}" + "".join(f"{length:>10}" for length in LENGTHS) + "     slope")
    for workload in wanted:
        if len(workload.args[0].shape) != len(recurrent(1, masked=False)[0].shape):
            print(f"{workload.name} has no sequence", file=sys.stderr)
            continue
        found = figures[workload.name] = growth(replace(workload), seconds, threads)
        for variant, times in found["times"].items():
            cells = "".join(f"{each:10.2f}" for each in times)
            print(f"{workload.name:12}{variant:8}{cells}{found['slopes'][variant]:10.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
