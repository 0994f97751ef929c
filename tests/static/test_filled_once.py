"""What code fills in its first call and finds in later ones: eager fills it, then there is a program."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dy2st
from dy2st.errors import LostStateError

SIZES = (3, 3, 5, 3, 5, 2)


class Table(nn.Module):
    """A table that grows with its inputs, and its length beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.table: Tensor | None = None
        self.length = 0

    def forward(self, x: Tensor) -> Tensor:
        if self.table is None or self.length < x.shape[-1]:
            self.length = x.shape[-1]
            self.table = torch.arange(self.length).float()
        y = x * self.table[: x.shape[-1]]
        return y if y.sum() > 0 else -y


class Memo(nn.Module):
    """A dict by shape and dtype."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[Any, Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        key = (x.shape[-1], x.dtype)
        if key not in self.made:
            self.made[key] = torch.linspace(0, 1, x.shape[-1])
        return x * self.made[key] if x.sum() > 0 else x


class Lazy(nn.Module):
    """An attribute that is made when it is asked for."""

    def forward(self, x: Tensor) -> Tensor:
        if not hasattr(self, "scale"):
            self.scale = {"of": torch.tensor(3.0), "names": {"a"}}
        return x * self.scale["of"] + len(self.scale["names"])


class Seen(nn.Module):
    """A set of what has been met, written to in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[int] = set()

    def forward(self, x: Tensor) -> Tensor:
        self.seen.add(x.dim())
        return x * len(self.seen)


class Positions(nn.Module):
    """A buffer that is registered anew with another size."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("places", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        if self.places.shape[0] < x.shape[-1]:
            self.places = torch.arange(float(x.shape[-1]))
        return x * self.places[: x.shape[-1]] if x.sum() > 0 else x


class Initialised(nn.Module):
    """A weight that is made of the first input."""

    def __init__(self) -> None:
        super().__init__()
        self.done = False
        self.scale = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        if not self.done:
            with torch.no_grad():
                self.scale.copy_(x.abs().max())
            self.done = True
        return x * self.scale


@functools.lru_cache
def ramp(size: int) -> Tensor:
    return torch.arange(float(size))


class Cached(nn.Module):
    """What a function with a cache gives."""

    def forward(self, x: Tensor) -> Tensor:
        return x * ramp(x.shape[-1]) if x.sum() > 0 else x


@functools.cache
def rule(size: int, **options: Any) -> tuple[Tensor, dict[str, Tensor]]:
    return torch.linspace(0, 1, size, **options), {"weights": torch.full((size,), 1 / size)}


class CachedParts(nn.Module):
    """The same of a tuple with a dict in it."""

    def forward(self, x: Tensor) -> Tensor:
        points, more = rule(x.shape[-1], dtype=x.dtype)
        if x.sum() > 0:
            return x * points * more["weights"]
        return (x * points).sin() + rule(x.shape[-1], dtype=x.dtype)[1]["weights"]


@pytest.mark.parametrize("kind", [Table, Memo, Lazy, Seen, Positions, Initialised, Cached, CachedParts])
def test_it_is_filled_once(kind: Callable[[], Any]) -> None:
    eager, model = kind(), kind()
    static = dy2st.to_static(model)
    for size in SIZES:
        for sign in (1.0, -1.0):
            x = sign * torch.rand(2, size)
            assert torch.equal(static(x), eager(x))
    assert static.forward.cache_info().hits > 0
    held, wanted = vars(model), vars(eager)
    assert {name: str(held[name]) for name in wanted if name[0] != "_"} == {
        name: str(value) for name, value in wanted.items() if name[0] != "_"
    }


def test_what_was_filled_is_guarded() -> None:
    eager, model = Memo(), Memo()
    static = dy2st.to_static(model)
    x = torch.rand(2, 3)
    key = (3, torch.float32)
    for change in (
        lambda each: None,
        lambda each: each.made.clear(),
        lambda each: each.made.update({key: torch.full((3,), 7.0)}),
        lambda each: each.made.update({key: torch.full((1,), 8.0)}),
        lambda each: setattr(each, "made", {key: torch.zeros(3)}),
        lambda each: each.made[key].add_(2),
        lambda each: each.made.pop(key),
    ):
        change(eager)
        change(model)
        for _ in range(2):
            assert torch.equal(static(x), eager(x))
        assert model.made.keys() == eager.made.keys()


def test_gradients_go_through_the_call_that_fills() -> None:
    static = dy2st.to_static(Table())
    for _ in range(3):
        x = torch.rand(2, 4).requires_grad_()
        static(x).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [[0, 1, 2, 3]] * 2


def test_what_a_cache_gives_is_guarded() -> None:
    static, x = dy2st.to_static(Cached()), torch.ones(2, 3)
    for change in (lambda: None, ramp.cache_clear, lambda: ramp(3).mul_(5), lambda: ramp(3).add_(1), ramp.cache_clear):
        change()
        for _ in range(2):
            assert torch.equal(static(x), x * ramp(3))


TABLE: Any = None


def of_a_global(x: Tensor) -> Tensor:
    global TABLE  # noqa: PLW0603
    if TABLE is None:
        TABLE = torch.arange(3.0)
    return x * TABLE if x.sum() > 0 else x


def test_a_global() -> None:
    global TABLE  # noqa: PLW0603
    static = dy2st.to_static(of_a_global)
    for value in (None, torch.ones(3), None):
        TABLE = value
        for _ in range(2):
            assert torch.equal(static(torch.ones(3)), torch.ones(3) if value is not None else torch.arange(3.0))
        assert TABLE is not None
    assert static.cache_info() == (5, 1, 64, 1)


def test_a_variable_around() -> None:
    table: Any = None

    def model(x: Tensor) -> Tensor:
        nonlocal table
        if table is None:
            table = torch.arange(3.0)
        return x * table

    static = dy2st.to_static(model)
    for _ in range(3):
        assert static(torch.ones(3)).tolist() == [0, 1, 2]
    assert static.cache_info() == (2, 1, 64, 1)
    table = torch.ones(3)
    assert static(torch.ones(3)).tolist() == [1, 1, 1]


class Counter(nn.Module):
    """Filled once, and then changed in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: int | None = None

    def forward(self, x: Tensor) -> Tensor:
        self.calls = 1 if self.calls is None else self.calls + 1
        return x * self.calls


class Stateful(nn.Module):
    """A state that begins with the first input."""

    def __init__(self) -> None:
        super().__init__()
        self.state: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        self.state = x if self.state is None else 0.5 * self.state + x
        return self.state


class Item:
    """An item that is first made, and then counted up."""

    def __init__(self) -> None:
        self.namespace: dict[str, int] = {}

    def __call__(self, x: Tensor) -> Tensor:
        self.namespace["calls"] = self.namespace.get("calls", 0) + 1
        return x * self.namespace["calls"]


@pytest.mark.parametrize("kind", [Counter, Item])
def test_what_goes_on_is_refused_before_a_call_is_made(kind: Callable[[], Any]) -> None:
    """Nothing is done twice, though the user goes on in eager."""
    eager, model = kind(), kind()
    static = dy2st.to_static(model)
    refused = 0
    for _ in range(4):
        x = torch.rand(3)
        try:
            y = static(x)
        except LostStateError:
            refused += 1
            y = model(x)
        assert torch.equal(y, eager(x))
    assert refused == 3
    with pytest.raises(LostStateError, match="D2S227"):
        static(torch.ones(3))


def test_what_is_made_of_an_argument_is_refused_at_once() -> None:
    model = Stateful()
    with pytest.raises(LostStateError, match=r"Stateful\.state"):
        dy2st.to_static(model)(torch.rand(3))
    assert model.state is None


def test_what_is_filled_is_saved(tmp_path: Path) -> None:
    static, x = dy2st.to_static(Table()), torch.ones(3)
    dy2st.save(static, tmp_path / "table.dy2st", [(x,)])
    assert dy2st.load(tmp_path / "table.dy2st")(x).tolist() == [0, 1, 2]
    with pytest.raises(LostStateError, match=r"Counter\.calls"):
        dy2st.save(dy2st.to_static(Counter()), tmp_path / "counter.dy2st", [(x,)])
    assert not (tmp_path / "counter.dy2st").exists()


def test_a_list_that_grows_is_refused_at_once() -> None:
    log: list[int] = []

    def model(x: Tensor) -> Tensor:
        log.append(1)
        return x * len(log)

    with pytest.raises(LostStateError, match="D2S227"):
        dy2st.to_static(model)(torch.ones(3))
    assert log == []


def test_which_modules_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def model(x: Tensor, name: str) -> Tensor:
        return x * 2 if name in sys.modules else x

    static, name = dy2st.to_static(model), "some_module_that_comes_later"
    for there in (False, True, False):
        if there:
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        else:
            monkeypatch.delitem(sys.modules, name, raising=False)
        for _ in range(2):
            assert static(torch.ones(2), name).tolist() == ([2, 2] if there else [1, 1])
    assert static.cache_info().hits > 0
