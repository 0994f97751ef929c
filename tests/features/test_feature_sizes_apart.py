"""Row 48: code whose sizes after a condition on a size are right together in either arm, and not by themselves."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from harness import agree, dyn, row
from torch import Tensor, nn

import dy2st


class GroupedAttention(nn.Module):
    """Two query heads share a key: for one query they are its rows."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.out = nn.Linear(4, 8), nn.Linear(4, 4), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        q, k = self.q(x).view(b, t, 2, 4).transpose(1, 2), self.k(x).view(b, t, 1, 4).transpose(1, 2)
        mask = torch.ones(t, t, dtype=torch.bool).tril()[None, None]
        if t == 1:
            q = q.reshape(b, 1, 2, 4)
        else:
            k = k[:, :, None].expand(b, 1, 2, t, 4).reshape(b, 2, t, 4)
        scores = (q @ k.transpose(-1, -2)).masked_fill(~mask, -1e9).softmax(-1)
        found = (scores @ k).reshape(b, -1, t, 4).transpose(1, 2).reshape(b, t, -1)
        return self.out(found)


def inputs() -> list[tuple[Tensor]]:
    return [(torch.randn(b, t, 4),) for b, t in ((2, 5), (1, 1), (3, 1), (1, 2), (2, 3))]


@pytest.mark.slow
@row(48)
def test_each_arm_has_its_sizes() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(GroupedAttention(), nn.ReLU(), GroupedAttention()).eval()
    agree(net, inputs(), (dyn(0, 1),), paths=1, whole=False)


@pytest.mark.slow
@row(48)
def test_paths_are_those_of_the_source() -> None:
    torch.manual_seed(0)
    report = dy2st.check(GroupedAttention().eval(), inputs(), dynamic_shapes=(dyn(0, 1),))
    assert report.ok, str(report)
    (site,) = report.paths
    assert (site.kind, site.line) == ("if", 26)


def padded(x: Tensor) -> Any:
    """Sizes that go on as they are joined need no second copy of the code."""
    if x.shape[0] % 2 == 1:
        x = torch.cat([x, x[:1]])
    return x * 2, x.shape[0]


@row(48)
def test_what_goes_on_together_is_traced_once() -> None:
    agree(padded, [(torch.arange(float(n)),) for n in (3, 4, 1, 2)], (dyn(0),))
    program = dy2st.export(padded, (torch.ones(3),), dynamic_shapes=(dyn(0),))
    muls = [node for graph in program.graph_module.modules() for node in graph.graph.nodes if "mul" in str(node.target)]
    assert len(muls) == 1


@row(48)
def test_a_side_for_which_eager_raises() -> None:
    """The program raises for it, too, and is right for the others."""

    def model(x: Tensor) -> Tensor:
        y = x[:2] if x.shape[0] > 4 else x.new_zeros(3, 2)
        return y.reshape(2, 2) + 1

    program = dy2st.export(model, (torch.ones(5, 2),), dynamic_shapes=(dyn(0),)).module()
    for n in (5, 6, 9):
        x = torch.randn(n, 2)
        torch.testing.assert_close(program(x), model(x))
    for run in (model, program):
        with pytest.raises(RuntimeError):
            run(torch.ones(3, 2))
