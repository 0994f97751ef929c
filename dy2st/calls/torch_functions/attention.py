"""Scaled dot-product attention of sizes that are data: a cache that a loop lets grow.

Torch's rule for its kernels asks whether the sizes of mask and keys are equal. Written out, the mask is one operand of
a sum like any other.
Source: the documentation of torch.nn.functional.scaled_dot_product_attention; a row that is masked throughout gives 0.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from dy2st.calls.torch_functions.registry import ints, replaces
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.conditions import condition, either, negated, require
from dy2st.staging.session import MODE
from dy2st.values.python_errors import may_raise


@replaces("scaled_dot_product_attention", sized=True)
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: Any = 0.0,
    is_causal: Any = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    """``torch.nn.functional.scaled_dot_product_attention``; NotImplemented for what torch alone knows."""
    capture, causal = MODE.capture, condition(is_causal)
    assert capture is not None
    if dropout_p != 0.0 or (causal is True and attn_mask is not None):
        return NotImplemented
    if scale is None and not ints(query.shape[-1]):
        return NotImplemented
    if enable_gqa:
        key, value = (_for_each_head(each, query.shape[-3]) for each in (key, value))
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if isinstance(causal, torch.Tensor) and attn_mask is not None:
        # Eager raises for both; where there is a mask, there is no other one.
        may_raise(RuntimeError, "attention that is causal, and has a mask as well,")
        capture.guards.require(negated(causal), location_of(users_frame()), "a mask as well as is_causal", always=True)
    elif causal is not False:
        rows, columns = (torch.arange(each.shape[-2], device=query.device) for each in (query, key))
        attn_mask = either(columns <= rows[:, None], negated(causal))
    if attn_mask is None:
        return scores.softmax(-1) @ value
    lowest = float("-inf")
    scores = scores.masked_fill(~attn_mask, lowest) if attn_mask.dtype is torch.bool else scores + attn_mask
    nothing = (scores == lowest).all(-1, keepdim=True)
    return scores.softmax(-1).masked_fill(nothing, 0.0) @ value


def _for_each_head(grouped: Any, heads: Any) -> Any:
    """Keys or values that ``heads // groups`` heads of the query share, for each head."""
    groups = grouped.shape[-3]
    if ints(heads, groups):
        return grouped.repeat_interleave(heads // groups, -3)
    require(heads % groups == 0)
    return grouped.index_select(-3, torch.arange(heads, device=grouped.device) * groups // heads)
