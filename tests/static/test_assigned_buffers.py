"""A buffer that a model assigns is another tensor after the call, as in eager; the old one keeps its values."""

from __future__ import annotations

import copy
import gc
import weakref

import pytest
import torch
from torch import Tensor, nn

import dy2st
from dy2st.static.programs import Programs


class Running(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(2))
        self.register_buffer("peak", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        self.total = self.total + x
        if x.sum() > 2:
            self.peak = torch.maximum(self.peak, x)
        return self.total * 2 + self.peak


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Running()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.count += 1  # in place, and assigned
        return self.inner(x) * self.count


class Written(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        self.total.add_(x)
        return self.total * 2


INPUTS = [torch.tensor([float(i), 1.0]) for i in range(6)]


def history(model: nn.Module, called: nn.Module, name: str) -> list[Tensor]:
    """The tensors that are there, one after the other, as somebody keeps them."""
    kept = [model.get_buffer(name)]
    for x in INPUTS:
        called(x)
        kept.append(model.get_buffer(name))
    return kept


@pytest.mark.parametrize(
    ("kind", "name"),
    [(Running, "total"), (Running, "peak"), (Outer, "inner.total"), (Outer, "count"), (Written, "total")],
)
def test_who_keeps_them_sees_what_eager_shows(kind: type[nn.Module], name: str) -> None:
    eager, model = kind(), kind()
    static = dy2st.to_static(model)
    for x in INPUTS[:1]:
        torch.testing.assert_close(static(x), eager(x))
    expected, actual = history(eager, eager, name), history(model, static, name)
    torch.testing.assert_close(actual, expected)
    if kind is Written:
        assert len({id(each) for each in actual}) == 1


def test_a_result_is_no_part_of_the_state() -> None:
    eager, static = Running(), dy2st.to_static(Running())
    for x in INPUTS:
        torch.testing.assert_close(static(x).add_(100), eager(x).add_(100))


def test_no_walk_of_the_world_between_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    static = dy2st.to_static(Running())
    static(INPUTS[0])
    walks = 0
    native = Programs.found_for

    def found_for(self: Programs, *args: object) -> object:
        nonlocal walks
        walks += 1
        return native(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Programs, "found_for", found_for)
    for x in INPUTS:
        static(x)
    assert walks == 0


def test_a_buffer_that_somebody_replaces_is_read() -> None:
    model = Running()
    static = dy2st.to_static(model)
    static(INPUTS[0])
    model.total = torch.full((2,), 10.0)
    assert static(INPUTS[0]).tolist() == [20.0, 24.0 - 2]
    model.total.zero_()
    assert static(INPUTS[0]).tolist() == [0.0, 2.0]


def test_an_old_state_is_restored() -> None:
    model = Running()
    static = dy2st.to_static(model)
    static(INPUTS[1])
    state = {name: value.clone() for name, value in model.state_dict().items()}
    first = static(INPUTS[2])
    model.load_state_dict(state)
    torch.testing.assert_close(static(INPUTS[2]), first)


def test_the_module_is_not_kept_alive() -> None:
    model = Running()
    static = dy2st.to_static(model)
    static(INPUTS[0])
    gone = weakref.ref(model)
    del model, static
    gc.collect()
    assert gone() is None


class Remembering(nn.Module):
    """Its state is an operand of what it learns by, and is assigned without a gradient, as that of many RNNs."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Linear(3, 3)
        self.register_buffer("state", torch.ones(4, 3))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        h = torch.tanh(self.weight(x)) * self.state + x
        if h.sum() > 0:
            h = h * self.state.exp()
            self.state = h.detach()
        else:
            self.state = (self.state * 0.5).clone()
        self.count = self.count + 1
        return h * self.count


def test_what_is_read_is_kept_for_the_backward_pass() -> None:
    torch.manual_seed(0)
    eager = Remembering()
    static = dy2st.to_static(copy.deepcopy(eager))
    for sign in (1, -1, 1, 1, -1):
        x = torch.randn(4, 3) + sign
        kept = static.state
        before = kept.clone()
        for model in (eager, static):
            model.zero_grad()
            model(x).sum().backward()
        torch.testing.assert_close(static.weight.weight.grad, eager.weight.weight.grad)
        torch.testing.assert_close(static.state, eager.state)
        assert static.count == eager.count
        assert torch.equal(kept, before)


def test_steps_without_gradients_between_those_with_them() -> None:
    eager = Remembering()
    static = dy2st.to_static(copy.deepcopy(eager))
    x = torch.randn(4, 3)
    for model in (eager, static):
        with torch.no_grad():
            model(x)
        first = model(x)
        second = model(x)  # the first one's backward pass comes after this has assigned the state anew
        (first + second).sum().backward()
    torch.testing.assert_close(static.weight.weight.grad, eager.weight.weight.grad)
    torch.testing.assert_close(static.state, eager.state)
