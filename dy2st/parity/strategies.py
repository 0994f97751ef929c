"""Sets of inputs drawn from hypothesis strategies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dy2st.errors import UsageError
from dy2st.parity.inputs import InputSet


def drawn_sets(strategies: Any, *, seed: int, count: int) -> list[InputSet]:
    """At most ``count`` sets, the same for the same seed and the same hypothesis.

    Args:
        strategies: a dict of hypothesis strategies by parameter; they draw tensors, or whatever the model takes.
        seed: of the draws.
        count: how many to draw; a strategy with fewer values gives fewer.

    Raises:
        UsageError: this is no such dict, or hypothesis is not installed.
    """
    try:
        from hypothesis import HealthCheck, Phase, given, settings
        from hypothesis import seed as seeded
        from hypothesis.strategies import SearchStrategy
    except ImportError as error:
        raise UsageError("input_strategies need hypothesis, which is not installed") from error
    fits = isinstance(strategies, Mapping) and strategies
    if not fits or not all(isinstance(each, SearchStrategy) for each in strategies.values()):
        raise UsageError("input_strategies is no dict of hypothesis strategies by parameter")
    found: list[InputSet] = []

    @seeded(seed)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(**dict(strategies))
    def collect(**values: Any) -> None:
        found.append(InputSet(str(len(found)), (), {name: values[name] for name in strategies}))

    collect()
    return found[:count]
