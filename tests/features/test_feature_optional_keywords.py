"""Keyword arguments that are there on some paths only, and results that are dicts and dataclasses in one."""

from __future__ import annotations

import collections
import functools
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import torch
from harness import agree, row, vectors
from torch import Tensor

import dy2st
import dy2st.onnx

if TYPE_CHECKING:
    from collections.abc import Iterator


def scaled(x: Tensor, scale: float = 1.0, shift: Tensor | None = None) -> Tensor:
    return x * scale if shift is None else x * scale + shift


def graphs(program: torch.export.ExportedProgram) -> Iterator[torch.fx.Graph]:
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield module.graph


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


@row(28, 55)
def test_a_key_that_wrappers_hand_on() -> None:
    def wrapped(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            bias = kwargs.pop("bias", 1.0)
            if kwargs.get("shift") is not None:
                bias = bias + 1
            return function(*args, **kwargs) + bias

        return wrapper

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def forward(self, x: Tensor) -> Tensor:
            options: dict[str, Any] = {"scale": 0.5}
            if x.sum() > 0:
                options["shift"] = x.max()
            if x.max() > 1:
                options["bias"] = 5.0
            return self.inner(x, **options)

    class Inner(torch.nn.Module):
        @wrapped
        def forward(self, x: Tensor, *, scale: float, shift: Tensor | None = None) -> Tensor:
            return scaled(x, scale, shift)

    inputs = [(torch.tensor(v),) for v in ([1.0, 0.5], [1.0, 2.0], [-3.0, 2.0], [-1.0, 0.0])]
    agree(Model().eval(), inputs, paths=4)
    program = dy2st.export(Model().eval(), inputs[0])
    products = [node for graph in graphs(program) for node in graph.nodes if node.target is torch.ops.aten.mul.Tensor]
    assert len(products) == 2  # those of the source: no call is made twice


@row(28, 55)
def test_a_key_without_which_eager_raises() -> None:
    def times(x: Tensor, *, scale: float) -> Tensor:
        return x * scale

    def model(x: Tensor) -> Tensor:
        options = {}
        if x.sum() > 0:
            options["scale"] = 2.0
        return times(x, **options)

    agree(model, [(torch.ones(2),), (torch.ones(2) * 2,)], paths=1, raising=[(-torch.ones(2),)])


class Renaming(collections.OrderedDict):  # type: ignore[type-arg]
    """Looks keys up by another way than it stores them."""

    def __getitem__(self, key: str) -> Any:
        return dict(self.items())["_" + key]

    def keys(self) -> Any:
        return [key.removeprefix("_") for key in super().__iter__()]


@row(55)
def test_a_dict_that_looks_its_keys_up_by_itself() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        made = Renaming(_x=x, _y=x + 1)
        while x.norm() > 1:
            made.update(_x=made["x"] / 2, _y=made["y"] + 1)
            x = made["x"]
        return made["x"], made["y"]

    agree(model, [(torch.tensor(v),) for v in ([0.5, 0.5], [9.0, 1.0], [1.0, 2.0])], paths=3)


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
