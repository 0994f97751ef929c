"""Lists, dicts and objects that data choose among a known number of them: a change of one is one of that one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from harness import agree, dyn, row
from torch import Tensor, nn


class Track:
    def __init__(self) -> None:
        self.hits = 0
        self.last = torch.zeros(())


@dataclass
class Box:
    count: int
    rows: list[Tensor]


def buckets(x: Tensor, i: Tensor) -> Any:
    rows: list[list[Tensor]] = [[] for _ in range(3)]
    for v in x:
        rows[int(v) % 3].append(v + i)
    return torch.stack([torch.stack(r).sum() if r else x.new_zeros(()) for r in rows]), [len(r) for r in rows]


def tracks(x: Tensor, i: Tensor) -> Any:
    known = [Track(), Track(), Track()]
    for v in x:
        track = known[int(v) % 3]
        track.hits += 1
        track.last = v * i
    return torch.tensor([t.hits for t in known]), torch.stack([t.last for t in known])


def held_by_two_names(x: Tensor, i: Tensor) -> Any:
    """What was chosen stays the same object: changes by either name are seen by the other."""
    rows = [[x[0]], [x[1]], [x[0], x[1]]]
    chosen = rows[int(i)]
    rows[1].append(x[1] * 5)
    chosen.append(x[0] * 3)
    chosen[0] = chosen[0] * 2
    rows[1] = [x[1]]
    chosen.append(x[1])
    return [torch.stack(r).sum() for r in rows], len(chosen), torch.stack(chosen).sum()


def counts(x: Tensor, i: Tensor) -> Any:
    found = [{"a": 0, "b": 1}, {"a": 2, "b": 3}, {"a": 4, "b": 5}]
    found[int(i)]["a"] += 1
    found[int(i)]["b"] = found[int(i)]["a"] * 2
    return [d["a"] * 10 + d["b"] for d in found], x


def boxes(x: Tensor, i: Tensor) -> Any:
    held = {"first": Box(0, []), "second": Box(1, [x[0]])}
    both = list(held.values())
    box = both[int(i) % 2]
    if x.sum() > 0:
        box.count += int(i)
        box.rows = [*box.rows, x[1]]
    return [b.count for b in both], [torch.stack(b.rows).sum() if b.rows else x[0] for b in held.values()]


def best(x: Tensor, i: Tensor) -> Any:
    known = [Track(), Track()]
    for k, track in enumerate(known):
        track.last = x[k]
    found = max(known, key=lambda track: track.last)
    found.hits += 1
    min(known, key=lambda track: track.last).hits += 5
    return [t.hits for t in known], found.last * i


INPUTS = [(torch.tensor(v), torch.tensor(k)) for k in (0, 1, 2, -1) for v in ([2.0, 3.0, 4.0], [1.0, -4.0, 1.0])]
SIZES = [
    *INPUTS,
    (torch.tensor([1.0, 2.0, 3.0, 4.0, 4.0]), torch.tensor(1)),
    (torch.tensor([5.0, 5.0]), torch.tensor(1)),
]


@row(17, 24)
@pytest.mark.parametrize("model", [buckets, tracks, held_by_two_names, counts, boxes, best])
def test_what_was_chosen_is_changed(model: Callable[..., Any]) -> None:
    agree(model, SIZES, (dyn(0), None), paths=1)


class Bank(nn.Module):
    """Slots that are written to by turns, in lists of the module's own."""

    def forward(self, x: Tensor, i: Tensor) -> Any:
        slots = [[x[0]], [x[1]]]
        for k in range(int(i.abs())):
            slots[k % 2].append(x[0] * k)
        return [torch.stack(s).sum() for s in slots]


@row(17, 24)
def test_slots_by_turns() -> None:
    agree(Bank(), [(torch.tensor([2.0, 3.0]), torch.tensor(k)) for k in (0, 1, 2, 5)])


@row(17)
def test_a_list_in_a_list_of_data_dependent_length_is_changed() -> None:

    def model(x: Tensor, i: Tensor) -> Any:
        rows = [[v, v] for v in x]
        rows[int(i)].append(x[0])
        return rows[0], len(rows[-1])

    agree(model, INPUTS, (dyn(0), None), paths=1)
