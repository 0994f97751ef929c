"""Sets on which the model raises as it means to: where a guard of the program stands, every stage has to fail, too.

Eager raises on such a set at a line for which the program has a guard (:mod:`dy2st.tracing.guards`). That the others
fail there is what there is to compare. A set that eager rejects anywhere else is unusable.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dy2st.onnx.passes.result_layout import is_plain, result_layout
from dy2st.parity.isolated import CrashError
from dy2st.parity.stages import NOTHING, EndlessRunError, Reference, one_line, raised_at
from dy2st.report.model import Difference, StageResult
from dy2st.tracing.guards import require_op
from dy2st.tracing.subgraph import graph_modules

if TYPE_CHECKING:
    from torch.export import ExportedProgram

    from dy2st.parity.inputs import InputSet


def guards_of(program: ExportedProgram | None) -> tuple[str, ...]:
    """What each guard of a program says where it fails, those of subgraphs included."""
    if program is None:
        return ()
    nodes = [node for module in graph_modules(program.graph_module) for node in module.graph.nodes]
    nodes = [node for node in nodes if node.target is require_op]
    return tuple(dict.fromkeys(str(node.args[1]) for node in nodes))


def is_guarded(raised: tuple[str, int] | None, guards: Iterable[str]) -> bool:
    """Whether a guard stands for a line, given by its file and number."""
    if raised is None:
        return False
    place = f": {Path(raised[0]).name}:{raised[1]}:"
    return any(place in f"{guard}:" for guard in guards)


def is_meant(reference: Reference) -> bool:
    """Whether eager raises at a ``raise`` or an ``assert`` of the user's: the set has the form that the model takes."""
    if reference.raised is None:
        return False
    return linecache.getline(*reference.raised).lstrip().startswith(("raise", "assert"))


def uneven_places(program: ExportedProgram | None) -> list[str]:
    """The places of a program's results, if they are not the same number of tensors in each call."""
    layout = [] if program is None else result_layout(program)
    return [] if is_plain(layout) else [each.place for each in layout]


def with_guards(
    references: Sequence[Reference], program: ExportedProgram | None, *, uneven: bool = False
) -> list[Reference]:
    """The references; those on which eager raises where a guard stands are no problem any more.

    Nor are those on which it returns nothing, where the program may do so, or ``uneven`` says that a file may.
    """
    guards = guards_of(program)
    uneven = uneven or bool(uneven_places(program))

    def judged(each: Reference) -> Reference:
        if each.problem and is_guarded(each.raised, guards):
            return replace(each, problem="", raises=each.problem.removeprefix("eager itself raises "))
        return replace(each, problem="") if uneven and each.problem == NOTHING else each

    return [judged(each) for each in references]


def raising_stage(
    name: str, run: Callable[[InputSet], Any], reference: Reference, guards: Iterable[str]
) -> StageResult:
    """One stage on a set on which eager raises: equal if it fails, too, and says which guard it was."""
    try:
        run(reference.inputs)
    except (CrashError, EndlessRunError) as error:
        message = f"eager raises {reference.raises}, and here {error}"
    except Exception as error:  # noqa: BLE001 - what it raises is the question
        text = f"{type(error).__name__}: {error}"
        if is_guarded(raised_at(error), guards) or any(guard in text for guard in guards):
            return StageResult(name, "equal")
        return StageResult(name, "error", message=one_line(error))
    else:
        message = f"eager raises {reference.raises}, and this raises nothing"
    return StageResult(name, "differs", differences=(Difference("the call", "raises", message),))


def otherwise(reference: Reference, stages: Iterable[StageResult]) -> str:
    """Why a set on which eager raises is unusable: a stage fails, too, but not at a guard. Else an empty text."""
    failed = next((each for each in stages if each.status == "error"), None)
    if not reference.raises or failed is None:
        return ""
    return f"eager itself raises {reference.raises}; {failed.stage} fails, but not for this: {failed.message}"
