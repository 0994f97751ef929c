"""The tensors that programs of a file read, under which names, and what a file says of each beside its values."""

from __future__ import annotations

import re
from typing import Any

import torch

from dy2st.errors import UnsavableError
from dy2st.values.describing import describe


class Held:
    """The tensors of a file: those that programs read, and their constants."""

    def __init__(self) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self._state: dict[str, Any] = {}
        self._constants: list[str] = []
        self._names: dict[int, str] = {}
        self._alive: list[torch.Tensor] = []

    def to_json(self) -> dict[str, Any]:
        """What the file says of its tensors."""
        return {"state": self._state, "constants": self._constants}

    def state(self, tensor: torch.Tensor, wanted: str, *, writes: bool) -> str:
        """The name of a tensor that a program reads, held under its name or one like it."""
        known = self._names.get(id(tensor))
        if known is not None:
            return known
        self._refuse_shared(tensor, wanted, writes=writes)
        name = re.sub(r"[^\w.]+", "_", wanted, flags=re.ASCII).strip("._") or "tensor"
        name = ".".join(
            part if part and not hasattr(torch.nn.Module(), part) else f"{part}_" for part in name.split(".")
        )
        while any(name == each or name.startswith(f"{each}.") or each.startswith(f"{name}.") for each in self.tensors):
            name += "_"
        self._state[name] = {"parameter": tensor.requires_grad or isinstance(tensor, torch.nn.Parameter)}
        self._state[name]["gradient"] = tensor.requires_grad
        self._hold(name, tensor, self._state[name])
        return name

    def _refuse_shared(self, tensor: torch.Tensor, wanted: str, *, writes: bool) -> None:
        for other in self._alive:
            if overlap(tensor, other) and (writes or tensor.requires_grad or other.requires_grad):
                raise UnsavableError(
                    f"{wanted} shares its memory with {self._names[id(other)]}, and a file keeps each for itself",
                    hint="keep one of them, and make the other of it in the function",
                )

    def constant(self, tensor: torch.Tensor) -> str:
        """The name of a tensor that is a constant of a program."""
        if id(tensor) not in self._names:
            name = f"dy2st.constant_{len(self._constants)}"
            self._constants.append(name)
            self._hold(name, tensor, {})
        return self._names[id(tensor)]

    def _hold(self, name: str, tensor: torch.Tensor, entry: dict[str, Any]) -> None:
        self._names[id(tensor)] = name
        self._alive.append(tensor)
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided:
            raise UnsavableError(f"{name} is {describe(tensor)} of a kind of its own ({type(tensor).__name__})")
        entry["dtype"], entry["shape"] = str(tensor.dtype), list(tensor.shape)
        if not tensor.is_contiguous():
            entry["strides"] = list(tensor.stride())
        if tensor.device.type != "cpu":
            entry["device"] = str(tensor.device)
        self.tensors[name] = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()


def overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors share memory, as far as their first and last elements tell."""
    if one.untyped_storage().data_ptr() != other.untyped_storage().data_ptr() or not one.numel() or not other.numel():
        return False
    spans = []
    for each in (one, other):
        extent = 1 + sum((size - 1) * stride for size, stride in zip(each.shape, each.stride(), strict=True))
        spans.append((each.data_ptr(), each.data_ptr() + extent * each.dtype.itemsize))
    return spans[0][0] < spans[1][1] and spans[1][0] < spans[0][1]


def restored(tensor: torch.Tensor, entry: dict[str, Any]) -> torch.Tensor:
    """A tensor of a file as it was: on its device, with its strides.

    Raises:
        ValueError: it is another one.
        RuntimeError: there is no such device here.
    """
    if str(tensor.dtype) != entry["dtype"] or list(tensor.shape) != entry["shape"]:
        raise ValueError(f"a tensor of {entry['dtype']} and shape {entry['shape']} is another one")
    tensor = tensor.to(entry.get("device", "cpu"))
    strides = entry.get("strides")
    if strides is None:
        return tensor
    # What was stretched is one element that is shown often.
    few = tensor[tuple(slice(0, None if stride else 1) for stride in strides)]
    made = torch.empty_strided(few.shape, strides, dtype=tensor.dtype, device=tensor.device).copy_(few)
    return made.as_strided(tensor.shape, strides)
