"""Keys that the path taken decides (row 28), and what Python raises for data-dependent numbers (row 42)."""

from __future__ import annotations

import collections
import contextlib
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, dyn, refuses, row, vectors
from torch import Tensor

import dy2st
from dy2st.errors import DtypeWarning

INPUTS = [(torch.tensor(v),) for v in ([1.0, -2.0, 3.0], [-1.0, 2.0], [2.0], [-3.0, -0.5, 1.0, 0.5])]


def stored(x: Tensor) -> tuple[Any, ...]:
    key = "a" if x.sum() > 0 else "b"
    found = {"a": x.sum(), "c": x.max()}
    found[key] = x.mean()
    other = "c" if x[0] > 0 else key
    found[other] = found[other] * 2
    return found.get("a"), found.get("b", x[0]), found["c"], found[key], key in found


def taken_out(x: Tensor) -> tuple[Any, ...]:
    key, other = "a" if x.sum() > 0 else "b", "b" if x[0] > 0 else "a"
    found = {"a": x.sum(), "b": x.max()}
    gone = found.pop(key)
    again = found.setdefault(key, x[0]) + found.setdefault(other, x[-1])
    del found[other]
    return gone, again, found.get("a", x[0] * 7), found.get("b", x[0] * 9)


def counted(x: Tensor) -> tuple[Any, ...]:
    counts: dict[str, int] = collections.defaultdict(int)
    for value in (x[0], x[-1], x.sum()):
        counts["up" if value > 0 else "down"] += 1
        if value > 1:
            counts["far"] += 1
    before = "far" in counts
    return counts["up"], counts["down"], counts["far"], before, "far" in counts


def counted_in_a_loop(x: Tensor) -> tuple[Any, ...]:
    counts: dict[str, int] = collections.defaultdict(int)
    for i in range(x.shape[0]):
        if x[i] > 0:
            counts["up"] += 1
        else:
            counts["down"] += i
    return counts["up"] - counts["down"], counts["none"]


def of_none(x: Tensor) -> tuple[Any, ...]:
    key = "a" if x.sum() > 0 else None
    found = {"a": 1, None: 2}
    found[key] += 5
    return found["a"], found[None]


@row(28)
@pytest.mark.parametrize("model", [stored, taken_out, counted, counted_in_a_loop, of_none])
def test_keys_by_path(model: Callable[..., Any]) -> None:
    agree(model, INPUTS, (dyn(0),))


def displayed(x: Tensor) -> Any:
    key = "a" if x.sum() > 0 else "b"
    return {key: x}["a"]


def in_a_tuple(x: Tensor) -> Any:
    key = "a" if x.sum() > 0 else "b"
    return {("a", 1): x, ("b", 1): x * 2}[key, 1]


def updated(x: Tensor) -> Any:
    found = {"a": x}
    found.update({"a" if x.sum() > 0 else "b": x * 2})
    return found["a"]


def a_member(x: Tensor) -> Any:
    return len({"a", "b" if x.sum() > 0 else "c"}) + x


@row(28)
@pytest.mark.parametrize("model", [displayed, in_a_tuple, updated, a_member])
def test_keys_that_python_has_to_know(model: Callable[..., Any]) -> None:
    assert refuses(model, INPUTS[0]).code == "D2S241"


class Seven(dict[str, Any]):
    """Reads 7 for what is not there."""

    def __missing__(self, key: str) -> int:
        return 7


@row(28)
@pytest.mark.parametrize("kind", [Seven, collections.Counter])
@pytest.mark.parametrize("by_key", [True, False])
def test_a_missing_key_of_which_the_dict_makes_something(kind: Callable[..., Any], *, by_key: bool) -> None:
    def keyed(x: Tensor) -> Any:
        found = kind()
        found["a" if x.sum() > 0 else "b"] = 1
        return found["a"], found["b"]

    def branched(x: Tensor) -> Any:
        found = kind()
        if x.sum() > 0:
            found["a"] = 1
        return found["a"], found["b"]

    assert refuses(keyed if by_key else branched, INPUTS[0]).code == "D2S212"


@row(25)
@pytest.mark.parametrize("how", ["set", "insert", "append"])
def test_an_int_that_a_list_of_tensors_takes_in_is_warned_of(how: str) -> None:
    def model(x: Tensor, k: Tensor) -> Any:
        found: list[Any] = [1, 2, 3]
        if how == "set":
            found[int(k)] = x.sum()
        elif how == "insert":
            found.insert(int(k), x.sum())
        else:
            found.append(x.sum())
        return found[int(k)] * 2

    example = torch.ones(3), torch.tensor(1)
    with pytest.warns(DtypeWarning):
        program = dy2st.export(model, example).module()
    for k in range(3):
        wanted = model(example[0], torch.tensor(k))
        torch.testing.assert_close(float(program(example[0], torch.tensor(k))), float(wanted))


# ---- what Python raises


def quotient(x: Tensor) -> Any:
    hits, count = int((x > 0).sum()), int((x > 1).sum())
    try:
        return hits / count
    except ZeroDivisionError:
        return 0.0


def quotient_of_sizes(x: Tensor) -> Any:
    try:
        return x * (5 / (x.shape[0] - 2))
    except ArithmeticError:
        return x


def root(x: Tensor) -> Any:
    try:
        return math.sqrt(x.sum().item())
    except ValueError:
        return 0.0


def whole(x: Tensor) -> Any:
    try:
        return int(x.sum().item())
    except (KeyError, OverflowError):
        return 0


def suppressed(x: Tensor) -> Any:
    found = 0.0
    with contextlib.suppress(ZeroDivisionError):
        found = 1 / x.sum().item()
    return found


def a_key_in_a_try(x: Tensor) -> Any:
    found = {}
    if x.sum() > 0:
        found["a"] = x
    try:
        return found["a"]
    except KeyError:
        return x * 2


ERRORS = {"it's": collections.namedtuple("Errors", "zero")(ZeroDivisionError)}  # noqa: PYI024


def of_a_type_that_is_looked_up(x: Tensor) -> Any:
    try:
        return 1 / x.sum().item()
    except ERRORS["it's"].zero:
        return 0.0


@row(42)
@pytest.mark.parametrize(
    "model",
    [
        quotient,
        quotient_of_sizes,
        root,
        whole,
        suppressed,
        a_key_in_a_try,
        of_a_type_that_is_looked_up,
    ],
)
def test_what_a_try_statement_may_catch_is_refused(model: Callable[..., Any]) -> None:
    error = refuses(model, INPUTS[0], (dyn(0),))
    assert error.code == "D2S236"
    assert error.location is not None


def handled_elsewhere(x: Tensor) -> Any:
    total = x.sum().item()
    try:
        total = math.exp(total / (abs(total) + 1)) + int(total) % 3 + total / 2
    except KeyError:
        total = 0.0
    try:
        ratio = 1 / (1 + x.shape[0])
    finally:
        total = total * 2
    return total if total > 1 else ratio


@row(42)
def test_what_no_handler_is_for_converts() -> None:
    agree(handled_elsewhere, [*vectors(3, 1, 2, 6), (torch.tensor([-5.0]),)], (dyn(0),), whole=False)
