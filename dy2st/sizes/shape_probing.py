"""Operators tried at other sizes: whether a decision that torch took by the example's sizes means anything.

An operator's result has a shape in terms of symbols, found with the sizes of the example. Here the operator runs at
sizes for which a test that was met on the way comes out otherwise, and the shapes are compared.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree

from dy2st.tracing.grad_mode import without_gradients
from dy2st.tracing.replaced import without_modes

# Sizes to try, besides those of the example and those that a test names.
SIZES = (-2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12)
FEW_SIZES = (-1, 0, 1, 2, 3, 5, 8)
MOST_TRIALS = 6
# A size for what the example says nothing of.
UNKNOWN_SIZE = 3
# Up to so many elements an operator runs with real tensors.
SMALL = 10_000
# What an operator raises if eager would raise too.
REFUSALS = (RuntimeError, ValueError, IndexError, TypeError)


class Outcome(enum.Enum):
    """What an operator does on the other side of a test."""

    SAME = "it gives the shape that is known"
    RAISES = "it raises"
    OTHER = "it gives another shape, or can't be tried"
    GIVEN = "the test is about a size that is data of the result"


@dataclass(frozen=True)
class Described:
    """A tensor's type, with sizes and strides in terms of symbols."""

    size: tuple[Any, ...]
    stride: tuple[Any, ...]
    dtype: torch.dtype
    device: torch.device


class Trials:
    """The trials of one capture; none is made twice."""

    def __init__(self, env: ShapeEnv) -> None:
        self.env = env
        self.known: dict[Any, list[Outcome]] = {}
        self.mode: FakeTensorMode | None = None

    def described(self, tree: Any) -> Any:
        """Arguments or results, with tensors and symbolic numbers in terms of symbols."""

        def describe(leaf: Any) -> Any:
            if isinstance(leaf, torch.Tensor):
                return Described(
                    tuple(map(self._expression, leaf.shape)),
                    tuple(map(self._expression, leaf.stride())),
                    leaf.dtype,
                    leaf.device,
                )
            return self._expression(leaf)

        return pytree.tree_map(describe, tree)

    def _expression(self, value: Any) -> Any:
        if isinstance(value, (torch.SymInt, torch.SymBool, torch.SymFloat)):
            return self.env.simplify(value.node.expr)
        return value

    def judge(self, func: Any, arguments: Any, result: Any, guards: list[Any]) -> list[Outcome]:
        """What ``func`` does with ``arguments`` (described) where each guard does not hold."""
        guards = [self.env.simplify(guard) for guard in guards]
        expected = self.described(result)
        key = (func, tuple(guards), repr(arguments), repr(expected))
        if key not in self.known:
            tried: dict[Any, Outcome] = {}
            born = _symbols(expected) - _symbols(arguments)
            self.known[key] = [
                Outcome.GIVEN if guard.free_symbols & born else self._judged(func, arguments, expected, guard, tried)
                for guard in guards
            ]
        return self.known[key]

    def _judged(self, func: Any, arguments: Any, expected: Any, guard: Any, tried: dict[Any, Outcome]) -> Outcome:
        found = set()
        for sizes in self._violations(guard):
            if not _exist(arguments, self._all_sizes(arguments, sizes)):
                continue
            key = tuple(sizes.items())
            if key not in tried:
                tried[key] = self._trial(func, arguments, expected, self._all_sizes(arguments, sizes))
            if tried[key] is Outcome.OTHER:
                return Outcome.OTHER
            found.add(tried[key])
        return Outcome.RAISES if found == {Outcome.RAISES} else Outcome.SAME

    # ---- sizes to try

    def _violations(self, guard: Any) -> list[dict[Any, int]]:
        """Sizes for which a guard does not hold: some small ones and some large ones."""
        symbols = sorted(guard.free_symbols, key=str)
        found = [sizes for sizes in self._sizes(guard, symbols) if not _holds(guard, sizes)]
        if len(found) <= MOST_TRIALS:
            return found
        return [*found[: MOST_TRIALS // 2], *found[-(MOST_TRIALS // 2) :]]

    def _sizes(self, guard: Any, symbols: list[Any]) -> Iterator[dict[Any, int]]:
        named = {int(n) + d for n in guard.atoms(sympy.Integer) if abs(int(n)) < 2**40 for d in (-1, 0, 1)}
        choices = []
        for symbol in symbols:
            hint = self.env.backed_var_to_val.get(symbol)
            own = set() if hint is None else {int(hint), int(hint) + 1, 2 * int(hint)}
            values = sorted({*(SIZES if len(symbols) == 1 else FEW_SIZES), *named, *own})
            choices.append([v for v in values if self._allowed(symbol, v)])
        for chosen in itertools.islice(itertools.product(*choices), 2000):
            yield dict(zip(symbols, chosen, strict=True))

    def _allowed(self, symbol: Any, value: int) -> bool:
        if value < 0 and symbol in self.env.backed_var_to_val:
            return False
        bounds = self.env.var_to_range.get(symbol)
        return bounds is None or value in bounds

    def _all_sizes(self, arguments: Any, sizes: dict[Any, int]) -> dict[Any, int]:
        """Sizes for all symbols of the arguments."""
        others = _symbols(arguments) - set(sizes)
        return sizes | {s: int(self.env.backed_var_to_val.get(s, UNKNOWN_SIZE)) for s in others}

    # ---- one trial

    def _trial(self, func: Any, arguments: Any, expected: Any, sizes: dict[Any, int]) -> Outcome:
        made = pytree.tree_map(lambda leaf: _concrete(leaf, sizes), arguments)
        # A real run is what eager does; a stand-in may check less, or more.
        found = self._run(func, made, real=True) if self._is_small(made, func) else Outcome.OTHER
        if found is Outcome.OTHER:
            found = self._run(func, made, real=False)
        if isinstance(found, Outcome):
            return found
        return Outcome.SAME if _agree(expected, found, sizes) else Outcome.OTHER

    def _run(self, func: Any, arguments: Any, *, real: bool) -> list[Any] | Outcome:
        if self.mode is None:
            self.mode = FakeTensorMode(shape_env=ShapeEnv(), static_shapes=True)
        with without_modes(), without_gradients():
            try:
                if real:
                    args, kwargs = pytree.tree_map_only(Described, _tensor, arguments)
                    result = func(*args, **kwargs)
                else:
                    with self.mode:
                        args, kwargs = pytree.tree_map_only(Described, _tensor, arguments)
                        result = func(*args, **kwargs)
            except NotImplementedError:
                return Outcome.OTHER
            except REFUSALS:
                return Outcome.RAISES
            except Exception:  # noqa: BLE001 - torch has many kinds for "not without values"
                return Outcome.OTHER
        return [tuple(leaf.shape) if isinstance(leaf, torch.Tensor) else leaf for leaf in pytree.tree_leaves(result)]

    def _is_small(self, arguments: Any, func: Any) -> bool:
        leaves = [leaf for leaf in pytree.tree_leaves(arguments) if isinstance(leaf, Described)]
        return (
            torch.Tag.nondeterministic_seeded not in func.tags
            and all(leaf.device.type == "cpu" for leaf in leaves)
            and sum(_elements(leaf) for leaf in leaves) < SMALL
            and all(not isinstance(leaf, int) or abs(leaf) < SMALL for leaf in pytree.tree_leaves(arguments))
        )


def _symbols(described: Any) -> set[Any]:
    """The symbols in a described tree."""
    found = set()
    for leaf in pytree.tree_leaves(described):
        for part in (*leaf.size, *leaf.stride) if isinstance(leaf, Described) else (leaf,):
            found |= set(getattr(part, "free_symbols", ()))
    return found


def _integers(sizes: dict[Any, int]) -> dict[Any, Any]:
    return {symbol: sympy.Integer(value) for symbol, value in sizes.items()}


def _holds(guard: Any, sizes: dict[Any, int]) -> bool:
    """Whether a test holds at these sizes; one that divides by zero does not."""
    try:
        return bool(guard.xreplace(_integers(sizes)) == sympy.true)
    except ZeroDivisionError:
        return False


def _value(expression: Any, sizes: dict[Any, int]) -> Any:
    """A size or number at these sizes; None if it depends on something else."""
    if not isinstance(expression, sympy.Basic):
        return expression
    try:
        found = expression.xreplace(_integers(sizes))
    except ZeroDivisionError:
        return None
    if found in (sympy.true, sympy.false):
        return bool(found)
    if found.free_symbols:
        return None
    return int(found) if found.is_integer else float(found)


def _exist(arguments: Any, sizes: dict[Any, int]) -> bool:
    """Whether there are such arguments at these sizes: what would have divided by zero has raised before."""
    made = (_concrete(leaf, sizes) for leaf in pytree.tree_leaves(arguments) if isinstance(leaf, Described))
    return all(None not in (*each.size, *each.stride) for each in made)


def _concrete(leaf: Any, sizes: dict[Any, int]) -> Any:
    if isinstance(leaf, Described):
        size, stride = (tuple(_value(part, sizes) for part in parts) for parts in (leaf.size, leaf.stride))
        return Described(size, stride, leaf.dtype, leaf.device)
    return _value(leaf, sizes)


def _elements(tensor: Described) -> int:
    """How many elements the memory behind a tensor has."""
    if 0 in tensor.size:
        return 0
    return int(1 + sum((n - 1) * step for n, step in zip(tensor.size, tensor.stride, strict=True)))


def _tensor(tensor: Described) -> torch.Tensor:
    memory = torch.zeros(_elements(tensor), dtype=tensor.dtype, device=tensor.device)
    return memory.as_strided(tensor.size, tensor.stride)


def _agree(expected: Any, shapes: list[Any], sizes: dict[Any, int]) -> bool:
    """Whether results have the shapes that are known; what can't be known here agrees with anything."""
    leaves = pytree.tree_leaves(expected)
    if len(leaves) != len(shapes):
        return False
    for want, got in zip(leaves, shapes, strict=True):
        if not isinstance(want, Described):
            continue
        if not isinstance(got, tuple) or len(got) != len(want.size):
            return False
        for one, other in zip(want.size, got, strict=True):
            known = _value(one, sizes)
            if known is not None and isinstance(other, int) and known != other:
                return False
    return True
