"""Path coverage: which ways of the staged branches and loops the inputs take, seen in eager code."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch

from dy2st.capture.observing import Listener, observing
from dy2st.capture.program import CAPTURING, SITES
from dy2st.parity.gradient_mode import gradients_as_asked
from dy2st.parity.outputs import Output, flat_outputs
from dy2st.parity.stages import SEED, one_line
from dy2st.parity.state import preserved
from dy2st.parity.stateful_calls import called
from dy2st.report.model import PathCopy, PathSite, ways_of
from dy2st.staging.routes import Copies, by_construct, labels
from dy2st.staging.sites import DECIDES, accepted_ways

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch.export import ExportedProgram

    from dy2st.parity.inputs import InputSet
    from dy2st.parity.stages import Reference
    from dy2st.staging.routes import Copy


def converted_run(model: Any, inputs: InputSet) -> tuple[list[Output], dict[Copy, set[str]]]:
    """What the model returns when it runs converted but eager, its callees too, and the ways that it took."""
    given = inputs.copied()
    with CAPTURING, observing() as observer, gradients_as_asked(model), preserved(model):  # noqa: SIM117  one line would be too long
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            outputs = flat_outputs(called(observer.call, model)(*given.args, **given.kwargs))
            outputs = [each.copied() for each in outputs]
    return outputs, observer.taken


class _Last(Listener):
    """Hears which way the last ``if`` has gone."""

    def __init__(self) -> None:
        self.way: list[tuple[Copy, str]] = []

    def branch(self, site: Copy, way: str) -> None:
        """One more."""
        self.way = [(site, way)]


def raising_way(model: Any, inputs: InputSet) -> list[tuple[Copy, str]]:
    """The way that leads to where the model raises: the last that an ``if`` has gone.

    No other counts as taken: what was computed on the way to it is compared with nothing.
    """
    given, last = inputs.copied(), _Last()
    with (
        suppress(Exception),
        CAPTURING,
        observing(last) as observer,
        gradients_as_asked(model),
        preserved(model),
        torch.random.fork_rng(devices=[]),
    ):
        torch.manual_seed(SEED)
        called(observer.call, model)(*given.args, **given.kwargs)
    return last.way


def path_coverage(
    model: Any,
    references: Sequence[Reference],
    program: ExportedProgram | None,
    seen: Mapping[str, dict[Copy, set[str]]] | None = None,
) -> tuple[tuple[PathSite, ...], str]:
    """The constructs that the program's capture staged, with the ways that the sets take; or why that isn't known.

    A way of a construct that is several branches of the program, in an unrolled loop or in a helper that is called
    twice, is taken if it is in all of them.
    """
    staged = staged_copies(program)
    taken, problem = ways_taken(model, references, Copies(staged), seen) if staged else ({}, "")
    return ((), problem) if problem else (path_sites(staged, taken), "")


def ways_taken(
    model: Any,
    references: Sequence[Reference],
    copies: Copies,
    seen: Mapping[str, dict[Copy, set[str]]] | None = None,
) -> tuple[dict[Copy, set[str]], str]:
    """The ways that the sets take, by copy; or why that isn't known.

    The model runs once more on every set, converted but eager, and its state is put back; ``seen`` has what sets took
    that have been run so already, by their names.
    """
    taken: dict[Copy, set[str]] = {}
    for reference in references:
        if reference.problem:
            continue
        if reference.raises:
            for observed, way in raising_way(model, reference.inputs):
                if (copy := copies.of(observed)) is not None:
                    taken.setdefault(copy, set()).add(way)
            continue
        try:
            known = None if seen is None else seen.get(reference.inputs.name)
            ways_by_copy = converted_run(model, reference.inputs)[1] if known is None else known
        except Exception as error:  # noqa: BLE001 - the comparison with eager does not depend on it
            return {}, f"the paths of input {reference.inputs.name} can't be observed: {one_line(error)}"
        for observed, ways in ways_by_copy.items():
            if (copy := copies.of(observed)) is not None:
                taken.setdefault(copy, set()).update(ways)
    return taken, ""


def staged_copies(program: ExportedProgram | None) -> dict[Copy, tuple[str, tuple[str, ...]]]:
    """What a program's capture has staged: each copy of a construct with its line and the ways that it can go."""
    found: dict[Copy, tuple[str, tuple[str, ...]]] = {} if program is None else program.graph_module.meta.get(SITES, {})
    loops = {copy[:3] for copy in found if copy[3] == "loop"}
    # What a loop's else clause asks is the loop's own business.
    return {copy: each for copy, each in found.items() if copy[3] == "loop" or copy[:3] not in loops or copy[3] != "if"}


def missing_ways(
    staged: Mapping[Copy, tuple[str, tuple[str, ...]]], taken: Mapping[Copy, set[str]]
) -> list[tuple[Copy, str]]:
    """Each copy with a way that was not taken, and is not accepted as it is."""
    return [
        (copy, way)
        for copy, (text, ways) in staged.items()
        for way in ways
        if way not in taken.get(copy, ()) and way not in accepted_ways(text, ways)
    ]


def path_sites(
    staged: Mapping[Copy, tuple[str, tuple[str, ...]]], taken: Mapping[Copy, set[str]]
) -> tuple[PathSite, ...]:
    """For the report: the copies by construct, in the order of the source."""
    sites = []
    for construct, copies in by_construct(staged).items():
        names = labels(copies)
        found = tuple(
            PathCopy(names[copy], staged[copy][1], tuple(w for w in staged[copy][1] if w in taken.get(copy, ())))
            for copy in copies
        )
        text = staged[copies[0]][0]
        sites.append(PathSite.of_copies(*construct, text, found, accepted_ways(text, ways_of(found))))
    # What decides a condition stands behind what asks it.
    return tuple(sorted(sites, key=lambda each: (each.file, each.line, each.kind in DECIDES, each.column or 0)))
