"""A program that comes to where eager raises has left nothing behind, and has copied no more than it must for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn

import dy2st
from dy2st.static import undo_log
from tests.static.test_pairs import seen

SIZE = 1000


class Writing(nn.Module):
    rows: Tensor
    count: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(SIZE, 3))
        self.register_buffer("count", torch.zeros(()))


class Checked(Writing):
    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        if x.sum() < 0:
            raise ValueError(f"negative: {x.sum().item()}")
        self.rows[at] = x
        return x * 2


class WrittenBefore(Writing):
    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        self.rows[at] = x
        self.count += 1
        assert x.sum() >= 0, "negative"
        self.rows.mul_(2)
        return self.rows[at] * self.count


class WrittenInALoop(Writing):
    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        while x.sum() > 1:
            self.rows[at] = x
            x = x / 2
            self.count += 1
            if self.count > 3:
                raise ValueError("too many")
        self.rows[at] += x
        return x


class WrittenInAnArm(Writing):
    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        if x[0] > 0:
            self.rows[at] = x
        else:
            self.count += 2
        if x.sum() < 0:
            raise ValueError("negative")
        return x * self.count


class Indexed(Writing):
    """Torch raises, before the first write and between two."""

    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        y = self.rows[at] + x
        self.count += 1
        if x.sum() < -100:
            raise ValueError("far too small")
        self.rows.add_(y)
        return self.rows.index_select(0, at.reshape(1) + x.sum().long().abs())


class Drawing(Writing):
    def forward(self, x: Tensor, at: Tensor) -> Tensor:
        x = x + torch.rand(3)
        if x.sum() < 0:
            raise ValueError(f"negative: {x.sum().item()}")
        self.rows[at] = x + torch.rand(3)
        return x


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (ValueError, AssertionError, IndexError, RuntimeError) as error:
        return type(error).__name__, str(error).partition("\n")[0]  # pytest adds lines to what asserts say


def calls(kind: type[nn.Module], static: Callable[[Any], Any]) -> Iterator[Any]:
    torch.manual_seed(0)
    module: Any = kind()
    model = static(module)
    x = torch.tensor([1.0, -0.5, 2.0])
    for factor, at in ((1, 2), (1, 3), (-1, 3), (40, 4), (-400, 5), (1, SIZE), (1, SIZE - 1), (2, 0)):
        yield outcome(lambda: model(x * factor, torch.tensor(at)))  # noqa: B023
        yield [module.rows.clone(), module.count.clone(), torch.rand(1)]


@pytest.mark.parametrize("kind", [Checked, WrittenBefore, WrittenInALoop, WrittenInAnArm, Indexed, Drawing])
def test_what_raises_leaves_what_eager_leaves(kind: type[nn.Module]) -> None:
    expected = [seen(each) for each in calls(kind, lambda model: model)]
    assert [seen(each) for each in calls(kind, dy2st.to_static)] == expected


@pytest.mark.parametrize(("kind", "elements"), [(Checked, 0), (Drawing, 0), (WrittenBefore, 4)])
def test_what_is_copied_for_it(kind: type[nn.Module], elements: int) -> None:
    copied: list[int] = []

    def counting(tensor: Tensor) -> Tensor:
        copied.append(tensor.numel())
        return tensor.detach().clone()

    with patch.object(undo_log, "copied", counting):
        model = dy2st.to_static(kind())
        model(torch.ones(3), torch.tensor(2))
    assert sum(copied) == elements


def test_a_tensor_with_a_history_is_not_put_back() -> None:
    def written(x: Tensor, weight: Tensor) -> Tensor:
        x.mul_(2)
        if weight.sum() < 0:
            raise ValueError("negative")
        return x * weight

    model = dy2st.to_static(written)
    weight = torch.ones(3, requires_grad=True)
    model(weight * 1, weight)
    with pytest.raises(RuntimeError, match=r"eager raises here: test_undoing\.py"):
        model(weight * 1, -weight)
