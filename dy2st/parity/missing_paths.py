"""Inputs for the paths that the given ones don't take: what to search in, for how long, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from dy2st.errors import UsageError
from dy2st.parity.inputs import InputSet, bound_arguments, input_sets
from dy2st.parity.literals import numbers_near
from dy2st.parity.paths import path_coverage
from dy2st.parity.raising import guards_of, with_guards
from dy2st.parity.search import Search
from dy2st.parity.space import Space, space_of_examples
from dy2st.parity.strategies import drawn_sets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch.export import ExportedProgram

    from dy2st.input_spec import InputSpec
    from dy2st.parity.stages import Reference

# A search is bounded by the number of its runs first, so that it finds the same on a slow machine.
RUNS_PER_SECOND = 100
# How many sets are drawn from the user's own strategies.
_DRAWN = 100


def find_missing(
    model: Any,
    references: Sequence[Reference],
    program: ExportedProgram,
    *,
    seconds: float,
    seed: int = 0,
    specs: Mapping[str, InputSpec] | None = None,
    strategies: Any = None,
) -> tuple[list[InputSet], str]:
    """The sets that take paths which those of ``references`` don't, and a line about the search.

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
    paths, problem = path_coverage(model, with_guards(references, program), program)
    if problem:
        return [], f"not searched: {problem}"
    usable = [reference.inputs for reference in references if not reference.problem]
    more = [] if strategies is None else drawn_sets(strategies, seed=seed, count=_DRAWN)
    space = None
    if specs:
        space = Space(usable[0], dict(specs), seed, numbers_near(model, paths))
    elif strategies is None:
        space = replace(space_of_examples(model, usable, seed), numbers=numbers_near(model, paths))
    evaluations = max(1, round(seconds * RUNS_PER_SECOND))
    guards = guards_of(program)
    search = Search(model, space, paths, evaluations=evaluations, seconds=seconds, more=more, guards=guards)
    found = search.run(usable)
    return found.sets, found.summary()


def searchable(model: Any, inputs: Any) -> bool:
    """Whether a search can start from these sets: all their arguments are tensors.

    Raises:
        ExampleInputsError: ``inputs`` has a form that ``check`` does not take.
    """
    values = [value for each in input_sets(inputs) for value in bound_arguments(model, each).values()]
    return all(isinstance(value, torch.Tensor) for value in values)
