"""Rows 26, 28, 43: an arm in which Python itself raises, for some iterations or for all: a guard, never a value."""

from __future__ import annotations

import torch
from harness import agree, dyn, refuses, row, vectors
from torch import Tensor

import dy2st


def doubled(y: Tensor) -> Tensor:
    if y > 2:
        return y * 2
    for value in y:
        y = y + value
    return y


@row(26, 43)
def test_the_last_element_of_a_list_that_is_empty_at_first() -> None:
    def model(x: Tensor, a: Tensor) -> tuple[Tensor, Tensor]:
        alphas, scales = [], []
        h = a[0] * x[0] if len(x) > 0 else a[0]
        for t in range(len(x)):
            if t > 0:
                h = (alphas[-1] @ a) * x[t]
            c = h.sum()
            alphas.append(h / c)
            scales.append(c)
        return h, torch.stack(scales) if scales else torch.zeros(0)

    a = torch.tensor([[0.9, 0.2], [0.1, 0.8]])
    agree(model, [(torch.rand(n) + 0.5, a) for n in (3, 1, 5)], (dyn(0), None), paths=2)


@row(26, 43)
def test_all_elements_so_far() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        found = []
        total = torch.zeros(())
        for t in range(len(x)):
            best = x[t]
            for k in range(t):
                best = torch.maximum(best, found[k] * 0.5)
            if t > 1:
                total = total + torch.stack(found).max()
                best = best - max(found)
            found.append(best)
        return total, best if len(x) else total

    agree(model, vectors(4, 1, 2, 7), (dyn(0),), paths=3)


@row(43)
def test_an_arm_that_always_fails_is_a_guard() -> None:
    def model(x: Tensor) -> Tensor:
        names: list[Tensor] = []
        if x.sum() > 3:
            x = x + doubled(names[0] + 1)
        return x * 2

    program = dy2st.export(model, (torch.ones(2),))
    assert any(node.target is torch.ops.dy2st.require.default for node in program.graph.nodes)
    agree(model, [(torch.ones(2),)], raising=[(torch.ones(2) * 5,)])


@row(43)
def test_a_loop_that_always_fails_does_not_run() -> None:
    def model(x: Tensor) -> Tensor:
        names: list[Tensor] = []
        total = x.sum()
        for value in x:
            total = total + names[-1] * value
        return total

    agree(model, [(torch.zeros(0),)], (dyn(0),), raising=[(torch.ones(1),), (torch.ones(3),)])


@row(43)
def test_failures_in_each_kind_of_arm() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        stack: list[Tensor] = []
        table: dict[str, Tensor] = {}
        key = "a"
        y = stack.pop() if x[0] > 3 else x[0]
        z = x[1] > 3 and table[key] > 0
        w = x[2] * (1.0 if not z else 2.0)
        if x[2] > 3:  # noqa: SIM108 - an if statement is under test
            w = min(stack)
        else:
            w = w + 1
        return y, w, torch.cat([x, x])

    good = [(torch.tensor(v),) for v in ([0.0, 1.0, 2.0], [3.0, 3.0, 3.0])]
    bad = [(torch.tensor(v),) for v in ([4.0, 1.0, 2.0], [0.0, 4.0, 2.0], [0.0, 1.0, 4.0])]
    agree(model, good, raising=bad)


@row(28, 43)
def test_a_key_that_an_earlier_iteration_has_set() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        cache: dict[str, Tensor] = {}
        total = torch.zeros(())
        for t in range(len(x)):
            if t > 0:
                total = total + cache["last"] * 2
            cache["last"] = x[t] + total
        return total, x

    agree(model, vectors(3, 1, 4), (dyn(0),), paths=2)


@row(43)
def test_no_option_drops_what_is_no_raise_statement() -> None:
    rows: list[Tensor] = []

    def model(x: Tensor) -> Tensor:
        if x.sum() > 3:
            x = rows[0] + x
        return x

    program = dy2st.export(model, (torch.ones(2),), drop_guards=True)
    assert any(node.target is torch.ops.dy2st.require.default for node in program.graph.nodes)


@row(42)
def test_a_failure_that_a_try_may_catch_is_refused() -> None:
    def model(x: Tensor) -> Tensor:
        names: list[Tensor] = []
        try:
            if x.sum() > 3:
                x = x + names[0]
        except IndexError:
            x = x - 1
        return x

    refuses(model, (torch.ones(2),))


@row(42, 59)
def test_an_index_that_may_be_out_of_range_in_a_try_statement() -> None:
    def reads(x: Tensor) -> Tensor | None:
        found = x[x > 0]
        try:
            return found[-1]
        except IndexError:
            return None

    def writes(x: Tensor) -> Tensor:
        found = x[x > 0]
        try:
            found[0] = 5.0
        except IndexError:
            found = x
        return found

    for model in (reads, writes):
        error = refuses(model, (torch.tensor([1.0, -1.0]),), (dyn(0),))
        assert isinstance(error, dy2st.errors.CaughtError)
        assert "unless a data-dependent size > 0" in str(error)
