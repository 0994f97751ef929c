"""A model whose Python numbers are inputs of its program: as a function of tensors, as the program is."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch

from dy2st.capture.number_inputs import InputsAs, as_numbers, as_tensors, require_inputs_as
from dy2st.parity.inputs import input_sets, signature_of
from dy2st.parity.stateful_calls import OfModel, called


class NumberCall(OfModel):
    """``model`` as a function that takes 0-d tensors for the numbers of the arguments that ``inputs_as`` names."""

    def __init__(self, model: Any, inputs_as: InputsAs, callee: Any = None) -> None:
        self.model, self.inputs_as = model, dict(inputs_as)
        self.callee = model if callee is None else callee
        self.__qualname__ = getattr(model, "__qualname__", type(model).__qualname__)
        signature = signature_of(model)
        if signature is not None:
            self.__signature__ = signature

    def calling(self, made: Callable[[Any], Any]) -> NumberCall:
        """The same with something else called in the model's place."""
        return NumberCall(self.model, self.inputs_as, called(made, self.model))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model on Python's numbers."""
        given, named = as_numbers(self, args, kwargs, self.inputs_as, _python_number)
        return self.callee(*given, **named)

    def __deepcopy__(self, memo: dict[int, Any]) -> NumberCall:
        return NumberCall(copy.deepcopy(self.model, memo), self.inputs_as)


def _python_number(value: torch.Tensor, kind: type) -> Any:
    return kind(value.item())


def numbers_as_inputs(model: Any, inputs: Any, inputs_as: Mapping[str, Any]) -> tuple[Any, Any]:
    """A model and sets of its inputs, in which the arguments that ``inputs_as`` names have tensors for their numbers.

    Raises:
        UsageError: there is no such argument, or no number in it.
        ExampleInputsError: ``inputs`` has another form.
    """
    require_inputs_as(inputs_as)
    if not inputs_as:
        return model, inputs
    made = NumberCall(model, inputs_as)
    found = []
    for each in input_sets(inputs):
        args, kwargs = as_tensors(made, each.args, each.kwargs, inputs_as)
        found.append(replace(each, args=args, kwargs=kwargs or {}))
    return made, found


def without_numbers(model: Any) -> tuple[Any, dict[str, Any]]:
    """The model itself, and the arguments whose numbers are inputs."""
    return (model.model, model.inputs_as) if isinstance(model, NumberCall) else (model, {})
