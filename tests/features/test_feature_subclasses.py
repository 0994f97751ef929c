"""Classes of the user's that are Python's containers, and have methods of their own (rows 24, 41 and 42)."""

from __future__ import annotations

import collections
from typing import Any

import torch
from harness import agree, agree_or_refuse, dyn, row
from torch import Tensor


class Doubled(list[Any]):
    """Its own methods call those that they stand for, by ``super()``."""

    def append(self, value: Any) -> None:
        super().append(value * 2)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value * 3)

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(key) + 1

    def __len__(self) -> int:
        return super().__len__() + 5


class Waiting(collections.deque[Any]):
    """The same of a deque."""

    def append(self, value: Any) -> None:
        super().append(value + 1)

    def popleft(self) -> Any:
        return super().popleft() * 3


class Named(collections.OrderedDict[str, Any]):
    """The same of a dict."""

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value * 2)
        super().__setattr__(key, value)

    def get(self, key: str, default: Any = None) -> Any:
        return super().get(key, default) + 1

    def update(self, *args: Any, **kwargs: Any) -> None:
        super().update(*args, **kwargs)
        self["many"] = 4


@row(24, 42)
def test_methods_of_pythons_containers_that_a_class_of_the_users_calls_by_super() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        held, waiting, named = Doubled(), Waiting(), Named()
        held.append((x > 0).sum().item())
        held.append(x.sum())
        held[0] = held[0] + 1
        waiting.append(x.sum())
        waiting.append(x.max())
        if x.sum() > 0:
            held.append(x.min())
            waiting.append(x.min())
            named["a"] = x.sum()
        else:
            held.append(x.max())
            waiting.append(x.max())
            named["a"] = x.max()
        named.update(b=x.min())
        return (
            held[0],
            held[2],
            len(held),
            waiting.popleft(),
            waiting[1],
            named["a"],
            named.a,
            named.get("b"),
            named["many"],
        )

    agree(model, [(torch.tensor(v),) for v in ([1.0, 2.0, -1.0], [-1.0, -2.0], [0.5])], (dyn(0),))

    def grown(x: Tensor) -> tuple[Any, ...]:
        held = Doubled()
        for element in x:
            held.append(element)
        return torch.stack([*held]).sum(), len(held)

    def indexed(x: Tensor) -> tuple[Any, ...]:
        held = Doubled()
        for element in x:
            held.append(element)
        held[1] = x.sum()
        return held[0], held[-1]

    given = [(torch.tensor(v),) for v in ([1.0, 2.0, -1.0], [-1.0, -2.0], [0.5, 1.0])]
    agree_or_refuse(grown, given, (dyn(0),), paths=1)
    agree_or_refuse(indexed, given, (dyn(0),), paths=1)
