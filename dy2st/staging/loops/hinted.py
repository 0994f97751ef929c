"""What loops make of the hints in :mod:`dy2st.hints` under a capture."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dy2st.errors import Location, LoopHintError, StagingError
from dy2st.errors.cautions import UnrolledLoopWarning
from dy2st.hints import at_most, rolled, unrolled
from dy2st.staging.iterator_positions import is_iterator
from dy2st.staging.loops.iterables import StagedIterable, as_iterable, indexable

# Copies of a body that nobody may have meant, and how many nodes they must have made.
MANY_COPIES, MANY_NODES = 100, 1000


@dataclass
class Hinted:
    """What a hint was given, and what it says: ``rolled``, ``unrolled`` or a limit."""

    value: Any
    rolled: bool = False
    unrolled: bool = False
    limit: int | None = None

    def __bool__(self) -> bool:
        return bool(self._refuse())

    def __iter__(self) -> Any:
        return self._refuse()

    def _refuse(self) -> Any:
        raise LoopHintError(
            "a loop hint is used where no loop takes it",
            hint="for x in dy2st.rolled(...), for x in dy2st.unrolled(...), while dy2st.at_most(limit, test)",
        )


def _rolled(steps: Any) -> Hinted:
    return Hinted(steps.value, True, steps.unrolled, steps.limit) if isinstance(steps, Hinted) else Hinted(steps, True)


def _unrolled(steps: Any) -> Hinted:
    return Hinted(steps, unrolled=True)


def _at_most(limit: Any, condition: Any) -> Hinted:
    if type(limit) is not int or limit < 1:
        raise LoopHintError("the limit of dy2st.at_most is not a positive Python int", hint="dy2st.at_most(100, test)")
    if isinstance(condition, Hinted):
        return Hinted(condition.value, condition.rolled, condition.unrolled, limit)
    return Hinted(condition, limit=limit)


HINTS: dict[Any, Callable[..., Hinted]] = {rolled: _rolled, unrolled: _unrolled, at_most: _at_most}


def rolled_steps(steps: Any) -> StagedIterable | None:
    """The steps of a ``for`` that is to be rolled; None if there are none.

    Raises:
        LoopHintError: an index can't pick one of them.
    """
    found = as_iterable(steps)
    if found is not None:
        return found
    values = list(steps) if is_iterator(steps) or isinstance(steps, type({}.values()) | type({}.keys())) else steps
    if hasattr(values, "__len__") and len(values) == 0:
        return None
    try:
        found = indexable(values)
    except StagingError as error:
        raise LoopHintError(f"this loop can't be rolled: {error.what}", hint=HINT) from error
    if found is None:
        kind = type(steps).__name__
        raise LoopHintError(f"this loop can't be rolled: only Python can take elements of a {kind}", hint=HINT)
    return found


HINT = "iterate over a range, a tensor, or tensors of one shape and dtype; leave loops over modules unrolled"


def warn_of_copies(copies: int, nodes: int, location: Location) -> None:
    """The loop at ``location`` has been unrolled."""
    if copies <= MANY_COPIES or nodes < MANY_NODES:
        return
    warnings.warn_explicit(
        f"this loop was unrolled: {copies} copies of its body, {nodes} nodes of the graph; dy2st.rolled(...) around "
        "what it iterates makes it one loop",
        UnrolledLoopWarning,
        location.filename,
        location.line,
    )
