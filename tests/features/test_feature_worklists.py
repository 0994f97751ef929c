"""Rows 24 to 26, 32 and 47: lists as state: stacks, queues, windows, beams; elements with a structure of their own."""

# ruff: noqa: B905, PERF401, PERF402, RUF005 - the constructs under test are written as users write them
from __future__ import annotations

import collections
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from harness import agree, dyn, refuses, row, vectors
from torch import Tensor, nn

import dy2st
from dy2st.errors import DtypeWarning


def values(*rows: list[float]) -> list[tuple[Tensor]]:
    """One-argument inputs: vectors of these values."""
    return [(torch.tensor(value, dtype=torch.float32),) for value in rows]


def graphs(*sizes: int) -> list[tuple[Tensor, Tensor]]:
    """Random adjacency matrices, and the node to start from."""
    generator = torch.Generator().manual_seed(0)
    return [(torch.rand(n, n, generator=generator) > 0.6, torch.tensor(0)) for n in sizes]


@pytest.mark.slow
@row(26, 8)
def test_stack_that_elements_push_and_pop() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        stack = [torch.zeros(())]
        for element in x:
            if element > 0:
                stack.append(element)
            elif len(stack) > 1:
                stack.pop()
        return torch.stack(stack).cumsum(0), len(stack)

    agree(model, values([1, 2, -1, 3], [-1, 1], [1, -1, -1], []), (dyn(0),), paths=4)


@pytest.mark.slow
@row(26, 24)
def test_depth_first_search() -> None:
    def model(adjacent: Tensor, root: Tensor) -> tuple[Tensor, int]:
        seen = torch.zeros(adjacent.shape[0], dtype=torch.bool)
        order = []
        stack = [int(root)]
        while stack:
            node = stack.pop()
            if seen[node]:
                continue
            seen[node] = True
            order.append(node)
            for other in range(adjacent.shape[0]):
                if adjacent[node, other]:
                    stack.append(other)
        return torch.tensor(order, dtype=torch.int64), len(order)

    agree(model, graphs(4, 1, 3, 6), (dyn(0, 1), None), paths=4)


@pytest.mark.slow
@row(26)
def test_breadth_first_search_with_a_deque() -> None:
    def model(adjacent: Tensor, root: Tensor) -> Tensor:
        distance = torch.full((adjacent.shape[0],), -1)
        distance[root] = 0
        queue = collections.deque([root])
        while queue:
            node = queue.popleft()
            for other in range(adjacent.shape[0]):
                if adjacent[node, other] and distance[other] < 0:
                    distance[other] = distance[node] + 1
                    queue.append(root * 0 + other)
        return distance

    agree(model, graphs(4, 1, 3, 6), (dyn(0, 1), None), paths=4)


@pytest.mark.slow
@row(26)
def test_sliding_window() -> None:
    def model(x: Tensor) -> tuple[Tensor, int, Tensor]:
        window, means = [], [x.sum()]
        last: Any = collections.deque([x.sum()], maxlen=2)
        for element in x:
            window.append(element)
            last.append(element * 2)
            if len(window) > 3:
                window.pop(0)
            means.append(torch.stack(window).mean())
        return torch.stack(means), len(window), last[-1] + last[0]

    agree(model, vectors(4, 0, 1, 7), (dyn(0),), paths=4)


class Beam(NamedTuple):
    """One of several hypotheses."""

    score: Tensor
    tokens: Tensor
    length: int


@pytest.mark.slow
@row(24, 26)
def test_beams_replaced_in_every_iteration() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor, int, int]:
        beams = [Beam(x.sum(), torch.zeros(1, dtype=torch.int64), 0)]
        for t, element in enumerate(x):
            grown = []
            for beam in beams:
                grown.append(Beam(beam.score + element, torch.cat([beam.tokens, torch.full((1,), t)]), beam.length + 1))
                grown.append(Beam(beam.score - element, torch.cat([beam.tokens, torch.full((1,), -t)]), beam.length))
            grown.sort(key=lambda beam: beam.score, reverse=True)
            beams = grown[:3]
        best = beams[0]
        return best.score, best.tokens, best.length, len(beams)

    agree(model, vectors(4, 0, 1, 2), (dyn(0),), paths=4)


@pytest.mark.slow
@row(24, 47)
def test_tuples_in_a_list() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        found = []
        for i, element in enumerate(x):
            found.append((element.abs(), i))
        best = max(found, key=lambda pair: pair[0])
        worst = min(found)
        order = sorted(found, key=lambda pair: -pair[0])
        total = torch.zeros(())
        for value, i in found:
            total = total * 0.5 + value * i
        return torch.stack([value for value, _ in order]), torch.tensor([i for _, i in order]), *best, *worst, total

    agree(model, vectors(4, 1, 2, 7), (dyn(0),), paths=4)


@row(26)
def test_lists_that_expressions_make_anew() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor, int]:
        kept, doubled = [x.sum()], []
        for element in x:
            kept = kept + [element]
            doubled = [*doubled, element * 2]
            if element > 0:
                kept = kept[1:]
        return torch.stack(kept), torch.stack([x.sum(), *doubled]), len(kept)

    agree(model, values([1, -2, -1, 3], [-1], [1, 2], []), (dyn(0),), paths=4)


@row(26, 56)
def test_staged_places() -> None:
    def model(x: Tensor, at: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
        i = int(at)
        items = [x[0] * 0]
        for element in x:
            items.append(element)
        items.insert(i, x.sum())
        items[-1 - i] = x.max()
        taken = items.pop(i)
        part = items[i:]
        del items[-1]
        return torch.stack(items), taken, items[at] + items[-1], len(part)

    inputs = [(x, torch.tensor(n)) for (x,), n in zip(vectors(4, 2, 5, 3), (1, 0, 3, 2))]
    agree(model, inputs, (dyn(0), None), paths=3)


@row(26)
def test_places_that_are_out_of_range() -> None:
    def model(x: Tensor, times: Tensor) -> Tensor:
        items = []
        for element in x:
            items.append(element)
        total = torch.zeros(())
        while times > 0:
            total = total * 2 + items.pop()
            times = times - 1
        return total

    inputs = [(x, torch.tensor(n)) for (x,), n in zip(vectors(3, 3, 4), (2, 0, 4))]
    agree(model, inputs, (dyn(0), None), paths=3, raising=[(torch.ones(2), torch.tensor(3))])


@row(26)
def test_search_by_value() -> None:
    def model(x: Tensor) -> tuple[int, int, int, int]:
        items = [7]
        for element in x:
            if int(element) in items:
                items.remove(int(element))
            else:
                items.append(int(element))
        return items.count(2), len(items), items.index(7) if 7 in items else -1, sum(items)

    agree(model, values([1, 2, 3], [2, 2], [7, 1, 2], [], [3, 7, 7]), (dyn(0),), paths=4)


@row(26, 29)
def test_list_in_an_attribute_and_in_a_helper() -> None:
    @dataclass
    class State:
        items: list[Tensor]

    def push(items: list[Tensor], value: Tensor) -> None:
        items.append(value)
        if value < 0:
            items.pop(0)

    class Model(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, int]:
            self.state = State([x.sum(), x.sum() * 2])
            alias = self.state.items
            for element in x:
                push(self.state.items, element)
                if element > 2:
                    return torch.stack(alias), -1
            return torch.stack(self.state.items), len(alias)

    agree(Model(), values([1, -2, -1, 0.5], [-1], [1, 3, 1], []), (dyn(0),), paths=4)


@pytest.mark.slow
@row(26, 8, 10)
def test_merge_of_intervals() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        merged = [(x[0, 0], x[0, 1])]
        for line in x[1:]:
            start, end = line[0], line[1]
            while merged:
                last, top = merged[-1]
                if top < start:
                    break
                merged.pop()
                start = torch.minimum(start, last)
                end = torch.maximum(end, top)
            merged.append((start, end))
        return torch.stack([a for a, _ in merged]), torch.stack([b for _, b in merged])

    tables = [[[0, 1], [2, 3], [4, 5]], [[0, 1]], [[0, 2], [1, 4], [3, 5]], [[0, 1], [2, 3], [0.5, 6]]]
    agree(model, [(torch.tensor(table, dtype=torch.float32),) for table in tables], (dyn(0),), paths=4)


@pytest.mark.slow
@row(32)
def test_comprehensions_with_conditions_and_two_clauses() -> None:
    def model(x: Tensor) -> tuple[Tensor, int, Tensor]:
        kept = [x.sum(), *[element * 2 for element in x if element > 0]]
        products = [a * b for a in x for b in x if a > b]
        return torch.stack(kept), len(products), sum(products) + torch.zeros(())

    agree(model, values([1, 2, -1, 3], [-1], [1, -1, -1], []), (dyn(0),), paths=4)


@row(26)
def test_what_lists_of_unknown_length_refuse() -> None:
    def ragged(x: Tensor) -> int:
        parts = []
        for element in x:
            parts.append(torch.zeros(2))
            if element > 0:
                parts.append(torch.zeros(3))
        return len(parts)

    def changed(x: Tensor) -> Tensor:
        pairs = []
        for element in x:
            pairs.append([element, element * 2])
        pairs[0][0] = x.sum()
        return pairs[0][0] + pairs[-1][1]

    def named(x: Tensor) -> int:
        found = []
        for element in x:
            if element > 0:
                found.append("positive")
                found.append("odd")
            else:
                found.append("negative")
        return len(found)

    (example,) = values([1, -2, 3])
    assert refuses(ragged, example, (dyn(0),)).code == "D2S211"
    agree(changed, values([1, -2, 3], [4]), (dyn(0),), paths=1)
    agree(named, values([1, -2, 3], [-1, -2], [3, 4, 5, 6]), (dyn(0),))


@pytest.mark.slow
@row(24, 26)
def test_tensors_of_lists_with_rows_in_them() -> None:
    def pairs(x: Tensor) -> Tensor:
        found = []
        for i in range(x.shape[0]):
            if x[i] > 0:
                found.append((i, 2 * x[i]))
        if not found:
            return torch.zeros(0, 2)
        return torch.tensor(found)

    agree(pairs, vectors(4, 1, 0, 3), (dyn(0),), paths=3)

    def table(x: Tensor) -> tuple[Tensor, Tensor]:
        ups, downs = [0], [1]
        for value in x:
            ups.append(int(value * 10))
            downs.append(-ups[-1])
        return torch.tensor([ups, downs]), torch.tensor([[1, ups[-1]], [len(ups), 2]], dtype=torch.float64)

    agree(table, vectors(4, 1, 0, 3), (dyn(0),), paths=2)

    def floats(x: Tensor) -> Tensor:
        return torch.tensor([float(value) for value in x if value > 0])

    agree(floats, vectors(4, 1, 0, 3), (dyn(0),), paths=1)


@row(24)
def test_the_dtype_of_an_empty_list() -> None:
    def model(x: Tensor) -> Tensor:
        found = []
        for i, value in enumerate(x):
            if value > 0:
                found.append(i)
        return torch.tensor(found)

    with pytest.warns(DtypeWarning, match=r"int64\[\?\] tensor or a float32\[0\] tensor.* returns torch.int64 on all"):
        program = dy2st.export(model, (torch.ones(3),), dynamic_shapes=(dyn(0),))
    for x in (torch.tensor([1.0, -1.0, 2.0]), -torch.ones(2)):
        found = program.module()(x)
        assert found.dtype is torch.int64
        assert found.tolist() == model(x).tolist()

    def of_tuples(x: Tensor) -> Tensor:
        return torch.tensor([(value, 1.0) for value in x])

    agree(of_tuples, [(torch.ones(3),), (torch.ones(0),)], (dyn(0),))


@row(26, 48)
def test_list_of_a_tensor_as_a_queue() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        queue = list(x)
        total, steps = torch.zeros(()), 0
        while queue:
            value = queue.pop(0)
            total = total * 0.5 + value
            if value > 1 and steps < 5:
                queue.extend(x[:1])
            steps += 1
        return total, steps

    agree(model, [(torch.tensor(v),) for v in ([2.0, 0.5], [], [0.5, 3.0, 0.1], [1.5])], (dyn(0),), paths=3)


@row(31)
def test_rows_swapped_by_staged_indices() -> None:
    def model(x: Tensor) -> Tensor:
        x = x.clone()
        for k in range(3):
            p = int(x[k:, k].abs().argmax()) + k
            if p != k:
                x[[k, p]] = x[[p, k]]
            x[k, [p, 0]] += 1.0
        return x

    generator = torch.Generator().manual_seed(0)
    agree(model, [(torch.randn(3, 3, generator=generator),) for _ in range(3)] + [(torch.eye(3),)], paths=2)


@row(47, 48)
def test_arange_of_a_float_that_only_the_graph_knows() -> None:
    def model(a: Tensor, b: Tensor) -> Tensor:
        steps = torch.ceil((b - a) / 0.25 + 1).item()
        grid = torch.arange(0, steps, dtype=a.dtype) * 0.25 + a
        grid[-1] = b
        return grid

    agree(model, [(torch.tensor(a), torch.tensor(b)) for a, b in ((0.0, 1.0), (0.0, 2.1), (1.0, 1.0))], paths=1)


@pytest.mark.slow
@row(26, 48)
def test_a_list_of_as_many_numbers_as_something_has() -> None:
    def longest(x: Tensor) -> tuple[int, int]:
        best = [1] * len(x)
        for i in range(len(x)):
            for j in range(i):
                if x[j] < x[i]:
                    best[i] = max(best[i], best[j] + 1)
        return max(best), len(best)

    def groups(x: Tensor) -> int:
        seen = x.shape[0] * [False]
        count = 0
        for i in range(x.shape[0]):
            if not seen[i]:
                count += 1
                for j in range(x.shape[0]):
                    if x[i] <= x[j]:
                        seen[j] = True
        return count

    def pairs(x: Tensor, k: Tensor) -> tuple[float, int]:
        values = [0.5, 1.5] * int(k)
        values.append(x.sum().item())
        return sum(values), len(values)

    agree(longest, vectors(5, 1, 2, 7), (dyn(0),))
    agree(groups, vectors(5, 1, 0, 7), (dyn(0),))
    given = [(x, torch.tensor(k)) for (x,), k in zip(vectors(3, 2, 4, 1), (2, 0, -1, 5), strict=True)]
    agree(pairs, given, (dyn(0), None), paths=1)


@row(26, 48)
def test_a_tensor_is_not_repeated_as_often_as_something_has() -> None:
    def model(x: Tensor) -> Tensor:
        sums = [torch.zeros(2)] * len(x)
        sums[0] += x[0]
        return torch.stack(sums)

    refuses(model, (torch.ones(3),), (dyn(0),))


@row(47)
def test_sums_of_flags_and_of_small_integers() -> None:
    def flags(x: Tensor) -> Tensor:
        return torch.tensor(sum([bool(v > 1) for v in x]))

    def small(x: Tensor) -> Tensor:
        return sum([v * 2 for v in x.to(torch.int32)]) + sum(x.to(torch.uint8))

    agree(flags, values([1.0, 2.0, 3.0], [4.0]), (dyn(0),), paths=1)
    agree(small, values([1.0, 2.0, 3.0], [4.0]), (dyn(0),), paths=1)


@pytest.mark.slow
@row(26, 3)
def test_names_that_inputs_of_subgraphs_have_too() -> None:
    def model(x: Tensor) -> tuple[Tensor, ...]:
        captured = state = written = iteration = x.sum()
        rows, more, others = [], [], []
        index = torch.arange(len(x))
        while len(x) > 0:
            best = x.argmax()
            if x[best] < 0.1:
                break
            rows.append(index[best])
            more.append(x[best])
            others.append(x[best] * 2)
            kept = torch.arange(len(x)) != best
            x, index = x[kept], index[kept]
            captured, state = captured + best, state * 2
            written, iteration = written - 1, iteration + 1
        length = len(rows)
        stacked = torch.stack(rows) if rows else torch.zeros(0, dtype=torch.int64)
        total = sum(more) + sum(others) if more else torch.zeros(())
        return captured, state, written, iteration, stacked, total, x, torch.tensor(length)

    agree(model, [(torch.tensor(v),) for v in ([0.9, 0.5, 0.05], [0.0], [0.3, 0.2, 0.4, 0.8], [])], (dyn(0),), paths=2)


@row(26, 48)
def test_a_list_of_a_tensor_is_born_where_it_is_made() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        labels = torch.full((x.shape[0],), -1)
        taken = 0
        for i in range(x.shape[0]):
            near = (x >= x[i]).nonzero().flatten().tolist()
            while near:
                j = near.pop(0)
                if labels[j] == -1:
                    labels[j] = i
                    taken += 1
        return labels, taken

    agree(model, [(torch.tensor(v),) for v in ([1.0, 3.0, 2.0, 0.0], [2.0], [1.0, 1.0, 5.0])], (dyn(0),))
