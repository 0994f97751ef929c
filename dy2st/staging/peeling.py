"""Loops whose first iteration builds what the others go on with: it is taken out of the loop.

    keys = []
    while not done:
        if len(keys) == 0: keys.append(key)
        else: keys[0] = torch.cat([keys[0], key])

A list's length is Python's before the first iteration and after each other, but not the same: a loop's state has one
structure. Behind a copy of the first iteration it does. Which loops need that is found out on the way; the export is
then done again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from dy2st.errors import Dy2stError, UsageError
from dy2st.operators.export_session import current
from dy2st.operators.jumps import Jump

T = TypeVar("T")

# Exports of one model: each is as long as the first.
MOST_ATTEMPTS = 6


class AgainError(Jump):
    """The export is to be done again: the first iteration of the loop at ``site`` is taken out of it, or no longer."""

    def __init__(self, site: Any, *, apart: bool) -> None:
        super().__init__()
        self.site = site
        self.apart = apart


class FirstIterations:
    """Which loops of a model that is being exported have their first iteration taken out."""

    def __init__(self) -> None:
        # By site: whether it is; a site that is missing here has not been looked at.
        self.apart: dict[Any, bool] = {}
        # Staged loops that carry something of another structure than they began with, and those that nothing else is
        # known of yet.
        self.suspects: set[Any] = set()

    def revised(self) -> bool:
        """After a refusal: whether another way of capturing these loops is left to try."""
        tried = [site for site, apart in self.apart.items() if apart]
        fresh = self.suspects - set(self.apart)
        self.apart.update(dict.fromkeys(tried, False))
        if not tried:
            self.apart.update(dict.fromkeys(fresh, True))
        return bool(tried or fresh)

    def settle(self, attempts: Callable[[], T]) -> T:
        """``attempts()`` until the loops can be captured; the refusal of the plain way if they can't."""
        plain: Dy2stError | None = None
        for _ in range(MOST_ATTEMPTS):
            try:
                return attempts()
            except AgainError as again:
                self.apart[again.site] = again.apart
            except UsageError:
                raise
            except Dy2stError as refused:
                if plain is None or True not in self.apart.values():
                    plain = refused
                if not self.revised():
                    break
        if plain is not None:
            raise plain
        self.apart = dict.fromkeys(self.apart, False)
        return attempts()


def first_iterations() -> FirstIterations:
    """Those of the running export."""
    return current().part(FirstIterations)


def builds(before: Any, after: Any) -> bool:
    """Whether an iteration has put a tuple of another length in place of one: the next will hardly do so again."""
    if isinstance(before, tuple) and isinstance(after, tuple):
        if len(before) != len(after):
            return True
        return any(builds(a, b) for a, b in zip(before, after, strict=True))
    return False


class OtherWay:
    """``met``: the first way has been taken. ``taken``: the other one is to be taken, for a program that is refused."""

    def __init__(self) -> None:
        self.met = False
        self.taken = False
