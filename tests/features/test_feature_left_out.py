"""Functions of which torch's exporter leaves an argument or a dimension out (row 48): the file is right, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # which registers quantized_decomposed's operators
from harness import agree, dyn, refused, refuses, row, vectors
from torch import Tensor, nn

import dy2st
from dy2st.errors import UntranslatedError

functional = nn.functional
entropy = functional.cross_entropy


def smoothed(x: Tensor) -> tuple[Tensor, ...]:
    target = torch.tensor([0, -100, 0])
    scores, weight = x.expand(3, -1), x.abs() + 1
    plain = [entropy(scores, target, label_smoothing=0.2, reduction=r) for r in ("none", "sum", "mean")]
    weighted = [entropy(scores, target, weight, label_smoothing=0.2, reduction=r) for r in ("none", "sum", "mean")]
    return *plain, *weighted, entropy(x, target[0], label_smoothing=0.3), entropy(scores, target)


def of_probabilities(x: Tensor) -> tuple[Tensor, ...]:
    scores, target, weight = x.expand(3, -1), (-x).softmax(0).expand(3, -1), x.abs() + 1
    plain = [entropy(scores, target, label_smoothing=0.2, reduction=r) for r in ("none", "sum", "mean")]
    weighted = [entropy(scores, target, weight, reduction=r) for r in ("none", "sum", "mean")]
    return (
        *plain,
        *weighted,
        entropy(x, target[0]),
        nn.CrossEntropyLoss(label_smoothing=0.1)(scores[..., None], target[..., None]),
    )


def pooled(x: Tensor) -> tuple[Tensor, ...]:
    x = x.view(1, 1, -1, 1).repeat(1, 1, 3, 4)
    flat = functional.avg_pool2d(x, 2, divisor_override=3), nn.AvgPool2d((2, 3), 1, 1, divisor_override=2)(x)
    deep = functional.avg_pool3d(x[None].repeat(1, 1, 2, 1, 1), 2, divisor_override=5)
    return *flat, deep, functional.adaptive_avg_pool2d(x, 1), nn.AdaptiveAvgPool1d(1)(x[0]), functional.avg_pool2d(x, 2)


def searched(x: Tensor) -> tuple[Tensor, ...]:
    bounds = torch.tensor([0.0, 1.0])
    single = torch.searchsorted(bounds, x.sum()), torch.searchsorted(x.sort()[0], 0.5), torch.bucketize(x[0], bounds)
    return *single, torch.searchsorted(x.sort()[0], x), torch.searchsorted(bounds.repeat(2, 1), x[:1].repeat(2, 1))


def quantized(x: Tensor) -> tuple[Tensor, ...]:
    ops = torch.ops.quantized_decomposed
    narrow = ops.quantize_per_tensor(x, 0.1, 3, 0, 15, torch.uint8)
    whole = ops.quantize_per_tensor(x, 0.1, 0, -128, 127, torch.int8)
    if x.sum() > 0:
        x = ops.dequantize_per_tensor(ops.quantize_per_tensor(x, 0.1, 0, -8, 7, torch.int8), 0.1, 0, -8, 7, torch.int8)
    return x, narrow, whole


@row(48)
@pytest.mark.parametrize("model", [smoothed, of_probabilities, pooled, searched])
def test_what_an_exporter_leaves_out(model: Callable[..., Any]) -> None:
    agree(model, vectors(3, 2, 5), (dyn(0),), paths=1)


@row(48)
def test_quantisation_to_fewer_values_than_the_type_holds() -> None:
    # Of [-3, ..., 3]: both bounds are met, and both paths taken.
    agree(quantized, [(x * 3 + shift,) for (x,) in vectors(3, 2, 5) for shift in (-2.5, 2.5)], (dyn(0),))


@row(48)
def test_a_pooling_that_onnx_does_not_have_is_refused() -> None:
    def model(x: Tensor) -> Tensor:
        return nn.functional.avg_pool2d(x, 2, ceil_mode=True, divisor_override=3)

    assert refuses(model, (torch.ones(1, 1, 5, 5),)).code == "D2S403"


def of_constants(x: Tensor) -> tuple[Tensor, ...]:
    """Of which the file could have the values instead."""
    image = torch.arange(9.0).view(1, 1, 3, 3)
    modes = [("bilinear", True), ("bilinear", False), ("bicubic", True)]
    found = [nn.functional.interpolate(image, scale_factor=1.7, mode=m, align_corners=a) for m, a in modes]
    whole = nn.functional.interpolate(image, scale_factor=2.0, mode="bilinear", antialias=True)
    return *found, whole, torch.div(torch.tensor([-7, 7]), 2, rounding_mode="trunc"), torch.tensor([-7]) // 2, x


@row(48)
def test_constants_are_folded_to_what_eager_has() -> None:
    agree(of_constants, vectors(2), (dyn(0),), paths=1)


@row(48)
def test_antialias_with_a_factor_that_makes_no_whole_size_is_refused() -> None:
    def model(x: Tensor) -> Tensor:
        return nn.functional.interpolate(x, scale_factor=0.75, mode="bilinear", antialias=True)

    with refused(UntranslatedError, match="5 elements of 7"):
        dy2st.onnx.export(model, (torch.ones(1, 1, 7, 8),))
