"""Sizes that stand for the example's where a test says that there are others.

    if x.shape[0] > 3:
        return x[3]  # the example may have two rows

torch takes a dynamic size to be what the example has wherever what is known leaves a question open, and fails where
the two contradict each other. So for as long as such an arm is traced, sizes stand for the example's with which the
arm would be taken, and which all that is known besides allows.

Source: ``ShapeEnv.backed_var_to_val`` of torch 2.13.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import sympy
from torch.fx.experimental.symbolic_shapes import ShapeEnv, free_unbacked_symbols

# So many sizes at most are looked for together, each among so many.
_MOST_SYMBOLS = 3
_MOST_TRIED = 4000
# Sizes beyond those that a test names; the ordinary ones first: of 0 and 1 torch takes another view.
_SIZES = (2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24, 32, 64, 1, 0)


def agreed(env: ShapeEnv, fact: Any) -> bool:
    """Whether the example agrees with ``fact`` (a relation of sympy), or sizes have been found that do.

    They hold until ``SizeFacts.restore``.
    """
    fact = env.simplify(fact)
    hints = env.backed_var_to_val
    symbols = sorted((each for each in fact.free_symbols if each in hints), key=str)
    if free_unbacked_symbols(fact) or not symbols or _holds(fact, hints):
        return fact is not sympy.false
    if len(symbols) > _MOST_SYMBOLS:
        return False
    known = [each for each in _known(env) if not each.free_symbols.isdisjoint(symbols)]
    linked = {each for known_fact in known for each in known_fact.free_symbols if each in hints}.difference(symbols)
    for sizes in _with_linked(_choices(env, fact, symbols), linked):
        moved = {**hints, **sizes}
        if _holds(fact, moved) and all(_holds(each, moved) for each in known):
            hints.update(sizes)
            hints.update({s: e.xreplace(hints) for s, e in env.replacements.items() if s in hints})
            return True
    return False


def _with_linked(choices: Iterable[dict[Any, Any]], linked: Iterable[Any]) -> Iterator[dict[Any, Any]]:
    """Sizes, and after those of one symbol the same ones with the sizes that something is known of beside it.

    Two inputs of one length, or of one row, are the rule.
    """
    chosen = list(choices)
    yield from chosen
    for sizes in chosen:
        if len(sizes) == 1:
            yield sizes | dict.fromkeys(linked, next(iter(sizes.values())))


def _known(env: ShapeEnv) -> Iterator[Any]:
    """What is known of sizes, as far as the example agrees."""
    hints = env.backed_var_to_val
    facts = [each if answer == sympy.true else sympy.Not(each) for each, answer in env.axioms.items()]
    for each in (*facts, *(guard.expr for guard in env.guards)):
        if getattr(each, "free_symbols", None) and _holds(each, hints):
            yield each


def _choices(env: ShapeEnv, fact: Any, symbols: list[Any]) -> Iterable[dict[Any, Any]]:
    hints = env.backed_var_to_val
    numbers = [int(n) for n in fact.atoms(sympy.Integer) if abs(int(n)) < 2**31]
    # A quotient is at least some number from their product on.
    products = [a * b for a, b in itertools.combinations_with_replacement(numbers, 2)]
    named = [n + more for n in (*numbers, *products) for more in (1, 0, 2, -1)]
    tried = []
    for symbol in symbols:
        bounds = env.var_to_range.get(symbol)
        own = int(hints[symbol])
        sizes = dict.fromkeys((own, *(each for each in named if each > 1), own + 1, *_SIZES, *named))
        tried.append([n for n in sizes if n >= 0 and (bounds is None or n in bounds)])
    for chosen in itertools.islice(itertools.product(*tried), _MOST_TRIED):
        yield {symbol: sympy.Integer(n) for symbol, n in zip(symbols, chosen, strict=True)}


def _holds(fact: Any, sizes: Any) -> bool:
    try:
        return bool(fact.xreplace(sizes) == sympy.true)
    except (ZeroDivisionError, ValueError):
        return False
