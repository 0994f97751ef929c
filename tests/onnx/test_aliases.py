"""Operators by their other names: ``divide`` is ``div`` in a file, too, whatever the operands' dtypes are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.onnx._internal.exporter._registration import ONNXRegistry

import dy2st
from dy2st.onnx.passes.reused import ALIASES

if TYPE_CHECKING:
    from collections.abc import Callable

FLOATS, WHOLE, FLAGS = torch.tensor([[0.5, -2.0, 3.0]]), torch.tensor([[1, 2, 5]]), torch.tensor([[True, False, True]])

# Composite operators that torch's exporter translates as they stand, and that make no operands of one dtype: what they
# are given has one dtype in eager, too, or they only move elements.
OF_ONE_DTYPE = frozenset(
    """
    atleast_1d atleast_2d atleast_3d avg_pool1d bilinear broadcast_to chunk conj contiguous conv1d conv2d conv3d cross
    cross_entropy_loss det dropout einsum embedding_bag expand_as fake_quantize_per_channel_affine
    fake_quantize_per_tensor_affine flatten grid_sampler group_norm gru instance_norm is_nonzero isclose isfinite
    layer_norm linalg_det linear log_sigmoid log_softmax logdet lstm mH mT matmul max_pool1d max_pool1d_with_indices
    max_pool2d max_pool3d narrow nll_loss pad prelu relu6 repeat_interleave reshape resolve_conj resolve_neg
    scaled_dot_product_attention selu softmax stft sym_size sym_storage_offset tile type_as unflatten upsample_bicubic2d
    upsample_bilinear2d upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d view_as
    where""".split()
)


def is_composite(operator: Any) -> bool:
    if not isinstance(operator, OpOverload) or operator.namespace != "aten":
        return False
    try:
        return torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), "CompositeImplicitAutograd")
    except RuntimeError:  # a name of Python's operators
        return False


def test_no_alias_is_translated_as_it_stands() -> None:
    """A new one of torch's belongs to one of the two."""
    operators = [found[0].fx_target for found in ONNXRegistry.from_torchlib().functions.values()]
    composite = {each._schema.name.removeprefix("aten::") for each in operators if is_composite(each)}
    assert composite <= OF_ONE_DTYPE | ALIASES
    assert not OF_ONE_DTYPE & ALIASES


CASES: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "divide": lambda x, n: (torch.divide(x, n), torch.divide(n, 2), n.divide(x), torch.divide(n, n)),
    "true_divide": lambda x, n: (torch.true_divide(x, n), torch.true_divide(n, 2), n.true_divide(n)),
    "multiply": lambda x, n: (torch.multiply(x, n), n.multiply(0.5), torch.multiply(n, n)),
    "subtract": lambda x, n: (torch.subtract(x, n), n.subtract(0.5), torch.subtract(n, x, alpha=2)),
    "rsub": lambda x, n: (torch.rsub(n, 1.5), torch.rsub(x, n), torch.rsub(n, n, alpha=3), 1.5 - n),
    "floor_divide": lambda x, n: (7.5 // n, 7 // n, -7.5 // n.int(), 7.5 // x, torch.floor_divide(n, 1.5)),
    "greater": lambda x, n: (torch.greater(x, n), torch.greater(n, 1.5), n.greater_equal(x), n.greater_equal(1.5)),
    "less": lambda x, n: (torch.less(x, n), torch.less(n, 1.5), n.less_equal(x), n.less_equal(1.5)),
    "not_equal": lambda x, n: (torch.not_equal(x, n), n.not_equal(0.5)),
    "concat": lambda x, n: (torch.concat([x, n]), torch.concatenate([n, x], 1)),
    "angle": lambda x, n: (torch.angle(n), torch.angle(-n), torch.angle(x)),
    "special": lambda x, n: (
        torch.special.erf(n),
        torch.special.expm1(n),
        torch.special.sinc(n),
        torch.special.erfc(n),
    ),
    "softmax": lambda x, n: (torch.special.softmax(n, 1, dtype=torch.float32), torch.special.log_softmax(x, 1)),
    "cov": lambda x, n: (torch.cov(torch.cat([x, n])), torch.corrcoef(torch.cat([x, n])), torch.cov(n)),
}


@pytest.mark.parametrize("name", CASES)
def test_mixed_dtypes(name: str) -> None:
    report = dy2st.check(CASES[name], [(FLOATS, WHOLE), (FLOATS + 1, WHOLE * 2)])
    assert report.ok, str(report)


def test_flags_and_narrow_integers() -> None:
    def model(x: Tensor, flags: Tensor, n: Tensor) -> Any:
        short = n.to(torch.int16)
        return (
            torch.multiply(x, flags),
            torch.divide(short, n),
            torch.subtract(short, n),
            torch.greater(flags, x),
            2 * short,
        )

    report = dy2st.check(model, [(FLOATS, FLAGS, WHOLE)])
    assert report.ok, str(report)


def test_covariances_with_negative_weights_fail_as_in_eager() -> None:
    def model(x: Tensor, weights: Tensor) -> Tensor:
        return torch.cov(x, aweights=weights)

    x = torch.randn(2, 3)
    report = dy2st.check(model, [(x, torch.ones(3)), (x, torch.tensor([1.0, -1.0, 2.0]))])
    assert report.ok, str(report)
    assert report.inputs[1].raises
