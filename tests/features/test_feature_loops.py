"""Rows 3 to 7, 15 to 17 and 20: loops, their targets, and variables that they make or change in shape."""

# ruff: noqa: B007, B905, PLW2901, SIM108 - the constructs under test are written as users write them
from __future__ import annotations

import pytest
import torch
from harness import agree, agree_or_refuse, dyn, refuses, row, scalars, tables, vectors
from torch import Tensor, nn

import dy2st

COUNTS = scalars(3, 0, 1, 2, 7)


@row(3, 21)
def test_while() -> None:
    def model(x: Tensor, limit: Tensor) -> tuple[Tensor, int, float]:
        steps, weight = 0, 1.0
        while x.abs().sum() < limit:
            x = x * 2 + weight
            weight = weight / 2
            steps += 1
        return x, steps, weight

    x = torch.tensor([0.5, -0.25])
    inputs = [(x, torch.tensor(limit)) for limit in (100.0, 0.0, 1.0, 4.0)] + [(torch.ones(3), torch.tensor(4.0))]
    agree(model, inputs, (dyn(0), None), paths=4)


@row(3, 48)
def test_while_with_lazy_test_and_python_counter() -> None:
    def model(x: Tensor, tolerance: Tensor) -> tuple[Tensor, int]:
        steps = 0
        while steps < 8 and not (x.abs() < tolerance).all():
            x = x / 3
            steps += 1
        return x, steps

    inputs = [(x, torch.tensor(t)) for (x,), t in zip(vectors(3, 2, 1, 4), (0.1, 9.0, 1e-9, 0.01), strict=True)]
    agree(model, inputs, (dyn(0), None), paths=4)


@row(3)
def test_while_in_while_with_ifs_and_parameters() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.outer = nn.Linear(3, 3, bias=False), nn.Linear(3, 3)

        def forward(self, x: Tensor, rounds: Tensor) -> tuple[Tensor, Tensor]:
            total = torch.zeros((), dtype=torch.int64)
            while rounds > 0:
                y = self.outer(x)
                while y.norm() > 0.5:
                    y = self.inner(y) * 0.5
                    if y.sum() > 0:
                        y = y - 0.1
                        total = total + 1
                x = x + y
                rounds = rounds - 1
            return x, total

    inputs = [(2 * torch.randn(batch, 3), torch.tensor(n)) for batch, n in ((2, 3), (3, 0), (1, 1), (2, 5))]
    agree(Model(), inputs, (dyn(0), None), paths=3)


@row(4, 16)
def test_for_over_range_of_tensor_and_of_int_of_tensor() -> None:
    def model(x: Tensor, n: Tensor) -> tuple[Tensor, Tensor, int]:
        for i in range(n):
            x = x + i
        y, last = x, -1
        for last in range(int(n)):
            y = y * 0.5 - last
        return x, y, last

    agree(model, [(torch.ones(size), n) for size, (n,) in zip((2, 3, 1, 4, 2), COUNTS, strict=True)], (dyn(0), None))


@row(4)
def test_for_over_range_of_dynamic_size() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        total = torch.zeros(x.shape[1])
        for i in range(x.shape[0]):
            total = total * 0.9 + x[i]
        best = torch.zeros(())
        for j in range(1, len(x), 2):
            best = torch.maximum(best, x[j].max() + j)
        for k in range(x.size(0) - 1, -1, -1):
            total = total + x[k] * k
        return total, best

    agree(model, tables((4, 3), (2, 2), (1, 3), (0, 2), (7, 1)), (dyn(0, 1),), paths=4)


@row(4)
def test_range_with_start_and_stop_from_tensors() -> None:
    def model(x: Tensor, start: Tensor, stop: Tensor) -> tuple[Tensor, int]:
        i = -1
        for i in range(start, stop, 2):
            x = x * 2 + i
        for j in range(int(stop), int(start) - 3, -2):
            x = x - j
        return x, i

    bounds = [(0, 6), (0, 0), (5, 0), (1, 2), (-2, 3), (3, -3)]
    agree(model, [(torch.ones(2), *map(torch.tensor, numbers)) for numbers in bounds], paths=4)


@row(4)
def test_range_with_step_from_a_tensor() -> None:
    def model(x: Tensor, stop: Tensor, step: Tensor) -> Tensor:
        for i in range(0, stop, step):
            x = x * 2 + i
        return x

    steps = [(6, 2), (0, 1), (-5, -2), (2, 5), (3, -1)]
    agree_or_refuse(model, [(torch.ones(2), *map(torch.tensor, numbers)) for numbers in steps], paths=3)


@row(4)
def test_reassigning_the_loop_variable_or_the_bound_changes_no_iteration() -> None:
    def model(x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
        for i in range(int(n)):
            i = i * 2
            n = n + 1
            x = x + i
        return x, n

    agree(model, [(torch.zeros(2), n) for (n,) in COUNTS], paths=5)


@row(5)
def test_for_over_rows() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        total = torch.zeros(x.shape[1])
        for line in x:
            if line.sum() > 0:
                total = total + line
        product = torch.ones(())
        for element in x[:, 0]:
            product = product * element
        return total, product

    agree(model, tables((3, 2), (0, 2), (1, 3), (2, 4), (6, 1)), (dyn(0, 1),), paths=5)


@row(5, 7)
def test_rows_in_rows_and_views() -> None:
    def model(x: Tensor) -> Tensor:
        total = torch.zeros(())
        for line in x:
            for element in line:
                if element > 0:
                    total = total + element
                else:
                    total = total * 0.5
        for column in x.t():
            total = total + column.prod()
        for half in x.flatten().split(2):
            total = total - half.max()
        return total

    agree(model, tables((2, 2), (2, 2), (2, 2)), paths=2)

    def dynamic(x: Tensor) -> Tensor:
        total = torch.zeros(())
        for line in x:
            for element in line:
                if element > 0:
                    total = total + element
                else:
                    total = total * 0.5
        for column in x.t():
            total = total + column.sum()
        return total

    agree(dynamic, tables((2, 3), (3, 2), (1, 1), (0, 2), (2, 0), (4, 5)), (dyn(0, 1),), paths=5)


@pytest.mark.slow
@row(6, 7)
def test_enumerate_zip_and_reversed() -> None:
    def model(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, int]:
        total, last = torch.zeros(x.shape[1]), 0
        for i, line in enumerate(x):
            total = total + i * line
        for i, line in enumerate(y, 3):
            total = total - line / i
            last = i
        product = torch.zeros(x.shape[1])
        for a, b in zip(x, y):
            product = product + a * b
        for a, b in zip(reversed(x), y):
            product = product * 0.5 - a * b
        for i, (a, b) in enumerate(zip(x, reversed(y)), start=1):
            product = product + i * (a - b)
        return total, product, last

    inputs = [tables((n, k), (m, k)) for n, m, k in ((3, 4, 2), (2, 2, 1), (1, 3, 2), (0, 2, 2), (5, 0, 3), (5, 2, 2))]
    agree(model, [(a[0], b[0]) for a, b in inputs], (dyn(0, 1), dyn(0, 1)), paths=6)


@row(7)
def test_reversed_range_and_zip_of_range_with_rows() -> None:
    def model(x: Tensor, n: Tensor) -> Tensor:
        total = torch.zeros(())
        for i in reversed(range(int(n))):
            total = total * 2 + i
        for i, line in zip(range(x.shape[0]), x):
            total = total + line.sum() * i
        for i, j in zip(range(int(n)), range(10)):
            total = total + i * j
        return total

    agree(
        model,
        [(*x, *n) for x, n in zip(tables((2, 2), (3, 1), (1, 2), (0, 2), (4, 2)), COUNTS, strict=True)],
        (dyn(0, 1), None),
    )


@row(15)
def test_variable_born_in_a_loop_that_is_proven_to_run() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        total = torch.zeros(())
        for element in x:
            square = element * element
            if square > 1:
                small = square - 1
                total = total + small
        steps = 0
        while True:
            y = x.sum() / (steps + 1)
            steps += 1
            if y < 1:
                break
        return total, y

    agree(model, vectors(3, 0, 1, 2, 6, scale=3), (dyn(0),), paths=4)


@row(15)
def test_variable_born_in_a_loop_and_read_after_it() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        for element in x:
            square = element * element
        return x.sum(), square

    # With no row, eager raises; the program has to be refused, or must know that there is a row.
    agree_or_refuse(model, vectors(3, 1, 2, 6), (dyn(0),), paths=4)


@row(16)
def test_loop_variable_after_the_loop() -> None:
    def model(x: Tensor, limit: Tensor) -> tuple[int, int, Tensor, Tensor]:
        i = -5
        for i in range(x.shape[0]):
            if x[i] > limit:
                break
        j, line = 100, torch.zeros(())
        for j, line in enumerate(x):
            if j == 1:
                break
        k = 7
        for k in range(2, 2 + 3 * x.shape[0], 3):
            pass
        return i, j, line, x * k

    cases = [([3.0, 4.0, 5.0], 3.5), ([3.0, 4.0], 9.0), ([], 0.0), ([1.0], 0.0), ([1.0, 2.0, 3.0, 4.0], 3.0)]
    agree(model, [(torch.tensor(x), torch.tensor(t)) for x, t in cases], (dyn(0), None), paths=4)


@row(9, 16)
def test_a_loop_target_that_is_assigned_behind_a_continue() -> None:
    def ranges(x: Tensor) -> tuple[int, ...]:
        for i in range(4):
            if x.sum() < i:
                continue
            i = 1
        for q in range(3):
            for r in range(2):
                if x[0] > r:
                    continue
                r = q + 5
            if x[0] < q:
                continue
            q = r
        return i, q, r

    agree(ranges, [(torch.tensor([v]),) for v in (-2.25, 0.3, 0.7, 1.2, 2.2, 3.4, 6.0)], (dyn(0),))


@row(9, 16)
def test_a_loop_over_a_list_whose_target_is_assigned_behind_a_continue() -> None:
    def lists(x: Tensor) -> tuple[int, ...]:
        k = 0
        for a, b in [(1, 2), (3, 4), (5, 6)]:
            if x.sum() > a:
                k = k + b
                continue
            a, b = b, a
            k = k + 1
        for j in [3, 1, 2]:
            if x.sum() > 5:
                break
            if x.sum() > j:
                continue
            j = j * 10
        else:
            j = j + 100
        return a, b, k, j

    agree(lists, [(torch.tensor([v]),) for v in (-2.25, 0.3, 0.7, 1.2, 2.2, 3.4, 6.0)], (dyn(0),))


@row(9, 16)
def test_a_loop_over_rows_whose_target_is_assigned_behind_a_continue() -> None:
    def rows(x: Tensor) -> tuple[Tensor, int]:
        for t in x.repeat(3):
            if t > 1:
                continue
            t = t - 1
            if t < -2:
                break
        for u in dy2st.unrolled(range(3)):
            if x[0] > 3:
                break
            if x[0] > u:
                continue
            u = 7
        return t, u

    agree(rows, [(torch.tensor([v]),) for v in (-2.25, 0.3, 0.7, 1.2, 2.2, 3.4, 6.0)], (dyn(0),), whole=False)


@row(17)
def test_none_before_a_loop() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        state = None
        for line in x:
            state = line if state is None else state * 0.5 + line
        best = None
        for i in range(1, x.shape[0]):
            if x[i].sum() > 0:
                best = x[i] - x[i - 1]
        if best is None:
            best = torch.zeros(x.shape[1])
        if state is None:
            return best, best
        return state, best

    agree_or_refuse(model, tables((3, 2), (1, 2), (0, 3), (2, 2), (5, 1)), (dyn(0, 1),), paths=4)


@row(17)
def test_none_on_one_arm() -> None:
    def model(x: Tensor) -> Tensor:
        mask = None
        if x.sum() > 0:
            mask = x > 0
        y = x * 2
        if mask is not None:
            y = torch.where(mask, y, 0.0)
        return y

    agree_or_refuse(model, [(sign * x,) for (x,) in vectors(3, 1, 4) for sign in (1, -1)], (dyn(0),), paths=2)


@row(20)
def test_shapes_grow_in_loops() -> None:
    def model(x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
        y = x
        while y.shape[0] < n:
            y = torch.cat([y, y[-1:] * 2, x])
        z = torch.zeros(0, 2)
        for line in y:
            if line.sum() > 0:
                z = torch.cat([z, line[None]])
        return y, z

    cases = [((2, 2), 9), ((3, 2), 3), ((1, 2), 2), ((2, 2), 4)]
    agree_or_refuse(model, [(*tables(size)[0], torch.tensor(n)) for size, n in cases], (dyn(0), None), paths=4)


@row(20)
def test_shapes_shrink_in_loops() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        taken = torch.zeros(())
        while x.shape[0] > 2:
            taken = taken + x[0] * x.shape[0]
            x = x[1:-1]
        return x, taken

    agree_or_refuse(model, vectors(7, 2, 3, 0, 1, 4), (dyn(0),), paths=3)


@row(20)
def test_rank_that_changes_is_refused() -> None:
    def model(x: Tensor, n: Tensor) -> Tensor:
        for _ in range(int(n)):
            x = x[None]
        return x

    refuses(model, (torch.ones(2), torch.tensor(2)))


@pytest.mark.slow
@row(4, 48)
def test_pieces_of_a_counters_width_have_that_size() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        x = x.clone()
        state = torch.zeros(x.shape[0], 1)
        for t in range(x.shape[1]):
            state = state + x[:, t : t + 1]
            x[:, t : 1 + t] -= state
            if state.sum() > 3:
                break
        for t in range(1, x.shape[1] - 1):
            state = torch.cat([state, x[:, t - 1 : t + 2].sum(1, keepdim=True)])
        return state, x

    agree(model, [(torch.rand(2, n) * 2,) for n in (4, 0, 1, 3, 7)], ({1: dyn(1)[1]},), paths=3)


@row(4, 48)
def test_pieces_at_the_end_are_as_short_as_in_eager() -> None:
    def model(x: Tensor) -> Tensor:
        total = torch.zeros(())
        for t in range(x.shape[0]):
            total = total * 0.5 + x[t : t + 3].sum() + x[t - 1 : t + 1].sum() * x[t:].shape[0]
        return total

    agree(model, [(torch.rand(n),) for n in (4, 0, 1, 2, 7)], (dyn(0),), paths=2)


@pytest.mark.slow
@row(3, 48)
def test_pieces_in_a_while_loop_are_whole_or_the_program_fails() -> None:
    def model(x: Tensor) -> Tensor:
        state, t = torch.zeros(x.shape[0], 2), 0
        while t < x.shape[1]:
            state = state + x[:, t : t + 2]
            if state.sum() > 3:
                break
            t += 2
        return state

    agree(model, [(torch.rand(2, n),) for n in (4, 0, 2, 8)], ({1: dyn(1)[1]},), paths=3)
    # Where the last piece is narrower, and broadcast.
    agree(model, [(torch.rand(2, n) / 9,) for n in (4, 3, 1)], ({1: dyn(1)[1]},), paths=1, whole=False)

    cell = nn.GRUCell(2, 2)

    def recurrent(x: Tensor) -> Tensor:
        state, t = torch.zeros(x.shape[0], 2), 0
        while t < x.shape[1]:
            state = cell(x[:, t : t + 2], state)
            if state.sum() > 3:
                break
            t += 2
        return state

    agree(recurrent, [(torch.rand(2, n),) for n in (4, 0, 2, 8)], ({1: dyn(1)[1]},), whole=False)
    program = dy2st.export(recurrent, (torch.rand(2, 4),), dynamic_shapes=({1: dyn(1)[1]},)).module()
    # Where the last piece is narrower, which eager's cell does not take.
    with pytest.raises(RuntimeError, match="pieces that lie inside of the tensor"):
        program(torch.zeros(2, 3))
