"""The arguments that a program takes, without the arguments: their structure, and what is fixed of their tensors.

A tree describes a value: ``{"tensor": number}``, ``{"list": [trees]}``, ``{"tuple": [trees]}``,
``{"dict": [[key, tree]...]}``, ``{"value": constant}``, or ``{"other": type}`` for what no file can hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from dy2st.errors import UnsavableError
from dy2st.guards.constants import constant_key, is_constant
from dy2st.static.saved_format import decoded, encoded
from dy2st.values.describing import describe

Tree = dict[str, Any]
# A dimension: its size, or the name, the least and the greatest size of an open one.
Dimension = int | tuple[str, int, int | None]


class Given:
    """The arguments of one call, of which the tensors themselves are not kept."""

    def __init__(self, arguments: Sequence[tuple[str, Any]], tensors: Sequence[torch.Tensor]) -> None:
        """``tensors`` are those of the world of the call, by number."""
        self._numbers = {id(tensor): i for i, tensor in enumerate(tensors)}
        self._facts: dict[int, tuple[Any, ...]] = {}
        self.trees = [(name, self._tree(value)) for name, value in arguments]
        del self._numbers

    def _tree(self, value: Any) -> Tree:
        if isinstance(value, torch.Tensor) and id(value) in self._numbers and value.layout is torch.strided:
            number = self._numbers[id(value)]
            self._facts[number] = (
                *(value.dtype, value.device, tuple(value.shape), value.stride(), value.storage_offset()),
                *(value.requires_grad, type(value) is torch.nn.Parameter, value.is_inference()),
            )
            return {"tensor": number}
        if type(value) in (list, tuple):
            return {type(value).__name__: [self._tree(each) for each in value]}
        if type(value) is dict and all(is_constant(key) for key in value):
            return {"dict": [[key, self._tree(each)] for key, each in value.items()]}
        return {"value": value} if is_constant(value) else {"other": describe(value)}

    def example(self) -> list[Any]:
        """Arguments like these, whose tensors have any values.

        Raises:
            UnsavableError: an argument is an object of another kind.
        """
        made = {number: _like(*facts) for number, facts in self._facts.items()}
        return [_filled(tree, made, name) for name, tree in self.trees]


def _like(
    dtype: Any, device: Any, shape: Any, strides: Any, offset: int, gradient: bool, parameter: bool, inference: bool
) -> torch.Tensor:
    with torch.inference_mode(inference), torch.no_grad():
        extent = offset + 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True) if size)
        made = torch.zeros(max(extent, 0), dtype=dtype, device=device)
        made = made.as_strided(shape, strides, offset) if offset or 0 not in shape else made.new_empty(shape)
        if parameter:
            return torch.nn.Parameter(made, requires_grad=gradient)
        return made if not gradient else made.requires_grad_()


def _filled(tree: Tree, tensors: Mapping[int, torch.Tensor], path: str) -> Any:
    ((kind, content),) = tree.items()
    if kind == "tensor":
        return tensors[content]
    if kind in ("list", "tuple"):
        parts = [_filled(each, tensors, f"{path}[{i}]") for i, each in enumerate(content)]
        return parts if kind == "list" else tuple(parts)
    if kind == "dict":
        return {key: _filled(each, tensors, f"{path}[{key!r}]") for key, each in content}
    if kind == "other":
        raise UnsavableError(f"the argument {path} is {content}", hint="pass tensors, numbers and texts, in containers")
    return content


def tree_to_json(tree: Tree, numbers: Mapping[int, int], path: str) -> Any:
    """A tree as JSON, with the tensors' numbers replaced.

    Raises:
        UnsavableError: it has an object of another kind.
    """
    ((kind, content),) = tree.items()
    if kind == "tensor":
        return {kind: numbers[content]}
    if kind == "dict":
        return {kind: [[encoded(key), tree_to_json(each, numbers, f"{path}[{key!r}]")] for key, each in content]}
    if kind in ("list", "tuple"):
        return {kind: [tree_to_json(each, numbers, f"{path}[{i}]") for i, each in enumerate(content)]}
    try:
        return {"value": encoded(content)}
    except UnsavableError as error:
        raise UnsavableError(
            f"the argument {path} is {describe(content)}", hint="pass tensors, numbers and texts, in containers"
        ) from error


def tree_from_json(made: Any) -> Tree:
    """The tree that :func:`tree_to_json` has made JSON of.

    Raises:
        ValueError: it has not (or another error of Python's).
    """
    ((kind, content),) = made.items()
    if kind == "tensor":
        return {kind: int(content)}
    if kind == "value":
        return {kind: decoded(content)}
    if kind == "dict":
        return {kind: [[decoded(key), tree_from_json(each)] for key, each in content]}
    if kind not in ("list", "tuple"):
        raise ValueError(kind)
    return {kind: [tree_from_json(each) for each in content]}


@dataclass(frozen=True)
class TensorRule:
    """What is fixed of a tensor; ``strides`` of one that is not contiguous, ``gradient`` where it matters."""

    dtype: torch.dtype
    device: torch.device
    shape: tuple[Dimension, ...]
    strides: tuple[int, ...] | None
    gradient: bool | None

    def __str__(self) -> str:
        sizes = ", ".join(str(each if isinstance(each, int) else each[0]) for each in self.shape)
        return f"{str(self.dtype).removeprefix('torch.')}[{sizes}]"

    def refuses(self, tensor: Any, sizes: dict[str, int]) -> str | None:
        """What is wrong with a value in place of the tensor; ``sizes`` are those of open dimensions so far."""
        if not isinstance(tensor, torch.Tensor):
            return f"{describe(tensor)}, and not {self}"
        if tensor.dtype is not self.dtype or tensor.dim() != len(self.shape) or tensor.layout is not torch.strided:
            return f"{describe(tensor)}, and not {self}"
        for d, (size, wanted) in enumerate(zip(tensor.shape, self.shape, strict=True)):
            if isinstance(wanted, int):
                if size != wanted:
                    return f"{describe(tensor)}, and not {self}"
                continue
            name, least, most = wanted
            if size < least or (most is not None and size > most):
                bounds = f"at least {least}" if most is None else f"from {least} to {most}"
                return f"{describe(tensor)}, and not {self} with {name} {bounds}"
            if sizes.setdefault(name, size) != size:
                return f"{describe(tensor)}: its dimension {d} is not {name}, which is {sizes[name]}"
        return self._refuses_otherwise(tensor)

    def _refuses_otherwise(self, tensor: torch.Tensor) -> str | None:
        if tensor.device != self.device:
            return f"on {tensor.device}, and not on {self.device}"
        if not tensor.is_contiguous() if self.strides is None else tensor.stride() != self.strides:
            return f"of strides {tensor.stride()}, and not {self.strides or 'contiguous'}"
        if self.gradient is not None and tensor.requires_grad is not self.gradient:
            return f"a tensor that needs {'' if tensor.requires_grad else 'no '}gradients, which the code asks for"
        return None

    def to_json(self) -> Any:
        """It as JSON."""
        return [encoded(each) for each in (self.dtype, self.device, self.shape, self.strides, self.gradient)]

    @classmethod
    def from_json(cls, made: Any) -> TensorRule:
        """What ``to_json`` has made JSON of."""
        return cls(*(decoded(each) for each in made))


def mismatch(tree: Tree, value: Any, path: str, found: dict[int, tuple[Any, str]]) -> str | None:
    """What is wrong with an argument, or None; ``found`` takes its tensors and their paths by number."""
    ((kind, content),) = tree.items()
    if kind == "tensor":
        before, other = found.setdefault(content, (value, path))
        return None if before is value else f"{path} is not the same tensor as {other}"
    if kind == "value":
        same = is_constant(value) and constant_key(value) == constant_key(content)
        return None if same else f"{path} is {describe(value)}, and not {describe(content)}"
    if type(value).__name__ != kind or type(value) not in (list, tuple, dict):
        return f"{path} is {describe(value)}, and not a {kind}"
    if kind == "dict":
        keys, have, trees = [key for key, _ in content], list(value), [each for _, each in content]
        if keys != have:
            return f"{path} is a dict with the keys {have}, and not {keys}"
    else:
        keys, trees = list(range(len(content))), content
        if len(value) != len(keys):
            return f"{path} is a {kind} of length {len(value)}, and not {len(keys)}"
    for key, each in zip(keys, trees, strict=True):
        wrong = mismatch(each, value[key], f"{path}[{key!r}]", found)
        if wrong is not None:
            return wrong
    return None
