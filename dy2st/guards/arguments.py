"""The arguments of a call: a generated function that says whether they are those of a program, and takes them apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch._C._dynamo.guards import TensorGuards

from dy2st.guards.constants import constant_key, is_constant
from dy2st.guards.source import Source

# Values of which the equal ones are the same, once their type is.
_PLAIN = (bool, int, str, bytes, torch.dtype, torch.device, torch.Size)


# Code that asks any object for its gradient asks tensors, which have none.
_GRAD = ("get", "grad")


class Unmatched(Exception):  # noqa: N818  it is no error: such arguments are compared by a walk
    """Some argument can't be compared by generated code."""


def match_lines(
    space: dict[str, Any],
    arguments: Sequence[Source],
    tensors: Sequence[Source],
    free: Mapping[str, Sequence[int | None]],
    beside: Sequence[torch.Tensor] | None,
    equal: Sequence[Sequence[tuple[int, int]]],
    own: Collection[torch.Tensor] = (),
    *,
    leaves: bool,
) -> tuple[list[str], str] | None:
    """Lines that give None where the arguments (``args``) are not as these are, and the text of a tuple of the tensors.

    The tensors are in the order of ``tensors``; names that the lines need go to ``space``.

    ``equal`` are groups of (place among the tensors, dimension) whose sizes are one size. ``beside`` are the tensors
    that are no arguments, where it matters which tensors share memory; else None. No argument is one of the tensors
    ``own``. ``leaves`` says that it matters which
    tensors were computed of others. There are no lines for arguments
    that only a walk can compare: objects with attributes, functions, modules.
    """
    lines: list[str] = []
    paths: dict[int, str] = {}
    try:
        for i, source in enumerate(arguments):
            _match(source, f"args[{i}]", lines, space, paths)
    except Unmatched:
        return None
    names = [paths[id(source)] for source in tensors]
    if names:
        space["check"] = _tensor_check(tensors, free)
        taken = ", ".join(f"t{i}" for i in range(len(names)))
        lines += [f"t{i} = {path}" for i, path in enumerate(names)]
        lines.append(f"if not check({taken}): return None")
        lines.append(f"if {' or '.join(f't{i}.__dict__' for i in range(len(names)))}: return None")
        lines += [f"if t{i}.grad is not None: return None" for i, each in enumerate(tensors) if each.parts]
        if leaves:
            lines += [f"if t{i}.is_leaf is not {each.value.is_leaf}: return None" for i, each in enumerate(tensors)]
        for i, each in enumerate(tensors):
            lines += _open_sizes(f"t{i}", free.get(each.name, ()))
        for (i, d), *others in equal:
            lines += [f"if t{i}.size({d}) != t{j}.size({e}): return None" for j, e in others]
        lines += [f"if t{i} is t{j}: return None" for i in range(len(names)) for j in range(i)]
        if own:
            space["own"] = frozenset(map(id, own))
            lines.append(f"if not own.isdisjoint(({', '.join(f'id(t{i})' for i in range(len(names)))},)): return None")
        if beside is not None:
            space["shared"] = _sharing(beside, [source.value for source in tensors])
            lines.append(f"if not shared(({taken},)): return None")
        return lines, f"({taken},)"
    return lines, "()"


def _open_sizes(name: str, least: Sequence[int | None]) -> list[str]:
    """What generated code asks of a tensor some of whose sizes are open."""
    if all(bound is None for bound in least):
        return []
    found = [f"if {name}.size({d}) < {bound}: return None" for d, bound in enumerate(least) if bound]
    return [f"if not {name}.is_contiguous(): return None", *found]


def _tensor_check(tensors: Sequence[Source], free: Mapping[str, Sequence[int | None]]) -> Any:
    sizes: list[Any] = []  # lists of sizes, or None for any: torch's own stub is wrong about it
    strides: list[Any] = []
    for source in tensors:
        tensor, wild = source.value, free.get(source.name, ())
        if tensor.layout is not torch.strided:
            raise Unmatched
        any_size = [d < len(wild) and wild[d] is not None for d in range(tensor.dim())]
        sizes.append([None if each else size for each, size in zip(any_size, tensor.shape, strict=True)])
        strides.append([None if any(any_size) else stride for stride in tensor.stride()])
        if any(any_size) and not tensor.is_contiguous():
            raise Unmatched
    values = [source.value for source in tensors]
    return TensorGuards(*values, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check


def _sharing(
    beside: Sequence[torch.Tensor], example: Sequence[torch.Tensor]
) -> Callable[[Sequence[torch.Tensor]], bool]:
    """Whether tensors share memory with each other, and with those beside them, as the example's do."""

    def pattern(given: Sequence[torch.Tensor]) -> list[int]:
        numbers: dict[int, int] = {}
        addresses = [each.untyped_storage().data_ptr() for each in (*beside, *given)]
        return [numbers.setdefault(address, len(numbers)) for address in addresses]

    expected = pattern(example)
    return lambda given: pattern(given) == expected


def _match(source: Source, path: str, lines: list[str], space: dict[str, Any], paths: dict[int, str]) -> None:
    value = source.value
    if source.is_known() or source.opaque:
        raise Unmatched
    if isinstance(value, torch.Tensor):
        if any(part.access != _GRAD or value.requires_grad for part in source.parts):
            raise Unmatched
        paths[id(source)] = path
    elif value is None or value is True or value is False or value is Ellipsis:
        lines.append(f"if {path} is not {value!r}: return None")
    elif is_constant(value):
        _constant(value, path, lines, space)
    elif type(value) in (list, tuple):
        kind = type(value).__name__
        lines.append(f"if type({path}) is not {kind} or len({path}) != {len(value)}: return None")
        for i, part in enumerate(source.parts):
            _match(part, f"{path}[{i}]", lines, space, paths)
    elif type(value) is dict and all(type(key) is str for key in value):
        keys = f"v{len(space)}"
        space[keys] = list(value)
        lines.append(f"if type({path}) is not dict or list({path}) != {keys}: return None")
        for part, key in zip(source.parts, value, strict=True):
            _match(part, f"{path}[{key!r}]", lines, space, paths)
    else:
        raise Unmatched


def _constant(value: Any, path: str, lines: list[str], space: dict[str, Any]) -> None:
    name = f"v{len(space)}"
    space[name] = value
    if type(value) in _PLAIN:
        kind = f"v{len(space)}"
        space[kind] = type(value)
        lines.append(f"if {path} is not {name} and (type({path}) is not {kind} or {path} != {name}): return None")
    elif type(value) is float and value != 0 and not math.isnan(value):
        lines.append(f"if type({path}) is not float or {path} != {name}: return None")
    else:
        space["constant_key"], key = constant_key, f"v{len(space) + 1}"
        space["is_constant"] = is_constant
        space[key] = constant_key(value)
        lines.append(f"if not is_constant({path}) or constant_key({path}) != {key}: return None")
