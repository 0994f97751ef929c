"""How long an export takes, by depth of nesting and by number of trips.

    python tests/benchmarks/nesting.py [--repeat 3]

Staging an arm or a body more than once per level would make the time grow as 2^depth; unrolling a loop would make it
grow with the number of trips. Both tables should be about flat in their last column: for depths, the time that each
further level adds; for trips, the time itself.
"""

# ruff: noqa: T201 - what a script prints is its result
from __future__ import annotations

import argparse
import importlib.util
import statistics
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch.export import Dim

import dy2st

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

DEPTHS = range(1, 7)
TRIPS = (2, 8, 32, 128, 512)


def nested_source(kind: str, depth: int) -> str:
    """The source of a function ``model(x)`` with ``depth`` nested statements of a kind."""
    lines = ["def model(x):", "    y = x"]
    indent = "    "
    closing: list[str] = []
    for level in range(depth):
        if kind == "if" or (kind == "mixed" and level % 2):
            lines.append(f"{indent}if y.sum() > {level}:")
            closing += [f"{indent}    y = y - {level}", f"{indent}else:", f"{indent}    y = y * 0.5"][::-1]
        else:
            lines.append(f"{indent}while y.abs().sum() > {level + 1}:")
            closing += [f"{indent}    y = y * 0.5"]
        indent += "    "
        lines.append(f"{indent}y = y + {level}")
    return "\n".join([*lines, *reversed(closing), "    return y", ""])


def load(source: str, folder: Path, name: str) -> Callable[[Tensor], Tensor]:
    """Import a function from a file, since staging reads its source."""
    file = folder / f"{name}.py"
    file.write_text(source)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.model


def export_seconds(model: Callable[[Tensor], Tensor], example: Tensor, repeat: int) -> float:
    """The median time of an export."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        dy2st.export(model, (example,), dynamic_shapes=({0: Dim.DYNAMIC},))
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def by_depth(kind: str, folder: Path, repeat: int) -> None:
    """Print the export time for each depth."""
    print(f"\nnested {kind}\n{'depth':>6} {'seconds':>9} {'to depth 1':>11} {'per level':>10}")
    first = before = None
    for depth in DEPTHS:
        model = load(nested_source(kind, depth), folder, f"{kind}_{depth}")
        seconds = export_seconds(model, torch.ones(3), repeat)
        first = first or seconds
        added = "" if before is None else f"{seconds - before:+.3f}"
        print(f"{depth:>6} {seconds:>9.3f} {seconds / first:>10.1f}x {added:>10}")
        before = seconds


def cumulated(x: Tensor) -> Tensor:
    """A loop over the rows, with rows written one by one."""
    out = torch.zeros_like(x)
    state = torch.zeros(x.shape[1])
    for t in range(x.shape[0]):
        if x[t].sum() > 0:
            state = state * 0.5 + x[t]
        out[t] = state
    return out


def by_trips(repeat: int) -> None:
    """Print the export time for each number of trips of the example."""
    print(f"\ntrips of the example\n{'trips':>6} {'seconds':>9} {'to 2 trips':>11}")
    first = None
    for trips in TRIPS:
        seconds = export_seconds(cumulated, torch.randn(trips, 4), repeat)
        first = first or seconds
        print(f"{trips:>6} {seconds:>9.3f} {seconds / first:>10.1f}x")


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3, help="exports per line, of which the median is printed")
    repeat = parser.parse_args().repeat
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    export_seconds(cumulated, torch.randn(3, 4), 1)  # the first export of a process imports half of torch
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("if", "while", "mixed"):
            by_depth(kind, Path(folder), repeat)
    by_trips(repeat)


if __name__ == "__main__":
    main()
