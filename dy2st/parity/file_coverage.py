"""Which arms of an ONNX file the inputs take: the file's own branches and loops, not the lines that they come from.

A condition in an unrolled loop, or in a helper that is called twice, is several branches of the file, and the file may
be wrong in one of them alone. So a copy of the file that counts (:mod:`dy2st.onnx.runtime.arm_counts`) runs on the
inputs that were compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dy2st.capture.program import SITES
from dy2st.errors import OnnxError
from dy2st.onnx.passes.node_constructs import CONSTRUCT, construct_of
from dy2st.onnx.passes.source_lines import STACK, innermost, text_in
from dy2st.onnx.runtime.arm_nodes import ArmNode
from dy2st.onnx.runtime.counted_file import counted_file
from dy2st.onnx.runtime.stepping import metadata
from dy2st.parity.paths import raising_way
from dy2st.parity.stage_runs import ONNXRUNTIME, limit_for
from dy2st.parity.stages import one_line
from dy2st.report.file_arms import ELSE, MORE_TRIPS, NO_TRIP, ONE_TRIP, SOME_TRIP, THEN, FileSite
from dy2st.staging.sites import accepted_ways

if TYPE_CHECKING:
    from torch.export import ExportedProgram

    from dy2st.parity.stages import OnnxSession, Reference
    from dy2st.report.model import InputResult
    from dy2st.staging.routes import Copy

_ARMS, _TRIPS = (THEN, ELSE), (NO_TRIP, ONE_TRIP, MORE_TRIPS)
# By the place of a construct, its line with the comment that it has now.
Texts = Mapping[tuple[str, int, "int | None", str], str]


def file_coverage(
    model: Any,
    references: Sequence[Reference],
    results: Sequence[InputResult],
    onnx_file: str | Path | None,
    program: ExportedProgram | None,
    make: Callable[..., OnnxSession],
) -> tuple[tuple[FileSite, ...], str]:
    """The branches and loops of a file with the inputs that took each of their ways; or why that isn't known.

    Inputs count that were compared, whatever came of it. One on which eager raises counts where it leads to the branch
    that raises, if the file has that once: nothing else of it is compared.
    """
    if onnx_file is None:
        return (), ""
    staged = {} if program is None else program.graph_module.meta.get(SITES, {})
    texts: Texts = {copy[:4]: text for copy, (text, _) in staged.items()}
    order = None if program is None else [str(name) for name in program.graph_signature.user_inputs]
    compared = [(each, found) for each, found in zip(references, results, strict=True) if _is_compared(found)]
    try:
        with counted_file(Path(onnx_file)) as (counted, path):
            sites = _sites(counted.nodes, texts)
            if not sites or not compared:
                return tuple(sites), ""
            session = make(path)
            for reference, result in compared:
                if result.raises:
                    sites = _with_raising(sites, raising_way(model, reference.inputs), result.name)
                    continue
                session.limit = limit_for(reference)
                feed = session.feed(model, reference.inputs, order)
                (counts,) = [each for each in session.outputs(feed) if each.name == counted.output]
                found = [int(count) for count in counts.tensor]
                sites = [
                    _with_counts(site, found[node.first :], result.name)
                    for site, node in zip(sites, counted.nodes, strict=True)
                ]
            return tuple(_without_first(sites)), ""
    except Exception as error:  # noqa: BLE001 - onnxruntime's exceptions have no common base; the values were compared
        why = error.what if isinstance(error, OnnxError) else one_line(error)
        return (), f"the file's arms can't be counted: {why}"


def _is_compared(result: InputResult) -> bool:
    """Whether the file has given something for an input that eager was held against."""
    return any(stage.stage == ONNXRUNTIME and stage.status != "error" for stage in result.stages)


def _sites(nodes: Sequence[ArmNode], texts: Texts) -> list[FileSite]:
    sites = [_site(node, texts) for node in nodes]
    loops = {(site.file, site.line, site.column) for site in sites if site.construct == "loop"}
    loops |= {site[:3] for site in texts if site[3] == "loop"}
    return [
        # what a loop's else clause asks is the loop's own business
        replace(site, demanded=()) if site.op == "If" and (site.file, site.line, site.column) in loops else site
        for site in sites
    ]


def _site(arm: ArmNode, texts: Texts) -> FileSite:
    """What a node is in the user's source, and which of its ways are demanded."""
    node, op = arm.node, arm.node.op_type
    stack = metadata(node, STACK)
    construct = construct_of(metadata(node, CONSTRUCT))
    file, line = innermost(stack) or ("", None)
    text = text_in(stack)
    column = None
    demanded: tuple[str, ...] = _ARMS if op == "If" else (SOME_TRIP,)
    if construct is not None:
        column = construct.column
        if not construct.kind:
            demanded = ()
        elif construct.kind == "loop":
            demanded = tuple(way for way in construct.ways if way in (*_TRIPS, SOME_TRIP))
        if line is not None:
            text = texts.get((file, line, column, construct.kind), text)
    accepted = accepted_ways(text, demanded)
    if SOME_TRIP in demanded and MORE_TRIPS in accepted_ways(text, _TRIPS):
        accepted = (*accepted, SOME_TRIP)
    kind = "" if construct is None else construct.kind
    return FileSite(arm.name, op, arm.around, file, line, column, kind, text, demanded, accepted)


def _without_first(sites: list[FileSite]) -> list[FileSite]:
    """In the body of a loop whose first iterations stand before it, no way is demanded that only those may take.

    ``if i == 0`` can't be true there. So a way counts that any copy of the line in that body has taken; whether it was
    taken at all is what the paths of the source tell.
    """
    apart = {site.node for site in sites if site.construct == "loop" and site.demanded == (SOME_TRIP,)}
    taken: dict[tuple[str, Any], set[str]] = {}
    for site in sites:
        for node, _ in site.inside:
            ways = taken.setdefault((node, _place(site)), set())
            ways.update(way for way in (*site.ways, SOME_TRIP) if site.takers(way))
    found = []
    for site in sites:
        around = [node for node, _ in site.inside if node in apart]
        demanded = tuple(way for way in site.demanded if all(way in taken[node, _place(site)] for node in around))
        found.append(replace(site, demanded=demanded))
    return found


def _place(site: FileSite) -> tuple[str, int | None, int | None, str]:
    return site.file, site.line, site.column, site.construct


def _with_counts(site: FileSite, counts: Sequence[int], name: str) -> FileSite:
    """With an input that has taken the ways whose count is not zero."""
    ways = [way for way, count in zip(site.ways, counts, strict=False) if count]
    return replace(site, taken=site.taken | {way: (*site.taken.get(way, ()), name) for way in ways})


def _with_raising(sites: list[FileSite], ways: Sequence[tuple[Copy, str]], name: str) -> list[FileSite]:
    """With an input that raises, where it is known by which arm."""
    taken = {copy[:4]: way for copy, way in ways}
    places = [_place(site) for site in sites]
    return [
        replace(site, taken=site.taken | {taken[place]: (*site.taken.get(taken[place], ()), name)})
        if place in taken and places.count(place) == 1
        else site
        for site, place in zip(sites, places, strict=True)
    ]
