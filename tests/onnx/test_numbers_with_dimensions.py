"""Torch takes 0 and -1 for the dimension of a number; a file computes the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor

import dy2st

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST = torch.tensor(0)

FORMS: dict[str, Callable[[Tensor], Any]] = {
    "sum": lambda s: (s.sum(0), s.sum(-1, keepdim=True), s.long().sum(0)),
    "mean": lambda s: (s.mean(0), s.mean(-1, keepdim=True), s.mean()),
    "prod": lambda s: (s.prod(0), s.prod(-1, keepdim=True), s.long().prod(0)),
    "any": lambda s: ((s > 0).any(0), s.any(-1, keepdim=True), s.any()),
    "all": lambda s: ((s > 0).all(0), s.all(-1, keepdim=True), s.all()),
    "std": lambda s: (
        s.std(0, correction=0),
        s.var(-1, correction=0, keepdim=True),
        torch.var_mean(s, 0, correction=0),
    ),
    "extremes": lambda s: (s.max(0), s.min(-1), s.amax(0), s.amin(-1, keepdim=True), s.argmax(0), s.aminmax(dim=0)),
    "norm": lambda s: (s.norm(dim=0), s.logsumexp(0), s.count_nonzero(0)),
    "running": lambda s: (s.cumsum(0), s.cumprod(-1), s.cummax(0), s.logcumsumexp(0), s.long().cumsum(0)),
    "sorted": lambda s: (s.sort(0), s.argsort(-1), s.topk(1), s.kthvalue(1, 0), s.median(0), s.mode(0), s.msort()),
    "softmax": lambda s: (s.softmax(0), s.log_softmax(-1)),
    "moved": lambda s: (
        s.flip(0),
        s.flip(-1),
        s.roll(1),
        s.squeeze(),
        s.squeeze(0),
        s.transpose(0, -1),
        s.movedim(0, 0),
    ),
    "scattered": lambda s: (s.scatter(0, FIRST, s * 2), s.scatter(0, FIRST, 2.0), s.scatter_add(0, FIRST, s * 2)),
    "by index": lambda s: (s.index_fill(0, FIRST, 2.0), s.index_add(0, FIRST, s), s.index_copy(0, FIRST, s * 2)),
    "taken": lambda s: (s.gather(0, FIRST), s.index_select(0, FIRST[None]), s.take(FIRST), s.take_along_dim(FIRST)),
    "shapes": lambda s: (s.reshape(-1), s.view(1, 1), s.expand(2, 3), s.tile(3), s.unsqueeze(0), s.unfold(0, 1, 1)),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_number_along_a_dimension(name: str) -> None:
    x = torch.tensor([0.5, -2.0, 3.0])
    report = dy2st.check(lambda x: FORMS[name](x.max()), [(x,), (-x,)])
    assert report.ok, str(report)
