"""Row 46: progress bars around what a loop iterates over, which a graph shows nowhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, dyn, row
from torch import Tensor
from tqdm import tqdm, trange
from tqdm.asyncio import tqdm_asyncio

import dy2st
from dy2st.errors import UnguardedError


def over_a_range(x: Tensor) -> Any:
    steps = int(x.sum().clamp(0, 9))
    for i in tqdm(range(1, steps), desc="steps", disable=True):
        x = x * 2 + i
    return x, steps


def with_a_break(x: Tensor) -> Tensor:
    bar = trange(5, leave=False)
    for _ in bar:
        x = x * 2
        if x.sum() > 20:
            break
        bar.set_postfix(loss=x.sum().item())
    bar.close()
    return x


def over_rows(x: Tensor) -> Tensor:
    for i, value in enumerate(tqdm_asyncio(x)):
        if value > 0:
            x = x + value * i
    for value, other in zip(tqdm(x), x * 2, strict=True):
        x = x + (value if other > 1 else other)
    return x


def by_hand(x: Tensor) -> Tensor:
    with tqdm(total=10) as bar:
        while x.sum() < 100:
            x = x * 2 + 1
            bar.update(1)
            bar.set_description(f"{x.sum():.2f}")
    return x


@row(46)
@pytest.mark.parametrize("model", [over_a_range, with_a_break, over_rows, by_hand])
def test_loops_with_bars(model: Callable[[Tensor], Any], capsys: pytest.CaptureFixture[str]) -> None:
    shapes = (dyn(0),) if model is over_rows else None
    agree(model, [(torch.ones(3),), (torch.ones(3) * 2,), (torch.tensor([-1.0, 0.5, 2.0]),)], shapes)
    capsys.readouterr()
    dy2st.export(model, (torch.ones(3),))
    assert not any(capsys.readouterr())


@row(46)
def test_static_functions_show_none() -> None:
    static = dy2st.to_static(over_a_range)
    for x in (torch.ones(3), torch.ones(3) * 2):
        torch.testing.assert_close(static(x)[0], over_a_range(x)[0])
    with pytest.raises(UnguardedError, match="shows a bar"):
        dy2st.to_static(with_a_break)(torch.ones(3))
    once = dy2st.to_static(with_a_break, freeze=True)
    torch.testing.assert_close(once(torch.ones(3)), with_a_break(torch.ones(3)))
