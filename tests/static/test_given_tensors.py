"""What eager leaves behind in tensors and objects that were there before the call: refused, and nothing is changed."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dy2st
from dy2st.errors import Dy2stError

GLOBAL = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
PLAIN = torch.ones(3)
LAYER = nn.Linear(3, 3)


def after(effect: Callable[[Tensor], Any]) -> Callable[[Tensor], Tensor]:
    def model(x: Tensor) -> Tensor:
        effect(x)
        return x * 2

    return model


def wants(tensor: Tensor) -> None:
    tensor.requires_grad = True


def forgets(tensor: Tensor) -> None:
    tensor.grad = None


REFUSED: dict[str, Callable[[Tensor], Any]] = {
    "backward to an input": after(lambda x: (x * x).sum().backward()),
    "backward to a global": after(lambda x: (x.detach() * GLOBAL).sum().backward()),
    "backward to a parameter": after(lambda x: LAYER(x.detach()).sum().backward()),
    "backward to a global that is named": after(lambda x: (x * GLOBAL).sum().backward(inputs=[GLOBAL])),
    "what a global wants": after(lambda _: PLAIN.requires_grad_()),
    "an attribute that says what a global wants": after(lambda _: wants(PLAIN)),
    "what a module's parameters want": after(lambda _: LAYER.requires_grad_(False)),
    "a gradient that is forgotten": after(lambda _: forgets(GLOBAL)),
    "a gradient of an input that is forgotten": after(forgets),
    "which tensor it is": lambda x: x * (id(x) % 7),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_tensors_are_told_is_refused_at_its_line(name: str) -> None:
    x, held = torch.ones(3, requires_grad=True), (GLOBAL, PLAIN, LAYER.weight)
    for each in (x, GLOBAL):
        each.grad = torch.ones(3)
    before = [(each.requires_grad, copy.copy(each.grad), dict(vars(each))) for each in (x, *held)]
    for _ in range(2):
        with pytest.raises(Dy2stError) as caught:
            dy2st.to_static(REFUSED[name])(x)
        assert caught.value.location is not None
        assert caught.value.location.filename == __file__
    after = [(each.requires_grad, each.grad, dict(vars(each))) for each in (x, *held)]
    assert str(after) == str(before)


def test_a_tensor_that_is_told_to_keep_its_gradient() -> None:
    given = torch.ones(3, requires_grad=True) * 1
    for x in (given, torch.ones(3, requires_grad=True)):
        static = dy2st.to_static(after(lambda x: x.retain_grad()))
        if x.is_leaf:  # it does so in any case
            assert torch.equal(static(x), x * 2)
            continue
        with pytest.raises(Dy2stError, match="D2S227"):
            static(x)


def test_who_wants_it_already() -> None:
    static = dy2st.to_static(after(lambda x: (x.requires_grad_(), GLOBAL.requires_grad_())))
    assert torch.equal(static(torch.ones(3, requires_grad=True)), torch.full((3,), 2.0))
    with pytest.raises(Dy2stError, match="D2S227"):
        static(torch.ones(3))


@dataclasses.dataclass
class Held:
    count: int = 3


class Slotted:
    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 3


def counts(x: Tensor, held: Any) -> Tensor:
    held.count = 9
    return x * held.count


@pytest.mark.parametrize("make", [Held, Slotted, lambda: SimpleNamespace(count=3)])
def test_what_is_stored_in_an_object_among_the_arguments(make: Callable[[], Any]) -> None:
    static = dy2st.to_static(counts)
    for _ in range(2):
        held = make()
        with pytest.raises(Dy2stError, match="D2S227"):
            static(torch.ones(3), held)
        assert held.count == 3


def test_what_is_stored_in_a_list_of_an_object() -> None:
    held = SimpleNamespace(items=[1])
    static = dy2st.to_static(lambda x, held: (held.items.append(2), x * len(held.items))[1])
    with pytest.raises(Dy2stError, match="D2S227"):
        static(torch.ones(3), held)
    assert held.items == [1]
