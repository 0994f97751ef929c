"""Which inputs are unlike each other: those on which two decisions follow one another as on none before.

That every arm is taken says nothing of what one arm leaves to the next. A limit that is wrong in a loop may matter only
where the next iteration goes on from there. So of what a search runs, each candidate is kept on which some pair of
decisions, one made right after the other, is new.
Source: Zalewski, "American fuzzy lop", 2014 (coverage of edges); Rapps & Weyuker, "Selecting software test data using
data flow information", 1985 (why arms alone are too few).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from dy2st.parity.space import Candidate

# So many candidates are kept: each is run on the file.
MOST = 100

Pair = tuple[Hashable, Hashable]


class Decisions:
    """The candidates that have shown something new, in the order in which they came."""

    def __init__(self) -> None:
        self.kept: list[Candidate] = []
        self._seen: set[Pair] = set()

    def note(self, pairs: Iterable[Pair], candidate: Candidate) -> None:
        """What followed what in a run on a candidate."""
        new = set(pairs) - self._seen
        if new and len(self.kept) < MOST:
            self._seen |= new
            self.kept.append(candidate)


class Following:
    """Hears decisions one by one, and has the pairs of those that followed one another."""

    def __init__(self) -> None:
        self.pairs: set[Pair] = set()
        self._last: Hashable = None

    def decided(self, decision: Hashable) -> None:
        """One more."""
        self.pairs.add((self._last, decision))
        self._last = decision
