"""Row 42: an index or a key that is not there, where a ``try`` or a test deals with it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from harness import Input, agree, refuses, row
from torch import Tensor


def _inputs(*numbers: int) -> list[Input]:
    generator = torch.Generator().manual_seed(0)
    return [(torch.randn(4, generator=generator), torch.tensor(n)) for n in numbers]


def _read(x: Tensor, n: Tensor) -> Any:
    values = [x, x * 2, x + 1]
    try:
        y = values[n] + 1
        x = x + 5
    except IndexError:
        y = x * 0
    return y, x


def _tried_again(x: Tensor, n: Tensor) -> Any:
    values = [1, 2, 3]
    while True:
        try:
            x = x + values[int(n)]
            break
        except IndexError:
            n = n - 2
    return x


def _appended(x: Tensor, n: Tensor) -> Any:
    found, factors = [x], [1.0, 2.0, 3.0]
    try:
        found.append(factors[n] * x)
    except IndexError:
        x = x - 1
    return x, len(found), found[-1]


def _appended_by_a_function(x: Tensor, n: Tensor) -> Any:
    def checked() -> int:
        if n > 2:
            raise ValueError
        return 1

    found = [5]
    try:
        found.append(checked())
    except ValueError:
        x = x - 1
    return x, len(found)


def _updated(x: Tensor, n: Tensor) -> Any:
    factors = [1.0, 2.0, 3.0]
    state: dict[str, Any] = {"a": 1, "b": x}
    try:
        state["a"] += factors[n]
        state.update(b=factors[n - 2] + x)
    except IndexError:
        x = x - 1
    return x, state["a"] * 1.0, state["b"]


@row(42)
@pytest.mark.parametrize("function", [_read, _tried_again, _appended, _appended_by_a_function, _updated])
def test_an_index_out_of_range(function: Any) -> None:
    agree(function, _inputs(2, 6, 3, 0, 1, -3), whole=False)


def _removed(x: Tensor, n: Tensor) -> Any:
    values = [1, 2, 3]
    try:
        values.remove(int(n))
        x = x + len(values)
    except ValueError:
        x = x - len(values)
    return x


@row(42)
def test_a_change_that_may_fail_is_refused() -> None:
    assert refuses(_removed, _inputs(2)[0]).code == "D2S236"


def _of_other_kinds(x: Tensor, n: Tensor) -> Any:
    values: list[Tensor] = []
    try:
        if n > 5:
            x = x + values[2]
        x = x + 1
    except (ValueError, RuntimeError):
        x = x - 5
    finally:
        x = x * 2
    return x


def _none_for_a_tensor(x: Tensor, n: Tensor) -> Any:
    best = None
    for i in range(3):
        if n > i + 2:
            x = torch.maximum(best, x + 1)  # type: ignore[arg-type]
        x = x + i
        best = x
    return x


@row(42)
@pytest.mark.parametrize("function", [_of_other_kinds, _none_for_a_tensor])
def test_what_no_handler_is_for(function: Any) -> None:
    agree(function, _inputs(2, 1, 0), raising=_inputs(6, 7), whole=False, paths=1)


def _active(x: Tensor, n: Tensor) -> Any:
    """Positions that join and leave; where there are none, the last is not asked for."""
    active: list[int] = []
    rounds = 0
    while rounds < 6:
        rounds += 1
        if (x.sum() + rounds) % 3 < n:
            active.append(int(x.argmin()))
            x = x + 1
            continue
        if len(active) > 0:
            x = x - active[-1]
            del active[-1]
    return x, len(active)


@pytest.mark.slow
@row(42)
def test_a_list_that_is_empty_at_first() -> None:
    agree(_active, _inputs(2, 1, 0, 3), whole=False)
