"""Operators that torch traces for integers and computes for floats alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import dy2st
from dy2st.errors import UntranslatedError


@pytest.mark.parametrize(
    "model",
    [lambda x: torch.logcumsumexp(x, 0), lambda x: torch.logaddexp(x, x), lambda x: torch.logaddexp2(x, x)],
    ids=["logcumsumexp", "logaddexp", "logaddexp2"],
)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_integers_are_refused_where_eager_refuses_them(model: Callable[[Tensor], Tensor], dtype: torch.dtype) -> None:
    """The error says what to write instead, at the user's line."""
    x = torch.tensor([1, 2, 3], dtype=dtype)
    with pytest.raises(NotImplementedError):
        model(x)
    with pytest.raises(UntranslatedError, match=r"is not implemented for .*int") as error:
        dy2st.onnx.export(model, (x,))
    assert error.value.location is not None
    assert error.value.location.filename == __file__
    assert "x.float()" in str(error.value.hint)
