"""Pictures of errors: a histogram and a coarse map of how far each element of an output is from eager's."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from dy2st.report.model import Picture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dy2st.parity.outputs import Output

ROWS, COLUMNS = 16, 32
_MOST_BINS = 20  # decades; a histogram that spans more starts higher
MOST_PICTURES = 16  # of one stage: a model with a hundred outputs is told by its numbers


def pictures(expected: Sequence[Output], actual: Sequence[Output]) -> tuple[Picture, ...]:
    """A picture for each output that has eager's shape and is not the same everywhere; those furthest off, in order."""
    found = [
        # a Python float has no dtype: a file may hold it in either width
        picture(want.name, want.tensor.to(got.tensor.dtype) if want.is_number else want.tensor, got.tensor)
        for want, got in zip(expected, actual, strict=True)
    ]
    drawn = [each for each in found if each is not None]
    worst = sorted(drawn, key=lambda each: -each.largest)[:MOST_PICTURES]
    return tuple(each for each in drawn if each in worst)


def picture(name: str, expected: torch.Tensor, actual: torch.Tensor) -> Picture | None:
    """The picture of one output, or None: another shape, no element, or the same value everywhere.

    Errors are taken in float64, of complex numbers their absolute value; NaN and infinity are counted as ``special``
    where they are not the same on both sides, and as exact where they are.
    """
    want, got = expected.detach().cpu(), actual.detach().cpu()
    if want.is_complex() and not got.is_complex() and got.dim() == want.dim() + 1:
        got = torch.view_as_complex(got.contiguous())
    if want.shape != got.shape or want.numel() == 0:
        return None
    wide = torch.complex128 if want.is_complex() or got.is_complex() else torch.float64
    same = (want == got) | (want.isnan() & got.isnan()) if want.dtype == got.dtype else want.to(wide) == got.to(wide)
    if bool(same.all()):
        return None
    error = torch.where(same, 0.0, (want.to(wide) - got.to(wide)).abs().double())
    special = ~error.isfinite()
    error = error.masked_fill(special, 0.0)
    errors = error[error > 0]
    edges, counts = _histogram(errors)
    return Picture(
        output=name,
        shape=tuple(want.shape),
        largest=float(error.max()),
        exact=int(same.sum()),
        special=int(special.sum()),
        edges=edges,
        counts=counts,
        grid=_grid(error.masked_fill(special, math.inf)),
    )


def _histogram(errors: torch.Tensor) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """A bin for each power of ten between the smallest and the largest error; smaller ones are in the first."""
    if errors.numel() == 0:
        return (), ()
    exponents = errors.log10().floor().to(torch.int64)
    highest = int(exponents.max())
    lowest = max(int(exponents.min()), highest - _MOST_BINS + 1)
    counts = torch.bincount(exponents.clamp(min=lowest) - lowest, minlength=highest - lowest + 1)
    edges = [float(f"1e{exponent}") for exponent in range(lowest, highest + 2)]
    if int(exponents.min()) < lowest:
        edges[0] = 0.0
    return tuple(edges), tuple(int(count) for count in counts)


def _grid(error: torch.Tensor) -> tuple[tuple[float, ...], ...]:
    """The largest error in each cell of at most ROWS by COLUMNS cells; neighbours may share a row or column."""
    matrix = error.reshape(1, -1) if error.dim() < 2 else error.reshape(-1, error.shape[-1])  # noqa: PLR2004 - a matrix
    if matrix.shape[0] == 1 and matrix.shape[1] > COLUMNS:  # a vector is laid out in rows, the last one filled up
        rows = min(ROWS, -(-matrix.shape[1] // COLUMNS))
        width = -(-matrix.shape[1] // rows)
        matrix = torch.nn.functional.pad(matrix, (0, rows * width - matrix.shape[1])).reshape(rows, width)
    cells = torch.nn.functional.adaptive_max_pool2d(
        matrix[None], (min(ROWS, matrix.shape[0]), min(COLUMNS, matrix.shape[1]))
    )
    return tuple(tuple(float(f"{cell:.3g}") for cell in row) for row in cells[0].tolist())  # three digits are drawn
