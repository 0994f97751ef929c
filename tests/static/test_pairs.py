"""Programs and changes that look for what goes stale: eager and static see the same, each in a world of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import dy2st
from tests.static.adversary import PAIRS, Static


def seen(value: Any) -> Any:
    """What can be compared of a value: of tensors all that tells them apart."""
    if isinstance(value, (list, tuple)):
        return [type(value), *map(seen, value)]
    if isinstance(value, torch.Tensor):
        kind = type(value), value.dtype, value.shape, value.stride()
        return *kind, value.requires_grad, value.is_leaf, value.tolist()
    return type(value), value


@pytest.mark.parametrize("pair", PAIRS, ids=[each.__name__ for each in PAIRS])
def test_what_is_seen_is_the_same(pair: Callable[[Static], Iterator[Any]]) -> None:
    expected = [seen(each) for each in pair(lambda model: model)]
    actual = [seen(each) for each in pair(dy2st.to_static)]
    assert actual == expected
