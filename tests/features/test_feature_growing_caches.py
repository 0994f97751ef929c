"""Caches and masks that a loop lets grow alike: their sizes are apart by the same number in each iteration."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
import torch
from harness import agree, dyn, row
from torch import Tensor
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Iterator

INPUTS = [(torch.tensor(v),) for v in ([1.0, -2.0, 3.0], [-1.0, -2.0, -3.0, 4.0], [-0.1, 0.2], [9.0, 9.0])]


@row(20)
def test_two_that_begin_apart() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        mask, cache = torch.ones(x.shape[0] + 1), x
        steps = 0
        while cache.norm() < 9 and steps < 6:
            mask = torch.cat([mask, torch.ones(1)])
            cache = torch.cat([cache, cache.sum().reshape(1).cos() + 2])
            padded = functional.pad(cache, (0, mask.shape[0] - cache.shape[0]))
            x = x + (padded * mask).sum()
            steps += 1
        return x, cache * mask[1:]

    agree(model, INPUTS, (dyn(0),), paths=2)


@row(20)
def test_two_that_begin_with_numbers() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        a, b = torch.zeros(0), torch.zeros(3)
        while a.sum() < x.norm() * 3:
            a = torch.cat([a, x.norm().reshape(1)])
            b = torch.cat([b, x[:1]])
        return a.sum() + b[3:].sum() + (a * b[3:]).sum(), b[2:]

    agree(model, INPUTS, (dyn(0),), paths=1)


@row(20)
def test_two_that_grow_unlike() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        a, b = torch.zeros(1), torch.zeros(3)
        while a.sum() < x.norm() * 3:
            a = torch.cat([a, x.norm().reshape(1)])
            b = torch.cat([b, x[:2]])
        return a.sum() + b[3:].sum(), b[2:]

    agree(model, INPUTS, (dyn(0),), paths=1)


@pytest.mark.slow
@row(20)
def test_a_helper_whose_loop_begins_otherwise_in_each_call() -> None:
    def grown(a: Tensor, b: Tensor) -> Tensor:
        while a.sum() < 9:
            a = torch.cat([a, a[:1].abs() + 1])
            b = torch.cat([b, b[:1]])
        return (a.sum() + b.sum()).reshape(1)

    def model(x: Tensor) -> Tensor:
        return grown(x, x) + grown(x, torch.cat([x, x])) + grown(x[:2], torch.ones(5))

    agree(model, INPUTS, (dyn(0),), paths=2)


@pytest.mark.slow
@row(20, 48)
def test_attention_over_a_cache() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        keys = x.reshape(1, 1, -1, 1)
        mask = torch.ones(1, 1, 1, keys.shape[2], dtype=torch.bool)
        query, steps = keys[:, :, -1:], 0
        while query.abs().sum() > 0.5 and steps < 4:
            keys = torch.cat([keys, query], 2)
            mask = torch.cat([mask, query < 2], 3)
            query = functional.scaled_dot_product_attention(query, keys, keys, mask) * 0.6
            steps += 1
        return query, functional.scaled_dot_product_attention(query, keys, keys)

    agree(model, INPUTS, (dyn(0),), paths=2)


@row(20, 48)
def test_attention_that_is_causal_by_size() -> None:
    def attended(x: Tensor, mask: Tensor | None) -> Tensor:
        query = x.reshape(1, 1, -1, 1)
        causal = query.shape[2] > 1 and mask is None
        return functional.scaled_dot_product_attention(query, query, query, mask, is_causal=causal).reshape(-1)

    def model(x: Tensor) -> Tensor:
        mask: Tensor | None = (x > 0).reshape(1, 1, 1, -1)
        if (x > 0).all() or x.shape[0] == 1:
            mask = None
        return attended(x, mask)

    inputs = [*INPUTS, (torch.tensor([1.0, 2.0, 3.0]),), (torch.tensor([-2.0]),)]
    agree(model, inputs, (dyn(0),), paths=3)


@row(20, 48)
def test_the_last_row_of_what_grows() -> None:
    def model(x: Tensor) -> Tensor:
        x = torch.cat([x, torch.ones(1)])
        while x.sum() < 9:
            last = x[-1:].reshape(()) if x.numel() > 0 else x.sum()
            x = torch.cat([x, (last.abs() + 1).reshape(1)])
        return x

    agree(model, [*INPUTS, (torch.zeros(0),)], (dyn(0),), paths=2)


@row(20, 48)
def test_the_first_row_of_what_shrinks() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        x, steps = torch.cat([x, torch.ones(1)]), 0
        while x.abs().sum() > 2 and steps < 9:
            x = x[1:] if x.shape[0] % 2 == 0 else x[:-1]
            steps += 1
        return x[:1].sum() + x.sum(), steps

    agree(model, INPUTS, (dyn(0),), paths=2)


@row(48, 59)
def test_sizes_that_are_equal_on_either_path() -> None:
    def length(x: Tensor) -> int:
        return 0 if x.numel() == 0 else x.shape[0]

    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        rest = torch.cat([x, torch.ones(1)])
        if rest.shape[0] != 1:
            rest = rest[-1:]
        steps = torch.arange(length(x) + 1)
        return rest.reshape(()), steps[: length(x)] * x

    agree(model, [*INPUTS, (torch.zeros(0),)], (dyn(0),), paths=2)


@row(48, 59)
def test_a_size_that_the_test_of_an_arm_makes_a_number() -> None:
    calls: list[int] = []

    def asked() -> bool:
        calls.append(1)
        return True

    def model(x: Tensor) -> Tensor:
        found = x[x > 0].reshape(1, 1, -1) * torch.ones(1, 2, 1)
        if found.shape[2] == 1 and asked():
            return found.reshape(1, 2).sum(0)
        return found.sum(2)[0] + 1

    agree(model, INPUTS, (dyn(0),), paths=2)


@row(48, 59)
def test_a_tag_says_which_sizes_there_are() -> None:
    def model(x: Tensor) -> Tensor:
        table: Tensor = x[:, None] * torch.ones(1, 2)
        query: Tensor = torch.ones(3, 2)
        scale: float | None = None
        rows: Tensor | None = None
        if x.sum() > 0:
            table, scale = torch.cat([table, table], 1), 2.0
            query = torch.ones(3, 4)
        else:
            rows = x.max()
        if scale is None:
            query = query * 0.5
        if rows is None:
            return query.sum() + table.reshape(-1, 2, 2).sum()
        return (query[:, :2] @ table.T).sum() + rows

    agree(model, INPUTS, (dyn(0),), paths=2)


@row(48)
def test_heads_that_are_shared_on_one_path() -> None:
    def model(x: Tensor) -> Tensor:
        query = torch.ones(1, 4, 2, 2) * x[0]
        keys = x[:1].reshape(1, 1, 1, 1) * torch.arange(1.0, 13.0).reshape(1, 2, 3, 2)
        options = {}
        if x.sum() > 0:
            options["enable_gqa"] = True
        else:
            keys = keys.repeat_interleave(2, 1)
        return functional.scaled_dot_product_attention(query, keys, keys, **options)

    agree(model, INPUTS, (dyn(0),), paths=2)


@row(48)
def test_a_number_that_several_arms_take_for_a_size() -> None:
    def model(x: Tensor) -> Tensor:
        count = int((x > 0).sum())
        steps: Tensor | None = None
        if x.sum() > 0 and torch.arange(count).sum() >= 1:
            x = x + 1
        if x.max() > 2:
            steps = torch.arange(count) * 2
        return x.sum() if steps is None else x.sum() + steps.sum()

    agree(model, INPUTS, (dyn(0),), paths=3)


@row(48)
def test_a_number_that_a_test_has_bounded() -> None:
    def model(x: Tensor) -> Tensor:
        missing = int((x > 0).sum()) - 1
        if missing > 0:
            return functional.pad(x, (0, missing)).sum() + torch.arange(missing).sum()
        return x.sum() * 2

    agree(model, INPUTS, (dyn(0),), paths=2)


@contextlib.contextmanager
def tidied(seen: list[int]) -> Iterator[None]:
    try:
        yield
    finally:
        seen.append(1)


class Quiet:
    """Ends no exception."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


@row(44)
def test_managers_that_only_tidy_up() -> None:
    def model(x: Tensor) -> Tensor:
        with tidied([]), Quiet():
            count = int(x.abs().sum())
            if count > 20:
                raise ValueError(count)
            return x[: max(count, 1)].sum() + torch.zeros(count).sum()

    agree(model, INPUTS[:3], (dyn(0),), paths=1, whole=False, raising=[(9 * INPUTS[0][0],)])
