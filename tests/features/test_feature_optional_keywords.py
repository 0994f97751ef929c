"""Keyword arguments that are there on some paths only, and results that are dicts and dataclasses in one."""

from __future__ import annotations

import collections
from dataclasses import dataclass, fields
from typing import Any

import torch
from harness import agree, row, vectors
from torch import Tensor

import dy2st
import dy2st.onnx


def scaled(x: Tensor, scale: float = 1.0, shift: Tensor | None = None) -> Tensor:
    return x * scale if shift is None else x * scale + shift


@row(28, 55)
def test_a_call_with_keys_that_a_path_has_set() -> None:
    def model(x: Tensor) -> Tensor:
        options: dict[str, Any] = {}
        if x.sum() > 0:
            options["scale"] = 2.0
        if x.max() > 1:
            options["shift"] = x.min()
        return scaled(x, **options)

    agree(model, [(torch.tensor(v),) for v in ([1.0, 0.5], [1.0, 2.0], [-3.0, 2.0], [-1.0, 0.0])], paths=4)


@row(28, 55)
def test_a_key_that_is_none_or_missing() -> None:
    def prepared(mask: Tensor | None) -> dict[str, Any]:
        made: dict[str, Any] = {"scale": 3.0}
        if mask is not None:
            made["shift"] = mask
        return made

    def model(x: Tensor) -> Tensor:
        mask: Tensor | None = (x > 0).to(x.dtype)
        if (x > 0).all():
            mask = None
        return scaled(x, **prepared(mask))

    agree(model, [(torch.tensor(v),) for v in ([1.0, 0.5], [1.0, -2.0], [-3.0, -2.0])], paths=2)


@row(28, 55)
def test_a_call_that_changes_state_in_either_case() -> None:
    class Counter:
        def __init__(self) -> None:
            self.seen = torch.zeros(())

        def see(self, x: Tensor, weight: float = 1.0) -> Tensor:
            self.seen = self.seen + x.sum() * weight
            return x * weight

    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        counter, options = Counter(), {}
        if x.sum() > 0:
            options["weight"] = 0.5
        return counter.see(x, **options), counter.seen

    agree(model, vectors(3, 3, 3, 3, seed=2), paths=2)


@dataclass
class Output(collections.OrderedDict):  # type: ignore[type-arg]
    """A dataclass whose fields are items, too, but for those that are None."""

    first: Any = None
    second: Any = None

    def __post_init__(self) -> None:
        for each in fields(self):
            if (value := getattr(self, each.name)) is not None:
                self[each.name] = value

    def to_tuple(self) -> tuple[Any, ...]:
        return tuple(self.values())


@row(56)
def test_a_dataclass_with_items_on_both_paths() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        made = Output(first=x * 2, second=x.sum()) if x.sum() > 0 else Output(first=x + 1, second=x.max())
        return (*made.to_tuple(), made.first, made["second"], len(made))

    agree(model, vectors(3, 3, 3, 3, seed=2), paths=2)


@dataclass
class Solution:
    """What a solver returns, which torch's pytree does not know."""

    x: Any
    steps: int
    converged: Any
    history: Any = None
    method: str = "halving"


@row(56)
def test_a_dataclass_is_returned() -> None:
    def model(x: Tensor) -> Solution:
        steps = 0
        while x.norm() > 1 and steps < 4:
            x = x / 2
            steps += 1
        return Solution(x, steps, x.norm() <= 1, {"last": x.sum()})

    def as_dict(x: Tensor) -> dict[str, Any]:
        found = model(x)
        return {name: getattr(found, name) for name in ("x", "steps", "converged", "history")}

    inputs = [(torch.tensor(v),) for v in ([0.5, 0.5], [9.0, 1.0], [1.0, 2.0], [99.0, 0.0])]
    agree(as_dict, inputs, paths=3)
    report = dy2st.check(model, inputs)
    assert report.ok
    assert [each.output for each in report.inputs[0].stages[0].outputs] == [
        *("output.x", "output.steps", "output.converged", "output.history['last']")
    ]
    program = dy2st.onnx.export(model, inputs[0])
    assert [each.name for each in program.model.graph.outputs] == ["x_out", "steps", "converged", "history.last"]
