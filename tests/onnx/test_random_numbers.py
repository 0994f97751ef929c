"""Draws in a file: in the right range, of the right dtype, and anew in each run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor

import dy2st
import dy2st.onnx
from dy2st.errors import UntranslatedError

X = torch.linspace(-3, 3, 200)
# The function, the least value, and the one that none comes up to.
DRAWS: dict[str, tuple[Callable[[Tensor], Tensor], float, float]] = {
    "uniform_": (lambda x: x.clone().uniform_(), 0, 1),
    "uniform_ between": (lambda x: torch.empty_like(x).uniform_(-2, 5), -2, 5),
    "uniform_ of doubles": (lambda x: x.double().uniform_(1, 2), 1, 2),
    "randperm": (lambda x: torch.randperm(x.shape[0]), 0, 200),
    "randperm of int32": (lambda x: torch.randperm(x.shape[0], dtype=torch.int32), 0, 200),
    "random_ below": (lambda x: x.clone().random_(7), 0, 7),
    "random_ between": (lambda x: x.long().random_(3, 10), 3, 10),
    "random_ of bytes": (lambda x: x.to(torch.uint8).random_(), 0, 256),
    "random_ of floats": (lambda x: x.clone().random_(), 0, 2**24),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws(name: str, tmp_path: Path) -> None:
    draw, least, end = DRAWS[name]
    dy2st.onnx.export(draw, (X,), f=tmp_path / "model.onnx", dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    runs: list[Any] = [session.run(None, {session.get_inputs()[0].name: X.numpy()})[0] for _ in range(2)]
    assert all(str(run.dtype) == str(draw(X).dtype).removeprefix("torch.") and run.shape == (200,) for run in runs)
    assert all(run.min() >= least and run.max() < end for run in runs)
    assert not np.array_equal(*runs)
    if name.startswith("randperm"):
        assert all(np.array_equal(np.sort(run), np.arange(200)) for run in runs)
    else:
        assert runs[0].max() - runs[0].min() > (end - least) / 2


def test_more_integers_than_doubles_tell_apart(tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        return x.long().random_()

    with pytest.raises(UntranslatedError, match="give it a bound"):
        dy2st.onnx.export(model, (X,), f=tmp_path / "model.onnx")


def test_a_static_program_draws_what_eager_does() -> None:
    def model(x: Tensor) -> Tensor:
        return x.clone().random_(3, 10) if x.sum() > 0 else x

    draws = []
    for function in (model, dy2st.to_static(model)):
        torch.manual_seed(3)
        draws.append(function(X + 1))
    assert torch.equal(*draws)
