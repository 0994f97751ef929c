"""Whether eager returns what a stage does when its inputs, or what its operators round, change in the last place.

Where it does, the two are on the two sides of a tie: of equal scores that are sorted, of a condition at its threshold.
So they are where ``topk`` may name equal elements in another order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.parity.equal_choices import FirstOfEquals
from dy2st.parity.inputs import InputSet
from dy2st.parity.outputs import Output
from dy2st.parity.rounding_noise import Counted, Noise
from dy2st.parity.stages import Reference, run_model
from dy2st.parity.tolerances import tolerance_for

# Every float up, every float down, and then some of each.
_UP, _DOWN = range(2)
# So many with other inputs, and as many with other roundings: these are slower.
_MOST_RUNS = 20


def takes_first_of_equals(model: Any, reference: Reference, actual: Sequence[Output]) -> bool:
    """True if ``actual`` is what eager returns where it names equal elements in the order in which they are."""
    with FirstOfEquals() as equals:
        try:
            outputs = run_model(model, model, reference.inputs)
        except Exception:  # noqa: BLE001 - it raises there
            return False
    if not equals.met:
        return False
    apart = [_beyond(got, output) for got, output in zip(actual, outputs, strict=False)]
    return len(outputs) == len(actual) and not any(each is None or bool(each.any()) for each in apart)


def tied(model: Any, reference: Reference, actual: Sequence[Output], *, seconds: float) -> bool:
    """True if each element that differs is, in some run with changed inputs or roundings, what ``actual`` has there.

    One of the runs names the first of equal elements.

    ``seconds`` is what the runs may take together. What is compared is changed by what it was computed with alone: to
    tell ``<`` from ``<=`` where nothing is rounded is no luck.
    """
    end = time.perf_counter() + seconds
    wrong = [_beyond(got, want) for want, got in zip(reference.outputs, actual, strict=True)]
    if any(each is None for each in wrong):
        return False
    left = [each for each in wrong if each is not None]
    for run in _runs(model, reference.inputs):
        if time.perf_counter() > end:
            return False
        try:
            outputs = run()
        except Exception:  # noqa: BLE001, S112 - it raises there: nothing is known of the others
            continue
        if len(outputs) != len(left):
            continue
        for number, (output, got) in enumerate(zip(outputs, actual, strict=True)):
            beyond = _beyond(got, output)
            if beyond is not None:
                left[number] = left[number] & beyond
        if not any(bool(each.any()) for each in left):
            return True
    return False


def _runs(model: Any, inputs: InputSet) -> Iterator[Callable[[], list[Output]]]:
    yield partial(_first_of_equals, model, inputs)
    for way in range(_MOST_RUNS):
        yield partial(run_model, model, model, changed(inputs, way))
    with Counted() as counted:
        run_model(model, model, inputs)
    for way in range(_MOST_RUNS):
        yield partial(_noisy, model, inputs, way, counted.count)


def _first_of_equals(model: Any, inputs: InputSet) -> list[Output]:
    with FirstOfEquals():
        return run_model(model, model, inputs)


def _noisy(model: Any, inputs: InputSet, seed: int, count: int) -> list[Output]:
    # A loop that ends without noise may not end with it.
    with Noise(seed, most=10 * count + 1000, comparisons=False):
        return run_model(model, model, inputs)


def _beyond(got: Output, want: Output) -> torch.Tensor | None:
    """Where the values are further apart than the dtype allows; None if shapes or dtypes are not the same."""
    first, second = got.tensor.cpu(), want.tensor.cpu()
    if first.shape != second.shape or first.dtype != second.dtype:
        return None
    bounds = tolerance_for(first.dtype)
    return ~torch.isclose(first, second, rtol=bounds.rtol, atol=bounds.atol, equal_nan=True)


def changed(inputs: InputSet, way: int) -> InputSet:
    """The set with each float in it replaced by one of its neighbours: all up, all down, then either by ``way``."""
    generator = torch.Generator().manual_seed(way)
    share = {_UP: 1.0, _DOWN: 0.0}.get(way, 0.5)

    def neighbour(value: torch.Tensor) -> torch.Tensor:
        if not value.is_floating_point():
            return value
        infinity = torch.full_like(value, torch.inf)
        up = torch.rand(value.shape, generator=generator) < share
        return torch.nextafter(value, torch.where(up.to(value.device), infinity, -infinity))

    given = inputs.copied()
    return replace(
        given,
        args=pytree.tree_map_only(torch.Tensor, neighbour, given.args),
        kwargs=pytree.tree_map_only(torch.Tensor, neighbour, given.kwargs),
    )
