"""Augmented assignments to containers: what is on the right may look like a number, and be a list or a tensor."""

from __future__ import annotations

from collections import deque

import torch
from harness import agree, dyn, refuses, row
from torch import Tensor, nn

PAIRS = [(torch.tensor(v),) for v in ([2.0, 3.0], [-2.0, 1.0], [1.0, 3.0], [0.0, -1.0])]


def repeated(x: Tensor) -> tuple[Tensor, Tensor]:
    rows, pair = [x], [x, x + 1]
    if x.sum() > 0:
        rows *= 2
        pair *= 0
    return torch.stack(rows).sum(0), x * len(rows) + len(pair)


def repeated_in_a_loop(x: Tensor) -> Tensor:
    rows = [x]
    for _ in range(int(x[0])):
        rows *= 2
    return torch.stack(rows)


def product_of_a_list(x: Tensor) -> Tensor:
    rows, pair = [x], [x, x + 1]
    if x.sum() > 0:
        rows += pair * 2
        rows += 2 * pair[1:]
    return torch.stack(rows)


def arithmetic_of_tensors(x: Tensor) -> Tensor:
    rows = [x]
    if x.sum() > 0:
        rows += -x[None]
        rows += x[None] + 1
        rows += x[None] * 2 - 1
    return torch.stack(rows)


def letters(x: Tensor) -> Tensor:
    found = ["a"]
    if x.sum() > 0:
        found += "bc"
        found += f"{len(found)}{1}"
    return x * len(found)


def rows_of_a_slice(x: Tensor) -> Tensor:
    rows: list[Tensor] = []
    for i in range(int(x[0])):
        rows += x[i : i + 1] * 2
        rows += (x[i] * j for j in range(2))
    return torch.stack(rows) if rows else x.new_zeros(0)


def last_of_a_deque(x: Tensor) -> Tensor:
    rows = deque([x[0]], maxlen=3)
    for _ in range(int(x[0])):
        rows += x[1:] * 2
    return torch.stack(list(rows))


def bounded(x: Tensor) -> Tensor:
    rows = deque([x], maxlen=2)
    if x.sum() > 0:
        rows += [x + 1, x + 2]
        rows += x[None]
    return torch.stack(list(rows))


def keys(x: Tensor) -> Tensor:
    named = {"a": 1}
    if x.sum() > 0:
        named |= {"b": 2}
    return x * len(named)


def members(x: Tensor) -> Tensor:
    seen = {1}
    if x.sum() > 0:
        seen -= {1}
    return x * len(seen)


class Kept(nn.Module):
    """Lists in attributes and items, and of an outer function."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        self.rows, held = [x], {"rows": [x]}
        outer = [x]

        def more() -> None:
            nonlocal outer
            outer *= 2
            outer += x[None] * 3

        if x.sum() > 0:
            self.rows *= 2
            self.rows += x[None] + 1
            held["rows"] *= 3
            held["rows"] += -x[None]
            more()
        return torch.stack(self.rows), torch.stack(held["rows"]).sum(0), torch.stack(outer).sum(0)


@row(24)
def test_what_a_path_repeats_or_adds_is_of_that_path() -> None:
    for model in (repeated, product_of_a_list, arithmetic_of_tensors, letters, bounded, keys, Kept()):
        agree(model, PAIRS, paths=2)
    assert "set of" in str(refuses(members, PAIRS[0]))


@row(24)
def test_rows_of_tensors_are_added_in_loops() -> None:
    agree(repeated_in_a_loop, PAIRS)
    agree(rows_of_a_slice, [(torch.tensor(v),) for v in ([2.0, 3.0, 1.0], [0.0, 1.0, 1.0], [3.0, 1.0, 2.0])])
    agree(last_of_a_deque, [(torch.tensor(v),) for v in ([2.0, 3.0, 4.0], [1.0, 1.0, 1.0], [5.0, 1.0, 2.0])])


def summed(x: Tensor) -> Tensor:
    rows = [x.sum()]
    rows += x
    if x.sum() > 3:
        rows += [x.max()]
    return torch.stack(rows)


@row(24)
def test_a_list_takes_the_rows_of_a_tensor_of_dynamic_length() -> None:
    agree(summed, [(torch.tensor(v),) for v in ([2.0, 3.0, 4.0], [0.0, 1.0], [3.0, 1.0, 2.0, 5.0], [1.0])], (dyn(0),))
