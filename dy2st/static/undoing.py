"""What a program has done when it comes to where eager raises: put back, so that eager can do it and raise.

A program stops there with an error of its own. Eager's run of the same call raises what the user's code raises, and
leaves what that leaves: it has to begin with what the program has begun with.

Nothing is copied where no guard comes after a write: what raises before the first write has left nothing behind, and
the line that the generated program was at tells that. Else what is written to is kept just before: a row, where a row
is written.
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
from dy2st.static.writes import draws_before_guards, has_guards
from dy2st.tracing.guards import is_guard_error

# On an error of a program whose writes have been undone.
_UNDONE = "dy2st_undone"
_Pairs = Sequence[tuple[torch.Tensor, torch.Tensor]]


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
        return _run(forward, inputs, lambda error: _kept(error, made), state)

    return run


def _run(
    forward: Callable[..., Any],
    inputs: Sequence[Any],
    kept: Callable[[Exception], _Pairs | None],
    state: torch.Tensor | None,
) -> Any:
    """Run a program; if it raises, put back what ``kept`` has of what it has written to, and the random numbers."""
    try:
        return forward(*inputs)
    except NOT_OF_THE_CODE:
        raise
    except Exception as error:
        pairs = kept(error)
        if pairs is not None:
            _put_back(error, pairs, state)
        raise


def _kept(error: Exception, made: Generated) -> _Pairs | None:
    """What was written to until an error, and what it was before; None where that is not known."""
    found = error.__traceback__
    while found is not None and found.tb_frame.f_code is not made.function.__code__:
        found = found.tb_next
    if found is None:
        return None
    if made.first_write is None or found.tb_lineno < made.first_write:
        return ()
    known: _Pairs = found.tb_frame.f_locals.get(made.kept, ())
    return known if made.keeps_all or is_guard_error(error) else None


def _put_back(error: Exception, kept: _Pairs, state: torch.Tensor | None) -> None:
    if any(each.requires_grad for each, _ in kept):
        return
    with torch.no_grad():
        for each, old in reversed(kept):
            each.copy_(old)
    if state is not None:
        torch.set_rng_state(state)
    setattr(error, _UNDONE, True)


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
        before = [each.detach().clone() for each in targets]
        state = torch.get_rng_state() if draws else None
        return _run(forward, inputs, lambda _: list(zip(targets, before, strict=True)), state)

    return run


def is_undone(error: Exception) -> bool:
    """Whether a program that has raised this has left nothing behind."""
    return getattr(error, _UNDONE, False)
