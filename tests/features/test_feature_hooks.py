"""What a module runs around its ``forward`` (row 41): hooks, a ``__call__`` of its own, parametrizations."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from harness import agree, dyn, refused, refuses, row
from torch import Tensor, nn

import dy2st
from dy2st.errors import LostStateError

ROWS = [
    (scale * torch.randn(n, 3, generator=torch.Generator().manual_seed(n)),) for n, scale in ((2, 1), (1, 4), (3, -2))
]


class Hooked(nn.Module):
    """Hooks of every kind on a child, and on the model itself."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("largest", torch.zeros(()))

        def before(module: nn.Module, args: tuple[Tensor], kwargs: dict[str, Any]) -> Any:
            if args[0].sum() > 0:
                return (args[0] * 2,), kwargs
            return None

        def after(module: nn.Module, args: tuple[Tensor], kwargs: dict[str, Any], output: Tensor) -> Any:
            if output.mean() > 0:
                return output + 1
            return None

        self.linear.register_forward_pre_hook(before, with_kwargs=True)
        self.linear.register_forward_hook(after, with_kwargs=True)
        self.linear.register_forward_hook(lambda module, args, output: output * 0.5, prepend=True)
        self.register_forward_pre_hook(lambda module, args: (args[0] + 1,) if args[0].sum() > 2 else None)
        self.register_forward_hook(noted)

    def forward(self, x: Tensor) -> Tensor:
        for line in x:
            if line.sum() < 0:
                x = x + self.linear(x)
        return self.linear(x)


def noted(module: Any, args: Any, output: Tensor) -> Tensor | None:
    """A hook that changes the module's state."""
    if output.max() > module.largest:
        module.largest = output.max()
        return None
    return output - 1


@pytest.mark.slow
@row(41, 29)
def test_hooks_of_every_kind() -> None:
    agree(Hooked(), [*ROWS, (-torch.ones(2, 3),), (5 * torch.ones(1, 3),)], (dyn(0),), paths=3, whole=False)


class Called(nn.Module):
    """A call of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def __call__(self, x: Tensor) -> Tensor:
        y = super().__call__(x)
        return y if y.sum() > 0 else -y

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x) if x.sum() > 0 else x


class Calling(nn.Module):
    """Calls a child that has a call of its own, and class and static methods in several ways."""

    def __init__(self) -> None:
        super().__init__()
        self.child = Called()
        self.child.register_forward_hook(lambda module, args, output: output * 2 if output.max() > 0 else output)

    @classmethod
    def doubled(cls, x: Tensor) -> Tensor:
        """A class method."""
        return cls.shifted(x * 2) if x.sum() > 0 else x

    @staticmethod
    def shifted(x: Tensor) -> Tensor:
        """A static method."""
        return x + 1 if x.mean() > 1 else x

    def forward(self, x: Tensor) -> Tensor:
        y = self.doubled(x) + type(self).shifted(x) + Calling.doubled(x) + self.__class__.shifted(x)
        return self.child(y) + self.child.forward(x)


@row(41)
def test_calls_of_their_own() -> None:
    agree(Called(), ROWS, (dyn(0),), whole=False)
    agree(Calling(), ROWS, (dyn(0),))


@row(41)
def test_parametrizations() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.normed = nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))
            self.spectral = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3))

        def forward(self, x: Tensor) -> Tensor:
            return self.normed(x) if x.sum() > 0 else self.spectral(x)

    agree(Model().eval(), ROWS, (dyn(0),), whole=False)


@row(41)
def test_forward_hooks() -> None:
    def before(module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        (x,) = args
        if x.sum() > 1:
            return (x / 2,)
        return (x + 1,)

    def after(module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
        return output * 2 if output.max() > 0 else output

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(2, 2)
            self.linear.register_forward_pre_hook(before)
            self.linear.register_forward_hook(after)

        def forward(self, x: Tensor) -> Tensor:
            for line in x:
                if line.sum() < 0:
                    x = x + self.linear(x)
            return x + self.linear(x)

    agree(
        Model(),
        [(scale * torch.randn(n, 2),) for n, scale in ((2, 1.0), (1, 5.0), (3, -5.0), (4, 0.1))],
        (dyn(0),),
        paths=3,
    )


class Once(nn.Module):
    """Its hook takes itself off, in each call or where a tensor says so."""

    def __init__(self, *, asks: bool) -> None:
        super().__init__()
        self.part, self.asks = nn.Identity(), asks
        self.handle = self.part.register_forward_hook(self.once)

    def once(self, module: nn.Module, args: Any, output: Tensor) -> Tensor:
        if not self.asks or output.sum() > 0:
            self.handle.remove()
        return output * 3

    def forward(self, x: Tensor) -> Tensor:
        return self.part(self.part(x))


@row(41)
def test_a_hook_that_is_removed_is_gone_from_then_on() -> None:
    agree(Once(asks=False), [(torch.ones(2),)])
    refuses(Once(asks=True), (torch.ones(2),))


@row(41)
def test_a_capture_leaves_the_hooks_and_a_program_that_would_not_remove_them_is_refused() -> None:
    model = Once(asks=False)
    with refused(LostStateError):
        dy2st.to_static(model)(torch.ones(2))
    dy2st.export(model, (torch.ones(2),))
    assert list(model.part._forward_hooks.values()) == [model.once]


class Probing(nn.Module):
    """Takes what its parts give by hooks that it registers in the call."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(3, 3), nn.Tanh()])

    def forward(self, x: Tensor) -> Tensor:
        found: list[Tensor] = []
        handles = [part.register_forward_hook(lambda _part, _args, output: found.append(output)) for part in self.parts]
        for part in self.parts:
            x = part(x)
        for handle in handles:
            handle.remove()
        return x if x.sum() > 0 else x - found[0]


@row(41)
def test_hooks_of_one_call() -> None:
    agree(Probing(), ROWS, (dyn(0),))
    model = Probing()
    static = dy2st.to_static(model)
    for (x,) in ROWS:
        torch.testing.assert_close(static(x), model(x))


class Counting(nn.Module):
    """Its hooks look at what hooks there are, and the first one puts a last one there."""

    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Identity()
        self.part.register_forward_pre_hook(self.before)
        self.part.register_forward_hook(self.after, always_call=True)

    def before(self, module: nn.Module, args: tuple[Tensor]) -> None:
        self.handle = module.register_forward_hook(lambda _module, _args, output: output * (2 if output[0] > 0 else 3))

    def after(self, module: nn.Module, args: tuple[Tensor], output: Tensor) -> Tensor:
        self.handle.remove()
        return output + len([hook for hook in module._forward_hooks.values() if hook == self.after])

    def forward(self, x: Tensor) -> Tensor:
        return self.part(x)


@row(41)
def test_hooks_find_the_hooks_themselves_and_those_that_come_in_the_call_are_converted() -> None:
    agree(Counting(), [(torch.ones(3),), (-torch.ones(3) * 2,)])
