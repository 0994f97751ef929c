"""Several calls of a model with state as one call of a function: what a search for sequences looks through.

``f(x)`` becomes ``f(x, x__2, x__3)``: which path the third call takes depends on what the first two were given.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dy2st.capture.carried_state import CarriedState
from dy2st.capture.stateful_program import carried_by
from dy2st.parity.call_form import CallForm
from dy2st.parity.inputs import InputSet, bound_arguments, sequence_of, signature_of
from dy2st.parity.space import Space
from dy2st.parity.stateful_calls import CALLS, OfModel, called, initial_state

if TYPE_CHECKING:
    from torch.export import ExportedProgram


class CallsInARow(OfModel):
    """``model`` called several times from its first state, with the arguments of each call by name.

    ``form`` is a set of one call: as many of a call's arguments are given by position.
    """

    def __init__(
        self, model: Any, program: ExportedProgram, carried: CarriedState, form: InputSet, callee: Any = None
    ) -> None:
        self.model, self.program, self.carried, self.form = model, program, carried, form
        self.callee = model if callee is None else callee
        self.names = list(bound_arguments(model, form))
        signature = signature_of(model)
        parameters = [] if signature is None else signature.parameters.values()
        self.rest = next((each.name for each in parameters if each.kind is each.VAR_POSITIONAL), "")
        self.__qualname__ = getattr(model, "__qualname__", type(model).__qualname__)
        self.__signature__ = inspect.Signature(
            [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
                for number in range(CALLS)
                for name in self.of(number)
            ]
        )

    @classmethod
    def of_program(cls, model: Any, program: ExportedProgram, form: InputSet) -> CallsInARow | None:
        """The calls of a model whose program has state; None for any other."""
        carried = carried_by(program)
        return None if carried is None else cls(model, program, carried, form)

    def of(self, number: int) -> dict[str, str]:
        """The parameters of a call, each with the model's own name for it."""
        return {name if number == 0 else f"{name}__{number + 1}": name for name in self.names}

    def calling(self, made: Callable[[Any], Any]) -> CallsInARow:
        """The same with something else called in the model's place."""
        return CallsInARow(self.model, self.program, self.carried, self.form, called(made, self.model))

    def __call__(self, **values: Any) -> list[Any]:
        """The results of all calls; the model's state is as before then."""
        calls = self.calls(InputSet("", (), values))
        with self.carried.holding(initial_state(self.model, self.carried, self.program, calls[0])):
            return [self.callee(*each.args, **each.kwargs) for each in calls]

    def calls(self, inputs: InputSet) -> list[InputSet]:
        """The sets of the single calls, of one of all."""
        found = []
        for number in range(CALLS):
            values = {own: inputs.kwargs[name] for name, own in self.of(number).items()}
            args: list[Any] = []
            for name in self.names:
                if len(args) < len(self.form.args):
                    args += values.pop(name) if name == self.rest else [values.pop(name)]
            found.append(InputSet(inputs.name, tuple(args), values))
        return sequence_of(inputs.name, found)

    def repeated(self, inputs: InputSet) -> InputSet:
        """The set of all calls where each is given the same."""
        values = bound_arguments(self.model, inputs)
        kwargs = {name: values[own] for number in range(CALLS) for name, own in self.of(number).items()}
        return InputSet(inputs.name, (), kwargs)

    def space(self, space: Space) -> Space:
        """What there is to try for all calls, of what there is for one: sizes are the same in each."""
        form = CallForm.of(self, self.repeated(space.as_set("", space.fresh())))
        own = itertools.cycle(space.specs.values())
        specs = {name: replace(spec, name=name) for name, spec in zip(form.tensor_names, own, strict=False)}
        return Space(form, specs, space.seed, space.numbers)
