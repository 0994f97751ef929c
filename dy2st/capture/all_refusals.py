"""All refusals of a model, not only the first.

What is refused is muted and the model captured again, until nothing more is refused: a muted statement computes
nothing, and the names that it binds hold values that nobody knows and nobody refuses. No program is made on the way.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.calls.call_conversion import followed
from dy2st.capture.diagnosis import tell_returns
from dy2st.capture.program import capture_program
from dy2st.capture.results import checked_output, write_buffers
from dy2st.capture.varying_results import with_forms
from dy2st.errors import Dy2stError, Location, StagingError
from dy2st.source.muting import Mutes, Muting
from dy2st.source.rewriting import is_rewritten_code
from dy2st.staging.session import MODE, Session
from dy2st.values.error_recovery import SHOWN, RecoveryValue
from dy2st.values.stacked_list import has_rows

# How often a model is captured at most.
MOST_RUNS = 50


class _Finished(BaseException):
    """The model has run to its end; what is refused of its results. No exception that anyone else handles."""

    def __init__(self, refused: list[Dy2stError]) -> None:
        super().__init__()
        self.refused = refused


def collected(
    model: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, *, dynamic_shapes: Any = None
) -> list[Dy2stError]:
    """The refusals that captures of ``model`` meet, in the order of file and line; the arguments are as for ``export``.

    What is refused only of the program as a whole is not among them: where this finds nothing, ``export`` may still
    raise.
    """
    mutes, found = Mutes(), dict[Any, Dy2stError]()
    for _ in range(MOST_RUNS):
        try:
            _run(model, args, kwargs, dynamic_shapes, mutes)
        except _Finished as end:
            for error in end.refused:
                found.setdefault(_key(error), error)
            break
        except Dy2stError as error:
            if not _of_muting(error):
                found.setdefault(_key(error), error)
            place = _muted_next(error)
            if place is None or not mutes.more(*place):
                break
    return sorted(found.values(), key=_order)


def _run(model: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None, dynamic_shapes: Any, mutes: Mutes) -> None:
    call = model.forward if isinstance(model, torch.nn.Module) else model

    def entry(*given: Any, **named: Any) -> Any:
        assert MODE.capture is not None
        # The closure holds the model too, so that its parameters are found.
        followed_model = followed(MODE.capture, model.forward if isinstance(model, torch.nn.Module) else model)
        result = followed_model(*given, **named)
        raise _Finished(_refused_results(call, result))

    entry.__signature__ = inspect.signature(call)  # type: ignore[attr-defined]
    capture_program(entry, args, kwargs, dynamic_shapes=dynamic_shapes, muting=Muting(mutes))


def _checked(capture: Session, value: Any) -> None:
    pytree.tree_map(functools.partial(checked_output, []), with_forms(capture, value))


def _refused_results(call: Any, result: Any) -> list[Dy2stError]:
    """What is refused of the results, and of what buffers were assigned."""
    capture = MODE.capture
    assert capture is not None
    found = pytree.tree_leaves(result, is_leaf=has_rows)
    leaves = [leaf for leaf in found if not isinstance(leaf, RecoveryValue)]
    checks: list[Callable[[], Any]] = [functools.partial(_checked, capture, leaf) for leaf in leaves]
    checks.append(functools.partial(write_buffers, capture, None))
    refused: list[Dy2stError] = []
    for check in checks:
        try:
            check()
        except Dy2stError as error:
            if isinstance(error, StagingError) and error.location is None:
                error.location = error.origin
            if error.location is None:
                tell_returns(error, call)
            refused.append(error)
    return [error for error in refused if not _of_muting(error)]


def _key(error: Dy2stError) -> Any:
    """Two errors with the same key are one: the same branch made a variable unusable that is read twice."""
    origin: Location | None = error.origin if isinstance(error, StagingError) else None
    return error.code, error.what, str(origin or error.location)


def _order(error: Dy2stError) -> tuple[str, int, int]:
    place = error.location
    return ("", 0, 0) if place is None else (place.filename, place.line, place.column or 0)


def _of_muting(error: Dy2stError) -> bool:
    """Whether an error comes of a muted value, not of the user's code."""
    return SHOWN in error.what or RecoveryValue.__name__ in error.what


def _muted_next(error: BaseException) -> tuple[str, int] | None:
    """The file and line of the innermost statement of converted code that an exception passed."""
    found: tuple[str, int] | None = None
    for trace in _traces(error):
        if is_rewritten_code(trace.tb_frame.f_code):
            found = trace.tb_frame.f_code.co_filename, trace.tb_lineno
    return found


def _traces(error: BaseException | None) -> Iterator[TracebackType]:
    """The traceback of an exception, and before it that of its cause."""
    if error is None:
        return
    trace = error.__traceback__
    while trace is not None:
        yield trace
        trace = trace.tb_next
    yield from _traces(error.__cause__)
