"""Losses and poolings of which ONNX's operator knows less than torch's.

Source: ``cross_entropy_loss_prob_target`` and ``cross_entropy_loss_label_smoothing`` of ATen/native/LossNLL.cpp, torch
2.13; ONNX's ``SoftmaxCrossEntropyLoss`` has neither, nor takes one sample without a batch, and ``AveragePool`` no
divisor; torch's exporter leaves them out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.nn import functional

from dy2st.calls.torch_functions.registry import replaces
from dy2st.errors import UntranslatedError
from dy2st.staging.conditions import condition, require

Tensor = torch.Tensor


@replaces(functional.cross_entropy)
def cross_entropy(
    input: Tensor,  # noqa: A002 - torch's name
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """``F.cross_entropy`` with smoothed labels, with probabilities as the target, or of no batch."""
    if size_average is not None or reduce is not None or reduction not in ("none", "mean", "sum"):
        return NotImplemented
    if target.is_floating_point():
        return _of_probabilities(input, target, weight, reduction, label_smoothing)
    if label_smoothing == 0.0 and (input.dim() != 1 or target.dim()):
        return NotImplemented
    if label_smoothing == 0.0:
        return nll_loss(functional.log_softmax(input, 0), target, weight, None, ignore_index, None, reduction)
    if input.dim() == 1:
        rows = cross_entropy(input[None], target[None], weight, None, ignore_index, None, reduction, label_smoothing)
        return rows[0] if reduction == "none" else rows
    logs = functional.log_softmax(input, _classes(input))
    exact = functional.nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
    smooth = _smooth(logs, target, weight, ignore_index, reduction)
    return (1 - label_smoothing) * exact + smooth * (label_smoothing / input.shape[_classes(input)])


@replaces(functional.nll_loss)
def nll_loss(
    input: Tensor,  # noqa: A002 - torch's name
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Any:
    """``F.nll_loss`` of one sample without a batch, of which torch's decomposition reads the target's value."""
    if size_average is not None or reduce is not None or input.dim() != 1 or target.dim():
        return NotImplemented
    loss = functional.nll_loss(input[None], target[None], weight, ignore_index=ignore_index, reduction=reduction)
    return loss[0] if reduction == "none" else loss


def agree(input: Tensor, target: Tensor, *, demanded: bool = False) -> None:  # noqa: A002 - torch's names
    """Sizes that data decide are taken to be equal, as an elementwise operator takes them: torch's losses ask for it.

    Eager repeats a size of 1; or, where the sizes have to be equal (``demanded``), raises, and so does the graph.
    """
    if input.dim() != target.dim():
        return
    for one, other in zip(input.shape, target.shape, strict=True):
        repeated = _is_one(one) or _is_one(other)
        if (free_unbacked_symbols((one, other)) or _equal_in_the_example(one, other)) and (demanded or not repeated):
            if demanded:
                require(condition(one == other), ValueError, "the target has another size than the input")
            torch._check(one == other)


def _equal_in_the_example(one: Any, other: Any) -> bool:
    """Whether two dynamic sizes of inputs, or what is computed of them, are equal in the example."""
    nodes = [size.node for size in (one, other) if isinstance(size, torch.SymInt)]
    return len(nodes) == 2 and all(node.has_hint() for node in nodes) and nodes[0].hint == nodes[1].hint


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1


@replaces(functional.mse_loss, functional.l1_loss, sized=True)
def elementwise_loss(input: Tensor, target: Tensor, *_args: Any, **_kwargs: Any) -> Any:  # noqa: A002
    """A loss of two tensors is torch's own, once it is known that their sizes agree."""
    agree(input, target)
    return NotImplemented


@replaces(functional.binary_cross_entropy, functional.binary_cross_entropy_with_logits, sized=True)
def entropy(input: Tensor, target: Tensor, *_args: Any, **_kwargs: Any) -> Any:  # noqa: A002
    """A loss of two tensors that have to be of the same sizes."""
    agree(input, target, demanded=True)
    return NotImplemented


def _classes(scores: Tensor) -> int:
    return 0 if scores.dim() == 1 else 1


def _weighted(values: Tensor, weight: Tensor | None) -> Tensor:
    if weight is None:
        return values
    sizes = [1] * values.dim()
    sizes[_classes(values)] = -1
    return values * weight.view(sizes)


def _of_probabilities(
    scores: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float
) -> Tensor:
    logs = functional.log_softmax(scores, _classes(scores))
    count = scores.shape[_classes(scores)]
    if smoothing > 0.0:
        target = target * (1 - smoothing) + smoothing / count
    losses = -_weighted(logs * target, weight)
    if reduction == "none":
        return losses.sum(_classes(scores))
    return losses.sum() / (scores.numel() / count) if reduction == "mean" else losses.sum()


def _smooth(logs: Tensor, target: Tensor, weight: Tensor | None, ignored: int, reduction: str) -> Tensor:
    """The loss against the uniform distribution, times the number of classes."""
    kept = target != ignored
    losses = torch.where(kept, -_weighted(logs, weight).sum(_classes(logs)), 0.0)
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    if weight is None:
        return losses.sum() / kept.sum()
    return losses.sum() / torch.where(kept, weight[torch.where(kept, target, 0)], 0.0).sum()


def _pooled(plain: Callable[..., Tensor], dims: int) -> Callable[..., Any]:
    """An average pooling with a divisor of the user's."""

    def pool(
        input: Tensor,  # noqa: A002 - torch's name
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,  # noqa: ARG001 - of no matter with a divisor
        divisor_override: int | None = None,
    ) -> Any:
        if divisor_override is None:
            return NotImplemented
        if ceil_mode:
            raise UntranslatedError(
                "ONNX has no average pooling with both ceil_mode and divisor_override",
                hint="pad the input to whole windows, and leave out ceil_mode",
            )
        elements = math.prod(kernel_size) if isinstance(kernel_size, (list, tuple)) else kernel_size**dims
        return plain(input, kernel_size, stride, padding) * (elements / divisor_override)

    return pool


replaces(functional.avg_pool2d)(_pooled(functional.avg_pool2d, 2))
replaces(functional.avg_pool3d)(_pooled(functional.avg_pool3d, 3))
