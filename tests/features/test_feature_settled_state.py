"""Row 70: what the first call alone changes settles, and is no state; what later calls change as well is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import refused, row
from torch import Tensor, nn

import dy2st
from dy2st.errors import CarriedStateError

INPUTS = [(torch.tensor(v),) for v in ([-3.0, 1.0], [0.5, 0.25], [2.0, -1.0])]


def with_options(body: Callable[[Tensor, dict[str, Any]], Tensor]) -> Callable[[Tensor], Tensor]:
    options: dict[str, Any] = {}

    def model(x: Tensor) -> Tensor:
        return body(x, options)

    return model


def defaults(x: Tensor, options: dict[str, Any]) -> Tensor:
    options.setdefault("steps", 3)
    options.setdefault("callback", None)
    for _ in range(options["steps"]):
        x = x * 2 if x.sum() > 0 else x + 1
    return x


def overwritten(x: Tensor, options: dict[str, Any]) -> Tensor:
    options.setdefault("gain", 3)
    options["gain"] = 3.0
    return x * options["gain"]


def closed_over_twice() -> Callable[[Tensor], Tensor]:
    options: dict[str, int] = {}

    def fill() -> None:
        options.setdefault("gain", 2)

    def model(x: Tensor) -> Tensor:
        fill()
        return x * len(options)

    return model


class Cached(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[float] = []

    def forward(self, x: Tensor) -> Tensor:
        if not self.found:
            self.found.append(float("nan"))
        return x * len(self.found)


@row(70)
@pytest.mark.parametrize(
    "make", [lambda: with_options(defaults), lambda: with_options(overwritten), closed_over_twice, Cached]
)
def test_what_the_first_call_fills_is_no_state(make: Callable[[], Any]) -> None:
    report = dy2st.check(make(), INPUTS)
    assert report.outcome == "equal", report
    model = make()
    program = dy2st.export(model, INPUTS[0])
    for given in (*INPUTS, *INPUTS):
        torch.testing.assert_close(program.module()(*given), model(*given))


def on_a_path(x: Tensor, options: dict[str, Any]) -> Tensor:
    if x.sum() > 0:
        options.setdefault("gain", 3)
    return x * len(options)


def another_program(x: Tensor, options: dict[str, Any]) -> Tensor:
    if "gain" not in options:
        options["gain"] = 3
        return x * 2
    return x * 3


def another_constant(x: Tensor, options: dict[str, Any]) -> Tensor:
    before = len(options)
    options["gain"] = 1
    return x + torch.tensor([1.0, 2.0 + before])


def more_and_more(x: Tensor, options: dict[str, Any]) -> Tensor:
    options[f"gain{len(options)}"] = 1
    return x * options["gain0"]


def of_data(x: Tensor, options: dict[str, Any]) -> Tensor:
    return options.setdefault("gain", x) + 1


def counting(x: Tensor, options: dict[str, Any]) -> Tensor:
    options.setdefault("calls", 0)
    options["calls"] += 1
    return x * options["calls"]


@row(70)
@pytest.mark.parametrize("body", [on_a_path, another_program, another_constant, more_and_more, of_data, counting])
def test_what_later_calls_change_or_do_otherwise_is_refused(body: Callable[..., Tensor]) -> None:
    with refused(CarriedStateError):
        dy2st.check(with_options(body), INPUTS)
