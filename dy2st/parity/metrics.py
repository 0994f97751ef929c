"""How far apart two tensors are: absolute, relative, in units in the last place, as an angle, as a share."""

from __future__ import annotations

import math

import torch

from dy2st.report.model import OutputMetrics

_BITS = {
    torch.float64: torch.int64,
    torch.float32: torch.int32,
    torch.float16: torch.int16,
    torch.bfloat16: torch.int16,
}


def output_metrics(name: str, expected: torch.Tensor, actual: torch.Tensor, wrong: torch.Tensor) -> OutputMetrics:
    """The metrics of one output; ``wrong`` marks the elements beyond the tolerance.

    ``expected`` and ``actual`` are real tensors of one dtype and shape, with at least one element. Where one is NaN or
    infinite nothing is measured; such elements count as wrong where ``wrong`` says so.
    """
    both = torch.isfinite(expected) & torch.isfinite(actual)
    want, got = expected.double().masked_fill(~both, 0), actual.double().masked_fill(~both, 0)
    apart = (want - got).abs()
    relative = torch.where(apart > 0, apart / want.abs().clamp(min=torch.finfo(torch.float64).tiny), 0.0)
    worst = int(torch.where(wrong, apart, -1.0).flatten().argmax()) if wrong.any() else int(apart.flatten().argmax())
    index = torch.unravel_index(torch.tensor(worst), expected.shape)
    norm = float(want.norm() * got.norm())
    return OutputMetrics(
        name,
        max_abs=float(apart.max()),
        max_rel=float(relative.max()),
        max_ulps=_ulps(expected, actual, both),
        cosine=min(1.0, float((want * got).sum()) / norm) if norm > 0 and math.isfinite(norm) else None,
        mismatched=float(wrong.double().mean()),
        worst=tuple(int(i) for i in index),
        dtype=str(expected.dtype).removeprefix("torch."),
        shape=tuple(expected.shape),
    )


def _ulps(expected: torch.Tensor, actual: torch.Tensor, both: torch.Tensor) -> float | None:
    """How many numbers of the dtype lie between the two, at most; None for what is no float."""
    bits = _BITS.get(expected.dtype)
    if bits is None:
        return None
    zero = torch.zeros((), dtype=expected.dtype)
    steps = [_ordered(torch.where(both, each, zero), bits) for each in (expected, actual)]
    first, second = (each.long() for each in steps)
    # Between float64s of two signs there are more steps than int64 can count.
    alike = (first < 0) == (second < 0)
    return float(torch.where(alike, (first - second).double(), first.double() - second.double()).abs().max())


def _ordered(tensor: torch.Tensor, bits: torch.dtype) -> torch.Tensor:
    """Integers in the order of the floats, neighbours being one apart; -0.0 and 0.0 are one."""
    raw = tensor.contiguous().view(bits)
    return torch.where(raw < 0, torch.iinfo(bits).min - raw, raw)
