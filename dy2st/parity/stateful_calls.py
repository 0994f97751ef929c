"""A model with state as a function: the state is given beside the arguments, and its new values beside the result.

So each call of a sequence is a set of its own, which every stage runs by itself: eager, the converted model, the
program and the file. Eager runs a whole sequence once, on the model as it is; the state that it has before each call is
part of that call's set. A stage carries its own state on from call to call, so that what drifts apart is seen.
"""

from __future__ import annotations

import abc
import copy
import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from dy2st.capture.carried_inputs import apart, with_inputs
from dy2st.capture.carried_state import CarriedState
from dy2st.capture.stateful_program import carried_by
from dy2st.parity.gradient_mode import gradients_as_asked
from dy2st.parity.inputs import InputSet, named_leaves, sequence_of
from dy2st.parity.outputs import Output, flat_outputs
from dy2st.parity.raising import guards_of, is_guarded
from dy2st.parity.stages import SEED, Reference, failed_reference, judged
from dy2st.parity.state import preserved
from dy2st.tracing.size_facts import expression

if TYPE_CHECKING:
    from torch.export import ExportedProgram

# How often a set is called where nothing is said of sequences: the state is fresh, then used, then used again.
CALLS = 3


class OfModel(abc.ABC):
    """Calls a model in a way of its own; whose state it changes meanwhile is said by ``__self__``."""

    model: Any

    @property
    def __self__(self) -> Any:
        """See ``dy2st.parity.state``."""
        return getattr(self.model, "__self__", self.model)

    @abc.abstractmethod
    def calling(self, made: Callable[[Any], Any]) -> OfModel:
        """The same with something else called in the model's place: ``made`` of the model."""


class StatefulCall(OfModel):
    """``model`` as a function of its arguments and its state, which gives pairs of the result and the new state."""

    def __init__(self, model: Any, carried: CarriedState, callee: Any = None) -> None:
        self.model, self.carried = model, carried
        self.callee = model if callee is None else callee
        self.__qualname__ = getattr(model, "__qualname__", type(model).__qualname__)
        call = model.forward if isinstance(model, torch.nn.Module) else model
        self.__signature__ = inspect.signature(with_inputs(call, carried.inputs()))

    def calling(self, made: Callable[[Any], Any]) -> StatefulCall:
        """The same with something else called in the model's place."""
        return StatefulCall(self.model, self.carried, called(made, self.model))

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, list[torch.Tensor]]:
        """Run the model from a state; its own is as before then."""
        own, state = apart(kwargs)
        given = list(state.values())
        with self.carried.holding(given):
            result = self.callee(*args, **own)
            # What is returned may be the state itself, which the next call changes.
            result = pytree.tree_map_only(torch.Tensor, torch.clone, result)
            return result, self.carried.read(given)

    def __deepcopy__(self, memo: dict[int, Any]) -> StatefulCall:
        model = copy.deepcopy(self.model, memo)
        return StatefulCall(model, self.carried.of_copy(model, memo))


def called(made: Callable[[Any], Any], model: Any) -> Any:
    """What ``made`` makes of a model to call it, and of the model of a stateful call."""
    return model.calling(made) if isinstance(model, OfModel) else made(model)


def continued(
    model: Any, references: Sequence[Reference], program: ExportedProgram | None
) -> tuple[Any, list[Reference]]:
    """The model and the references as they are compared: with state, each reference is a call with its state.

    A set that belongs to no sequence is called ``CALLS`` times, or as often as eager takes it.
    """
    carried = None if program is None else carried_by(program)
    if carried is None or program is None or isinstance(model, StatefulCall):
        return model, list(references)
    made = StatefulCall(model, carried)
    found: list[Reference] = []
    given = {each.inputs.sequence[0] for each in references if each.inputs.sequence is not None}
    for calls in _sequences(references):
        ran = _run(model, calls, carried, initial_state(model, carried, program, calls[0]))
        is_ours = calls[0].sequence is not None and calls[0].sequence[0] not in given
        found += _taken(ran, guards_of(program)) if is_ours else ran
    return made, found


def _taken(ran: Sequence[Reference], guards: Sequence[str]) -> list[Reference]:
    """The calls up to the first that eager rejects, as a full buffer does: nobody has asked for that one.

    One that the program has a guard for is the last; so is a first call, whatever comes of it.
    """
    end = next((number for number, each in enumerate(ran) if each.problem), len(ran))
    keeps = end < len(ran) and (end == 0 or is_guarded(ran[end].raised, guards))
    kept = list(ran[: end + keeps])
    names = sequence_of(ran[0].inputs.sequence[0] if ran[0].inputs.sequence else "", [each.inputs for each in kept])
    return [replace(each, inputs=inputs) for each, inputs in zip(kept, names, strict=True)]


def _sequences(references: Sequence[Reference]) -> Iterator[list[InputSet]]:
    open_ones: dict[str, list[InputSet]] = {}
    for each in references:
        inputs = each.inputs
        if inputs.sequence is None:
            yield [inputs] if each.problem else sequence_of(inputs.name, [inputs] * CALLS)
            continue
        name, _, count = inputs.sequence
        calls = open_ones.setdefault(name, [])
        calls.append(inputs)
        if len(calls) == count:
            yield open_ones.pop(name)
    yield from open_ones.values()


def initial_state(model: Any, carried: CarriedState, program: ExportedProgram, inputs: InputSet) -> list[torch.Tensor]:
    """The state before the first call; what has no value yet has the sizes that this call would give it."""
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    names = [str(name) for name in program.graph_signature.user_inputs]
    count = len(carried.parts)
    sizes: dict[Any, int] = {}
    leaves = [leaf for _, leaf in named_leaves(model, inputs)]
    for name, leaf in zip(names[: len(names) - count], leaves, strict=False):
        traced = values.get(name)
        if isinstance(traced, torch.Tensor) and isinstance(leaf, torch.Tensor) and traced.dim() == leaf.dim():
            sizes |= {expression(size): real for size, real in zip(traced.shape, leaf.shape, strict=True)}
    absent = {
        part
        for unit in carried.units
        if unit.flag is not None and not unit.flag.initial
        for part in unit.parts.values()
    }
    found = []
    for name, part in zip(names[len(names) - count :], carried.parts, strict=True):
        tensor, traced = part.initial, values.get(name)
        if part in absent and isinstance(traced, torch.Tensor):
            shape = [sizes.get(expression(size), real) for size, real in zip(traced.shape, tensor.shape, strict=True)]
            tensor = torch.zeros(shape, dtype=tensor.dtype)
        found.append(tensor.clone())
    return found


def is_first_call(inputs: InputSet) -> bool:
    """Whether a set is the first call of a sequence: the state is what the file itself has as its first values."""
    return inputs.sequence is not None and inputs.sequence[1] == 0


def _run(model: Any, calls: Sequence[InputSet], carried: CarriedState, state: list[torch.Tensor]) -> list[Reference]:
    """Eager on a sequence of calls, without anything put back in between."""
    found: list[Reference] = []
    names = list(carried.inputs())
    with gradients_as_asked(model), preserved(model), carried.holding(state), torch.random.fork_rng(devices=[]):
        for number, inputs in enumerate(calls):
            given = replace(inputs, kwargs={**inputs.kwargs, **dict(zip(names, state, strict=True))}).copied()
            if number and found[-1].problem:
                what = f"call {number} of the sequence: {found[-1].problem}"
                problem = found[-1].problem if found[-1].problem.startswith("call ") else what
                found.append(Reference(given, problem=problem))
                continue
            begun = time.perf_counter()
            mine = inputs.copied()
            torch.manual_seed(SEED)
            try:
                outputs = [each.copied() for each in flat_outputs(model(*mine.args, **mine.kwargs))]
            except Exception as error:  # noqa: BLE001 - whatever the user's code raises is the finding
                found.append(failed_reference(given, error, begun))
                continue
            state = carried.read(state)
            outputs += state_outputs(carried, state)
            found.append(judged(given, outputs, begun))
    return found


def state_outputs(carried: CarriedState, state: Sequence[torch.Tensor]) -> list[Output]:
    """The new state as outputs, by the names that a file gives them."""
    return [Output(f"{part.name}_next", tensor) for part, tensor in zip(carried.parts, state, strict=True)]


def named_alike(model: Any, outputs: list[Output]) -> list[Output]:
    """The outputs of a stage that gives pairs of a result and a state, by the names that eager's have."""
    if not isinstance(model, StatefulCall):
        return outputs
    count = len(outputs) - len(model.carried.parts)
    own = [replace(each, name=each.name.replace("output[0]", "output", 1)) for each in outputs[:count]]
    return own + state_outputs(model.carried, [each.tensor for each in outputs[count:]])


class OwnState:
    """What each stage has made of the state in the calls of a sequence."""

    def __init__(self, model: Any) -> None:
        self._names = list(model.carried.inputs()) if isinstance(model, StatefulCall) else []
        self._last: dict[tuple[str, str], tuple[int, list[torch.Tensor]]] = {}

    def before(self, stage: str, inputs: InputSet) -> InputSet:
        """The set with the state that the stage itself has come to, if it has run the call before."""
        if not self._names or inputs.sequence is None:
            return inputs
        name, number, _ = inputs.sequence
        at, state = self._last.get((stage, name), (-1, []))
        if at != number - 1 or not state:
            return inputs
        return replace(inputs, kwargs={**inputs.kwargs, **dict(zip(self._names, state, strict=True))})

    def differs(self, stage: str, inputs: InputSet) -> bool:
        """Whether the stage goes into this call with another state than eager's: an earlier call has made it so."""
        own = self.before(stage, inputs)
        return own is not inputs and not all(
            torch.equal(own.kwargs[name], inputs.kwargs[name]) for name in self._names if name in inputs.kwargs
        )

    def forget(self, stage: str, inputs: InputSet) -> None:
        """A call is no evidence: the next one starts from where eager has come to."""
        if inputs.sequence is not None:
            self._last.pop((stage, inputs.sequence[0]), None)

    def note(self, stage: str, inputs: InputSet, outputs: Sequence[Output]) -> None:
        """The stage has run a call."""
        count = len(self._names)
        if count and inputs.sequence is not None and len(outputs) >= count:
            name, number, _ = inputs.sequence
            self._last[stage, name] = number, [each.tensor for each in outputs[-count:]]
