"""``to_static`` against eager and ``torch.compile``: the cost of a call, and the samples per second.

    python tests/benchmarks/static.py [--seconds 1 --json FILE --only newton --inductor]

One process, one thread, the variants interleaved; the figures are medians. The first table gives microseconds of a call
whose work is nothing: a function of five tensors and modules of 5, 77 and 302 submodules. ``torch.compile`` runs with a
backend that computes nothing, ``to_static`` with its program replaced by one. The second gives, for each sample, calls
without gradients and training steps (forward and backward) a second: eagerly and with ``to_static``; with
``--inductor`` also with its backends inductor and onnxruntime, which take minutes to compile. A dash is what a backend
can't do: onnxruntime does not differentiate, inductor fails at gradients of loops and compiles some anew in each call.
"""

# ruff: noqa: T201 - what a script prints is its result
from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import logging
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

import dy2st
from dy2st.errors import Dy2stError

FOLDER = Path(__file__).resolve().parents[2] / "samples"
# A function that counts calls in a Python int is none that a program could stand for.
SAMPLES = sorted(path for path in FOLDER.glob("*.py") if path.stem != "streaming_vad")


def interleaved(variants: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """Seconds of a call of each variant: medians over rounds in which each is called once."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    for run in variants.values():
        for _ in range(3):
            run()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[next(iter(times))]) < 5:
        for name, run in variants.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(found) for name, found in times.items()}


# ---- what a call costs


class Blocks(nn.Module):
    """Many submodules that compute little."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(count)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def five(a: Tensor, b: Tensor, c: Tensor, d: Tensor, e: Tensor) -> Tensor:
    """A function of five tensors."""
    return a + b


def nothing(_: Any, __: Any) -> Callable[..., Any]:
    """A backend of ``torch.compile`` that computes nothing."""
    result = [torch.zeros(1)]
    return lambda *_: result


def _emptied(static: Any) -> Any:
    """A static function whose program computes nothing: what is left is what a call costs."""
    entry = static._programs.entries[0]
    result = (torch.zeros(1),)
    taken = entry.binding.take
    object.__setattr__(entry.binding, "take", lambda tensors: result[0] if tensors is not None else taken(tensors))
    return static


def overheads(seconds: float) -> list[tuple[str, float, float]]:
    """Name, microseconds of a call of ``to_static``, of ``torch.compile``."""
    found = []
    torch._dynamo.config.recompile_limit = 64
    with torch.no_grad():
        given: list[tuple[str, Any, tuple[Tensor, ...]]] = [("5 tensors", five, tuple(torch.ones(3) for _ in range(5)))]
        for count in (1, 25, 100):
            module = Blocks(count)
            given.append((f"{len(list(module.modules()))} modules", module, (torch.ones(2, 4),)))
        for name, model, args in given:
            compiled = torch.compile(model, backend=nothing)
            compiled(*args)
            static = dy2st.to_static(model)
            for _ in range(2):
                static(*args)
            _emptied(static.forward if isinstance(static, nn.Module) else static)
            times = interleaved({"a": lambda: static(*args), "b": lambda: compiled(*args)}, seconds)  # noqa: B023
            found.append((name, times["a"] * 1e6, times["b"] * 1e6))
    return found


# ---- samples


def load(path: Path) -> Any:
    """A sample, as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _leaf(value: Any) -> Any:
    floats = isinstance(value, Tensor) and value.is_floating_point()
    return value.clone().requires_grad_() if floats else value


def _differentiable(result: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, Tensor) and leaf.requires_grad]


def _step(model: Any, args: Sequence[Any]) -> None:
    results = _differentiable(model(*args))
    if results:
        torch.stack([each.sum() for each in results]).sum().backward()


def usable(variants: dict[str, Callable[[], Any]]) -> dict[str, Callable[[], Any]]:
    """Those that run, and are not compiled anew in each call."""
    found, least = {}, 0.0
    for name, run in variants.items():
        try:
            for _ in range(3):
                start = time.perf_counter()
                run()
                last = time.perf_counter() - start
        except Dy2stError as error:
            print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        least = least or last
        if last < 50 * least:
            found[name] = run
    return found


def sample(path: Path, seconds: float, *, more: bool) -> dict[str, dict[str, float]]:
    """Runs of each variant a second, without gradients and with them."""
    module = load(path)
    model, examples = module.model, module.example_inputs
    examples = examples() if callable(examples) else examples
    args = examples[0] if isinstance(examples, list) else examples
    backends = {"to_static": "eager", **({"inductor": "inductor", "onnxruntime": "onnxruntime"} if more else {})}
    models = {"eager": model, **{name: dy2st.to_static(model, backend=each) for name, each in backends.items()}}
    with torch.no_grad():
        times = interleaved(usable({name: functools.partial(each, *args) for name, each in models.items()}), seconds)
    found = {"inference": {name: 1 / each for name, each in times.items()}}
    leaves = [_leaf(leaf) for leaf in args]
    if _differentiable(model(*leaves)):
        models.pop("onnxruntime", None)
        times = interleaved(
            usable({name: functools.partial(_step, each, leaves) for name, each in models.items()}), seconds
        )
        found["training"] = {name: 1 / each for name, each in times.items()}
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; returns 1 if some ratio is below 0.9."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each row")
    parser.add_argument("--json", type=Path, help="write the figures there, too")
    parser.add_argument("--only", action="append", help="a sample; all, if it is not given")
    parser.add_argument("--inductor", action="store_true", help="also other backends")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    logging.getLogger("torch").setLevel(logging.ERROR)  # what inductor gives up is a dash
    torch.set_num_threads(1)
    figures: dict[str, Any] = {"torch": torch.__version__, "calls": {}, "samples": {}}
    if not options.only:
        print(f"{'a call of':24}{'to_static':>12}{'torch.compile':>16}   microseconds")
        for name, ours, theirs in overheads(options.seconds):
            figures["calls"][name] = [ours, theirs]
            print(f"{name:24}{ours:12.1f}{theirs:16.1f}", flush=True)
        print()
    columns = ["eager", "to_static", *(["inductor", "onnxruntime"] if options.inductor else [])]
    kinds = ("inference", "training")
    print(f"{'runs a second':24}" + "".join(f"  {kind:{12 * len(columns) - 2}}" for kind in kinds))
    print(f"{'':24}" + "".join(f"{each:>12}" for each in columns) * 2)
    worst = 9.0
    for path in SAMPLES:
        if options.only and path.stem not in options.only:
            continue
        found = figures["samples"][path.stem] = sample(path, options.seconds, more=options.inductor)
        cells = [found.get(kind, {}).get(each) for kind in kinds for each in columns]
        print(
            f"{path.stem:24}" + "".join(f"{'-' if each is None else f'{each:.0f}':>12}" for each in cells), flush=True
        )
        worst = min(worst, *(each["to_static"] / each["eager"] for each in found.values()))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))
    return int(worst < 0.9)


if __name__ == "__main__":
    sys.exit(main())
