"""Integers that are viewed as floats of the same width are the same floats in a file."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import dy2st
from dy2st.errors import UntranslatedError

generator = torch.Generator().manual_seed(0)
SPECIAL_32 = [0, -(2**31), 1, 2, -1, 2**23, 2**23 - 1, 0x7F800000, -8388608, 0x7FC00000, 0x7F7FFFFF]
SPECIAL_64 = [0, -(2**63), 1, 2, -1, 2**52, 2**52 - 1, 0x7FF0000000000000, 0x7FEFFFFFFFFFFFFF]
BITS_32 = torch.randint(-(2**31), 2**31 - 1, (2000,), generator=generator)
BITS_64 = torch.randint(-(2**63), 2**63 - 1, (2000,), generator=generator)
ALL_16 = torch.arange(-(2**15), 2**15).short()
CASES = {
    torch.float32: torch.cat([BITS_32, torch.tensor(SPECIAL_32)]).int(),
    torch.float64: torch.cat([BITS_64, torch.tensor(SPECIAL_64)]),
    torch.float16: ALL_16,
    torch.bfloat16: ALL_16,
}


@pytest.mark.parametrize("dtype", CASES, ids=str)
def test_integers_as_floats(dtype: torch.dtype) -> None:
    def model(x: Tensor) -> Tensor:
        return x.view(dtype)

    assert dy2st.check(model, [(CASES[dtype],)], rtol=0, atol=0).outcome == "equal"


def test_a_power_of_two_by_its_exponent() -> None:
    def model(x: Tensor) -> Tensor:
        while x.abs().max() > 1:
            exponent = torch.floor(torch.log2(x.abs().max())).clamp(-126, 127)
            x = x / ((exponent + 128).int() * 2**23).view(torch.float32)
        return x

    assert dy2st.check(model, [(torch.tensor(v),) for v in ([3.0, -9.5], [0.5, 0.25], [1e20, 3.0])]).outcome == "equal"


def test_floats_as_integers_are_refused() -> None:
    def model(x: Tensor) -> Tensor:
        return x.view(torch.int32)

    with pytest.raises(UntranslatedError, match="viewed as floats"):
        dy2st.check(model, [(torch.randn(3),)])
