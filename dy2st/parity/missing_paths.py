"""Inputs for the paths that the given ones don't take: what to search in, for how long, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dy2st.errors import UsageError
from dy2st.parity.call_form import CallForm
from dy2st.parity.calls_in_a_row import CallsInARow
from dy2st.parity.inputs import InputSet, describe, input_sets, sequence_of
from dy2st.parity.literals import numbers_near
from dy2st.parity.long_streams import Streams
from dy2st.parity.paths import missing_ways, path_sites, staged_copies, ways_taken
from dy2st.parity.program_sizes import within
from dy2st.parity.raising import guards_of, with_guards
from dy2st.parity.search import Search
from dy2st.parity.space import Space, space_of_examples
from dy2st.parity.stages import eager_reference
from dy2st.parity.stateful_calls import continued
from dy2st.parity.strategies import drawn_sets
from dy2st.staging.routes import Copies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch.export import ExportedProgram

    from dy2st.input_spec import InputSpec
    from dy2st.parity.stages import Reference

# A search is bounded by the number of its runs first, so that it finds the same on a slow machine.
RUNS_PER_SECOND = 100
# On so many more sets a file is compared, for each second.
OTHERS_PER_SECOND = 20
# There is a stream of calls for so many of them. All of them take at most this share of the time, but for the seconds
# that each may take however short the search: which calls there are is no matter of how slow a machine is.
_SETS_PER_STREAM, _STREAMS, _STREAM_SECONDS = 40, 0.5, 1.0
# How many sets are drawn from the user's own strategies.
_DRAWN = 100


@dataclass(frozen=True)
class Searched:
    """What a search has found: sets for a report, ``more`` on which a file is compared as well, and a line about it.

    Of ``more`` a report tells only those on which the file differs.
    """

    sets: list[InputSet]
    more: list[InputSet]
    line: str


def find_missing(
    model: Any,
    references: Sequence[Reference],
    program: ExportedProgram,
    *,
    seconds: float,
    seed: int = 0,
    specs: Mapping[str, InputSpec] | None = None,
    strategies: Any = None,
) -> Searched:
    """The sets that take paths which those of ``references`` don't, and a line about the search.

    For a model with state these are sequences of calls: a path may be taken by the third call alone, or by a later one.

    A size that may be 0, and is that in no set, is tried as well, whichever paths that takes: what has no elements is
    where eager and a file differ first. Where eager rejects it, the line says so.

    Args:
        model: what was exported as ``program``.
        references: what eager did with the sets that there are; the usable ones are where the search starts.
        program: it knows which paths there are.
        seconds: when to stop; before that after a hundred runs for each.
        seed: equal ones find equal sets, unless the time stops them.
        specs: what each parameter may be; without them, what the sets allow.
        strategies: hypothesis strategies by parameter, tried first; without ``specs`` nothing else is.

    Raises:
        UsageError: this is no time, or the arguments are not for a search.
    """
    if not 0 < seconds < float("inf"):
        raise UsageError(f"search={seconds:g} is no time", hint="seconds, more than 0")
    staged = staged_copies(program)
    copies = Copies(staged)
    called, following = continued(model, with_guards(references, program), program)
    taken, problem = ways_taken(called, following, copies)
    if problem:
        return Searched([], [], f"not searched: {problem}")
    paths = path_sites(staged, taken)
    usable = [reference.inputs for reference in with_guards(references, program) if not reference.problem]
    more = [] if strategies is None else drawn_sets(strategies, seed=seed, count=_DRAWN)
    space = None
    if specs:
        space = Space(CallForm.of(model, usable[0]), within(specs, program), seed, numbers_near(model, paths))
    elif strategies is None:
        space = replace(space_of_examples(model, usable, seed, program), numbers=numbers_near(model, paths))
    row = CallsInARow.of_program(model, program, usable[0]) if usable else None
    others = max(1, round(seconds * OTHERS_PER_SECOND))
    streams, count = None, max(1, others // _SETS_PER_STREAM)
    if row is not None:
        given = usable
        model, usable, more = row, [row.repeated(each) for each in usable], [row.repeated(each) for each in more]
        space = None if space is None else row.space(space)
        if space is not None:
            fastest = min(each.seconds for each in references if not each.problem)
            limit = max(seconds * _STREAMS / count, _STREAM_SECONDS)
            streams = Streams(row, space, given, seconds=fastest, limit=limit)
    evaluations = max(1, round(seconds * RUNS_PER_SECOND))
    guards = guards_of(program)
    search = Search(
        model,
        space,
        copies,
        missing_ways(staged, taken),
        evaluations=evaluations,
        seconds=seconds,
        more=more,
        guards=guards,
        others=others,
        streams=streams,
    )
    found = search.run(usable)
    empty, rejected = ([], "") if space is None else _empty_sets(model, space, [*usable, *found.sets])
    plural = "" if len(empty) == 1 else "s"
    more_sets = f"; {len(empty)} more input{plural} with a size of 0" if empty else ""
    sets, compared = [*found.sets, *empty], found.more
    if row is not None:
        sets, compared = ([call for each in several for call in row.calls(each)] for several in (sets, compared))
        sets += [call for stream in found.streams for call in stream]
    if streams is not None:
        seen = search.decisions.kept
        made = [sequence_of(f"stream_{i}", streams.stream(i, seen)) for i in range(count)]
        compared = [call for stream in made for call in stream] + compared
    sets, compared = ([replace(each, asked=False) for each in several] for several in (sets, compared))
    return Searched(sets, compared, f"{found.summary()}{more_sets}{rejected}")


def _empty_sets(model: Any, space: Space, sets: Sequence[InputSet]) -> tuple[list[InputSet], str]:
    """Sets with sizes of 0 that there are not yet, and what is said of those that eager rejects."""
    known = [candidate for each in sets if (candidate := space.of_set(each)) is not None]
    found: list[InputSet] = []
    rejected = ""
    for argument, candidate in space.empty(known):
        name = f"empty_{argument}"
        same = sum(each.name.startswith(name) for each in found)
        inputs = space.as_set(f"{name}_{same}" if same else name, candidate)
        reference = eager_reference(model, inputs)
        if reference.problem:
            rejected += f"; not compared: {describe(model, inputs)}: {reference.problem}"
        else:
            found.append(inputs)
    return found, rejected


def searchable(model: Any, inputs: Any) -> bool:
    """Whether a search can start from these sets: there are tensors in the first.

    Raises:
        ExampleInputsError: ``inputs`` has a form that ``check`` does not take.
    """
    return bool(CallForm.of(model, input_sets(inputs)[0]).tensor_names)
