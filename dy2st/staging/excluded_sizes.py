"""Conditions on declared sizes of which a program, as it is traced, takes one side only; and the way out of that.

    if q.shape[2] == 1:  # by grouped heads
        q = q.reshape(b, 1, 2, d)
    else:
        k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
    return attention(q, k, v).reshape(b, -1, q_length, d)

The sizes of q and k after the branch are symbols of their own, and each operator takes what meets to be equal, so that
what holds in the second arm is taken to hold in both. A size that is joined and then said to be what one arm does not
give it tells so. The program is traced anew, with the condition first: a branch around all of the model's code, in each
arm of which the sizes are what they are there (``capture.sizes_apart``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import ShapeEnv, free_unbacked_symbols

from dy2st.errors import Location
from dy2st.tracing.size_facts import expression

# A size that was joined, and what it is in each arm.
Joined = tuple[sympy.Symbol, sympy.Expr, sympy.Expr]


class SizeBranches:
    """The branches of a capture on declared sizes alone whose arms give results of different sizes."""

    def __init__(self) -> None:
        self._found: list[tuple[sympy.Expr, Location, list[Joined]]] = []

    def note(
        self,
        says: Sequence[Any],
        location: Location,
        results: Sequence[torch.Tensor],
        arms: tuple[Sequence[torch.Tensor], ...],
    ) -> None:
        """A branch has been emitted, whose test says so of sizes where it holds."""
        if len(says) != 1 or not isinstance(says[0], torch.SymBool):
            return
        test = expression(says[0])
        if not test.free_symbols or free_unbacked_symbols(test):
            return
        joined = [
            (expression(size), expression(one), expression(other))
            for result, *sides in zip(results, *arms, strict=True)
            for size, one, other in zip(result.shape, *(side.shape for side in sides), strict=True)
            if isinstance(size, torch.SymInt) and free_unbacked_symbols(size)
        ]
        joined = [each for each in joined if each[0].is_Symbol]
        if joined:
            self._found.append((test, location, joined))

    def excluded(self, env: ShapeEnv) -> tuple[sympy.Expr, list[Location]] | None:
        """The first condition one of whose arms can't be what the program takes sizes to be, and where it stands."""
        found = next((test for test, _, joined in self._found if _excludes(env, test, joined)), None)
        return None if found is None else (found, [place for test, place, _ in self._found if test == found])


def _excludes(env: ShapeEnv, test: sympy.Expr, joined: Sequence[Joined]) -> bool:
    for arm, holds in enumerate((test, sympy.Not(test))):
        given = {size: sides[arm] for size, *sides in joined}
        given = {size: value for size, value in given.items() if not free_unbacked_symbols(value)}
        fixed = {holds.lhs: holds.rhs} if isinstance(holds, sympy.Eq) and holds.lhs.is_Symbol else {}
        if any(each.subs(given).subs(fixed) == sympy.false for each in _taken(env, given)):
            return True
    return False


def _taken(env: ShapeEnv, sizes: Any) -> Iterator[sympy.Expr]:
    """What the program takes sizes to be."""
    for size in sizes:
        if size in env.replacements:
            yield sympy.Eq(size, env.replacements[size])
        known = env.var_to_range.get(size)
        if known is not None:
            yield size >= known.lower
            yield size <= known.upper
        yield from (each.expr for each in env.deferred_runtime_asserts.get(size, ()))
