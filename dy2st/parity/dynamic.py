"""Which dimensions are dynamic, read off the example inputs: those that differ from one set to another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch.export import Dim
from torch.utils import _pytree as pytree

from dy2st.errors import ExampleInputsError
from dy2st.parity.inputs import bound_arguments
from dy2st.tracing.named_tuples import with_leaves
from dy2st.values.describing import describe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dy2st.parity.inputs import InputSet


def inferred_dynamic_shapes(model: Any, sets: Sequence[InputSet]) -> dict[str, Any] | None:
    """The ``dynamic_shapes`` that make one program serve all sets, or None if nothing differs.

    A dimension whose size differs between two sets, and an int that does, is ``Dim.DYNAMIC``.

    Raises:
        ExampleInputsError: the sets differ in something that a program can't take as an input: the number or structure
            of their arguments, a dtype, a rank, a string, a float or a bool.
    """
    arguments = [bound_arguments(model, inputs) for inputs in sets]
    order = list(arguments[0])
    arguments = [{name: each[name] for name in order} if set(each) == set(order) else each for each in arguments]
    flat = [pytree.tree_flatten_with_path(each) for each in arguments]
    first_leaves, first_structure = flat[0]
    for inputs, (_, structure) in zip(sets, flat, strict=True):
        if structure != first_structure:
            raise ExampleInputsError(
                f"input {inputs.name} passes other arguments than input {sets[0].name}: one program has one signature",
                hint="convert the two kinds of calls separately",
            )
    found = []
    for position, (path, _) in enumerate(first_leaves):
        values = [leaves[position][1] for leaves, _ in flat]
        what = f"argument {getattr(path[0], 'key', '')}{''.join(str(key) for key in path[1:])}"
        found.append(_dynamic(what, values, sets))
    if all(each is None for each in found):
        return None
    shapes: dict[str, Any] = with_leaves(found, first_structure)
    return shapes


def _dynamic(what: str, values: list[Any], sets: Sequence[InputSet]) -> Any:
    first = values[0]
    for inputs, value in zip(sets, values, strict=True):
        if _kind(value) != _kind(first):
            raise ExampleInputsError(
                f"{what}: {_kind(first)} in input {sets[0].name}, but {_kind(value)} in input {inputs.name}",
                hint="one program takes one dtype and rank for each argument",
            )
    if isinstance(first, torch.Tensor):
        sizes = [{value.shape[dim] for value in values} for dim in range(first.dim())]
        dynamic = {dim: Dim.DYNAMIC for dim, different in enumerate(sizes) if len(different) > 1}
        return dynamic or None
    if isinstance(first, (bool, float, str)) and any(value != first for value in values):
        raise ExampleInputsError(
            f"{what} is a Python {type(first).__name__} that differs between inputs: a graph has it as a constant",
            hint="pass it as a tensor",
        )
    return Dim.DYNAMIC if isinstance(first, int) and any(value != first for value in values) else None


def _kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} of rank {value.dim()}"
    return "None" if value is None else type(value).__name__


def require_dynamic_shapes(model: Any, inputs: InputSet, shapes: Any) -> None:
    """Accept ``dynamic_shapes`` whose form fits the arguments, as far as they are tensors themselves.

    Raises:
        ExampleInputsError: an unknown or missing argument, or a dimension that its tensor does not have.
    """
    arguments = bound_arguments(model, inputs)
    names = ", ".join(arguments)
    if shapes is None:
        return
    if isinstance(shapes, Mapping):
        if set(shapes) != set(arguments):
            raise ExampleInputsError(f"dynamic_shapes is for {', '.join(map(str, shapes))}; the arguments are {names}")
        pairs = [(name, arguments[name], shape) for name, shape in shapes.items()]
    elif isinstance(shapes, (list, tuple)):
        if len(shapes) != len(arguments):
            raise ExampleInputsError(f"dynamic_shapes has {len(shapes)} entries; the arguments are {names}")
        pairs = [(name, value, shape) for (name, value), shape in zip(arguments.items(), shapes, strict=True)]
    else:
        raise ExampleInputsError(
            f"dynamic_shapes is of type {type(shapes).__name__}", hint="a dict by argument, or a tuple"
        )
    for name, value, shape in pairs:
        if not isinstance(value, torch.Tensor) or shape is None:
            continue
        rank = value.dim()
        if isinstance(shape, Mapping):
            unfit = next((dim for dim in shape if not (isinstance(dim, int) and 0 <= dim < rank)), None)
            if unfit is not None:
                raise ExampleInputsError(
                    f"dynamic_shapes names dimension {unfit!r} of {name}, but the tensor has rank {rank}",
                    hint="dimensions count from 0" if rank else "",
                )
        elif not isinstance(shape, (list, tuple)):
            raise ExampleInputsError(
                f"dynamic_shapes of {name} is {_spoken(shape)}, and {name} is a tensor of rank {rank}",
                hint='a dict by dimension: {0: "batch"}',
            )
        elif len(shape) != rank:
            raise ExampleInputsError(
                f"dynamic_shapes of {name} has {len(shape)} entries, but the tensor has rank {rank}"
            )


def _spoken(shape: Any) -> str:
    """A dimension by its name, as the user has given it."""
    return repr(shape.__name__) if isinstance(shape, Dim) else describe(shape)


def best_example(sets: Sequence[InputSet]) -> InputSet:
    """The set to trace with: the one with the fewest sizes of 0 or 1, which torch.export may take for constants."""

    def small_sizes(inputs: InputSet) -> int:
        leaves = pytree.tree_leaves((inputs.args, inputs.kwargs))
        return sum(size < 2 for leaf in leaves if isinstance(leaf, torch.Tensor) for size in leaf.shape)  # noqa: PLR2004

    return min(sets, key=small_sizes)
