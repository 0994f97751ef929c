"""What a program of ``to_static`` was captured for: what is fixed in it of a call, and of the state around it.

A signature is a dict from a label in words ("the shape of x") to a hashable value, so that a warning can say what has
changed from one capture to the next.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.errors import UsageError
from dy2st.input_spec import InputSpec
from dy2st.staging.memory.shared_inputs import overlap

Signature = dict[str, Hashable]

NUMBERS = (bool, int, float, complex)
VALUES = (
    *(str, bytes, type(None), type(...), enum.Enum, slice, range, type),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size),
)
# What every module holds beside the user's own attributes.
MODULES_OWN = frozenset(vars(torch.nn.Module()))
LONGEST_CONTAINER = 64
LONGEST_TEXT = 40


def call_signature(bound: Mapping[str, Any], specs: Mapping[str, InputSpec], owner: Any) -> Signature:
    """The signature of a call with these arguments by parameter name; ``specs`` are those of dynamic dimensions.

    Raises:
        UsageError: an argument can't be told from others by its value.
    """
    leaves, structure = pytree.tree_flatten_with_path(dict(bound))
    found: Signature = {"the structure of the arguments": str(structure)}
    tensors: dict[int, str] = {}
    seen: list[tuple[str, torch.Tensor]] = []
    for path, leaf in leaves:
        name = "".join(str(key) for key in path[1:])
        name = f"{getattr(path[0], 'key', path[0])}{name}"
        if isinstance(leaf, torch.Tensor):
            found.update(_tensor_parts(name, leaf, specs.get(name)))
            first = tensors.setdefault(id(leaf), name)
            if first != name:
                found[f"which tensor {name} is"] = first
            shares = next((other for other, tensor in seen if overlap(tensor, leaf)), None)
            if shares is not None:
                found[f"what {name} shares memory with"] = shares
            seen.append((name, leaf))
        else:
            found[f"the value of {name}"] = _value(leaf)
    if isinstance(owner, torch.nn.Module):
        found["the mode (train or eval)"] = tuple(module.training for module in owner.modules())
    found["the attributes of self"] = tuple(map(_attributes, _parts(owner)))
    found["the mode of gradients"] = torch.is_grad_enabled()
    found["the default dtype"] = torch.get_default_dtype()
    found["autocast"] = tuple(
        torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None for kind in ("cpu", "cuda")
    )
    return found


def _tensor_parts(name: str, tensor: torch.Tensor, spec: InputSpec | None) -> Signature:
    names = [] if spec is None else [dimension.name for dimension in spec.dimensions]
    free = [index < len(names) and names[index] is not None for index in range(tensor.dim())]
    return {
        f"the dtype of {name}": tensor.dtype,
        f"the number of dimensions of {name}": tensor.dim(),
        f"the shape of {name}": tuple("*" if wild else size for size, wild in zip(tensor.shape, free, strict=True)),
        f"the device of {name}": str(tensor.device),
        f"whether {name} needs gradients": tensor.requires_grad,
        f"whether {name} is contiguous": tensor.is_contiguous(),
    }


def _value(leaf: Any) -> Hashable:
    known = _plain(leaf)
    if known is not None:
        return known
    try:
        hash(leaf)
    except TypeError as error:
        raise UsageError(f"an argument of type {type(leaf).__name__} can't be told from others by value") from error
    return type(leaf), leaf


def _plain(value: Any) -> Hashable | None:
    """A number, text or the like by its value (0.0 is not -0.0, 1 is not True); None for anything else."""
    if isinstance(value, NUMBERS):
        return type(value), repr(value)
    return (type(value), str(value) if isinstance(value, slice) else value) if isinstance(value, VALUES) else None


def _parts(thing: Any) -> list[Any]:
    if isinstance(thing, torch.nn.Module):
        return list(thing.modules())
    return [] if thing is None else [thing]


def _attributes(thing: Any) -> Hashable:
    """The attributes of an object that are plain values, or short containers of these."""
    found = []
    for name, value in getattr(thing, "__dict__", {}).items():
        if name in MODULES_OWN and isinstance(thing, torch.nn.Module):
            continue
        known = _plain(value)
        if known is None and isinstance(value, (list, tuple, dict)) and len(value) <= LONGEST_CONTAINER:
            inner = [_plain(each) for each in (value.items() if isinstance(value, dict) else value)]
            known = (type(value), tuple(inner)) if all(each is not None for each in inner) else None
        if known is not None:
            found.append((name, known))
    return tuple(found)


def changed(old: Signature, new: Signature) -> list[str]:
    """The labels under which two signatures differ, the most telling first."""
    labels = [label for label in {**old, **new} if old.get(label) != new.get(label)]
    for word in ("dimensions", "structure"):
        telling = [label for label in labels if word in label]
        if telling:
            return telling
    return labels


def advice(label: str) -> str:
    """What to do about a label that keeps changing."""
    subject = label.rpartition(" of ")[2]
    if label.startswith("the shape"):
        return f"a named dimension in input_spec ('{subject}=f32[n,...]') makes one program for all sizes"
    if label.startswith("the value"):
        return f"pass {subject} as a tensor if it varies"
    if label == "the attributes of self":
        return "keep what varies in a buffer, or pass it as an argument"
    return "bring it into one form before the call"


def shown_value(value: Any) -> str:
    """A value of a signature in few words."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], type):  # noqa: PLR2004 - a type and a value
        value = value[1]
    text = str(list(value)) if isinstance(value, tuple) else str(value).removeprefix("torch.")
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"
