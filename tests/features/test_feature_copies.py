"""Copies of what is carried (rows 29, 31): ``deepcopy`` shares nothing, ``copy`` shares what it holds."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
from harness import agree, dyn, refuses, row
from torch import Tensor

PAIRS = [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0], [2.0, -1.0], [0.0, 0.0], [5.0, 4.0])]


@dataclass
class Hypothesis:
    score: Tensor
    tokens: list[Tensor]


@row(29, 31)
def test_deep_copies_in_arms_and_loops() -> None:
    def model(x: Tensor) -> tuple[Tensor, ...]:
        best = Hypothesis(x.sum(), [x[0] * 1])
        current = copy.deepcopy(best)
        for i in range(3):
            new = copy.deepcopy(current)
            new.score = new.score + x[i % 2]
            new.tokens[0].add_(1)
            if new.score > best.score:
                best = copy.deepcopy(new)
                best.tokens[0] = best.tokens[0] * 2
            current = new
        turns = 0
        while current.score < 20 and turns < 5:
            turns += 1
            changed = copy.deepcopy(x)
            changed[0] = 5
            current = copy.deepcopy(current)
            current.score = current.score * 1.5 + 1 + changed.sum()
        return best.score, best.tokens[0], current.score, current.tokens[0], x

    agree(model, PAIRS)


@row(31)
def test_a_shallow_copy_is_of_the_same_memory() -> None:
    def model(x: Tensor) -> tuple[Tensor, ...]:
        a = x * 1
        b, c = copy.copy(a), copy.copy([a, a * 2])
        a += 1
        c[1] = c[0]
        return a, b, c[0], c[1]

    agree(model, PAIRS, paths=1)


@row(31)
def test_of_numbers_and_values_by_path() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        held: dict[str, Any] = {"n": int(x[0]), "best": None, "rows": []}
        if x.sum() > 1:
            held["best"] = x * 2
        for i in range(3):
            if x.sum() > i:
                held["rows"].append(x * i)
        other = copy.deepcopy(held)
        other["n"] += 1
        other["rows"].append(x)
        best = x if other["best"] is None else other["best"]
        return held["n"], other["n"], best, torch.stack(other["rows"]), len(held["rows"])

    agree(model, PAIRS, (None,))


@row(31)
def test_views_that_are_copied_together_are_refused() -> None:
    def model(x: Tensor) -> Tensor:
        a = x * 1
        b = copy.deepcopy([a, a[:1]])
        b[0][0] = 7
        return b[1] + x

    assert refuses(model, PAIRS[0]).code == "D2S221"


@row(47)
def test_the_class_of_a_tensor() -> None:
    def model(x: Tensor) -> Tensor:
        return x * 2 if type(x) is Tensor and type(x) == Tensor else x * 3  # noqa: E721

    agree(model, PAIRS, paths=1)


@row(48)
def test_elements_by_index_from_either_end() -> None:
    def model(x: Tensor, t: Tensor) -> tuple[Any, ...]:
        n, k = x.shape[0], int(t[0])
        numbers = range(n)[-1], range(n)[0], range(1, n + 1)[-1], range(n)[k], range(abs(k) + 1)[-1], range(n)[k % n]
        return (*numbers, x.split(1)[k], x.split(1)[-1], x.unbind()[k], t)

    inputs = [(torch.arange(float(n)), torch.tensor([k])) for n, k in ((3, 1), (3, -3), (1, -1), (5, 4), (2, 0))]
    agree(model, inputs, (dyn(0), None), paths=1)
