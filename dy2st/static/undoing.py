"""What a program has done when it comes to where eager raises: put back, so that eager can do it and raise.

A program stops there with an error of its own. Eager's run of the same call raises what the user's code raises, and
leaves what that leaves: it has to begin with what the program has begun with.

Nothing is copied where no guard comes after a write, nor, in a loop or a branch, an operator that may fail: what raises
before the first write has left nothing behind, and the line that the generated program was at tells that. Else what is
written to is noted just before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram

from dy2st.capture.program import MESSAGES
from dy2st.static.clones import Clones
from dy2st.static.executable import NOT_OF_THE_CODE
from dy2st.static.generated import Generated
from dy2st.static.subgraphs import inputs_of
from dy2st.static.undo_log import UndoLog
from dy2st.static.writes import draws_before_guards, has_guards
from dy2st.tracing.guards import is_guard_error

# On an error of a program whose writes have been undone.
_UNDONE = "dy2st_undone"


def undone_by_lines(program: ExportedProgram, made: Generated) -> Callable[..., Any]:
    """What runs a generated program, and puts back what it has written to its inputs if it raises, and random numbers.

    What a program has said it can't unsay, and what it has written to a tensor with a history stays there.
    """
    module, forward = program.graph_module, made.function
    draws = draws_before_guards(module)
    if module.meta.get(MESSAGES) or (made.first_write is None and not draws):
        return forward

    def run(*inputs: Any) -> Any:
        state = torch.get_rng_state() if draws else None
        return _run(forward, inputs, lambda error: _log(error, made), state)

    return run


def _run(
    forward: Callable[..., Any],
    inputs: Sequence[Any],
    log_of: Callable[[Exception], UndoLog | None],
    state: torch.Tensor | None,
) -> Any:
    """Run a program; if it raises, undo what the log says that it has written, and put back the random numbers."""
    try:
        return forward(*inputs)
    except NOT_OF_THE_CODE:
        raise
    except Exception as error:
        log = log_of(error)
        if log is not None and log.undo(inputs):
            if state is not None:
                torch.set_rng_state(state)
            setattr(error, _UNDONE, True)
        raise


def _log(error: Exception, made: Generated) -> UndoLog | None:
    """What was written to until an error; None where that is not known."""
    found = error.__traceback__
    while found is not None and found.tb_frame.f_code is not made.function.__code__:
        found = found.tb_next
    if found is None:
        return None
    if made.first_write is None or found.tb_lineno < made.first_write:
        return UndoLog()
    known: UndoLog = found.tb_frame.f_locals.get(made.log) or UndoLog()
    complete = made.first_unlogged is None or found.tb_lineno < made.first_unlogged
    return known if complete or is_guard_error(error) else None


def undone_by_copies(program: ExportedProgram, forward: Callable[..., Any]) -> Callable[..., Any]:
    """As ``undone_by_lines``, of whatever runs a program."""
    module = program.graph_module
    if not has_guards(module) or module.meta.get(MESSAGES):
        return forward
    written = Clones(module).written_inputs(cloning=True)
    places = [i for i, node in enumerate(inputs_of(module)) if node in written]
    draws = draws_before_guards(module)
    if not places and not draws:
        return forward

    def run(*inputs: Any) -> Any:
        targets = [inputs[i] for i in places]
        if any(each.requires_grad for each in targets):
            return forward(*inputs)
        log = UndoLog()
        for each in targets:
            log.note(each)
        return _run(forward, inputs, lambda _: log, torch.get_rng_state() if draws else None)

    return run


def is_undone(error: Exception) -> bool:
    """Whether a program that has raised this has left nothing behind."""
    return getattr(error, _UNDONE, False)
