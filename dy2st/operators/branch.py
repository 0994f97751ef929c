"""``if``/``elif``/``else`` and the ternary."""

from __future__ import annotations

from typing import Any

from dy2st.operators.export_session import current
from dy2st.operators.jumps import NO_ARM, NoBlock


class PythonBranch:
    """An ``if`` on a Python value: one of two shared objects, so that an eager ``if`` allocates nothing."""

    __slots__ = ("taken",)
    staged = False

    def __init__(self, taken: bool) -> None:
        self.taken = taken

    def then(self) -> bool:
        """Whether the then-suite runs (now)."""
        return self.taken

    def orelse(self) -> bool:
        """Whether the else-suite runs (now)."""
        return not self.taken

    def arm(self) -> NoBlock:
        """Context of a suite with jumps; nothing to catch in Python."""
        return NO_ARM

    def join(self) -> tuple[Any, ...]:
        """End of the statement; in a staged ``if`` the joined values of its names."""
        return ()

    restore = join

    def choose(self, then: Any, orelse: Any) -> Any:
        """The value of a ternary."""
        return then if self.taken else orelse


TAKEN = PythonBranch(True)
NOT_TAKEN = PythonBranch(False)


def if_(test: Any, *names: str) -> Any:
    """Start an ``if`` whose suites change ``names``."""
    if test is not True and test is not False and (capture := current().capture) is not None:
        return capture.branch(test, names)
    return TAKEN if test else NOT_TAKEN


def ifexp(branch: Any, then: Any, orelse: Any) -> Any:
    """The value of ``then if test else orelse``; both values were evaluated in their arms."""
    return branch.choose(then, orelse)
