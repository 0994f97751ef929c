"""A model's outputs as a flat list of named tensors, the way an exported program returns them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from dy2st.embedded.file_outputs import text_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable


class ResultKindError(TypeError):
    """A result has something in it that no program returns."""


@dataclass(frozen=True)
class Output:
    """One tensor of a result; ``is_number`` if it was a Python number, whose float has no dtype of its own.

    A text is its UTF-8 bytes, and ``is_text``. ``place`` is where it is in what eager returns, if it has to be there.
    """

    name: str
    tensor: torch.Tensor
    is_number: bool = False
    is_text: bool = False
    place: str = ""

    def copied(self) -> Output:
        """With a tensor of its own."""
        return replace(self, tensor=self.tensor.detach().clone())


def is_narrow(value: torch.Tensor) -> bool:
    """Whether it has floats of 8 bits, which have next to no operators."""
    return value.is_floating_point() and value.itemsize == 1


def widened(value: torch.Tensor) -> torch.Tensor:
    """The same values, in a dtype that they can be compared in."""
    return value.float() if is_narrow(value) else value


def blank_outputs(outputs: Iterable[Output]) -> dict[str, str]:
    """Those without a value that could be compared, by name, with what they are instead."""
    found = {}
    for output in outputs:
        if output.is_text:
            continue
        value = widened(output.tensor)
        if not value.numel():
            found[output.name] = "empty"
        elif bool(value.isnan().all()):
            found[output.name] = "NaN throughout"
    return found


def flat_outputs(result: Any) -> list[Output]:
    """The tensors of a result in pytree order.

    Python numbers become 0-d tensors (int -> int64, bool -> bool, float -> float64), a text its UTF-8 bytes. None is
    dropped, as in an ONNX file. A dataclass that is not registered as a pytree gives its fields in order.
    """
    found: list[Output] = []
    for path, leaf in pytree.tree_flatten_with_path(result)[0]:
        found.extend(_leaf_outputs("output" + "".join(str(key) for key in path), leaf))
    return found


def placed(outputs: Iterable[Output]) -> list[Output]:
    """Those of a stage that returns what eager does: each has to be where it is there."""
    return [replace(each, place=each.name) for each in outputs]


def _leaf_outputs(name: str, leaf: Any) -> list[Output]:
    if leaf is None:
        return []
    if isinstance(leaf, str):
        return [Output(name, text_tensor(leaf), is_text=True)]
    if isinstance(leaf, torch.Tensor):
        # A sparse one is no result of a program: what is compared with it is refused.
        return [Output(name, leaf.detach() if leaf.layout is torch.strided else leaf.detach().to_dense())]
    if isinstance(leaf, (bool, int, float, torch.SymInt, torch.SymFloat, torch.SymBool)):
        return [Output(name, _number(leaf), is_number=True)]
    if dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
        inner = [(field.name, getattr(leaf, field.name)) for field in dataclasses.fields(leaf)]
        return [
            replace(output, name=f"{name}.{key}" + output.name.removeprefix("output"))
            for key, value in inner
            for output in flat_outputs(value)
        ]
    raise ResultKindError(f"{name} is of type {type(leaf).__name__}: neither a tensor nor a number")


def text_tensor(text: str) -> torch.Tensor:
    """A text's UTF-8 bytes: uint8 [n]."""
    return torch.from_numpy(text_bytes(text).copy())


def _number(value: Any) -> torch.Tensor:
    if isinstance(value, (bool, torch.SymBool)):
        return torch.tensor(bool(value))
    if isinstance(value, (int, torch.SymInt)):
        return torch.tensor(int(value), dtype=torch.int64)
    return torch.tensor(float(value), dtype=torch.float64)
