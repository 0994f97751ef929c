"""Texts of data-dependent values, and dicts with data-dependent keys: shown, but never compared."""

from __future__ import annotations

import collections
import logging
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from harness import agree, dyn, refuses, row
from torch import Tensor

from dy2st.errors import IdentityError, KeysChangeError, StagedNumberError

PATHS = [(torch.tensor([1.0, 2.0]),), (torch.tensor([-1.0, -2.0]),), (torch.tensor([2.0, 2.0]),)]


@row(46)
def test_texts_are_shown() -> None:
    def model(x: Tensor) -> Tensor:
        n = int(x.sum())
        text = f"{n:>5} of " + "{}".format(x.mean()) + "%d" % n  # noqa: UP031, UP032  the forms are what is tested
        print(text, str(n).rjust(4), repr(n), sep=" | ")  # noqa: T201
        logging.getLogger(__name__).debug(text)
        warnings.warn(text, stacklevel=1)
        if n > 2:
            return x * 2
        if n < -100:
            raise ValueError(f"{text}: {n} is small")
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        agree(model, PATHS, (dyn(0),), paths=2, raising=[(torch.tensor([-200.0]),)])


TEXTS: list[Callable[[int, Tensor], Any]] = [
    lambda n, _: str(n) == "3",
    lambda n, _: f"{n}" == "3",
    lambda n, _: f"{n} of {n}" != "3 of 3",
    lambda n, _: str(n) in "123",
    lambda n, _: str(n) in {"3": 1},
    lambda n, _: {"3": 2.0}.get(f"a{n}", 3.0),
    lambda n, _: len(f"{n}+{n}"),
    lambda n, _: f"{n}".startswith("3"),
    lambda n, _: repr(n)[0] == "3",
    lambda n, _: f"{n:04d}".upper().isdigit(),
    lambda n, _: "%s" % n == "3",  # noqa: UP031
    lambda n, _: "{}".format(n) == "3",  # noqa: UP032
    lambda n, _: "-".join(["a", str(n)]) == "a-3",
    lambda n, _: sum(int(c) for c in str(n)),
    lambda n, _: ("a" + f"{n}" + "b") < "b",
    lambda n, _: max(f"{n}", "b") == "b",
    lambda _, x: f"{x.sum()}" == "3",
]


@row(46)
@pytest.mark.parametrize("use", TEXTS, ids=range(len(TEXTS)))
def test_texts_are_not_compared(use: Callable[[int, Tensor], Any]) -> None:
    def model(x: Tensor) -> Tensor:
        return x * use(int(x.sum()), x)

    assert isinstance(refuses(model, PATHS[0], (dyn(0),)), StagedNumberError)


@row(46)
def test_text_of_a_size_is_not_compared() -> None:
    def model(x: Tensor) -> Tensor:
        return x * 2 if f"{x.shape[0]} rows" == "2 rows" else x

    assert isinstance(refuses(model, PATHS[0], (dyn(0),)), StagedNumberError)


@row(49)
def test_identity_of_numbers_and_of_their_classes() -> None:
    def of_numbers(x: Tensor) -> Tensor:
        n = int(x.sum())
        m = 3
        return x * 2 if n is m else x

    def of_classes(x: Tensor) -> Tensor:
        n = int(x.sum())
        return x * 2 if n.__class__ is int else x * n

    assert isinstance(refuses(of_numbers, PATHS[0]), IdentityError)
    agree(of_classes, PATHS, (dyn(0),), paths=1)

    def by_type(x: Tensor) -> Tensor:
        n = int(x.sum())
        return x * n if type(n) is int else x

    agree(by_type, PATHS, (dyn(0),), paths=1)


@row(28)
def test_truth_and_count_of_keys_that_are_there_by_path() -> None:
    def model(x: Tensor) -> Tensor:
        found = {}
        if x.sum() > 0:
            found["a"] = x * 3
        if x.sum() > 3:
            found["b"] = x * 5
        y = x * len(found)
        if not found:
            return y - 1
        return y + found["a"] if bool(found) and "b" not in found else y * 2

    agree(model, PATHS, (dyn(0),), paths=3)


def listed(d: dict[str, Tensor]) -> Any:
    return list(d)


def walked(d: dict[str, Tensor]) -> Any:
    total: Any = 0
    for key in d:  # noqa: PLC0206  keys are what is tested
        total = total + d[key].sum()
    return total


def merged(d: dict[str, Tensor]) -> Any:
    return {"a": 0.0, **d}["a"]


def updated(d: dict[str, Tensor]) -> Any:
    other: dict[str, Any] = {"a": 0.0}
    other.update(d)
    return other["a"]


def is_empty(d: dict[str, Tensor]) -> Any:
    return 1 if d == {} else 2


def equals(d: dict[str, Tensor]) -> Any:
    other: dict[str, Tensor] = {}
    return 1 if d == other else 2


WHOLE = [
    listed,
    walked,
    merged,
    updated,
    is_empty,
    equals,
    sorted,
    tuple,
    lambda d: [d[key] for key in d],
    lambda d: list(d.values()),
    lambda d: dict(zip(d, d, strict=True)),
    lambda d: next(iter(d)),
]


@row(28)
@pytest.mark.parametrize("use", WHOLE, ids=lambda use: use.__name__)
def test_keys_that_are_there_by_path_are_not_enumerated(use: Callable[[dict[str, Tensor]], Any]) -> None:
    def model(x: Tensor) -> Tensor:
        found = {}
        if x.sum() > 0:
            found["a"] = x * 3
        return x * len([use(found)])

    assert isinstance(refuses(model, PATHS[0], (dyn(0),)), KeysChangeError)


@row(28)
def test_order_of_keys_and_values_for_missing_keys() -> None:
    def ordered(x: Tensor) -> Tensor:
        d = collections.OrderedDict(a=x, b=x * 2)
        if x.sum() > 0:
            d["c"] = x * 3
        return d["b"] + (d["c"] if "c" in d else 1)  # noqa: SIM401  so is the test

    agree(ordered, PATHS, (dyn(0),), paths=2)

    def moved(x: Tensor) -> Tensor:
        d = collections.OrderedDict(a=x, b=x * 2)
        if x.sum() > 0:
            d.move_to_end("a")
        return next(iter(d.values()))

    def counted(x: Tensor) -> Tensor:
        c: collections.Counter[str] = collections.Counter()
        if x.sum() > 0:
            c["p"] += 1
        return x * c["p"]

    for model in (moved, counted):
        assert isinstance(refuses(model, PATHS[0], (dyn(0),)), KeysChangeError)

    def prepared(x: Tensor) -> Tensor:
        c = collections.Counter(p=0)
        for value in x:
            if value > 0:
                c["p"] += 1
        return x * c["p"]

    agree(prepared, PATHS, (dyn(0),))


@row(46)
def test_a_character_of_a_text_by_an_index_that_is_data() -> None:
    def model(x: Tensor) -> Tensor:
        n, word = 0, "hello" if x[0] > 0 else "abc"
        for i in range(x.shape[0]):
            letter = "hello"[i % 5]
            if letter == "l":
                n += 1
            elif letter in "ho":
                n += 10
        if word[int(x.sum()) % 3] == "l":
            n += 100
        return x + n + b"abc"[int(x.sum())] + len(word[:2])

    short = torch.tensor([-1.0, 2.0])
    agree(model, [(torch.ones(2),), (short,), (torch.zeros(7),)], (dyn(0),), raising=PATHS[:1])
