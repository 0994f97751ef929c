"""Runs many random programs: ``python tests/fuzz/run.py --programs N --seed S --jobs J --out FOLDER``.

Prints what became of them. Each distinct failure's program, which is a module of its own, is written to the folder with
the error below it; ``--shrink`` makes it smaller first. With files as arguments, runs these programs instead.
A worker that crashes or hangs costs one program. Ctrl-C ends the run with the table of what there is so far, which is
also written to ``counts.txt`` of the folder after every 500 programs.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import multiprocessing
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "features"), str(HERE.parent.parent)]
os.environ.setdefault("OMP_NUM_THREADS", "1")
REPLACED_AFTER = 400  # programs: torch keeps something of each


def source_of(grammar: str, seed: int) -> str:
    """The program that a seed stands for."""
    import aliases
    import programs
    from choices import seeded

    return (aliases if grammar == "aliases" else programs).program(seeded(seed))


def work(connection: Connection, options: argparse.Namespace) -> None:
    """Judge programs by seed until told to stop."""
    from oracle import judge, quick_exports

    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(1)
    with quick_exports():
        while (seed := connection.recv()) is not None:
            source = source_of(options.grammar, seed)
            onnx = bool(options.onnx) and seed % options.onnx == 0
            outcome = judge(source, onnx=onnx, static=options.static, search=options.check)
            connection.send((seed, source, outcome.kind, outcome.what, outcome.text))


class Worker:
    """A process that judges one program after the other."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.connection, other = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=work, args=(other, options), daemon=True)
        self.process.start()
        other.close()
        self.seed: int | None = None
        self.done = 0
        self.started = 0.0

    def give(self, seed: int) -> None:
        """Hand over the next program."""
        self.seed, self.started = seed, time.monotonic()
        self.connection.send(seed)

    def end(self) -> None:
        """Stop the process."""
        self.process.kill()
        self.process.join()
        self.connection.close()


def run(options: argparse.Namespace) -> int:
    """Run all programs, and report."""
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    seeds = iter(range(options.seed, options.seed + options.programs))
    workers = [Worker(options) for _ in range(options.jobs)]
    counts: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], int] = {}
    begun = time.monotonic()
    for worker in workers:
        worker.give(next(seeds, options.seed))
    with contextlib.suppress(KeyboardInterrupt):
        judge_all(options, seeds, workers, counts, examples)
    say(table(counts, examples))
    say(f"{sum(counts.values())} programs in {time.monotonic() - begun:.0f} s")
    return 1 if any(kind == "failed" for kind, _ in counts) else 0


def judge_all(
    options: argparse.Namespace,
    seeds: Iterator[int],
    workers: list[Worker],
    counts: Counter[tuple[str, str]],
    examples: dict[tuple[str, str], int],
) -> None:
    """Hand out programs until there are no more."""
    out = Path(options.out)
    while workers:
        ready = wait([worker.connection for worker in workers], timeout=5)
        for worker in list(workers):
            result: Any = None
            if worker.connection in ready:
                try:
                    result = worker.connection.recv()
                except EOFError:
                    result = (worker.seed, "", "failed", "the process died", "")
            elif time.monotonic() - worker.started > options.limit + 60:
                result = (worker.seed, "", "failed", "hangs", "")
            if result is None:
                continue
            seed, source, kind, what, text = result
            counts[kind, what] += 1
            examples.setdefault((kind, what), seed)
            if kind == "failed" and counts[kind, what] <= options.keep:
                write(out / f"seed_{seed}.py", seed, source or source_of(options.grammar, seed), what, text)
                say(f"seed {seed}: {what}")
            elif kind == "refused" and counts[kind, what] <= options.refused:
                write(out / f"refused_{seed}.py", seed, source, what, text)
            worker.done += 1
            following = next(seeds, None)
            if not source or worker.done >= REPLACED_AFTER or following is None:
                worker.end()
                workers.remove(worker)
                if following is not None:
                    workers.append(Worker(options))
                    workers[-1].give(following)
            else:
                worker.give(following)
            if sum(counts.values()) % 500 == 0:
                (out / "counts.txt").write_text(table(counts, examples) + "\n", encoding="utf-8")


def write(file: Path, seed: int, source: str, what: str, text: str) -> None:
    """Keep a program."""
    lines = "\n".join("# " + line for line in [what, *text.splitlines()[-60:]])
    file.write_text(f"{source}\n\n# seed {seed}\n{lines}\n", encoding="utf-8")


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def table(counts: Counter[tuple[str, str]], examples: dict[tuple[str, str], int] | None = None) -> str:
    """How many programs came out how, and why, with the seed of one each."""
    lines = []
    for kind in ("equal", "refused", "discarded", "failed"):
        found = {what: count for (each, what), count in counts.items() if each == kind}
        lines.append(f"{sum(found.values()):6} {kind}")
        for what, count in sorted(found.items(), key=lambda item: -item[1])[:60]:
            example = f"  (seed {examples[kind, what]})" if examples else ""
            lines.append(f"{count:12}  {what}{example}")
    return "\n".join(lines)


def main() -> int:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", help="programs to run instead of random ones")
    parser.add_argument("--grammar", choices=["programs", "aliases"], default="programs", help="what they are made of")
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", default="fuzz-failures", help="the folder for failures")
    parser.add_argument("--keep", type=int, default=2, help="how many failures of one kind to keep")
    parser.add_argument("--refused", type=int, default=0, help="how many refused programs of one kind to keep")
    parser.add_argument("--onnx", type=int, default=1, help="run onnxruntime on each so-manieth program; 0 is none")
    parser.add_argument("--check", type=float, default=0, help="check what is equal, with a search of so many seconds")
    parser.add_argument("--static", action="store_true", help="run them as static modules, call after call")
    parser.add_argument("--limit", type=float, default=60, help="seconds for a program")
    parser.add_argument("--shrink", action="store_true", help="make the files that fail or are refused smaller")
    options = parser.parse_args()
    if options.files:
        return run_files(options)
    return run(options)


def run_files(options: argparse.Namespace) -> int:
    """Judge files, and perhaps make them smaller."""
    from oracle import FAILED, REFUSED, judge, quick_exports

    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    failed = False
    with quick_exports():
        for file in options.files:
            source = Path(file).read_text(encoding="utf-8")
            outcome = judge(source, static=options.static, search=options.check, seconds=options.limit)
            failed |= outcome.kind == FAILED
            say(f"{file}: {outcome.kind}: {outcome.what}")
            if options.shrink and outcome.kind in (FAILED, REFUSED):
                from shrinking import shrink

                small = shrink(source, outcome)
                Path(file).with_suffix(".small.py").write_text(small, encoding="utf-8")
                say(small)
            elif outcome.text and len(options.files) == 1:
                say(outcome.text)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
