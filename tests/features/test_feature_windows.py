"""Windows of a tensor of dynamic size (rows 48, 59): as many elements as the code says, each of which is there."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from harness import agree, dyn, refused, row, run_onnx
from torch import Tensor, nn

import dy2st
from dy2st.errors import UntranslatedError

WEIGHTS = torch.tensor([1.0, 2.0, 3.0, 4.0])


def frames(x: Tensor) -> tuple[Any, ...]:
    """Overlapping frames of a padded signal, one at least."""
    count = max(-(-(x.shape[0] - 4) // 2) + 1, 1)
    padded = nn.functional.pad(x, (0, (count - 1) * 2 + 4 - x.shape[0]))
    energies = torch.stack([(padded[i * 2 : i * 2 + 4] * WEIGHTS).sum() for i in range(count)])
    unfolded = (padded.unfold(0, 4, 2) * WEIGHTS).sum(1)
    return energies, unfolded, energies.sort()[0][: max(int(0.2 * count), 1)].mean(), count


def chunks(x: Tensor) -> tuple[Any, ...]:
    n = x.shape[0]
    count = math.ceil(n / 4)
    padded = nn.functional.pad(x, (0, count * 4 - n))
    found = []
    for i in range(count):
        chunk = padded[i * 4 : (i + 1) * 4]
        if chunk.sum() > 0:
            chunk = chunk * WEIGHTS
        found.append(chunk)
    return torch.stack(found), padded.view(count, 4), torch.arange(math.floor(n / 3)), x[math.trunc(n / -4) :]


def of_dynamic_width(x: Tensor) -> Tensor:
    width = x.shape[1]
    flat = x.reshape(-1)
    return torch.stack([flat[i * width : (i + 1) * width] * x[0] for i in range(x.shape[0])])


def backwards(x: Tensor) -> tuple[Any, ...]:
    n = x.shape[0]
    out = torch.zeros(n)
    for i in range(n - 1, -1, -1):
        out[i] = x[n - 1 - i] + out[min(i + 1, n - 1)]
    pairs = [x[n - 2 - i : n - i].flip(0) * WEIGHTS[:2] for i in range(n - 1)]
    total = x.sum()
    for i in range(1, n, 2):
        total = total + x[i] * x[i - 1] * 2 - x[-1 - i]
    return out, total, torch.cat(pairs) if pairs else out


def written(x: Tensor) -> Tensor:
    out = x.clone()
    for i in range(x.shape[0] // 3):
        out[3 * i : 3 * i + 3] = out[3 * i : 3 * i + 3].flip(0) * WEIGHTS[:3]
        out[i] -= 1
    return out


def extremes(x: Tensor) -> tuple[Any, ...]:
    n = x.shape[0]
    most, least = max(n - 2, 1), min(n, 5)
    y = torch.zeros(most)
    y[0] = least
    for i in range(least):
        y = y + i
    return y, x[:most], torch.ones(least, 2), max(n, 7) / 2, max(n - 9, n // 3, 2), min(least, most) + 1


def comparisons_as_ints(x: Tensor) -> tuple[Any, ...]:
    """Sums of tests, of which sympy makes no end."""
    count = max(-(-(x.shape[0] - 4) // 2) + 1, 1)
    odd = (count % 2 == 1) + (count > 3)
    if odd == 1:
        x = x + 1
    elif odd > 1 and count > 2:
        x = x - odd
    return x, torch.zeros(odd + 1), odd == 1, odd / 2 <= 1


@pytest.mark.slow_for("written", "frames", "backwards")
@row(59)
@pytest.mark.parametrize("model", [frames, chunks, backwards, written, extremes, comparisons_as_ints])
def test_windows(model: Callable[..., Any]) -> None:
    generator = torch.Generator().manual_seed(0)
    agree(model, [(torch.randn(n, generator=generator),) for n in (12, 4, 5, 9, 31, 2, 1)], (dyn(0),))


@pytest.mark.slow
@row(59)
def test_of_a_width_that_is_dynamic() -> None:
    agree(of_dynamic_width, [(torch.randn(a, b),) for a, b in ((3, 4), (2, 5), (1, 3), (6, 3))], (dyn(0, 1),))


def short_of_the_end(x: Tensor) -> Tensor:
    """The last windows are shorter than the others, and are added to what has one element."""
    total = x.new_zeros(1)
    for i in range(x.shape[0]):
        part = x[i * 2 : i * 2 + 2]
        total = total + part.sum() * (i + 1)
    return total


@row(59)
def test_of_other_widths_at_the_end() -> None:
    agree(short_of_the_end, [(torch.randn(n),) for n in (6, 2, 3, 1)], (dyn(0),))


@row(48)
def test_an_index_that_goes_beyond_the_end(tmp_path: Path) -> None:
    """For some sizes eager raises, and so does the file; for the others they agree."""

    def model(x: Tensor) -> Tensor:
        out = x.clone()
        for i in range(x.shape[0] - 1):
            out[x.shape[0] - 1 - i] = x[2 * i]
        return out

    agree(model, [(torch.randn(n),) for n in (2, 1, 3)], (dyn(0),))
    program = dy2st.export(model, (torch.randn(3),), dynamic_shapes=(dyn(0),))
    with pytest.raises(IndexError):
        program.module()(torch.randn(4))
    dy2st.onnx.export(program, f=tmp_path / "model.onnx")
    with pytest.raises(Exception, match="out of data bounds"):
        run_onnx(tmp_path / "model.onnx")((torch.randn(4),))


@row(48)
def test_sizes_that_onnx_rounds_are_refused() -> None:
    def model(x: Tensor) -> Tensor:
        return nn.functional.interpolate(x, scale_factor=0.29)

    with refused(UntranslatedError, match="28 elements of 100") as raised:
        dy2st.onnx.export(model, (torch.randn(1, 1, 12),), dynamic_shapes=(dyn(2),))
    assert raised.value.location is not None
    assert "factor=0.29" in (raised.value.location.text or "")


def resized(x: Tensor) -> tuple[Tensor, ...]:
    exact = nn.functional.interpolate(x, scale_factor=1.5, mode="linear"), nn.functional.interpolate(x, scale_factor=2)
    again = nn.functional.interpolate(x, scale_factor=0.29, recompute_scale_factor=True)
    return *exact, again, nn.functional.interpolate(x[..., :10].contiguous(), scale_factor=0.3)


@row(48)
def test_sizes_that_onnx_does_not_round() -> None:
    agree(resized, [(torch.randn(1, 1, n),) for n in (100, 10, 12, 57)], (dyn(2),), paths=1)


@pytest.mark.slow
@row(4)
def test_masks_of_two_slices_that_shrink_together() -> None:
    def model(x: Tensor, y: Tensor) -> Tensor:
        pairs = torch.zeros((), dtype=torch.int64)
        for i in range(x.shape[0]):
            pairs = pairs + ((x[i] < x[i + 1 :]) & (y[i] < y[i + 1 :])).sum()
        return pairs

    given = [([1.0, 2.0, 3.0], [3.0, 4.0, 1.0]), ([1.0], [2.0]), ([2.0, 1.0, 5.0, 3.0], [0.0, 1.0, 2.0, 1.5])]
    agree(model, [(torch.tensor(x), torch.tensor(y)) for x, y in given], (dyn(0), dyn(0)))
