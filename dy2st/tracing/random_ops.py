"""Which of torch's operators draw random numbers.

Source: ``torch.Tag.nondeterministic_seeded``, which torch gives to operators that draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

# Those whose result is what they draw, and those that write it into what they are given.
DRAWN = frozenset(
    "bernoulli rand rand_like randn randn_like randint randint_like normal randperm multinomial exponential poisson "
    "uniform normal_functional".split()
)
WRITTEN = frozenset("bernoulli_ uniform_ normal_ exponential_ random_ geometric_ cauchy_ log_normal_".split())
DROPOUT = torch.ops.aten.dropout.default


def is_written(target: Any) -> bool:
    """Whether an operator that draws writes what it draws into its first argument."""
    return target._opname in WRITTEN


def is_drawn(target: Any) -> bool:
    """Whether what an operator draws is its result, or what it writes."""
    return target is DROPOUT or target._opname in DRAWN | WRITTEN


def draws(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a call of an operator draws random numbers, as far as its arguments say."""
    if not isinstance(target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    given = {each.name: each.default_value for each in target._schema.arguments if each.has_default_value()}
    given |= {each.name: value for each, value in zip(target._schema.arguments, args, strict=False)}
    given |= kwargs
    if target is DROPOUT:
        # With a probability of one, the result is zero.
        return bool(given["train"]) and given["p"] not in (0, 1)
    if given.get("train", given.get("training")) is False:
        return False
    chances = [given[name] for name in ("dropout", "dropout_p") if name in given]
    return not chances or any(each != 0 for each in chances)
