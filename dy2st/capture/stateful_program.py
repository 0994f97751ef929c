"""Programs of models whose state lives on between calls: the state is inputs, and its new values are outputs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from types import MappingProxyType
from typing import Any, Literal

import torch

from dy2st.capture.carried_state import CarriedState
from dy2st.capture.number_inputs import InputsAs
from dy2st.capture.program import LOST, capture_program
from dy2st.capture.random_inputs import with_random_inputs
from dy2st.capture.record_inputs import know_records
from dy2st.capture.unseen_state import UnseenState
from dy2st.errors import CarriedStateError, DataError, Location, StagingError, StateWarning, UsageError
from dy2st.sizes.allowed_lines import AllowedLines
from dy2st.source.torch_made import in_python
from dy2st.tracing.generated_code import generated_on_demand
from dy2st.tracing.subgraph import base_of, changed_inputs
from dy2st.tracing.torch_control_flow import to_standard

# Where a program's graph module keeps the ``CarriedState`` whose parts are its last inputs, and its second result.
STATE = "dy2st.state"

StateOption = Literal["io", "forget", "refuse"] | None
CHOICES = ("io", "forget", "refuse")

# Each capture finds more of the state than the last one; a model that needs more than this has not been met.
MOST_CAPTURES = 12


def require_choice(state: Any) -> None:
    """Accept what may be said of state.

    Raises:
        UsageError: it is something else.
    """
    if state is not None and state not in CHOICES:
        raise UsageError(f"state={state!r} is none of the ways to treat it", hint=f"one of {', '.join(CHOICES)}")


def capture_stateful(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    allow_specialize: Iterable[int | str] | AllowedLines = (),
    drop_guards: bool = False,
    state: StateOption = None,
    inputs_as: InputsAs = MappingProxyType({}),
    random_inputs: bool = False,
) -> torch.export.ExportedProgram:
    """As ``capture_program``; where the model has state, the program takes it and gives it back.

    Then ``meta["dy2st.state"]`` of the graph module has the ``CarriedState``, and the program's result is a pair: the
    model's, and the new state. With ``random_inputs`` it takes what the model draws, too.

    Raises:
        CarriedStateError: the state has no such form; or there is any, and ``state`` is ``"refuse"``.
        Dy2stError: see ``dy2st.export``.
    """
    require_choice(state)
    model = in_python(model)
    know_records((args, kwargs))
    options: dict[str, Any] = {
        "allow_specialize": allow_specialize,
        "drop_guards": drop_guards,
        "inputs_as": inputs_as,
    }
    if state == "forget":
        program = capture_program(model, args, kwargs, dynamic_shapes=dynamic_shapes, **options)
        return with_random_inputs(program) if random_inputs else program
    unseen = UnseenState(model)
    carried = CarriedState(model, unseen.paths)
    for _ in range(MOST_CAPTURES):
        try:
            program = capture_program(model, args, kwargs, dynamic_shapes=dynamic_shapes, carried=carried, **options)
        except DataError as error:
            if not isinstance(error.constant, torch.Tensor) or not carried.add_written(error.constant, error.location):
                raise
            continue
        except StagingError as error:
            if carried.overwritten.error is not None:
                raise carried.overwritten.error from None
            if carried.units and not isinstance(error, CarriedStateError):
                # Without its state, as constants, the model has been captured.
                names = ", ".join(repr(unit.name) for unit in carried.units)
                advice = f'or state="forget", if the file need not carry {names} from call to call'
                error.hint = f"{error.hint}; {advice}" if error.hint else advice
            raise
        unseen.require_unchanged()
        if not carried.another(program, (args, kwargs)):
            break
    else:
        raise CarriedStateError(f"the state of the model has no end: {', '.join(p.name for p in carried.parts)}")
    if random_inputs:
        with_random_inputs(program)
    if not carried.units:
        return program
    if state == "refuse":
        first = carried.units[0]
        raise CarriedStateError(
            f"{first.name!r} is changed in each call and read in the next",
            hint='pass it in and return it, or export with state="io", which makes it an input and an output',
            location=first.location,
        )
    program.graph_module.meta[STATE] = carried
    return program


def export_stateful(
    model: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, **options: Any
) -> torch.export.ExportedProgram:
    """``capture_stateful``, with control flow as torch has it where that can express it."""
    program = capture_stateful(model, args, kwargs, **options)
    with generated_on_demand():
        to_standard(program.graph_module)
    return program


def warn_of_forgotten(program: torch.export.ExportedProgram, model: Any) -> None:
    """Say what a file forgets: at the line where it is stored, or that of the model's function."""
    named = program.graph_signature.inputs_to_buffers
    written = {base_of(target).name for node in program.graph.nodes for target in changed_inputs(node)}
    lost: list[tuple[str, Location | None]] = program.graph_module.meta.get(LOST, [])
    names = [
        *(named[name] for name in named if name in written),
        *(what.removeprefix("changes ") for what, _ in lost if what.startswith("changes ")),
    ]
    if not names:
        return
    text = f"the file starts afresh in each call: it forgets {', '.join(dict.fromkeys(names))}"
    location = next((where for _, where in lost if where is not None), None)
    call = getattr(model, "forward", model)
    code = getattr(getattr(call, "__func__", call), "__code__", None)
    if location is not None:
        warnings.warn_explicit(text, StateWarning, location.filename, location.line)
    elif code is not None:
        warnings.warn_explicit(text, StateWarning, code.co_filename, code.co_firstlineno)
    else:
        warnings.warn(text, StateWarning, stacklevel=3)


def carried_by(program: torch.export.ExportedProgram) -> CarriedState | None:
    """The state that a program takes and gives back, if it does."""
    found: CarriedState | None = program.graph_module.meta.get(STATE)
    return found
