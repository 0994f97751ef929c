"""What a search for inputs has found: the sets, what each reaches, and the line that a report has about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dy2st.parity.inputs import InputSet
    from dy2st.staging.routes import Copy


@dataclass
class Found:
    """The sets that were found, what each reaches, and what was not reached.

    ``more`` are sets that reach nothing new, and on which a file may be wrong all the same.
    """

    sets: list[InputSet] = field(default_factory=list)
    reached: list[str] = field(default_factory=list)
    missing: int = 0
    evaluations: int = 0
    out_of_time: bool = False
    # How many of the sets are there since they are close to where a condition flips.
    near: int = 0
    more: list[InputSet] = field(default_factory=list)
    # Sequences of more calls than a candidate has, each for what its last call takes.
    streams: list[list[InputSet]] = field(default_factory=list)

    def summary(self) -> str:
        """One line for the report."""
        paths = f"{len(self.reached)} path{'' if len(self.reached) == 1 else 's'}"
        found = len(self.sets) - self.near + len(self.streams)
        sets = f"{found} input{'' if found == 1 else 's'}"
        rest = f", {self.missing} not reached" if self.missing else ""
        stopped = "; stopped by the time, so another run may find others" if self.out_of_time else ""
        near = f", {self.near} near to where conditions flip" if self.near else ""
        return f"searched with {self.evaluations} runs: {sets} for {paths}{near}{rest}{stopped}"


def way_name(site: Copy, way: str) -> str:
    """What a set that takes a way of a construct is called: file, line, and the way."""
    return f"{Path(site[0]).stem}_{site[1]}_{way.replace(' ', '_')}"
