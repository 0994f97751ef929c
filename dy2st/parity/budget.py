"""What the search for a line may take: a wrong file may run for ever, and keep ever more values."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

SECONDS = 60.0
# What is kept of all values together; 4 GB of float32.
_MOST_NUMBERS = 1_000_000_000


class OverBudgetError(BaseException):
    """The search is given up: no ``except Exception`` on the way may take it for a failure of what runs.

    The text says why.
    """


@dataclass
class Budget:
    """Of one search, from when this is made."""

    seconds: float = SECONDS
    numbers: int = _MOST_NUMBERS
    _begun: float = field(default_factory=time.monotonic)

    def spend(self, numbers: int = 0) -> None:
        """Go on, with so many numbers more to keep.

        Raises:
            OverBudgetError: it has taken too long, or there are too many.
        """
        self.numbers -= numbers
        if time.monotonic() - self._begun > self.seconds:
            raise OverBudgetError(f"it was not found within {self.seconds:g} s")
        if self.numbers < 0:
            raise OverBudgetError("there are too many values to look at")
