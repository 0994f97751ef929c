"""How far rounding alone moves a model's outputs: what is left of terms that cancel is judged by these terms.

Eager runs several times more, on the same paths, and each time every operator that rounds has its operands and its
result changed at random by up to a unit of their last place. How far the outputs go apart is what no file can do
better: another order of additions, another ``exp``. A residual near zero, a difference of two means, a number that
``item()`` made of a float32 are all covered, since the noise is that of what they were computed from. So is the
logarithm of what is nothing but rounding: infinite in one run, and a number in the next.

It is looked at only where a value is beyond the tolerance, and for all outputs together, element by element.

Source: Parker, "Monte Carlo arithmetic: exploiting randomness in floating-point arithmetic", 1997; Vignes, "A
stochastic arithmetic for reliable scientific computation", 1993.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from dy2st.parity.exact_runs import compares, is_rounded_alike, is_unrounded, run_exactly

if TYPE_CHECKING:
    from dy2st.parity.outputs import Output

RUNS = 6
# So many times the largest change of a few runs may be rounding: the runs are few, and each changes but the last place.
FACTOR = 8.0


class LeftPathError(Exception):
    """More operators have run than on the path of the model."""


class Counted(TorchDispatchMode):
    """Counts the operators that run."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator."""
        self.count += 1
        return func(*args, **(kwargs or {}))


class Noise(TorchDispatchMode):
    """Changes what each operator that rounds is given, and what it gives, by up to some ``units`` in the last place.

    One that is exact on what it is given does not round, whichever kernel runs it: its result stays. Without
    ``comparisons`` what is compared is changed only by what it was computed with.

    Raises:
        LeftPathError: more than ``most`` operators run. A loop that ends without noise may not end with it.
    """

    def __init__(self, seed: int, most: float = math.inf, units: float = 1.0, *, comparisons: bool = True) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._units, self._comparisons = units, comparisons
        self._generator = torch.Generator().manual_seed(seed)
        self._left = most

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator."""
        self._left -= 1
        if self._left < 0:
            raise LeftPathError
        kwargs = kwargs or {}
        if is_unrounded(func) or (not self._comparisons and compares(func)):
            return func(*args, **kwargs)
        result, exact = run_exactly(func, args, kwargs) if is_rounded_alike(func) else (None, False)
        if exact:
            return result
        if func._schema.is_mutable:  # noqa: SLF001 - torch gives it no other name
            result = func(*args, **kwargs) if result is None else result
            for each in pytree.tree_leaves(result):
                if _rounds(each):
                    each.copy_(self._changed(each))
            return result
        try:
            result = func(*map(self._changed, args), **{name: self._changed(each) for name, each in kwargs.items()})
        except Exception:  # noqa: BLE001 - a target above 1, a matrix that is not positive: it is given what eager gave
            result = func(*args, **kwargs)
        return self._changed(result)

    def _changed(self, value: Any) -> Any:
        if type(value) in (list, tuple):
            return type(value)(map(self._changed, value))
        if not _rounds(value):
            return value
        drawn = torch.rand(value.shape, generator=self._generator, dtype=torch.float32) * 2 - 1
        if value.dtype not in (torch.float32, torch.float64):
            return _nudged(value, drawn * self._units)
        return value * (1 + drawn.to(value.dtype) * self._units * torch.finfo(value.dtype).eps)


def _nudged(value: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
    """A value of few digits, to the next one up or down, or as it is."""
    unit = torch.finfo(value.dtype).eps
    return (value.double() * (1 + drawn.double().round() * unit)).to(value.dtype)


def _rounds(value: Any) -> bool:
    plain = isinstance(value, torch.Tensor) and value.layout is torch.strided and value.device.type == "cpu"
    return plain and value.is_floating_point()


def rounding_spread(run: Callable[[], tuple[list[Output], Any]]) -> list[torch.Tensor] | None:
    """How far each element of each output may be moved by rounding; None where that can't be said.

    ``run`` runs the model and gives its outputs and the paths that it took: a run that takes others says nothing.
    """
    try:
        with Counted() as counted:
            exact, paths = run()
        spread = [torch.zeros(each.tensor.shape, dtype=torch.float64) for each in exact]
        left = 0
        for seed in range(RUNS):
            found = _on_path(run, seed, counted.count, exact, paths)
            if found is None:
                left += 1
                if 2 * left >= RUNS:
                    # Where so many runs leave the path, what it gives is a matter of luck, not of rounding.
                    return None
                continue
            for i, (one, other) in enumerate(zip(exact, found, strict=True)):
                if one.tensor.is_floating_point():
                    spread[i] = torch.maximum(spread[i], _moved(one.tensor, other.tensor))
        # There is no largest change of a number that becomes infinite: what FACTOR allows for is tried.
        for seed in range(RUNS, 2 * RUNS):
            found = _on_path(run, seed, counted.count, exact, paths) or exact
            for i, (one, other) in enumerate(zip(exact, found, strict=True)):
                if one.tensor.is_floating_point():
                    spread[i] = torch.maximum(spread[i], _vanished(one.tensor, other.tensor))
    except Exception:  # noqa: BLE001 - an operator that can't be followed: the tolerance stays as it is
        return None
    return [FACTOR * each for each in spread]


def _moved(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """How far noise has moved each element."""
    return (one.double() - other.double()).abs().nan_to_num(0.0, 0.0, 0.0)


def _vanished(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Infinity for each element that is a number with noise or without, and not both."""
    return torch.where(one.isfinite() != other.isfinite(), torch.inf, 0.0).double()


def _on_path(
    run: Callable[[], tuple[list[Output], Any]], seed: int, most: int, exact: list[Output], paths: Any
) -> list[Output] | None:
    """The outputs of a run with noise; None if it does not take the same paths."""
    try:
        with Noise(seed, most, 1.0 if seed < RUNS else FACTOR):
            found, taken = run()
    except LeftPathError:
        return None
    return found if taken == paths and _alike(exact, found) else None


def _alike(one: Sequence[Output], other: Sequence[Output]) -> bool:
    return len(one) == len(other) and all(a.tensor.shape == b.tensor.shape for a, b in zip(one, other, strict=True))
