"""What is known of symbolic sizes at some point of a capture, to go back to.

What a subgraph finds out about sizes (a range, an equality, something that follows from a test) holds inside only: it
may not run. torch's ``ShapeEnv`` keeps such knowledge in several tables, and answers of earlier questions in caches;
all of these are put back together.

Source: ``torch.fx.experimental.symbolic_shapes.ShapeEnv`` of torch 2.13.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import ShapeEnv, free_unbacked_symbols
from torch.utils._sympy.value_ranges import ValueRanges

from dy2st.tracing.example_sizes import agreed


@dataclass(frozen=True)
class SizeFacts:
    """What was known of symbolic sizes at some point."""

    guards: int
    ranges: dict[Any, Any]
    replacements: dict[Any, Any]
    axioms: dict[Any, Any]
    divisible: frozenset[Any]
    asserts: dict[Any, int]
    # What stands for the sizes of the example (``example_sizes``).
    examples: dict[Any, Any]

    @classmethod
    def of(cls, env: ShapeEnv) -> SizeFacts:
        """What is known now."""
        return cls(
            len(env.guards),
            dict(env.var_to_range),
            dict(env.replacements),
            dict(env.axioms),
            frozenset(env.divisible),
            {symbol: len(found) for symbol, found in env.deferred_runtime_asserts.items()},
            dict(env.backed_var_to_val),
        )

    def same_as(self, env: ShapeEnv) -> bool:
        """Whether nothing has been added since, save for symbols that are new."""
        return (
            len(env.guards) == self.guards
            and env.replacements == self.replacements
            and all(env.var_to_range.get(symbol) == known for symbol, known in self.ranges.items())
            and len(env.axioms) == len(self.axioms)
            and env.divisible == self.divisible
            and {s: len(found) for s, found in env.deferred_runtime_asserts.items()} == self.asserts
            and all(env.backed_var_to_val.get(symbol) == size for symbol, size in self.examples.items())
        )

    def restore(self, env: ShapeEnv) -> None:
        """Go back to it. Symbols made since keep their ranges."""
        if self.same_as(env):
            return
        del env.guards[self.guards :]
        env.var_to_range.update(self.ranges)
        env.replacements.clear()
        env.replacements.update(self.replacements)
        env.axioms.clear()
        env.axioms.update(self.axioms)
        env.divisible = set(self.divisible)
        env.backed_var_to_val.update(self.examples)
        for symbol in list(env.deferred_runtime_asserts):
            kept = env.deferred_runtime_asserts[symbol][: self.asserts.get(symbol, 0)]
            if kept:
                env.deferred_runtime_asserts[symbol] = kept
            else:
                del env.deferred_runtime_asserts[symbol]
        forget_answers(env)


# Of a program's metadata: whether a subgraph has found out something about sizes that does not hold around it.
LOCAL_FACTS = "dy2st.local_facts"

# Of a graph's metadata: under which conditions on sizes of inputs it runs.
ASSUMED = "assumed"


@contextlib.contextmanager
def holding(env: ShapeEnv, facts: Iterable[Any]) -> Iterator[None]:
    """For a while, relations of sympy hold; those that other sizes can't agree with are left out."""
    before = SizeFacts.of(env)
    for fact in facts:
        if agreed(env, fact):
            assume(env, fact)
    try:
        yield
    finally:
        before.restore(env)


@contextlib.contextmanager
def known_again(found: SizeFacts, env: ShapeEnv) -> Iterator[None]:
    """For a while, what was known once holds in place of what is known now."""
    now, guards = SizeFacts.of(env), list(env.guards)
    asserts = {symbol: list(each) for symbol, each in env.deferred_runtime_asserts.items()}
    found.restore(env)
    try:
        yield
    finally:
        now.restore(env)
        env.guards[:] = guards
        env.deferred_runtime_asserts.update(asserts)


def forget_answers(env: ShapeEnv) -> None:
    """Drop what ``env`` has remembered of earlier questions: it may no longer follow."""
    env._resimplify_floor_div_axioms = True
    # Keys of caches: of what a symbol stands for, and of everything else.
    env._replacements_version_counter += 1
    env._version_counter += 1
    for cached in (ShapeEnv._inner_evaluate_expr, ShapeEnv._maybe_evaluate_static, ShapeEnv._maybe_guard_rel):
        cached.cache_clear()
    env.fake_tensor_cache.clear()


def assume(env: ShapeEnv, fact: Any) -> None:
    """Let ``fact`` (a relation of sympy) hold from here on, without a guard.

    The caller knows that it does: the code that follows runs under this test, or eager would have raised.
    """
    fact = env.simplify(fact)
    if isinstance(fact, (sympy.logic.boolalg.BooleanTrue, sympy.logic.boolalg.BooleanFalse)):
        return
    parts = fact.args if isinstance(fact, sympy.And) else (fact,)
    # What is found while a program is lowered goes no further than this either.
    frozen, env.frozen = env.frozen, False
    try:
        for part in (*parts, *_beyond(env, parts)):
            env._maybe_guard_rel(part)
            if isinstance(part, sympy.Eq) and part.rhs.is_Integer and part.lhs in free_unbacked_symbols(part):
                # torch puts no number in the place of such a symbol.
                env.var_to_range[part.lhs] = ValueRanges(part.rhs, part.rhs)
            env.axioms.update(dict(env.get_implications(env.simplify(part))))
    finally:
        env.frozen = frozen
    forget_answers(env)


def _beyond(env: ShapeEnv, parts: Iterable[Any]) -> list[Any]:
    """What is not its least value is greater: ``n >= 1`` of ``n != 0``."""
    unequal = [part for part in parts if isinstance(part, sympy.Ne) and part.rhs.is_integer and part.rhs.is_number]
    return [sympy.Ge(part.lhs, part.rhs + 1) for part in unequal if env.bound_sympy(part.lhs).lower == part.rhs]


def constant_term(value: Any) -> int:
    """The number that is added in a size: 1 of ``n + 1``, all of a number."""
    found = expression(value)
    return found if isinstance(found, int) else int(found.as_coeff_Add()[0])


def expression(value: Any) -> Any:
    """A symbolic number as something of sympy that compares by value; anything else as it is."""
    return value.node.expr if isinstance(value, (torch.SymInt, torch.SymBool, torch.SymFloat)) else value
