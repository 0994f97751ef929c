"""Where a command's example inputs come from: ``--input`` specs, an ``--inputs`` file, or the target's own module."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dy2st.cli.input_files import called, sets_from_file
from dy2st.cli.suggesting import inputs_hint, suggestion
from dy2st.errors import ExampleInputsError, InputSpecError
from dy2st.input_spec import SET_COUNT, InputSpec, ValueSpec, dynamic_shapes, example_tensors, parse_input
from dy2st.parity.inputs import input_sets, signature_of
from dy2st.parity.strategies import drawn_sets

if TYPE_CHECKING:
    import argparse

    from dy2st.cli.target import Target
    from dy2st.parity.inputs import InputSet


@dataclass(frozen=True)
class ExampleInputs:
    """Sets of inputs in any form that ``dy2st.check`` takes, and the dynamic shapes that go with them, if known.

    ``specs`` are those that the sets were made from, by parameter.
    """

    sets: Any
    dynamic_shapes: Any = None
    specs: dict[str, InputSpec] = field(default_factory=dict)


def example_inputs(target: Target, options: argparse.Namespace) -> ExampleInputs:
    """The example inputs of a command.

    Raises:
        InputSpecError: a spec does not parse or does not fit the signature.
        InputFileError: the file is missing, unreadable or of an unknown kind.
        ExampleInputsError: neither option is given and the module has no ``example_inputs``.
    """
    placed = _placed(target, options.input) if options.input else {}
    if placed and not options.inputs:
        return _from_specs(target, placed)
    declared = called(getattr(target.module, "dynamic_shapes", None), f"dynamic_shapes of {target.module.__name__}")
    if options.inputs:
        return _beside(target, sets_from_file(options.inputs), declared, placed)
    given = getattr(target.module, "example_inputs", None)
    strategies = getattr(target.module, "input_strategies", None)
    if given is None and strategies is not None:
        return ExampleInputs(drawn_sets(strategies, seed=0, count=SET_COUNT), declared)
    if given is None:
        raise ExampleInputsError(
            f"{target.text}: there are no example inputs",
            hint=inputs_hint(suggestion(target)),
        )
    return ExampleInputs(called(given, f"example_inputs of {target.module.__name__}"), declared)


def _placed(target: Target, texts: list[str]) -> dict[str, InputSpec | ValueSpec]:
    """Named specs go to the parameters of that name, unnamed ones to the parameters that are left, in order."""
    try:
        specs = [parse_input(text) for text in texts]
    except InputSpecError as error:
        if not error.hint:
            error.hint = suggestion(target)
        raise
    signature = signature_of(target.model)
    names = [] if signature is None else list(signature.parameters)
    open_ended = signature is not None and any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())
    for spec in specs:
        if spec.name is not None and names and spec.name not in names and not open_ended:
            raise InputSpecError(
                f"{target.text} has no parameter {spec.name!r}",
                hint=f"one of {', '.join(names)}: {suggestion(target)}",
            )
    free = iter([name for name in names if name not in {spec.name for spec in specs}])
    placed = [spec.name or next(free, None) for spec in specs]
    if None in placed or len(set(placed)) < len(placed):
        raise InputSpecError(
            f"{target.text}: {len(specs)} input specs for the parameters {', '.join(names)}", hint=suggestion(target)
        )
    # in the order of the signature, so that the file's inputs have it too
    pairs = [(str(name), spec) for name, spec in zip(placed, specs, strict=True)]
    return dict(sorted(pairs, key=lambda pair: names.index(pair[0]) if pair[0] in names else len(names)))


def _from_specs(target: Target, placed: dict[str, InputSpec | ValueSpec]) -> ExampleInputs:
    signature = signature_of(target.model)
    if signature is not None:
        try:
            signature.bind(**dict.fromkeys(placed))
        except TypeError as error:
            raise InputSpecError(
                f"{target.text}: the input specs do not fit: {error}", hint=suggestion(target)
            ) from error
    tensors = _tensors(placed)
    shapes = dynamic_shapes(list(tensors.values()))
    by_name = {name: shapes.get(position) for position, name in enumerate(tensors)}
    count = SET_COUNT if shapes else 2 if tensors else 1
    made = [_one_set(placed, tensors, number) for number in range(count)]
    declared = {name: by_name.get(name) for name in placed} if shapes else None
    return ExampleInputs(made, declared, tensors)


def _beside(target: Target, given: Any, declared: Any, placed: dict[str, InputSpec | ValueSpec]) -> ExampleInputs:
    """The sets of a file, with the arguments that are said beside them in each: in place of the file's own, if any."""
    if not placed:
        return ExampleInputs(given, declared)
    tensors = _tensors(placed)
    named = next(((name, d.name) for name, spec in tensors.items() for d in spec.dimensions if d.name), None)
    if named is not None:
        raise InputSpecError(
            f"the size {named[1]} of {named[0]}: which sizes go with those of the file is not known",
            hint="beside --inputs a size is a number, as in x=f32[4,3]; sizes that differ between sets are dynamic",
        )
    sets: dict[str, Any] = {}
    for number, each in enumerate(input_sets(given)):
        if each.sequence is not None:
            raise InputSpecError("--input does not go with sequences of calls", hint="put the value into the file")
        sets[each.name] = _by_name(target, each) | _one_set(placed, tensors, number)
    return ExampleInputs(sets, declared)


def _by_name(target: Target, given: InputSet) -> dict[str, Any]:
    """A set, of which some arguments may be missing, by the names of the parameters.

    Raises:
        InputSpecError: there are more arguments than parameters.
    """
    signature = signature_of(target.model)
    names = [] if signature is None else list(signature.parameters)
    if len(given.args) > len(names):
        raise InputSpecError(
            f"{target.text}: the arguments of --inputs have no names", hint="give all of them by --input"
        )
    return {**dict(zip(names, given.args, strict=False)), **given.kwargs}


def _tensors(placed: dict[str, InputSpec | ValueSpec]) -> dict[str, InputSpec]:
    return {name: spec for name, spec in placed.items() if isinstance(spec, InputSpec)}


def _one_set(placed: dict[str, InputSpec | ValueSpec], tensors: dict[str, InputSpec], number: int) -> dict[str, Any]:
    made = dict(zip(tensors, example_tensors(list(tensors.values()), number), strict=True))
    return {name: spec.value if isinstance(spec, ValueSpec) else made[name] for name, spec in placed.items()}
