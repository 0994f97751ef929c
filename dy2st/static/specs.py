"""Specs of a function's arguments: which sizes are open, and example arguments made from them.

A spec of an argument is a text (``"x=f32[batch,3]"``), an ``InputSpec``, a pair of a shape and a dtype, whose sizes are
numbers, names, ``torch.export.Dim`` or None for any size (``((None, 3), torch.float32)``), a tensor, whose sizes are
fixed, or a list, tuple or dict of specs for an argument that is one. Anything else is a value that the argument has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.errors import InputSpecError
from dy2st.input_spec import DimensionSpec, InputSpec, dynamic_shapes, example_tensors, parse_input_spec

Leaf = Callable[[str, int], "str | None"]


class ArgumentSpecs:
    """The specs of a function: trees of ``InputSpec`` by the parameter's position or name."""

    def __init__(self, given: Any = None) -> None:
        """``given`` is one spec, a list of them or a dict.

        Raises:
            InputSpecError: one does not parse.
        """
        if given is None:
            given = ()
        elif isinstance(given, (str, InputSpec, torch.Tensor)) or _is_pair(given):
            given = [given]
        pairs = given.items() if isinstance(given, Mapping) else enumerate(given)
        self._trees: dict[int | str, Any] = {key: _tree(spec, key) for key, spec in pairs if spec is not None}

    def __bool__(self) -> bool:
        return bool(self._trees)

    def of(self, parameters: Sequence[str], function: str) -> dict[str, Any]:
        """The tree of specs of each parameter that has one.

        Raises:
            InputSpecError: there is no such parameter.
        """
        found: dict[str, Any] = {}
        for key, tree in self._trees.items():
            name = tree.name if isinstance(tree, InputSpec) else None
            name = name or (key if isinstance(key, str) else parameters[key] if key < len(parameters) else None)
            if name is None or name not in parameters:
                raise InputSpecError(f"{function} has no parameter {name or key!r}", hint=f"one of {list(parameters)}")
            found[name] = tree
        return found


def by_label(trees: Mapping[str, Any]) -> dict[str, InputSpec]:
    """The specs of tensors by the paths at which these are: ``x``, ``d['a'][0]``."""
    found = {}
    for name, tree in trees.items():
        for path, leaf in pytree.tree_flatten_with_path(tree)[0]:
            if isinstance(leaf, InputSpec):
                found[name + "".join(map(str, path))] = leaf
    return found


def dimensions(trees: Mapping[str, Any]) -> dict[str, dict[int, Any]]:
    """The ``torch.export.Dim`` of each open dimension, by the path of its tensor."""
    specs = by_label(trees)
    found = dynamic_shapes(list(specs.values()))
    return {label: found.get(position, {}) for position, label in enumerate(specs)}


def examples(trees: Mapping[str, Any]) -> dict[str, Any]:
    """An argument of each parameter, made from its specs."""
    tensors = iter(example_tensors(list(by_label(trees).values()), 0))
    return {
        name: pytree.tree_map(lambda leaf: next(tensors) if isinstance(leaf, InputSpec) else leaf, tree)
        for name, tree in trees.items()
    }


def _is_pair(spec: Any) -> bool:
    """Whether a spec is a shape with a dtype."""
    return isinstance(spec, tuple) and len(spec) == 2 and isinstance(spec[1], torch.dtype)


def _tree(spec: Any, key: int | str) -> Any:
    if isinstance(spec, str):
        return parse_input_spec(spec)
    if isinstance(spec, InputSpec):
        return spec
    if isinstance(spec, torch.Tensor):
        return InputSpec(None, _name_of(spec.dtype), tuple(DimensionSpec(size=size) for size in spec.shape))
    if _is_pair(spec):
        shape, dtype = spec
        sizes = tuple(_dimension(size, f"{key}_{i}") for i, size in enumerate(shape))
        return InputSpec(None, _name_of(dtype), sizes)
    if isinstance(spec, Mapping):
        return {name: _tree(each, f"{key}_{name}") for name, each in spec.items()}
    if isinstance(spec, (list, tuple)):
        return type(spec)(_tree(each, f"{key}_{i}") for i, each in enumerate(spec))
    return spec


def _dimension(size: Any, name: str) -> DimensionSpec:
    if size is None or (isinstance(size, int) and size < 0):
        return DimensionSpec(name="".join(c if c.isalnum() else "_" for c in f"size_{name}"))
    if isinstance(size, int):
        return DimensionSpec(size=size)
    if isinstance(size, str):
        return DimensionSpec(name=size)
    if isinstance(size, torch.export.Dim):
        return DimensionSpec(name=size.__name__, low=size.min, high=size.max)
    raise InputSpecError(f"a size is a number, a name, a torch.export.Dim or None, not {size!r}")


def _name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


@dataclass(frozen=True)
class Options:
    """How a function is made static: see ``dy2st.to_static``."""

    specs: ArgumentSpecs = field(default_factory=ArgumentSpecs)
    backend: str = "eager"
    freeze: bool | frozenset[str] = frozenset()
