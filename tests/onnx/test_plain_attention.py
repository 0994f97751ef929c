"""Attention of any rank, and shares in the dtype that is asked for."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - as users do
from torch import Tensor

import dy2st

LEADS = [(), (1,), (3,), (2, 3), (2, 2, 3), (1, 2, 2, 3)]


def require_equal(model, args, **options):
    report = dy2st.check(model, args, **options)
    assert report.outcome == "equal", str(report)


@pytest.mark.parametrize("lead", LEADS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_batches(lead: tuple[int, ...], dtype: torch.dtype) -> None:
    def model(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        plain = F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, scale=0.3)
        causal = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        masked = (
            F.scaled_dot_product_attention(q, k, v, mask),
            F.scaled_dot_product_attention(q, k, v, attn_mask=mask > 0),
        )
        return *plain, causal, *masked

    q, k, v = (torch.randn(*lead, n, 4).to(dtype) for n in (5, 6, 6))
    mask = torch.randn(5, 6).to(dtype)
    mask[:, 0] = 1
    require_equal(model, [(q, k, v, mask)])


@pytest.mark.parametrize("lead", [(3,), (2, 3)])
def test_a_mask_of_each_batch(lead: tuple[int, ...]) -> None:
    q, mask = torch.randn(*lead, 5, 4), torch.randn(*lead, 5, 5)
    require_equal(lambda q, mask: F.scaled_dot_product_attention(q, q + 1, q, mask), [(q, mask)])


def test_in_a_branch_and_with_a_dynamic_size() -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() > 0:
            return F.scaled_dot_product_attention(x, x, x)
        return F.scaled_dot_product_attention(x, x, 2 * x) - 1

    args = [(torch.rand(2, 5, 4),), (-torch.rand(3, 7, 4),), (torch.rand(1, 2, 4),)]
    require_equal(model, args, dynamic_shapes=({0: "batch", 1: "length"},))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64])
@pytest.mark.parametrize("function", [F.softmax, F.log_softmax, F.softmin])
def test_shares_in_another_dtype(function, dtype: torch.dtype) -> None:
    def model(x: Tensor) -> tuple[Tensor, ...]:
        return function(x, 1, dtype=torch.float64), function(x[0, 0], 0, dtype=torch.float64)

    x = (3 * torch.randn(4, 5)).to(dtype)
    require_equal(model, [(x,)], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("kind", ["bool", "float", "double", "one head", "few keys"])
def test_rows_that_attend_to_nothing_are_zero(kind: str) -> None:
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 2, 3, 4), torch.randn(2, 2, 5, 4), torch.randn(2, 2, 5, 4)
    allowed = torch.ones(2, 1, 3, 5, dtype=torch.bool)
    some = allowed.clone()
    some[0, :, 1], some[1, :, :, 2:], some[1, :, 2] = False, False, False
    masks = [allowed, some]
    if kind in ("float", "double"):
        masks = [torch.zeros(each.shape).masked_fill(~each, -torch.inf) for each in masks]
    if kind == "double":
        q, k, v = q.double(), k.double(), v.double()
        masks = [each.double() for each in masks]
    if kind == "one head":
        q, k, v, masks = q[:, 0], k[:, 0], v[:, 0], [each[:, 0] for each in masks]
    if kind == "few keys":
        masks = [each[0, 0] for each in masks]

    def model(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    report = dy2st.check(model, [(q, k, v, mask) for mask in masks])
    assert report.ok, str(report)
