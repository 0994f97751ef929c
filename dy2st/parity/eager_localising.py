"""The first line whose value is not eager's, where the converted model or the exported program differs already.

Eager runs once more, line by line, and keeps what each statement assigns. The converted model, which has the same
lines, runs likewise. The program runs node by node: what a statement assigns must be the value of the last node of its
form that comes from its lines, in the same run of the statement; of several values, that of one of these nodes.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import torch

from dy2st.onnx.exporting import export as export_onnx
from dy2st.onnx.passes.source_lines import innermost
from dy2st.parity.compare import compare
from dy2st.parity.culprits import both_values, place_text, variable_of
from dy2st.parity.line_values import LineValue, recorded_lines
from dy2st.parity.outputs import Output
from dy2st.parity.paths import converted_run
from dy2st.parity.program_steps import program_steps
from dy2st.parity.stages import run_model
from dy2st.report.model import Culprit

if TYPE_CHECKING:
    from torch.export import ExportedProgram

    from dy2st.onnx.runtime.stepping import Place
    from dy2st.parity.budget import Budget
    from dy2st.parity.inputs import InputSet

# A node that has run: when, its place, name and value.
_Ran = tuple[int, "Place", str, torch.Tensor]


def converted_culprit(model: Any, inputs: InputSet, budget: Budget) -> Culprit | None:
    """The first line at which the converted model has another value, or to which it does not come; None if unknown.

    Raises:
        OverBudgetError: it takes more than the budget.
    """
    with recorded_lines(budget) as eager:
        run_model(model, model, inputs)
    with recorded_lines(budget) as converted:
        converted_run(model, inputs)
    others = {(each.file, each.line, each.time, each.part): each.value for each in converted.values}
    for each in eager.values:
        other = others.get((each.file, each.line, each.time, each.part))
        if other is not None and (message := _apart(each.value, other, "converted")):
            return _culprit(each, message, "")
        if other is None and eager.runs[each.file, each.line] > converted.runs[each.file, each.line]:
            times = eager.runs[each.file, each.line], converted.runs[each.file, each.line]
            return _culprit(each, f"eager comes here {times[0]} times, the converted model {times[1]}", "")
    return None


def program_culprit(model: Any, program: ExportedProgram, inputs: InputSet, budget: Budget) -> Culprit | None:
    """The first line whose nodes have not eager's value, although there are some of its form; None if unknown.

    Raises:
        OverBudgetError: it takes more than the budget.
    """
    with recorded_lines(budget) as eager:
        run_model(model, model, inputs)
    # lowered as for a file: its branches and loops run node by node
    lowered = export_onnx(program).exported_program
    assert lowered is not None
    steps = program_steps(lowered, model, inputs, budget)
    by_line: dict[tuple[str, int], list[_Ran]] = defaultdict(list)
    for order, ((place, name), value) in enumerate(steps.values.items()):
        frame = innermost(steps.stacks[place, name])
        if frame is not None:
            by_line[frame] += [(order, place, name, each) for each in _tensors(value)]
    for each in eager.values:
        lines = range(each.line, each.end + 1)
        ran = [one for line in lines for one in by_line.get((each.file, line), ()) if _has_form(each, one)]
        alike = _of_one_run(sorted(ran, key=lambda one: one[0]), each, eager.runs[each.file, each.line])
        messages = [_apart(each.value, value, "program") for *_, value in alike]
        if messages and all(messages):
            _, place, name, _ = alike[-1]
            return _culprit(each, messages[-1], name, place_text(place))
    return None


def _of_one_run(ran: list[_Ran], each: LineValue, times: int) -> list[_Ran]:
    """The nodes that may have a value: those of its run, if the nodes tell how often the statement has run.

    Nodes of one arm and trip belong to one run; those of a loop that is unrolled have one place, and follow each other.
    """
    places = list(dict.fromkeys(one[1] for one in ran))
    if len(places) == times:
        own = [one for one in ran if one[1] == places[each.time]]
    elif len(places) == 1 and len(ran) % times == 0:
        share = len(ran) // times
        own = ran[each.time * share : (each.time + 1) * share]
    else:
        return ran
    return own[-1:] if each.alone else own


def _tensors(value: Any) -> list[torch.Tensor]:
    values = value if isinstance(value, (tuple, list)) else [value]
    return [
        each if isinstance(each, torch.Tensor) else torch.tensor(each)
        for each in values
        if isinstance(each, (torch.Tensor, bool, int, float))
    ]


def _has_form(each: LineValue, one: _Ran) -> bool:
    (wanted,) = _tensors(each.value)
    value = one[3]
    return wanted.shape == value.shape and wanted.dtype == value.dtype


def _apart(want: Any, value: Any, stage: str) -> str:
    """How two values differ, or nothing; what has another form can't be compared."""
    wanted, got = _tensors(want), _tensors(value)
    if len(wanted) != 1 or len(got) != 1 or wanted[0].dtype != got[0].dtype:
        return ""
    if wanted[0].shape != got[0].shape:
        return f"eager shape {list(wanted[0].shape)} vs {stage} {list(got[0].shape)}"
    result = compare("", [Output("", wanted[0])], [Output("", got[0])])
    return both_values(wanted[0], got[0], stage) if result.status != "equal" else ""


def _culprit(each: LineValue, message: str, node: str, inside: str = "") -> Culprit:
    return Culprit(each.file, each.line, variable_of(each.file, each.line), message, node, inside)
