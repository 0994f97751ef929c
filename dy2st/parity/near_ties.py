"""Whether eager itself returns what a stage does when its inputs change in their last place.

Where it does, the two are on the two sides of a tie: of equal scores that are sorted, of a condition at its threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.parity.inputs import InputSet
from dy2st.parity.outputs import Output
from dy2st.parity.stages import Reference, run_model
from dy2st.parity.tolerances import tolerance_for

# Every float up, every float down, and then some of each.
_UP, _DOWN = range(2)
_MOST_RUNS = 20


def tied(model: Any, reference: Reference, actual: Sequence[Output], *, seconds: float) -> bool:
    """True if each element that differs is, in some run on changed inputs, what ``actual`` has there.

    ``seconds`` is what the runs may take together, by what one took.
    """
    wrong = [_beyond(got, want) for want, got in zip(reference.outputs, actual, strict=True)]
    if any(each is None for each in wrong):
        return False
    left = [each for each in wrong if each is not None]
    for way in range(min(_MOST_RUNS, int(seconds / max(reference.seconds, 1e-9)))):
        try:
            outputs = run_model(model, model, changed(reference.inputs, way))
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
