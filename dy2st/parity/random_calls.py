"""A model whose random numbers are inputs of its program: what eager draws is recorded, and given to every stage."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from dy2st.capture.random_inputs import random_inputs_of
from dy2st.errors import UsageError
from dy2st.parity.inputs import InputSet, signature_of
from dy2st.parity.stages import SEED, Reference, eager_reference
from dy2st.parity.state import preserved
from dy2st.parity.stateful_calls import OfModel, StatefulCall, called
from dy2st.tracing.random_ops import draws, is_written

if TYPE_CHECKING:
    from torch.export import ExportedProgram


class _Recording(TorchDispatchMode):
    """Keeps what is drawn, in order."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.drawn: list[torch.Tensor] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if draws(func, args, kwargs or {}):
            self.drawn.append(result.clone())
        return result


class _Replaying(TorchDispatchMode):
    """Gives what was drawn in place of what would be."""

    def __init__(self, given: Sequence[torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.given = list(given)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not draws(func, args, kwargs or {}):
            return func(*args, **(kwargs or {}))
        value = self.given.pop(0)
        return args[0].copy_(value) if is_written(func) else value.clone()


class RandomCall(OfModel):
    """``model`` as a function that also takes what it draws, by the ``names`` of its program's inputs."""

    def __init__(self, model: Any, names: Sequence[str], callee: Any = None) -> None:
        self.model, self.names = model, list(names)
        self.callee = model if callee is None else callee
        self.__qualname__ = getattr(model, "__qualname__", type(model).__qualname__)
        signature = signature_of(model)
        if signature is not None:
            more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in names]
            own = list(signature.parameters.values())
            rest = [each for each in own if each.kind is each.VAR_KEYWORD]
            kept = [each for each in own if each.kind is not each.VAR_KEYWORD]
            self.__signature__ = signature.replace(parameters=[*kept, *more, *rest])

    def calling(self, made: Callable[[Any], Any]) -> RandomCall:
        """The same with something else called in the model's place."""
        return RandomCall(self.model, self.names, called(made, self.model))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model on given random numbers."""
        own = {name: value for name, value in kwargs.items() if name not in self.names}
        with _Replaying([kwargs[name] for name in self.names]):
            return self.callee(*args, **own)

    def __deepcopy__(self, memo: dict[int, Any]) -> RandomCall:
        return RandomCall(copy.deepcopy(self.model, memo), self.names)


def with_draws(
    model: Any, references: Sequence[Reference], program: ExportedProgram | None
) -> tuple[Any, list[Reference]]:
    """The model and the references, in which what is drawn is given, where a program takes that.

    Raises:
        UsageError: the model carries state as well, or eager draws other numbers than the program.
    """
    names = random_inputs_of(program)
    if not names:
        return model, list(references)
    if isinstance(model, StatefulCall):
        raise UsageError("a model with state and random inputs can't be checked", hint='state="forget"')
    made = RandomCall(model, names)
    return made, [each if each.problem else _given(made, each) for each in references]


def _given(made: RandomCall, reference: Reference) -> Reference:
    drawn = _drawn(made.model, reference.inputs)
    if len(drawn) != len(made.names):
        raise UsageError(
            f"eager draws {len(drawn)} times on input {reference.inputs.name}, and the program {len(made.names)} times",
            hint="draw in every call alike, not under a condition of Python's",
        )
    more: Mapping[str, Any] = dict(zip(made.names, drawn, strict=True))
    return eager_reference(made, replace(reference.inputs, kwargs={**reference.inputs.kwargs, **more}))


def _drawn(model: Any, inputs: InputSet) -> list[torch.Tensor]:
    """What eager draws on a set, from the seed that every run begins with."""
    given = inputs.copied()
    with torch.no_grad(), preserved(model), torch.random.fork_rng(devices=[]), _Recording() as recording:
        torch.manual_seed(SEED)
        model(*given.args, **given.kwargs)
    found: list[torch.Tensor] = recording.drawn
    return found
