"""Parts of a module that change while it runs: submodules, containers of modules, parameters, buffers (row 29)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from harness import agree, dyn, refuses, row
from torch import Tensor, nn

import dy2st

INPUTS = [(torch.tensor(v),) for v in ([-2.0, 2.5, -2.25], [2.75, -0.25], [-1.75], [0.0, 1.0, 2.0, 3.0])]


class Parts(nn.Module):
    """The ``change`` is made under a tensor condition; what is there afterwards runs."""

    def __init__(self, change: Callable[[Parts], object]) -> None:
        super().__init__()
        self.change = change
        self.act: nn.Module = nn.ReLU()
        self.listed = nn.ModuleList([nn.Tanh(), nn.ReLU()])
        self.row = nn.Sequential(nn.Sigmoid(), nn.Tanh())
        self.named = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
        self.weights = nn.ParameterList([nn.Parameter(torch.tensor(2.0)), nn.Parameter(torch.tensor(0.5))])
        self.gains = nn.ParameterDict({"a": nn.Parameter(torch.tensor(3.0))})
        self.register_buffer("shift", torch.tensor(0.25))

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            self.change(self)
        for part in self.listed:
            x = part(x) + self.weights[0]
        for name in self.named:
            x = self.named[name](x) * self.gains["a"]
        return self.row(self.act(x)) + self.shift


def replaced(model: Parts) -> None:
    model.act = nn.Tanh()
    model.listed[0] = model.listed[1]
    model.row[1] = nn.Softsign()
    model.weights[0] = model.weights[1]
    model.gains["a"] = model.gains["a"] * 2


@row(29)
def test_parts_that_are_replaced() -> None:
    agree(Parts(replaced), INPUTS, (dyn(0),), whole=False)


def _exchanged(model: Parts) -> None:
    model.named["a"] = nn.Tanh()


def _deleted_item(model: Parts) -> None:
    del model.listed[0]


def _deleted(model: Parts) -> None:
    del model.shift


def _added(model: Parts) -> None:
    model.extra = nn.Tanh()


@row(29)
@pytest.mark.parametrize(
    "change",
    [
        _exchanged,
        _deleted_item,
        _deleted,
        _added,
        lambda model: model.listed.append(nn.Tanh()),
        lambda model: model.listed.insert(0, nn.Tanh()),
        lambda model: model.listed.extend([nn.Tanh()]),
        lambda model: model.listed.pop(0),
        lambda model: model.row.append(nn.Tanh()),
        lambda model: model.named.update({"b": nn.ReLU()}),
        lambda model: model.named.clear(),
        lambda model: model.add_module("act", nn.Tanh()),
        lambda model: model.register_buffer("other", torch.zeros(())),
    ],
)
def test_parts_that_a_module_has_on_some_paths_only_are_refused(change: Callable[[Parts], object]) -> None:
    assert refuses(Parts(change), INPUTS[0], (dyn(0),)).code == "D2S226"


class Growing(nn.Module):
    """Each call adds a part and drops another."""

    def __init__(self) -> None:
        super().__init__()
        self.act = nn.ReLU()
        self.row = nn.Sequential(nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        self.row.append(nn.Tanh())
        self.last = nn.Softsign()
        if x.sum() > 0:
            x = self.act(x)
        del self.act
        return self.last(self.row(x))


@row(29)
def test_parts_that_every_path_changes() -> None:
    agree(Growing(), INPUTS, (dyn(0),))


@row(29)
def test_the_capture_leaves_a_module_with_the_parts_that_it_had() -> None:
    model = Growing()
    parts = [name for name, _ in model.named_modules()]
    dy2st.export(model, INPUTS[0], dynamic_shapes=(dyn(0),))
    assert [name for name, _ in model.named_modules()] == parts


class Sums(nn.Module):
    """It registers its buffers anew where others assign them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.register_buffer("last", torch.zeros(3), persistent=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        self.register_buffer("total", torch.zeros(3))
        for i in range(4):
            self.total.add_(x)
            if self.total.sum() > 5:
                self.register_buffer("total", self.total * 0)
            else:
                self.register_buffer("last", self.total + i, persistent=False)
        left = x.sum()
        while left > 1:
            self.register_buffer("total", self.total + x)
            left = left - 1
        return self.total * 1, self.last * 1


@row(29)
def test_a_buffer_that_is_registered_again_is_assigned() -> None:
    agree(Sums(), [(torch.tensor([0.1, 0.2, 0.3]) + a,) for a in (-1.0, 0.0, 1.0, 2.0)], whole=False)


class New(nn.Module):
    def __init__(self, *, by_path: bool) -> None:
        super().__init__()
        self.by_path = by_path

    def forward(self, x: Tensor) -> Tensor:
        if not self.by_path or x.sum() > 0:
            self.register_buffer("new", x)
        return x * 2


@row(29)
@pytest.mark.parametrize("by_path", [False, True])
def test_a_buffer_that_a_call_adds_is_refused(by_path: bool) -> None:
    assert refuses(New(by_path=by_path), (torch.ones(3),)).code == "D2S226"


class Placed(nn.Module):
    """Moves its parts to where they are."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(2, 2) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for part in self.parts:
            part.float()
            if x.sum() > 0:
                x = part.to(x.device, x.dtype)(x)
            x = part.to(x)(x) + 1
        return x.cpu()


@row(29)
def test_parts_that_are_moved_to_where_they_are() -> None:
    torch.manual_seed(0)
    agree(Placed(), [(torch.randn(n, 2) + sign,) for n, sign in ((1, 2), (2, -2), (3, 0))], (dyn(0),))


@row(29)
@pytest.mark.parametrize("move", [nn.Module.double, lambda part: part.to(torch.bfloat16), lambda part: part.to("meta")])
def test_parts_that_are_moved_elsewhere_are_refused(move: Callable[[nn.Module], object]) -> None:
    class Moving(Placed):
        def forward(self, x: Tensor) -> Tensor:
            move(self.parts[0])
            return x * 2

    assert refuses(Moving(), (torch.ones(1, 2),)).code == "D2S252"
