"""Example inputs: their forms, how they are copied, how they are described, and the names of their tensors."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.capture.carried_state import PREFIX
from dy2st.capture.record_inputs import know_records
from dy2st.errors import ExampleInputsError
from dy2st.tracing.named_tuples import constructors_unasked

_FORMS = "a list of argument tuples or keyword dicts, or a dict that names them"


@dataclass(frozen=True)
class InputSet:
    """The arguments of one call."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    # Of one that follows others: the name of the sequence, its own number from 0, and how many there are.
    sequence: tuple[str, int, int] | None = None
    # Whether the user has given it; a search has found it else.
    asked: bool = True

    def copied(self) -> InputSet:
        """A deep copy: a model may write into what it is given. One tensor passed twice stays one tensor."""
        memo: dict[int, Any] = {}
        return replace(self, args=_copied(self.args, memo), kwargs=_copied(self.kwargs, memo))


def input_sets(inputs: Any) -> list[InputSet]:
    """Bring example inputs into one form.

    A set is a tuple (or list) of arguments or a dict of keyword arguments; ``inputs`` is an iterable of sets, or a dict
    that gives each set a name. A list of tuples or dicts in a set's place is a sequence of calls, for a model that has
    state: each starts from where the one before has ended.

    Raises:
        ExampleInputsError: there is no set, or something is of another form.
    """
    if inspect.iscoroutine(inputs):
        inputs.close()  # Python would warn that nobody has waited for it
    if isinstance(inputs, torch.Tensor) or not isinstance(inputs, Iterable):
        raise ExampleInputsError(f"the example inputs are of type {type(inputs).__name__}", hint=_FORMS)
    named = inputs.items() if isinstance(inputs, Mapping) else enumerate(inputs)
    sets = [each for name, given in named for each in _calls(str(name), given)]
    know_records([(each.args, each.kwargs) for each in sets])
    if not sets:
        raise ExampleInputsError("there are no example inputs", hint=_FORMS)
    return sets


def _calls(name: str, given: Any) -> list[InputSet]:
    """One set, or those of a sequence of calls."""
    if type(given) is list and given and all(_is_set(each) for each in given):
        return sequence_of(name, [_input_set(name, each) for each in given])
    return [_input_set(name, given)]


def _is_set(given: Any) -> bool:
    return (type(given) is tuple) or (type(given) is dict and all(isinstance(key, str) for key in given))


def sequence_of(name: str, calls: Sequence[InputSet]) -> list[InputSet]:
    """Calls that follow each other, named after their sequence."""
    count = len(calls)
    return [
        replace(each, name=f"{name}, call {number} of {count}", sequence=(name, number - 1, count))
        for number, each in enumerate(calls, 1)
    ]


def _input_set(name: str, given: Any) -> InputSet:
    if isinstance(given, InputSet):
        return given
    if isinstance(given, Mapping) and all(isinstance(key, str) for key in given):
        return InputSet(name, (), dict(given))
    if isinstance(given, (tuple, list)) and not hasattr(given, "_fields"):
        return InputSet(name, tuple(given))
    raise ExampleInputsError(
        f"input {name} is of type {type(given).__name__}, not a tuple of arguments or a dict of keyword arguments",
        hint="(x,) for one argument",
    )


def _copied(value: Any, memo: dict[int, Any]) -> Any:
    def leaf(item: Any) -> Any:
        if id(item) not in memo:
            is_tensor = isinstance(item, torch.Tensor)
            memo[id(item)] = item.detach().clone().requires_grad_(item.requires_grad) if is_tensor else _deep(item)
        return memo[id(item)]

    with constructors_unasked():
        return pytree.tree_map(leaf, value)


def _deep(item: Any) -> Any:
    try:
        return copy.deepcopy(item)
    except (TypeError, copy.Error):  # a generator, a lock: only the user can say how to copy it
        return item


def signature_of(model: Any) -> inspect.Signature | None:
    """The signature of a call of ``model`` (a module's ``forward``), or None if it has none."""
    try:
        return inspect.signature(model.forward if isinstance(model, torch.nn.Module) else model)
    except (TypeError, ValueError):
        return None


def bound_arguments(model: Any, inputs: InputSet) -> dict[str, Any]:
    """The arguments by parameter name, in the signature's order; by position where there is no signature.

    What ``**kwargs`` take stands under its own names.
    """
    signature = signature_of(model)
    if signature is not None:
        try:
            found = dict(signature.bind(*inputs.args, **inputs.kwargs).arguments)
        except TypeError:
            pass  # a call that does not fit is eager's to refuse
        else:
            rest = next((name for name, each in signature.parameters.items() if each.kind is each.VAR_KEYWORD), "")
            taken: dict[str, Any] = found.pop(rest, {})
            state = {name: found.pop(name) for name in list(found) if name.startswith(PREFIX)}
            return found | taken | state
    return {**{f"arg{index}": value for index, value in enumerate(inputs.args)}, **inputs.kwargs}


def called_alike(model: Any, sets: Sequence[InputSet]) -> list[InputSet]:
    """The sets, each with its arguments in the form that the first has: an exported program takes no other.

    That is as many by position, and those by name in one order: the signature's, and the first's of what ``**kwargs``
    take. A set that names another choice of parameters stays as it is; so do those by position where there is
    ``*args``.
    """
    signature = signature_of(model)
    if signature is None:
        return list(sets)
    first = sets[0]
    order = list(bound_arguments(model, first))
    several = any(each.kind is each.VAR_POSITIONAL for each in signature.parameters.values())
    names = order[: len(first.args)]
    found = []
    for each in sets:
        values = bound_arguments(model, each)
        if set(values) != set(order):
            found.append(each)
            continue
        if several:
            found.append(replace(each, kwargs={name: values[name] for name in order if name in each.kwargs}))
            continue
        args = tuple(values[name] for name in names)
        found.append(replace(each, args=args, kwargs={name: values[name] for name in order[len(names) :]}))
    return found


def named_leaves(model: Any, inputs: InputSet) -> list[tuple[str, Any]]:
    """Every leaf of the arguments with its name, in the signature's order.

    The names are those of a program's inputs: the path from the parameter, joined by underscores (``state_0``); a
    parameter ``*args`` counts as a step of the path, ``**kwargs`` does not.
    """
    flat, _ = pytree.tree_flatten_with_path(bound_arguments(model, inputs))
    return [("_".join(path_name(key) for key in path), leaf) for path, leaf in flat]


def path_name(key: Any) -> str:
    """A step of the path to a leaf of the arguments, as part of a name."""
    for attribute in ("key", "idx", "name"):
        if hasattr(key, attribute):
            return re.sub(r"[^a-zA-Z0-9]", "_", str(getattr(key, attribute)))
    return str(key)


def describe(model: Any, inputs: InputSet) -> str:
    """What a set looks like, for instance ``x: f32[4, 3], n: 5``."""
    own = [(name, leaf) for name, leaf in named_leaves(model, inputs) if not name.startswith(PREFIX)]
    return ", ".join(f"{name}: {_described(leaf)}" for name, leaf in own)


def _described(leaf: Any) -> str:
    if isinstance(leaf, torch.Tensor):
        short = str(leaf.dtype).removeprefix("torch.").replace("float", "f").replace("uint", "u").replace("int", "i")
        return f"{short}{list(leaf.shape)}"
    text = repr(leaf)
    return text if len(text) <= 20 else type(leaf).__name__  # noqa: PLR2004 - longer ones hide the shapes
