"""What a function changes of the world behind the back of the capture is refused: no program would change it."""

from __future__ import annotations

import bisect
import heapq
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import dy2st
from dy2st.errors import LostStateError

ITEMS = [1]
CALLS = 0
TABLE: dict[str, int] = {}
ARRAY = np.ones(3, dtype=np.float32)
SETTINGS = types.SimpleNamespace(v=1)


class Counting:
    n = 0


COUNTING = Counting()


def by_heapq(x: Tensor) -> Tensor:
    heapq.heappush(ITEMS, 1)
    return x * len(ITEMS)


def by_bisect(x: Tensor) -> Tensor:
    bisect.insort(ITEMS, 1)
    return x * len(ITEMS)


def by_namespace(x: Tensor) -> Tensor:
    SETTINGS.__dict__.update(v=SETTINGS.v + 1)
    return x * SETTINGS.v


def by_globals(x: Tensor) -> Tensor:
    globals()["CALLS"] = globals().get("CALLS", 0) + 1
    return x * CALLS


def by_class(x: Tensor) -> Tensor:
    type(COUNTING).n += 1
    return x * COUNTING.n


def by_item(x: Tensor) -> Tensor:
    ARRAY[0] += 1
    return x * float(ARRAY[0])


def by_out(x: Tensor) -> Tensor:
    np.add(ARRAY, 1, out=ARRAY)
    return x * torch.tensor(ARRAY)


def by_tensor(x: Tensor) -> Tensor:
    torch.from_numpy(ARRAY).add_(1)
    return x * torch.from_numpy(ARRAY)


def by_tensor_on_a_path(x: Tensor) -> Tensor:
    t = torch.as_tensor(ARRAY)
    if x.sum() > 0:
        t += x
    return x * t


def by_flag(x: Tensor) -> Tensor:
    x.requires_grad_()
    return x * 2


def by_assigned_flag(x: Tensor) -> Tensor:
    x.requires_grad = True
    return x * 2


FUNCTIONS: list[Callable[[Tensor], Any]] = [
    *(by_heapq, by_bisect, by_namespace, by_globals, by_class, by_item, by_out, by_tensor, by_tensor_on_a_path),
    *(by_flag, by_assigned_flag),
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_it_is_refused(function: Callable[[Tensor], Any]) -> None:
    with pytest.raises(LostStateError) as caught:
        dy2st.to_static(function)(torch.ones(3))
    assert caught.value.location is not None
    assert caught.value.location.filename == __file__


def test_a_copy_of_an_array_may_be_changed() -> None:
    def model(x: Tensor) -> Tensor:
        t = torch.tensor(ARRAY)
        t += x
        return t

    ARRAY.fill(1)
    static = dy2st.to_static(model)
    for _ in range(2):
        assert static(torch.ones(3)).tolist() == [2, 2, 2]


def test_a_program_keeps_no_array_of_others() -> None:
    model = dy2st.to_static(lambda x: x * torch.tensor(ARRAY))
    ARRAY.fill(1)
    assert model(torch.ones(3)).tolist() == [1, 1, 1]
    ARRAY.fill(2)
    assert model(torch.ones(3)).tolist() == [2, 2, 2]
    ARRAY.fill(1)
    assert model(torch.ones(3)).tolist() == [1, 1, 1]


def test_a_leaf_made_inside_is_told() -> None:
    model = dy2st.to_static(lambda x: x * x.detach().requires_grad_())
    x = torch.ones(3, requires_grad=True)
    model(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1, 1, 1]


def test_a_tuple_that_modules_share_is_replaced_by_an_equal_one() -> None:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    net = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()

    def model(x: Tensor) -> Any:
        return net(x)

    static, x = dy2st.to_static(model), torch.rand(2, 5, 8)
    for _ in range(2):
        torch.testing.assert_close(static(x), net(x))
    assert static.cache_info().hits == 1
