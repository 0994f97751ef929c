"""Path coverage: which ways of the staged branches and loops the inputs take, seen in eager code."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch

from dy2st.capture.observing import Listener, observing
from dy2st.capture.program import CAPTURING, SITES
from dy2st.parity.outputs import Output, flat_outputs
from dy2st.parity.stages import SEED, one_line
from dy2st.parity.state import preserved
from dy2st.report.model import PathSite
from dy2st.staging.sites import accepted_ways

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch.export import ExportedProgram

    from dy2st.parity.inputs import InputSet
    from dy2st.parity.stages import Reference
    from dy2st.staging.sites import Site


def converted_run(model: Any, inputs: InputSet) -> tuple[list[Output], dict[Site, set[str]]]:
    """What the model returns when it runs converted but eager, its callees too, and the ways that it took."""
    given = inputs.copied()
    with CAPTURING, observing() as observer, torch.no_grad(), preserved(model):  # noqa: SIM117  one line would be too long
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(SEED)
            outputs = flat_outputs(observer.call(model)(*given.args, **given.kwargs))
            outputs = [Output(each.name, each.tensor.clone(), each.is_number) for each in outputs]
    return outputs, observer.taken


class _Last(Listener):
    """Hears which way the last ``if`` has gone."""

    def __init__(self) -> None:
        self.way: list[tuple[Site, str]] = []

    def branch(self, site: Site, way: str) -> None:
        """One more."""
        self.way = [(site, way)]


def raising_way(model: Any, inputs: InputSet) -> list[tuple[Site, str]]:
    """The way that leads to where the model raises: the last that an ``if`` has gone.

    No other counts as taken: what was computed on the way to it is compared with nothing.
    """
    given, last = inputs.copied(), _Last()
    with (
        suppress(Exception),
        CAPTURING,
        observing(last) as observer,
        torch.no_grad(),
        preserved(model),
        torch.random.fork_rng(devices=[]),
    ):
        torch.manual_seed(SEED)
        observer.call(model)(*given.args, **given.kwargs)
    return last.way


def path_coverage(
    model: Any,
    references: Sequence[Reference],
    program: ExportedProgram | None,
    seen: Mapping[str, dict[Site, set[str]]] | None = None,
) -> tuple[tuple[PathSite, ...], str]:
    """The constructs that the program's capture staged, with the ways that the sets take; or why that isn't known.

    The model runs once more on every set, converted but eager, and its state is put back; ``seen`` has what sets took
    that have been run so already, by their names.
    """
    meta = {} if program is None else program.graph_module.meta
    staged: dict[Site, tuple[str, tuple[str, ...]]] = meta.get(SITES, {})
    if not staged:
        return (), ""
    taken: dict[Site, set[str]] = {}
    for reference in references:
        if reference.problem:
            continue
        if reference.raises:
            for site, way in raising_way(model, reference.inputs):
                taken.setdefault(site, set()).add(way)
            continue
        try:
            known = None if seen is None else seen.get(reference.inputs.name)
            ways_by_site = converted_run(model, reference.inputs)[1] if known is None else known
        except Exception as error:  # noqa: BLE001 - the comparison with eager does not depend on it
            return (), f"the paths of input {reference.inputs.name} can't be observed: {one_line(error)}"
        for site, ways in ways_by_site.items():
            taken.setdefault(site, set()).update(ways)
    loops = {site[:3] for site in staged if site[3] == "loop"}
    sites = [
        PathSite(*site, text, ways, tuple(w for w in ways if w in taken.get(site, ())), accepted_ways(text, ways))
        for site, (text, ways) in staged.items()
        if site[3] == "loop" or site[:3] not in loops  # what a loop's else clause asks is the loop's own business
    ]
    return tuple(sorted(sites, key=lambda site: (site.file, site.line, site.column or 0))), ""
