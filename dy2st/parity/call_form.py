"""The form of a call: its tensors by name, wherever they are in its arguments, and all else as it is."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.utils.rnn import PackedSequence
from torch.utils import _pytree as pytree

from dy2st.parity.inputs import InputSet, path_name, signature_of


@dataclass(frozen=True)
class CallForm:
    """What is left of a call without its tensors: containers, Python values, and which leaf of them is which tensor.

    ``names`` has a name for each leaf that is a tensor (``x``, ``state_0``), and None for any other. The parts of a
    packed sequence hang together, so it is a value.
    """

    structure: pytree.TreeSpec
    leaves: tuple[Any, ...]
    names: tuple[str | None, ...]

    @classmethod
    def of(cls, model: Any, inputs: InputSet) -> CallForm:
        """The form of one set of arguments of ``model``."""
        flat, structure = pytree.tree_flatten_with_path((inputs.args, inputs.kwargs), is_leaf=_hangs_together)
        parameters = _positions(model, len(inputs.args))
        names: list[str | None] = []
        for path, leaf in flat:
            _, first, *rest = path
            parameter = parameters[first.idx] if isinstance(first, pytree.SequenceKey) else path_name(first)
            name = "_".join([parameter, *map(path_name, rest)])
            while name in names:
                name += "_"
            names.append(name if isinstance(leaf, torch.Tensor) else None)
        return cls(structure, tuple(leaf for _, leaf in flat), tuple(names))

    @property
    def tensor_names(self) -> list[str]:
        """The names of all tensors, in their order."""
        return [name for name in self.names if name is not None]

    def tensors(self, inputs: InputSet) -> dict[str, torch.Tensor] | None:
        """The tensors of a set by name; None if it has another form."""
        leaves, structure = pytree.tree_flatten((inputs.args, inputs.kwargs), is_leaf=_hangs_together)
        if structure != self.structure:
            return None
        found = {}
        for name, own, leaf in zip(self.names, self.leaves, leaves, strict=True):
            if name is not None and isinstance(leaf, torch.Tensor):
                found[name] = leaf
            elif name is not None or not _same(own, leaf):
                return None
        return found

    def filled(self, name: str, tensors: Mapping[str, torch.Tensor]) -> InputSet:
        """A set of this form. Tensors of other names are keyword arguments."""
        leaves = [own if key is None else tensors[key] for key, own in zip(self.names, self.leaves, strict=True)]
        args, kwargs = pytree.tree_unflatten(leaves, self.structure)
        return InputSet(name, args, {**kwargs, **{key: tensors[key] for key in tensors if key not in self.names}})


def _hangs_together(value: Any) -> bool:
    return isinstance(value, PackedSequence)


def _positions(model: Any, count: int) -> list[str]:
    """What the arguments by position are called: by their parameters; those of ``*args`` by their number in it."""
    signature = signature_of(model)
    found: list[str] = []
    for name, each in {} if signature is None else signature.parameters.items():
        if each.kind is each.VAR_POSITIONAL:
            found += [f"{name}_{i}" for i in range(count - len(found))]
        elif each.kind is not each.KEYWORD_ONLY and each.kind is not inspect.Parameter.VAR_KEYWORD:
            found.append(name)
    return [*found, *(f"arg{i}" for i in range(len(found), count))]


def _same(one: Any, other: Any) -> bool:
    if one is other:
        return True
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:  # noqa: BLE001 - the user's own comparison, or that of an array
        return False
