"""``--search``: inputs for the paths that the given ones don't take, compared like these, and saved if asked to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from dy2st.cli.search_options import RUNS_PER_SECOND
from dy2st.errors import SaveError, UsageError
from dy2st.parity.inputs import InputSet, bound_arguments
from dy2st.parity.paths import path_coverage
from dy2st.parity.search import Search
from dy2st.parity.space import Space, space_of_examples
from dy2st.parity.stages import Reference, eager_reference
from dy2st.parity.strategies import drawn_sets

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from torch.export import ExportedProgram

    from dy2st.cli.inputs import ExampleInputs
    from dy2st.cli.target import Target

# How many sets are drawn from the target's own strategies.
_DRAWN = 100


def searched(
    target: Target,
    options: argparse.Namespace,
    given: ExampleInputs,
    references: list[Reference],
    program: ExportedProgram,
    step: Callable[[str], None],
) -> tuple[list[Reference], str]:
    """The references, those of the sets that were found included, and a line about the search.

    Raises:
        UsageError: the number of seconds or the arguments are not for a search.
        SaveError: the folder can't be written to.
    """
    seconds = getattr(options, "search", None)
    if seconds is None:
        if getattr(options, "save_inputs", None):
            raise UsageError("--save-inputs saves what --search finds, and there is no --search")
        return references, ""
    if not 0 < seconds < float("inf"):
        raise UsageError(f"--search={seconds:g} is no time", hint="seconds, more than 0")
    step("following the paths")
    paths, problem = path_coverage(target.model, references, program)
    if problem:
        return references, f"not searched: {problem}"
    usable = [reference.inputs for reference in references if not reference.problem]
    strategies = getattr(target.module, "input_strategies", None)
    more = [] if strategies is None else drawn_sets(strategies, seed=options.seed, count=_DRAWN)
    space = None
    if given.specs:
        space = Space(usable[0], given.specs, options.seed)
    elif strategies is None:
        space = space_of_examples(target.model, usable, options.seed)
    step("searching for inputs")
    evaluations = max(1, round(seconds * RUNS_PER_SECOND))
    search = Search(target.model, space, paths, evaluations=evaluations, seconds=seconds, more=more)
    found = search.run(usable)
    if options.save_inputs and found.sets:
        _save(Path(options.save_inputs), target.model, found.sets)
    return [*references, *(eager_reference(target.model, each) for each in found.sets)], found.summary()


def _save(folder: Path, model: Any, sets: Sequence[InputSet]) -> None:
    """One ``.pt`` file for each set, named after what it reaches."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for each in sets:
            name = re.sub(r"[^\w.-]", "_", each.name)
            torch.save([bound_arguments(model, each)], folder / f"{name}.pt")
    except OSError as error:
        raise SaveError(f"{folder} can't be written: {error.strerror}") from error
