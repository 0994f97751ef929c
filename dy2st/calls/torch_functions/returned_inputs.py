"""Torch functions that give back their input itself: a write to the result is one to the input.

``torch.export`` takes the result of a dropout that drops nothing for a new tensor.

Source: ``dropout`` in ATen's ``Dropout.cpp`` (torch 2.13), which returns ``input`` unless it trains.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

# By function: whether it trains where nothing is said of that.
DROPOUTS = {
    functional.dropout: True,
    functional.dropout1d: True,
    functional.dropout2d: True,
    functional.dropout3d: True,
    functional.alpha_dropout: False,
    functional.feature_alpha_dropout: False,
    torch.dropout: True,
    torch.feature_dropout: True,
    torch.alpha_dropout: True,
    torch.feature_alpha_dropout: True,
}


def returned_input(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The input that a call gives back, or NotImplemented for a call that computes something."""
    if function not in DROPOUTS:
        return NotImplemented
    given = dict(zip(("input", "p", "training"), args, strict=False)) | kwargs
    training = given.get("training", given.get("train", DROPOUTS[function]))
    drops_nothing = training is False and 0 <= given.get("p", 0.5) <= 1
    return given["input"] if drops_nothing and isinstance(given.get("input"), torch.Tensor) else NotImplemented
