"""More sets of inputs, on which a file alone is compared: a report has those on which it differs.

Paths say which inputs are unlike each other, and a few inputs for each are no proof: a wrong constant may show only in
what a later iteration makes of it. Running a file costs little, so a search has it answer on some hundred sets more.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dy2st.parity.long_streams import compared_calls
from dy2st.parity.raising import with_guards
from dy2st.parity.random_calls import with_draws
from dy2st.parity.stages import Reference, eager_reference
from dy2st.parity.stateful_calls import CALLS, continued

if TYPE_CHECKING:
    from torch.export import ExportedProgram

    from dy2st.parity.inputs import InputSet
    from dy2st.parity.stage_runs import StageRuns

# So many that differ are told: they differ for one reason, mostly.
_MOST = 3
# What is kept of those that agree: so many calls in all, and the last of each sequence or stream.
_KEPT, _OF_EACH = 40, 6


class MoreSets:
    """Sets of ``model``, which was exported as ``program``; they are compared for ``seconds`` at most.

    The calls of a sequence follow each other.
    """

    def __init__(self, model: Any, sets: Sequence[InputSet], program: ExportedProgram, seconds: float) -> None:
        self.model, self.sets, self.program, self.seconds = model, sets, program, seconds
        self.compared = 0
        self.out_of_time = False
        # The first that agree, for the tests beside a file: what a search values most comes first.
        self.agreed: list[Reference] = []

    def differing(self, runs: StageRuns) -> list[Reference]:
        """What eager does with those on which the file differs; of a sequence, all calls."""
        end = time.monotonic() + self.seconds
        found: list[Reference] = []
        told = 0
        for references in self.sequences(uneven=bool(runs.places)):
            self.compared += bool(references)
            if any([runs.disagrees(each) for each in references]):  # noqa: C419 - each call goes on from the last
                told += 1
                found += references
            elif len(self.agreed) < _KEPT:
                self.agreed += references[-_OF_EACH:]
            self.out_of_time = time.monotonic() > end
            if self.out_of_time or told == _MOST:
                break
        return found

    def sequences(self, *, uneven: bool = False) -> Iterator[list[Reference]]:
        """What eager does, one set after the other or all calls of a sequence, up to what it rejects.

        ``uneven`` says that a file may give nothing. A sequence of more calls than a search tries is a stream: of that
        there are some calls, each from the state that eager has come to.
        """
        for several in _sequences(self.sets):
            is_stream = len(several) > CALLS
            # What a later call does from the first state tells nothing.
            references = [Reference(each) if is_stream else eager_reference(self.model, each) for each in several]
            _, references = with_draws(*continued(self.model, references, self.program), self.program)
            references = with_guards(references, self.program, uneven=uneven)
            usable = list(itertools.takewhile(lambda each: not each.problem, references))
            yield compared_calls(usable) if is_stream else usable

    def told(self) -> str:
        """For the line about the search."""
        stopped = ", stopped by the time" if self.out_of_time else ""
        plural = "" if self.compared == 1 else "s"
        return f"; the file compared on {self.compared} more input{plural}{stopped}" if self.sets else ""


def _sequences(sets: Sequence[InputSet]) -> Iterator[list[InputSet]]:
    open_one: list[InputSet] = []
    for each in sets:
        open_one.append(each)
        if each.sequence is None or len(open_one) == each.sequence[2]:
            yield open_one
            open_one = []
