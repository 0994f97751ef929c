"""``--search``: inputs for the paths that the given ones don't take, compared like these, and saved if asked to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dy2st.errors import SaveError, UsageError
from dy2st.parity.inputs import InputSet, bound_arguments
from dy2st.parity.missing_paths import find_missing
from dy2st.parity.more_sets import MoreSets
from dy2st.parity.saving import save_whole
from dy2st.parity.stages import Reference, eager_reference

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from torch.export import ExportedProgram

    from dy2st.cli.inputs import ExampleInputs
    from dy2st.cli.target import Target


def searched(
    target: Target,
    options: argparse.Namespace,
    given: ExampleInputs,
    references: list[Reference],
    program: ExportedProgram,
    step: Callable[[str], None],
) -> tuple[list[Reference], str, MoreSets | None]:
    """The references, those of the sets that were found included, a line about the search, and sets for the file alone.

    Raises:
        UsageError: the number of seconds or the arguments are not for a search.
        SaveError: the folder can't be written to.
    """
    seconds = getattr(options, "search", None)
    if seconds is None:
        if getattr(options, "save_inputs", None):
            raise UsageError("--save-inputs saves what --search finds, and there is no --search")
        return references, "", None
    step("searching for inputs")
    strategies = getattr(target.module, "input_strategies", None)
    found = find_missing(
        target.model,
        references,
        program,
        seconds=seconds,
        seed=options.seed,
        specs=given.specs,
        strategies=strategies,
    )
    if options.save_inputs and found.sets:
        _save(Path(options.save_inputs), target.model, found.sets)
    more = MoreSets(target.model, found.more, program, seconds)
    return [*references, *(eager_reference(target.model, each) for each in found.sets)], found.line, more


def _save(folder: Path, model: Any, sets: Sequence[InputSet]) -> None:
    """One ``.pt`` file for each set, named after what it reaches."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for each in sets:
            name = re.sub(r"[^\w.-]", "_", each.name)
            save_whole(folder / f"{name}.pt", [bound_arguments(model, each)])
    except OSError as error:
        raise SaveError(f"{folder} can't be written: {error.strerror}") from error
