"""Derivatives of operators that torch has as one operator each, in those that ONNX has.

Source: the definitions of convolution and pooling; ``torch.nn.grad`` for the sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._decomp import decomposition_table

aten = torch.ops.aten


def convolution_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor,
    bias_sizes: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    mask: Sequence[bool],
) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    """By the input a transposed convolution, by the weight a convolution of the input with the gradient."""
    rank = x.dim() - 2
    stride, padding, dilation = (_each(v, rank) for v in (stride, padding, dilation))
    by_x = by_weight = by_bias = None
    if mask[2]:
        by_bias = grad.sum([0, *range(2, grad.dim())])
    if transposed:
        if mask[0]:
            by_x = aten.convolution(grad, weight, None, stride, padding, dilation, False, [0] * rank, groups)
            by_x = _cut(by_x, x)
        if mask[1]:
            by_weight = _by_weight(x, grad, weight, stride, padding, dilation, groups)
    else:
        if mask[0]:
            rest = _each(
                [
                    n - ((m - 1) * s - 2 * p + d * (k - 1) + 1)
                    for n, m, s, p, d, k in zip(
                        x.shape[2:], grad.shape[2:], stride, padding, dilation, weight.shape[2:], strict=True
                    )
                ],
                rank,
            )
            by_x = aten.convolution(grad, weight, None, stride, padding, dilation, True, rest, groups)
        if mask[1]:
            by_weight = _by_weight(grad, x, weight, stride, padding, dilation, groups)
    return by_x, by_weight, by_bias


def _by_weight(
    small: torch.Tensor,
    large: torch.Tensor,
    weight: torch.Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> torch.Tensor:
    """``weight[a, b, k] = sum over n and i of small[n, a, i] * large[n, b, i * stride + k * dilation - padding]``."""
    rank = small.dim() - 2
    parts = []
    for one, other in zip(small.chunk(groups, 1), large.chunk(groups, 1), strict=True):
        # The batch is what is summed over, so it is the channels of this convolution.
        moved = aten.convolution(
            other.transpose(0, 1),
            one.transpose(0, 1),
            None,
            dilation,
            padding,
            stride,
            False,
            [0] * rank,
            1,
        )
        parts.append(moved.transpose(0, 1))
    return _cut(torch.cat(parts, 0) if groups > 1 else parts[0], weight)


def _cut(value: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """``value`` without what a stride leaves over at the ends."""
    for dim in range(2, value.dim()):
        value = value.narrow(dim, 0, like.shape[dim])
    return value


def _each(values: Sequence[int], rank: int) -> list[int]:
    return list(values) * rank if len(values) == 1 else list(values)


def max_pool2d_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: torch.Tensor,
) -> torch.Tensor:
    """Each window's gradient goes to its greatest element."""
    flat = torch.zeros_like(x).flatten(-2)
    return flat.scatter_add(-1, indices.flatten(-2), grad.flatten(-2)).view(x.shape)


def avg_pool2d_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> Any:
    """A transposed convolution with equal weights, where every window has as many elements."""
    kernel = _each(kernel, 2)
    stride, padding = _each(stride or kernel, 2), _each(padding, 2)
    if ceil_mode or (any(padding) and not count_include_pad and divisor is None):
        return NotImplemented
    channels = x.shape[-3]
    share = 1 / (divisor or math.prod(kernel))
    weight = torch.full([channels, 1, *kernel], share, dtype=x.dtype, device=x.device)
    batched = grad if grad.dim() == 4 else grad.unsqueeze(0)
    made = convolution_backward(
        batched,
        x if x.dim() == 4 else x.unsqueeze(0),
        weight,
        None,
        stride,
        padding,
        [1, 1],
        False,
        [0, 0],
        channels,
        [True, False, False],
    )[0]
    assert made is not None
    return made if grad.dim() == 4 else made.squeeze(0)


def _of_torch() -> dict[Any, Callable[..., Any]]:
    """Torch's own rules for operators that are parts of a derivative, and for those that have several results.

    Of the latter torch's exporter writes but the first right, and others are for a backward: the total weight of a
    loss, the statistics of a norm, and its first result too if it is in training mode.
    """
    return {
        target: rule
        for target, rule in decomposition_table.items()
        if isinstance(target, torch._ops.OpOverload)
        and (len(target._schema.returns) > 1 or target._opname.endswith(("_backward", "_backward_data")))
        and rule.__module__.startswith("torch._decomp")
        and not target._schema.is_mutable
        and target._overloadname == "default"
    }


def adaptive_avg_pool2d_backward(grad: torch.Tensor, x: torch.Tensor) -> Any:
    """Windows of one size, which is so where the sizes divide each other."""
    sizes: list[tuple[Any, Any]] = list(zip(x.shape[-2:], grad.shape[-2:], strict=True))
    if any(not isinstance(n, int) or not isinstance(m, int) or n % m for n, m in sizes):
        return NotImplemented
    for dim, (n, m) in zip((-2, -1), sizes, strict=True):
        index = torch.arange(n, device=grad.device) // (n // m)
        grad = grad.index_select(dim, index) * (m / n)
    return grad


def dropout(x: torch.Tensor, p: float, train: bool | None) -> tuple[torch.Tensor, torch.Tensor]:
    """With random numbers that are a value of the graph, which a derivative can keep."""
    if p == 0 or train is False:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    if p == 1:
        return torch.zeros_like(x), torch.zeros_like(x, dtype=torch.bool)
    mask = torch.rand_like(x) >= p
    return x * mask * (1 / (1 - p)), mask


def normalised(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor,
    variance: torch.Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """Outside of training it writes to no statistics, of which the operator's schema says nothing."""
    if training:
        return NotImplemented
    return aten.native_batch_norm(x, weight, bias, mean, variance, training, momentum, eps)


# What is written with others before it is differentiated.
BEFORE: dict[Any, Callable[..., Any]] = {aten.native_dropout.default: dropout}

RULES: dict[Any, Callable[..., Any]] = {
    **_of_torch(),
    aten._native_batch_norm_legit.default: normalised,
    aten.convolution_backward.default: convolution_backward,
    aten.max_pool2d_with_indices_backward.default: max_pool2d_backward,
    aten.avg_pool2d_backward.default: avg_pool2d_backward,
    aten._adaptive_avg_pool2d_backward.default: adaptive_avg_pool2d_backward,
}
