"""Dataclasses, dicts with fields and nests of containers as the arguments of a model."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict

import numpy as np
import pytest
import torch

import dy2st
from dy2st.errors import ExampleInputsError
from dy2st.onnx import Runner

X = torch.tensor([1.0, -2.0, 3.0])


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    mask: torch.Tensor | None = None
    name: str = "batch"


@dataclasses.dataclass
class Nested:
    inner: Batch
    more: list


@dataclasses.dataclass
class Output(OrderedDict):
    """As the outputs of transformers: what is not None is a field, and an item."""

    hidden: torch.Tensor | None = None
    scores: torch.Tensor | None = None

    def __post_init__(self):
        for field in dataclasses.fields(self):
            if getattr(self, field.name) is not None:
                self[field.name] = getattr(self, field.name)


def masked(batch):
    if batch.x.sum() > 0:
        return batch.x * 2
    return batch.x if batch.mask is None else batch.x * batch.mask


def of_nested(nested):
    if nested.more[0]["z"].sum() > 0:
        return masked(nested.inner)
    return nested.inner.x - nested.more[1]


def of_items(output):
    if output["hidden"].sum() > 0:
        return Output(hidden=output.hidden * 2)
    return Output(hidden=output["hidden"] - 1)


@pytest.mark.parametrize(
    ("model", "sets"),
    [
        (masked, [(Batch(X),), (Batch(-X),)]),
        (masked, [(Batch(X, X),), (Batch(-X, X),)]),
        (of_nested, [(Nested(Batch(sign * X), [{"z": other * X}, X]),) for sign in (1, -1) for other in (1, -1)]),
        (of_items, [(Output(hidden=X),), (Output(hidden=-X),)]),
        (of_items, [(Output(X, X),), (Output(-X, X),)]),
    ],
)
def test_they_are_inputs(model, sets):
    report = dy2st.check(model, sets)
    assert report.outcome == "equal", str(report)


def test_the_names_of_their_parts(tmp_path):
    dy2st.onnx.export(masked, (Batch(-X, X),), tmp_path / "model.onnx")
    run = Runner(tmp_path / "model.onnx")
    assert run.input_names == ["batch_x", "batch_mask"]
    assert run(np.ones(3, np.float32), np.ones(3, np.float32))[0].tolist() == [2, 2, 2]


def test_none_or_a_tensor_is_two_files():
    with pytest.raises(ExampleInputsError, match="None in input 0, but torch"):
        dy2st.check(lambda x, mask: x if mask is None else x * mask, [(X, None), (X, X)])
    with pytest.raises(ExampleInputsError, match="one program has one signature"):
        dy2st.check(masked, [(Batch(X),), (Batch(X, X),)])
