"""Row 47: members of enumerations by a value that is data, by path, and in lists and dicts."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest
import torch
from harness import agree, refuses, row
from torch import Tensor

VALUES = [(torch.tensor(v),) for v in ([1, 2, 2, -1, 0], [2, 0, 0, 0, 1], [0, 3, -4, 2, 7])]


class Move(enum.Enum):
    UP = 0
    DOWN = 1
    STAY = 2

    @property
    def moves(self) -> bool:
        return self is not Move.STAY


class Operation(enum.IntEnum):
    ADD = 1
    DOUBLE = 2
    NEGATE = 3


class Mode(enum.Enum):
    QUIET = "quiet"
    LOUD = "loud"


def walk(x: Tensor) -> Any:
    place, moved = 0, 0
    for value in x.tolist():
        move = Move(abs(value) % 3)
        if move is Move.UP:
            place += 1
        elif move == Move.DOWN:
            place -= 1
        moved += move.moves
    return place, moved


def machine(x: Tensor) -> Any:
    total = 1
    for value in x.tolist():
        match Operation(abs(value) % 3 + 1):
            case Operation.ADD:
                total = total + value
            case Operation.DOUBLE:
                total = total * 2
            case Operation.NEGATE:
                total = -total
    return total, [int(Operation(abs(value) % 3 + 1)) * 2 for value in x.tolist()]


def looked_up(x: Tensor) -> Any:
    costs = {Move.UP: 3, Move.DOWN: 4, Move.STAY: 5}
    return costs[Move(abs(x[0].item()) % 3)], Move(x[1].item()).value


def logged(x: Tensor) -> Any:
    log, mode = [], Mode.QUIET
    for value in x.tolist():
        if value > 1:
            mode = Mode.LOUD
        if value != 0:
            log.append((value, mode))
    moves = [Move(abs(value) % 3) for value in x.tolist() if value >= 0]
    loud = sum(value for value, mode in log if mode == Mode.LOUD)
    return loud, len([1 for _, mode in log if mode is Mode.QUIET]), moves.count(Move.UP)


@row(47)
@pytest.mark.parametrize("model", [walk, machine, looked_up, logged])
def test_members_by_data(model: Any) -> None:
    # 3 is no value of Move.
    raises = model is looked_up
    agree(model, VALUES[:2] if raises else VALUES, paths=1, raising=VALUES[2:] if raises else ())


class Lenient(enum.Enum):
    NONE = 0

    @classmethod
    def _missing_(cls, value: object) -> Lenient:
        return cls.NONE


@row(47)
def test_an_enumeration_that_finds_its_members_itself_is_refused() -> None:
    refuses(lambda x: x * 2 if Lenient(x.sum().item()) is Lenient.NONE else x, VALUES[0])


def searched(x: Tensor) -> Any:
    found = [value for value in x.tolist() if value > 0]
    pairs = [(value, value + 1) for value in found]
    most, seen = x.abs().max().item(), set()
    for value in x.tolist():
        seen.add(value)
    costs = {Operation.DOUBLE: 3, np.int64(4): 5, Operation.ADD: 7, np.float64(7.0): 9}
    return [
        most in {Operation.DOUBLE, np.int64(4)},
        costs[most],
        Operation.ADD in found,
        found.count(Operation.DOUBLE),
        np.int64(7) in found,
        pairs.count((Operation.ADD, np.int64(2))),
        Operation.ADD in seen,
    ]


@row(47)
def test_members_that_are_numbers_equal_numbers() -> None:
    agree(searched, VALUES, paths=1)
