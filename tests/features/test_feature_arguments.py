"""Rows 55 and 56: how arguments and results are passed."""

# ruff: noqa: PIE804 - the constructs under test are written as users write them
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from harness import agree, dyn, refuses, row, vectors
from torch import Tensor, nn

import dy2st


class Output(NamedTuple):
    """A result with names."""

    logits: Tensor
    states: dict[str, Tensor]


@dataclass
class Batch:
    """A structure that the user has registered with PyTorch."""

    ids: Tensor
    mask: Tensor


torch.export.register_dataclass(Batch, serialized_type_name="test_feature_arguments.Batch")


def both_signs(*sizes: int) -> list[tuple[Tensor]]:
    """Vectors of these lengths with a positive and with a negative sum."""
    return [(sign * (x.abs() + 0.1),) for (x,) in vectors(*sizes) for sign in (1.0, -1.0)]


@row(55)
def test_defaults_and_keyword_only() -> None:
    def model(x: Tensor, scale: float = 2.0, *, shift: Tensor | None = None, flip: bool = False) -> Tensor:
        if x.sum() > 0:
            x = x * scale
        if shift is not None and shift > 0:
            x = x + shift
        return -x if flip else x

    agree(model, both_signs(3, 1), (dyn(0),), whole=False)
    keywords = [{"x": x, "shift": torch.tensor(s), "flip": True} for (x,) in both_signs(3, 1) for s in (1.0, -1.0)]
    agree(model, keywords, {"x": dyn(0), "shift": None, "flip": None}, paths=4)


@row(55)
def test_star_arguments_between_functions() -> None:
    def total(*parts: Tensor, weight: float = 1.0, **named: Tensor) -> Tensor:
        result = torch.zeros(())
        for part in parts:
            if part.sum() > 0:
                result = result + part.sum() * weight
        for name, value in named.items():
            result = result + value.max() if value.min() < 0 else result * len(name)
        return result

    def forward(*args: Tensor, **kwargs: Tensor) -> Tensor:
        return total(*args, **kwargs)

    def model(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        first, *others = x, y, x - 1
        return forward(x, *others, weight=0.5, bias=first, **{"extra": y}), total() + total(*[x] * 2)

    agree(model, [(*a, *b) for a in both_signs(3, 1) for b in both_signs(2)[:2]], (dyn(0), None), paths=3)


@row(55)
def test_star_arguments_of_the_model() -> None:
    class Model(nn.Module):
        def forward(self, *parts: Tensor) -> Tensor:
            total = parts[0]
            for part in parts[1:]:
                if part.sum() > total.sum():
                    total = total + part
            return total

    agree(
        Model(),
        [tuple(k * torch.ones(n) for k in numbers) for n, numbers in ((3, (1, 2, 3)), (2, (1, 0, 5)), (1, (3, 2, 1)))],
        ((dyn(0),) * 3,),
        paths=2,
    )


@row(56)
def test_nested_inputs_and_outputs() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(2, 3)

        def forward(self, batch: dict[str, Tensor], state: tuple[Tensor, list[Tensor]]) -> Output:
            h, (low, high) = state
            x = batch["x"]
            for t in range(x.shape[1]):
                step = x[:, t]
                if (step > high).any():
                    h = h + self.linear(step.clamp(max=1))
                elif step.min() < low:
                    h = h * 0.5
            return Output(h, {"last": h[:, -1], **({"mask": batch["mask"]} if "mask" in batch else {})})

    def case(batch: int, time: int, scale: float) -> tuple[dict[str, Tensor], tuple[Tensor, list[Tensor]]]:
        x = {"x": scale * torch.randn(batch, time, 2), "mask": torch.ones(batch, dtype=torch.bool)}
        return x, (torch.zeros(batch, 3), [torch.tensor(-1.0), torch.tensor(1.0)])

    shapes = ({"x": dyn(0, 1), "mask": dyn(0)}, (dyn(0), [None, None]))
    agree(Model(), [case(2, 3, 1.0), case(3, 0, 1.0), case(1, 1, 0.1), case(2, 6, 3.0)], shapes, paths=4)


@row(56)
def test_dataclass_inputs_and_dict_of_list_outputs() -> None:
    def model(batch: Batch) -> dict[str, list[Tensor]]:
        length = batch.mask.sum(1).max()
        total = torch.zeros(batch.ids.shape[0])
        for t in range(int(length)):
            if batch.mask[:, t].all():
                total = total + batch.ids[:, t]
            else:
                total = torch.where(batch.mask[:, t], total * 2, total)
        return {"totals": [total, total + 1], "length": [length]}

    def case(*lengths: int) -> tuple[Batch]:
        mask = torch.arange(5) < torch.tensor(lengths)[:, None]
        return (Batch(torch.arange(5.0) * torch.ones(len(lengths), 5), mask),)

    agree(model, [case(3, 2), case(0, 0, 0), case(1), case(5, 4, 1, 0)], ([dyn(0), dyn(0)],), paths=4)


class Pair:
    """A class of its own, which torch's pytree does not know."""

    def __init__(self, first: Tensor) -> None:
        self.first = first


@row(56)
def test_an_object_of_an_unknown_class_is_no_result() -> None:
    def model(x: Tensor) -> Pair:
        return Pair(x * 2)

    refuses(model, (torch.ones(2),))


@row(55)
def test_the_shape_of_a_tensor_is_one_as_an_argument() -> None:
    def model(x: Tensor, size: Any, options: dict[str, Any]) -> Tensor:
        y = x * 2 if x.sum() > 0 else x
        y = y.reshape(options["shape"])
        return y + size.numel() if isinstance(size, torch.Size) and isinstance(options["shape"], torch.Size) else y

    given = [(x, torch.Size([3]), {"shape": torch.Size([2, 2])}) for x in (torch.ones(4), -torch.ones(4))]
    assert torch.equal(dy2st.export(model, given[0]).module()(*given[0]), model(*given[0]))
    assert dy2st.check(model, given).ok
