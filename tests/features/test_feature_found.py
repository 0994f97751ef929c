"""Programs that random generation has found to go wrong, shrunk."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import onnxruntime
import pytest
import torch
from harness import agree, agree_or_refuse, dyn, refuses, row
from torch import Tensor, nn
from torch.nn import functional

import dy2st
import dy2st.onnx


def test_one_program_is_written_twice() -> None:
    def model(x: Tensor) -> Tensor:
        while x.sum() < 9:
            x = torch.cat([x, x])
        return x

    program = dy2st.export(model, (torch.ones(2),), dynamic_shapes=(dyn(0),))
    first, second = dy2st.onnx.export(program), dy2st.onnx.export(program)
    kinds = [[node.op_type for node in made.model_proto.graph.node] for made in (first, second)]
    assert kinds[0] == kinds[1]


@row(59)
def test_sizes_one_by_one() -> None:
    def model(x: Tensor) -> Tensor:
        count = int((x > 0).sum())
        y = torch.zeros(count, 2)
        if count > 1:
            y = x.new_ones(count, 2)
        return y

    agree(model, [(torch.tensor([1.0, -1.0]),), (torch.tensor([1.0, 2.0]),), (-torch.ones(2),)])


@row(31)
def test_a_plain_tensor_of_the_module_is_not_changed_in_place() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.state = torch.tensor(0.5)

        def forward(self, x: Tensor) -> Tensor:
            if x.sum() > 0:
                self.state.copy_(x.sum())
            return self.state + 1

    refuses(Model(), (torch.ones(3),))


@row(22)
def test_the_second_operand_may_fail_where_the_first_is_false() -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() != 0 and x.max() > 1:
            x = x + 1
        return x

    agree(model, [(torch.tensor([1.0, 2.0]),), (-torch.ones(2),), (torch.zeros(0),)], (dyn(0),))


@row(29, 24)
def test_a_list_of_the_module_grows_in_an_arm() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.log: list[Tensor] = []

        def forward(self, x: Tensor) -> Tensor:
            self.log = [x.sum()]
            if x.sum() > 0:
                self.log += [x.max(), x.min()]
            return torch.stack(self.log)

    agree(Model(), [(torch.ones(2),), (-torch.ones(2),)])


@row(31)
def test_an_arm_that_is_a_view_of_what_changes_later() -> None:
    def model(x: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
        chosen = torch.zeros(()) if x.sum() > 0.5 else r[0]
        r += 1
        return r, chosen * 2

    refuses(model, (torch.ones(3), torch.tensor([1.0, 2.0])))


@row(31, 3)
def test_a_carried_tensor_that_is_an_argument_at_first() -> None:
    def model(x: Tensor, n: Tensor) -> Tensor:
        count = torch.tensor(3)
        while count > 0:
            count = count - 1
            n -= 1
            n = n * 2
        return x + 1

    refuses(model, (torch.ones(3), torch.tensor(4)))

    def own(x: Tensor) -> Tensor:
        y = x.clone()
        while y.sum() < 20:
            y += 1
            y = y * 2
        return y - x

    agree(own, [(torch.ones(3),), (torch.full((3,), 9.0),)])


@row(29, 31)
def test_constants_are_not_written_to_in_loops() -> None:
    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.h = torch.zeros(2)

        def forward(self, x: Tensor) -> Tensor:
            for _ in range(len(x)):
                self.h[1] = 2.0
            return self.h

    refuses(Constant(), (torch.ones(3),), (dyn(0),))


@row(31, 47)
def test_the_sum_of_nothing_is_its_start() -> None:
    def model(x: Tensor, s: Tensor) -> Tensor:
        total = sum([1 for _ in x], s)
        total -= 1
        return s

    refuses(model, (torch.ones(3), torch.ones(())), (dyn(0), None))

    def read(x: Tensor, s: Tensor) -> Tensor:
        return sum([1 for _ in x], s) + sum(x, s)

    agree(read, [(torch.rand(n), torch.tensor(2.0)) for n in (3, 0, 1)], (dyn(0), None), paths=1)


@row(48)
def test_sums_of_sizes_in_an_arm() -> None:
    def model(m: Tensor, r: Tensor) -> Tensor:
        if m.sum() > 0:
            joined = torch.cat([r.unsqueeze(0), m], dim=0)
            assert joined.numel() < 1000, "too large"
            r = joined.sum(0)
        return r * 2

    inputs = [(torch.rand(n, 2) * sign, torch.rand(2)) for n, sign in ((3, 1), (2, -1), (1, 1))]
    agree(model, inputs, (dyn(0), None), paths=2)


@row(31)
def test_what_only_one_path_needs_is_itself() -> None:
    def model(v: Tensor, s: Tensor) -> Tensor:
        for e in [s, s]:
            if e > 0.25:
                return v + 1
        e.copy_(s * s)
        return v * 2

    agree(model, [(torch.ones(2), torch.tensor(value)) for value in (-1.25, 2.0)], paths=2)


@row(31)
def test_views_of_what_a_region_around_changes() -> None:
    def model(m: Tensor) -> Tensor:
        c = torch.tensor(2)
        m -= 1
        m -= 1
        while c > 0:
            c = c - 1
            for e in m:
                if m.sum() >= 0:
                    m -= 1
                else:
                    m -= e.sum()
        return m

    given = [[[1.25, 1.5], [2.0, 1.25]], [[9.0, 8.0]], [[4.0, 4.0], [1.0, 1.0], [2.0, 2.0]]]
    agree(model, [(torch.tensor(value),) for value in given], (dyn(0),), paths=2)


@row(31)
def test_tensors_that_change_places_in_a_loop() -> None:
    def model(v: Tensor) -> tuple[Tensor, Tensor]:
        a, b = v[0] * 2, v[-1] * 3
        state = {"a": v[0] * 5, "b": v[0] * 7}
        for e in v:
            a, b = b, a
            state["a"], state["b"] = state["b"], state["a"]
            a += e
            state["a"] += e
        return a - b, state["a"] - state["b"]

    agree(model, [(torch.rand(n),) for n in (1, 2, 5)], (dyn(0),))


@row(31)
def test_an_input_that_a_later_iteration_changes() -> None:
    class State:
        pass

    def swapped(v: Tensor, s: Tensor) -> Tensor:
        y = v[-1] * s
        for _ in v:
            s, y = y, s
            s.add_(1)
        return s + y

    def attributes(v: Tensor, s: Tensor) -> Tensor:
        state = State()
        state.h, state.g = s, s * 2
        for _ in v:
            state.h, state.g = state.g, state.h
            state.h.add_(1)
        return state.h

    def items(v: Tensor, s: Tensor) -> Tensor:
        first = s * 2
        state = [first, s * 3]
        for _ in v:
            state[1].add_(1)
            state[0], state[1] = state[1], state[0]
        return state[0] + first

    for model in (swapped, attributes, items):
        refuses(model, (torch.ones(3), torch.tensor(2.0)), (dyn(0), None))


@row(29, 30)
def test_variables_of_closures_and_early_returns() -> None:
    def model(v: Tensor, s: Tensor) -> tuple[Tensor, int, int]:
        def branches() -> int:
            nonlocal s
            s = s * 1.5
            if v.sum() > 3:
                s = s + 1
            elif v.sum() > 1:
                s = s * 2
                return -1
            else:
                s = s * 3
                if v.sum() > 0.5:
                    return 3
                s = s * 7
            return 1

        def loops() -> int:
            nonlocal s
            for e in v:
                s = s + 1
                if e > 1.4:
                    s = s * 2
                    return -1
                if e > 1.2:
                    s = s * 3
                    break
                s = s + 3
            return 1

        first, second = branches(), loops()
        return s, first, second

    given = ([1.25, 1.5, 3.0], [0.2, 3.0, 1.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, 0.7], [1.3, 0.0])
    agree(model, [(torch.tensor(value), torch.tensor(2.0)) for value in given], (dyn(0), None), paths=4)


TOTAL = torch.zeros(())


@row(29)
def test_globals_and_early_returns() -> None:
    def model(v: Tensor) -> Tensor:
        def inner() -> int:
            global TOTAL  # noqa: PLW0603
            for e in v:
                TOTAL = TOTAL + 1
                if e > 1.4:
                    TOTAL = TOTAL * 2
                    return -1
                TOTAL = TOTAL + 3
            return 1

        global TOTAL  # noqa: PLW0603
        TOTAL = v.sum()
        inner()
        result, TOTAL = TOTAL, torch.zeros(())
        return result

    agree(model, [(torch.tensor(v),) for v in ([1.25, 1.5, 3.0], [0.2, 1.0], [3.0])], (dyn(0),), paths=2)


@row(32, 29)
def test_a_list_that_only_a_closure_in_the_loop_reads() -> None:
    def model(m: Tensor) -> Tensor:
        count = m.sum().long()
        while count > 0:
            count = count - 1
            kept = [e.sum() for e in m if e.sum() != 1.0]

            def length() -> int:
                return len(kept)  # noqa: B023

            count = count - length()
        return count

    agree(model, [(torch.tensor(v),) for v in ([[1.0, 2.0], [2.0, 3.0]], [[0.5, 0.5], [3.0, 1.0]])], (dyn(0),))


@row(26, 59)
def test_what_an_arm_knows_of_sizes_holds_at_its_end_only() -> None:
    def model(m: Tensor) -> tuple[Tensor, int]:
        rows = [e for e in m if e.sum() > 0.25]
        if rows:
            rows.pop()
        y = torch.stack(rows) if rows else torch.zeros(0, 2)
        return y.flip(0), len(rows)

    given = ([[1.0, 1.0]], [[-1.0, 1.0]], [[-1.0, 1.0], [3.0, 1.0], [0.0, 1.0], [2.0, 3.0]])
    agree(model, [(torch.tensor(value),) for value in given], (dyn(0),), paths=2)


@row(31)
def test_a_part_of_a_parameter_is_changed_in_place() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.tensor([0.5, -1.5]))

        def forward(self, v: Tensor) -> tuple[Tensor, Tensor]:
            a, b = self.scale
            b += v.sum()
            result = v + self.scale
            b -= v.sum()
            if v.sum() > 0:
                a = a + 1
            return result, a

    with torch.no_grad():
        agree(Model(), [(torch.ones(2),), (-torch.ones(2),)], paths=2)


@row(33, 20)
def test_a_float_made_of_sizes_in_a_loop_and_a_branch() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        half = x.shape[0] / 2
        y = x.sum()
        while y < 4:
            y = y + half
        z = x * half if y > 5 else x
        return y, z

    agree(model, [(torch.tensor(v),) for v in ([3.0, 2.0], [1.0], [0.5, 0.5, 0.5])], (dyn(0),), paths=3)


@row(11, 24)
def test_a_list_that_is_returned_on_one_path_and_grows_on_the_others() -> None:
    def solve(x: Tensor, most: int) -> tuple[Tensor, int, list[Tensor]]:
        history = [x]
        for step in range(most):
            if x.abs() < 0.1:
                return x, step, history
            x = x * 0.5
            history.append(x)
        return x, most, history

    def model(x: Tensor) -> tuple[Tensor, int, Tensor]:
        found, steps, history = solve(x, 8)
        return found, steps, torch.stack(history)

    agree(model, [(torch.tensor(v),) for v in (0.05, 1.0, 3.0, 100.0)], paths=2)


@row(31)
def test_a_list_that_is_returned_and_changed_by_the_caller_is_refused() -> None:
    def grown(x: Tensor, rows: list[Tensor]) -> list[Tensor]:
        while x.sum() > 1:
            x = x / 2
            if x[0] > 3:
                return rows
            rows.append(x)
        return rows

    def model(x: Tensor) -> Tensor:
        rows = [x]
        same = grown(x, rows)
        rows.append(x * 2)
        return torch.stack(same)

    refuses(model, (torch.ones(2),))


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


@row(22)
def test_an_operand_in_an_operand_may_fail() -> None:
    def model(v: Tensor, y: Tensor) -> Tensor:
        if (z := y[0]) <= 0 and (v.max() > 0.5 and (v > 1.0).any()):
            v = v + z
        return v * 2

    given = [([1.0, 2.0], -1.0), ([], 1.0), ([0.2], -1.0), ([3.0], 2.0)]
    agree(model, [(torch.tensor(v), torch.tensor([y])) for v, y in given], (dyn(0), None), paths=2)


@row(17, 11)
def test_a_case_that_a_test_has_excluded_in_what_is_returned() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        best, count = None, 0
        for value in x:
            if value > 0:
                best = value * 2
                count += 1
        if best is None:
            return torch.zeros(()), 0
        return best, count

    agree(model, [(torch.tensor(v),) for v in ([1.0, -1.0], [-1.0], [2.0, 3.0], [])], (dyn(0),), paths=2)


@row(12, 13)
def test_a_variable_that_is_set_before_a_jump_in_a_later_arm() -> None:  # noqa: C901  three models
    def unrolled(x: Tensor) -> Tensor:
        for _ in range(3):
            if x[0] > 4:
                new = x - 1
            elif x[0] > 1:
                new = x * 2
            else:
                x = x + 5
                continue
            x = new
        return x

    def staged(x: Tensor) -> tuple[Tensor, int]:
        steps = 0
        while x.sum() < 40:
            steps += 1
            if x[0] <= x[1] < x[0] + 2:
                new = x + 1
            elif x[0] > 9:
                x = x * 5
                break
            else:
                if x[1] < 1:
                    new = x + 3
                else:
                    x = x * 2
                    continue
            x = new
        return x, steps

    def returning(x: Tensor) -> Tensor:
        for _ in range(4):
            if x[0] > 4:
                new = x - 1
            elif x[0] > 1:
                x = x * 3
                return x + 1
            else:
                new = x + 0.5
            x = new
        return x

    given = ([0.0, 1.0], [5.0, 1.0], [2.0, 8.0], [12.0, 1.0], [0.3, -2.0])
    for each in (unrolled, staged, returning):
        agree(each, [(torch.tensor(v),) for v in given], paths=3)


@row(17, 29)
def test_a_case_that_a_test_has_excluded_in_a_tuple_of_an_attribute() -> None:
    class State:
        pass

    def model(x: Tensor) -> tuple[Tensor, int]:
        state = State()
        state.best = (None, 0)
        for value in x:
            if value > 0:
                state.best = (value * 2, state.best[1] + 1)
        if state.best[0] is None:
            state.best = (torch.zeros(()), 0)
        return state.best[0] + 1, state.best[1]

    agree(model, [(torch.tensor(v),) for v in ([1.0, -1.0], [-1.0], [2.0, 3.0], [])], (dyn(0),), paths=2)


@row(31, 59)
def test_the_number_of_elements_of_a_view_that_an_arm_writes_to_in_a_loop() -> None:
    def model(x: Tensor) -> Tensor:
        left = x.sum(1)[x.sum(1) > 0]
        total = x.sum() * 0
        while left.numel() != 0:
            left = left[:-1]
            if x.sum() > 4:
                left.mul_(2)
            else:
                total = total + left.sum()
        return total

    agree(model, [(torch.tensor([[v, 1.0] for v in rows]),) for rows in ([1, 2, 3], [-2, 0.5], [-2.0])], (dyn(0),))


@row(4)
def test_masks_of_two_slices_that_shrink_together() -> None:
    def model(x: Tensor, y: Tensor) -> Tensor:
        pairs = torch.zeros((), dtype=torch.int64)
        for i in range(x.shape[0]):
            pairs = pairs + ((x[i] < x[i + 1 :]) & (y[i] < y[i + 1 :])).sum()
        return pairs

    given = [([1.0, 2.0, 3.0], [3.0, 4.0, 1.0]), ([1.0], [2.0]), ([2.0, 1.0, 5.0, 3.0], [0.0, 1.0, 2.0, 1.5])]
    agree(model, [(torch.tensor(x), torch.tensor(y)) for x, y in given], (dyn(0), dyn(0)))


@row(27, 31)
def test_one_arm_replaces_what_the_other_changes_in_place() -> None:
    @dataclass
    class State:
        x: Tensor
        n: int

    def longer(x: Tensor) -> tuple[int, Tensor]:
        made = [x, x * 2]
        if x.sum() > 3:
            made = [x + 1, x]
        else:
            made.append(x * 3)
            made[0] = x * 4
        return len(made), sum(made)

    def nested(x: Tensor) -> Tensor:
        found = {"a": x, "b": x * 2}
        both = (x, found)
        if x.sum() > 3:
            found = {"a": x + 1, "b": x}
            both = (x * 7, found)
        else:
            found["a"] = x * 4
        return found["a"] + both[1]["a"] * 100 + both[0]

    def looping(x: Tensor) -> Tensor:
        state = State(x, 0)
        while x.sum() > 3:
            if x.max() > 4:
                state = State(x + 1, state.n + 3)
            else:
                state.x = x * 4
                state.n += 1
            x = x * 0.75
        return state.x + state.n

    def returned(x: Tensor) -> tuple[Tensor, int]:
        def either(made: list[Tensor]) -> list[Tensor]:
            if x.sum() > 3:
                made.append(x * 2)
                return made
            return [x, x]

        made = [x + 1]
        chosen = either(made)
        return chosen[0] * 2 + chosen[1], len(made)

    given = [(torch.tensor(v),) for v in ([1.0, 2.0], [0.0, 1.0, 4.0, 2.0], [0.0, 1.0, 9.0, 2.0], [])]
    for model in (longer, nested, looping, returned):
        agree(model, given, (dyn(0),))


@row(31)
def test_a_change_of_what_the_first_iteration_shares_with_another_variable() -> None:
    @dataclass
    class State:
        x: Tensor

    def shared(x: Tensor) -> Tensor:
        state = best = State(x)
        while x.sum() > 3:
            state.x = state.x * 2
            if state.x.max() > 6:
                best = State(state.x + 1)
                state = State(x)
            x = x * 0.75
        return best.x + state.x

    def swapped(x: Tensor) -> Tensor:
        a, b = [x], [x * 2]
        while x.sum() > 3:
            a[0] = a[0] + 1
            b[0] = b[0] * 0.5
            a, b = b, a
            x = x * 0.75
        return a[0] * 10 + b[0]

    def equal_ones(x: Tensor) -> Tensor:
        first, second = {"k": 1}, {"k": 1}
        chosen = first if x.sum() > 3 else second
        chosen["k"] = 5
        return x + first["k"] * 10 + second["k"] * 100

    given = [(torch.tensor(v),) for v in ([1.0, 1.0, 1.5], [0.0, 1.0, 9.0, 2.0], [1.0, 2.0])]
    assert refuses(shared, given[0], (dyn(0),)).code == "D2S222"
    assert refuses(equal_ones, given[0], (dyn(0),)).code == "D2S222"
    agree(swapped, given, (dyn(0),))


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


@row(27, 48)
def test_rows_written_in_a_loop_inside_a_loop() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        rows = torch.zeros(x.shape[0])
        total = torch.zeros(())
        for _ in range(4):
            for j in range(x.shape[0]):
                rows[j] = x[j].abs() + total
            total = total + rows.sum()
            if total > 3:
                break
        return rows, total

    agree(model, [(torch.tensor(v),) for v in ([1.0, 3.0, 2.0, 0.0], [0.2], [0.5, 0.1, -0.3])], (dyn(0),))


@row(31)
def test_elements_of_a_list_in_an_order_that_the_graph_finds_are_not_changed() -> None:
    def in_order(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        least, _ = sorted([x.sum(), y], key=lambda each: -each)
        least.add_(5)
        return least, y

    def in_place(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        total = x.sum()
        both = [total, y]
        both.sort(key=lambda each: -each)
        total.add_(5)
        return both[0], both[1]

    for model in (in_order, in_place):
        assert refuses(model, (torch.ones(2), torch.tensor(9.0))).code == "D2S221"


@row(31)
def test_a_value_after_a_loop_that_was_another_one_before_it_is_not_changed_in_place() -> None:
    def swapped(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        a, b = x[0], x.sum(0) * 2
        for _ in range(x.shape[0]):
            a, b = b, a
        b -= 5
        return x, a, b

    def fresh(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        a, b = x.sum(0), x.sum(0) * 2
        for _ in range(x.shape[0]):
            a, b = b, a * 0.5
        a = a * 3
        a -= 5
        return x, a, b

    assert refuses(swapped, (torch.ones(2, 2),), (dyn(0),)).code == "D2S221"
    agree(fresh, [(torch.rand(n, 2),) for n in (2, 3, 1)], (dyn(0),), paths=1)


@row(8, 24)
def test_a_list_that_is_appended_to_and_replaced_before_a_break() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        made = [x]
        for i in range(3):
            made.append(x * i)
            if made[i].sum() > 4:
                made = made[1:]
                break
            if made[i].max() > 1.2:
                made[0] = made[0] * 2
        return torch.stack(made).sum(0), len(made)

    given = [(torch.tensor(v),) for v in ([1.0, 2.0], [0.0, 1.0, 4.0, 2.0], [1.0, 1.0, 1.5], [-4.0, 1.0, 1.0])]
    agree(model, given, (dyn(0),), paths=3)


@row(30)
def test_an_object_that_one_arm_makes_is_refused_with_what_helps() -> None:
    class State:
        def __new__(cls, x: Tensor) -> Self:
            made = object.__new__(cls)
            made.x = x  # type: ignore[attr-defined]
            return made

    def model(x: Tensor) -> Any:
        state = State(x)
        if x.sum() > 3:
            state = State(x.max() + x)
        return state.x  # type: ignore[attr-defined]

    refused = refuses(model, (torch.ones(2),))
    assert refused.code == "D2S206"
    assert "plain" in str(refused)


@row(59)
def test_what_an_arm_demands_of_a_size_holds_in_that_arm_only() -> None:
    def mutual(a: Tensor, b: Tensor) -> Tensor:
        distances = torch.cdist(a, b)
        d1, of_a = torch.min(distances, dim=1)
        d2, of_b = torch.min(distances, dim=0)
        own = torch.arange(min(distances.size(0), distances.size(1)))
        if distances.size(0) <= distances.size(1):
            found = d1[own == of_b[of_a][: distances.size(0)]]
        else:
            found = d2[own == of_a[of_b][: distances.size(1)]]
        return found

    torch.manual_seed(0)
    agree(mutual, [(torch.rand(n, 2), torch.rand(m, 2)) for n, m in ((3, 5), (5, 3), (4, 4))], (dyn(0), dyn(0)))


def test_an_operator_without_a_translation_is_named_at_its_line_in_an_arm() -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() > 0:
            x = torch.special.zeta(x + 2, x)
        return x

    with pytest.raises(dy2st.errors.UntranslatedError) as caught:
        dy2st.onnx.export(model, (torch.rand(3),))
    assert caught.value.location is not None
    assert "torch.special.zeta" in (caught.value.location.text or "")


@row(22)
def test_methods_of_tensors_that_tell() -> None:
    def model(x: Tensor) -> tuple[Tensor, int, bool]:
        n = 4 if x.sum().is_nonzero() else 0
        while not x.allclose(torch.zeros_like(x), atol=0.1) and n < 20:
            halved = (x * 0.5).round()
            if halved.equal(x):
                break
            x = halved
            n += 1
        return x, n, x.equal(x + 0)

    agree(model, [(torch.tensor(v),) for v in ([1.0, 2.0], [0.0, 0.0], [0.0, 1.0, 9.0, 2.0])], (dyn(0),), whole=False)


@row(3)
def test_a_loop_target_that_is_assigned_behind_a_continue() -> None:
    def ranges(x: Tensor) -> tuple[int, ...]:
        for i in range(4):
            if x.sum() < i:
                continue
            i = 1  # noqa: PLW2901
        for q in range(3):
            for r in range(2):
                if x[0] > r:
                    continue
                r = q + 5  # noqa: PLW2901
            if x[0] < q:
                continue
            q = r  # noqa: PLW2901
        return i, q, r

    agree(ranges, [(torch.tensor([v]),) for v in (-2.25, 0.3, 0.7, 1.2, 2.2, 3.4, 6.0)], (dyn(0),))


@row(3)
def test_a_loop_over_a_list_whose_target_is_assigned_behind_a_continue() -> None:
    def lists(x: Tensor) -> tuple[int, ...]:
        k = 0
        for a, b in [(1, 2), (3, 4), (5, 6)]:
            if x.sum() > a:
                k = k + b
                continue
            a, b = b, a  # noqa: PLW2901
            k = k + 1
        for j in [3, 1, 2]:
            if x.sum() > 5:
                break
            if x.sum() > j:
                continue
            j = j * 10  # noqa: PLW2901
        else:
            j = j + 100
        return a, b, k, j

    agree(lists, [(torch.tensor([v]),) for v in (-2.25, 0.3, 0.7, 1.2, 2.2, 3.4, 6.0)], (dyn(0),))


@row(3)
def test_a_loop_over_rows_whose_target_is_assigned_behind_a_continue() -> None:
    def rows(x: Tensor) -> tuple[Tensor, int]:
        for t in x.repeat(3):
            if t > 1:
                continue
            t = t - 1  # noqa: PLW2901
            if t < -2:
                break
        for u in dy2st.unrolled(range(3)):
            if x[0] > 3:
                break
            if x[0] > u:
                continue
            u = 7  # noqa: PLW2901
        return t, u

    agree(rows, [(torch.tensor([v]),) for v in (-2.25, 0.3, 0.7, 1.2, 2.2, 3.4, 6.0)], (dyn(0),), whole=False)


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
        assert "unless a size that only the graph knows > 0" in str(error)


@row(20)
def test_elements_are_counted_of_what_a_loop_makes() -> None:
    def model(x: Tensor) -> tuple[Tensor, int]:
        flat = torch.relu(x.flatten())
        runs = 0
        left = (x > -1.5).sum().clamp(0, 4)
        while left > 0:
            left = left - 1
            first = torch.relu(flat)[:5]
            while first.numel() != 0:
                first = first[1:]
                runs += 1
                flat[-1] += 1
        return flat, runs

    agree(model, [(torch.tensor(v),) for v in ([[1.0, 0.5], [2.0, 0.5]], [[-2.0, -3.0]], [[1.0, 2.0]])], (dyn(0),))


@row(5, 59)
def test_a_loop_returns_as_many_rows_as_only_the_graph_knows() -> None:
    def model(x: Tensor) -> tuple[Tensor]:
        for i in range(x.shape[0]):
            if x[i].sum() < 0:
                return (abs(x[x.sum(1) > 1.0]),)
        return (x[1:],)

    rows = [[1.0, 3.0], [1.0, 2.0]], [[-1.0, -2.0], [3.0, 2.0]], [[0.5, -0.25], [-1.0, 0.75], [2.0, 2.0]]
    agree(model, [*((torch.tensor(r),) for r in rows), (torch.zeros(0, 2),)], (dyn(0),))


@row(31)
def test_one_object_under_two_names_stays_one() -> None:
    @dataclass
    class State:
        x: Tensor

    def tensors(x: Tensor) -> Tensor:
        if x.sum() > 0:
            n = x * 2
            m = n
        else:
            n = x * 3
            m = n
        n += 1
        return m

    def states(x: Tensor) -> tuple[Tensor, bool]:
        if x.sum() > 0:
            n = State(x * 2)
            held = [n]
        else:
            n = State(x * 3)
            held = [n]
        n.x = n.x + 1
        return held[0].x, held[0] is n

    def lists(x: Tensor) -> tuple[int, int]:
        if x.sum() > 0:
            n = [x, x]
            held = {"n": n}
        else:
            n = [x * 3]
            held = {"n": n}
        n.append(x)
        return len(held["n"]), len(n)

    for model in (tensors, states, lists):
        agree(model, [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0])], (dyn(0),), whole=False)


@row(31)
def test_objects_that_are_one_on_some_path_are_not_changed() -> None:
    def views(x: Tensor) -> Tensor:
        if x.sum() > 0:
            n = x * 2
            m = n[1:]
        else:
            n = x * 3
            m = x[:1] * 4
        n += 1
        return m

    def heads(x: Tensor) -> tuple[Tensor, Tensor]:
        n, m = x * 1, x * 5
        seen = x.sum()
        while n.sum() < 30:
            n += 1
            seen = seen + m.sum()
            n = x.abs() + n * 2
            m = n
        return n, seen

    def containers(x: Tensor) -> tuple[Tensor, Tensor]:
        n, m = [x * 1], [x * 5]
        seen = x.sum()
        while n[0].sum() < 30:
            n[0] = n[0] + 1
            seen = seen + m[0].sum()
            n = [x.abs() + n[0] * 2]
            m = n
        return n[0], seen

    def ends(x: Tensor) -> Tensor:
        n = m = x * 2
        while n.sum() < 30:
            n = x.abs() + n + 1
            m = n[:1]
        n += 1
        return m

    codes = [refuses(model, (torch.tensor([1.0, 3.0]),), (dyn(0),)).code for model in (views, heads, containers, ends)]
    assert codes == ["D2S221", "D2S221", "D2S222", "D2S221"]


@row(31)
def test_a_list_that_is_made_for_a_call_is_born_where_it_is_made() -> None:
    @dataclass
    class State:
        items: list[Any]

    def filled(items: list[Any], value: Tensor) -> Tensor:
        items[0] = 1
        items.append(value)
        return items[1] + items[0]

    def model(x: Tensor) -> Tensor:
        if x[0] > 0:
            state = State(items=[torch.full((), 2.0)])
            state.items[0] = 1
            x = x + state.items[0]
        else:
            x = x + filled([x.sum()], x)
        return x

    agree(model, [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0])], (dyn(0),))


@row(38, 33)
def test_functions_that_a_loop_defines() -> None:
    def recursive(x: Tensor) -> Tensor:
        for _ in range(x.shape[0]):

            def again(y: Tensor, n: int) -> Tensor:
                return y if n == 0 else again(y * 2 + 1, n - 1)

            x = again(x, 2)
        return x

    def rebound(x: Tensor) -> Tensor:
        def f(n: int) -> int:
            return n if n <= 0 else f(n - 1)

        g = f
        if x.sum() > 0:
            f = abs
        return x + g(3)

    def kept(x: Tensor) -> Tensor:
        for i in range(x.shape[0]):

            def last(y: Tensor) -> Tensor:
                return y * 2

            x = last(x) + i
        return x

    for model in (recursive, rebound, kept):
        agree(model, [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0, 0.5])], (dyn(0),))


@row(22, 28)
def test_tensors_that_differ_in_a_function_with_a_dict() -> None:
    def model(x: Tensor, y: Tensor) -> dict[str, Tensor]:
        found = {}
        differ = x != y
        if differ.any():
            found["sum"] = (x * differ).sum()
        else:
            found["sum"] = torch.where(x == y, x, y).sum() + 1
        last, first = x[-1], y[0]
        found["one"] = torch.where(last != first, last, first)
        return found

    pairs = [([1.0, 3.0], [1.0, 2.0]), ([-1.0, -3.0], [-1.0, -3.0]), ([1.0], [2.0])]
    agree(model, [(torch.tensor(a), torch.tensor(b)) for a, b in pairs], (dyn(0), dyn(0)))


@row(31, 47)
def test_the_greatest_of_the_greatest_may_be_an_input() -> None:
    def model(x: Tensor) -> Tensor:
        for row_ in x:
            least = min(max(x.sum(), x.max()), max(torch.zeros(()), row_[0]))
            least.clamp_(min=1.0)
        return x

    assert refuses(model, (torch.tensor([[1.75, 1.5], [0.5, 1.25]]),), (dyn(0),)).code == "D2S221"


@row(31)
def test_a_loop_that_takes_a_tensor_from_outside_and_changes_it() -> None:
    def tensors(x: Tensor) -> tuple[Tensor, Tensor]:
        a, b = x * 1, x + 1
        held = {"b": b}
        while a.sum() < 20:
            a += 1
            x = a * 2
            a = held["b"]
        return a, b

    def lists(x: Tensor) -> tuple[Any, ...]:
        a, b = [x * 1, 0], [x + 1, 0]
        for _ in range(x.shape[0]):
            a[1] += 1
            a[0] = a[0] + 1
            a = b
        return a[0], a[1], b[0], b[1]

    given = [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0], [2.0, -1.0, 1.0])]
    assert refuses(tensors, given[0], (dyn(0),)).code == "D2S221"
    agree_or_refuse(lists, given, (dyn(0),), whole=False)


@row(21, 29)
def test_an_augmented_assignment_to_one_of_two_objects() -> None:
    class One:
        def __init__(self, n: int, x: Tensor) -> None:
            self.n, self.x = n, x

    class Other:
        def __init__(self, n: int, x: Tensor) -> None:
            self.n, self.x = n, x

    def model(x: Tensor) -> tuple[Any, ...]:
        one, other = One(1, x), Other(2, x * 2)
        chosen: Any = one if x.sum() > 0 else other
        chosen.n += 1
        chosen.x = chosen.x + 1
        return one.n, other.n, one.x, other.x

    agree(model, [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0])], (dyn(0),))


@row(31)
def test_a_list_from_before_a_loop_that_takes_the_place_of_another() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        a, b = [x * 1, x * 2], [x + 1, x + 2]
        for _ in range(x.shape[0]):
            a[1] = a[0] + 1
            if x.sum() > 0:
                a = b
            b[0] = x * 5
        return a[0], a[1], b[0], b[1]

    agree_or_refuse(model, [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0], [2.0])], (dyn(0),), whole=False)


@row(28, 31)
def test_a_dict_from_before_a_loop_that_an_iteration_changes_on_one_path() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        d, e = {"k": x - 1}, {"k": x * 2}
        i = 0
        while i < 3 and d["k"].sum() < 20:
            i += 1
            d = e
            if e["k"].sum() > 1:
                d["k"] = d["k"] + 2
        return d["k"], e["k"]

    given = [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0], [30.0, 1.0])]
    agree_or_refuse(model, given, (dyn(0),), whole=False)


@row(17, 45)
def test_numbers_compared_with_what_is_none_at_first() -> None:
    def counted(x: Tensor) -> tuple[int, int, bool]:
        previous, n, same = None, 0, 0
        for value in x.tolist():
            if value != previous:
                n += 1
            if previous == value:
                same += 1
            previous = value
        return n, same, previous == 2

    def tensors(x: Tensor) -> tuple[int, Tensor]:
        previous: Any = None
        n, kept = 0, x[:1] * 0
        for value in x:
            if value != previous:
                n += 1
            if previous == value:
                kept = kept + value
            previous = value
        return n, kept

    given = [(torch.tensor(v),) for v in ([1, 1, 2, 0, 2], [1], [2, 2, 2])]
    for model in (counted, tensors):
        agree(model, given, (dyn(0),))


@row(45)
def test_numbers_beside_those_of_an_enumeration() -> None:
    class Kind(enum.IntEnum):
        A = 1
        B = 2

    def model(x: Tensor) -> tuple[int, float]:
        n, m = 0, 0.5
        for value in x.tolist():
            if value == Kind.A:
                n += Kind.B
            if value != Kind.B:
                m = m * 1.5
            if value == "a" or value == (1,):
                n += 100
        return n, m

    agree(model, [(torch.tensor(v),) for v in ([1, 1, 2, 0, 2], [1], [2, 2])], (dyn(0),), whole=False)


@row(5, 8, 31)
def test_a_tensor_that_nobody_else_refers_to_is_changed_in_place() -> None:
    def model(g: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        q = g.clone()
        if c > 0:
            q = q * 2
        q += 1
        for i in range(g.shape[0]):
            q = q + i
        q *= 2
        while q.sum() < 30 and c > 1:
            q = q + 1
            if c > 2:
                q = q * 2
            q += 1
        q[0] = 5
        r = q * 1 if c > 0 else q + 1
        r += 1
        for _ in range(2):
            if r.sum() > 10:
                r = r - 1
                continue
            r = r.clone()
            if c < 0:
                break
        r -= 1
        return q, r

    vectors_ = ([1.0, 3.0], [-1.0, -3.0], [2.0, -1.0, 3.0])
    given = [(torch.tensor(v), torch.tensor(w)) for v in vectors_ for w in (1.0, -1.0, 3.0, 2.0)]
    agree(model, given, (dyn(0), None))


@row(31)
@pytest.mark.parametrize(
    "shown",
    [
        lambda q: q.detach(),
        lambda q: q.data,
        lambda q: q.detach().view(-1)[1:],
        lambda q: nn.Parameter(q, requires_grad=False),
        lambda q: functional.dropout(q, 0.5, training=False),
        lambda q: functional.dropout1d(q[None], 0.5, training=False)[0],
        lambda q: functional.alpha_dropout(q, 0.5),
        lambda q: torch.dropout(q, 0.5, False),
    ],
)
def test_a_tensor_that_something_shows_without_being_a_view_of_it(shown: Callable[[Tensor], Tensor]) -> None:
    def model(g: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        q = g.clone()
        seen = shown(q)
        if c > 0:
            q = q * 2
        q += 1
        return q, seen

    assert refuses(model, (torch.tensor([1.0, 3.0]), torch.tensor(1.0)), (dyn(0), None)).code == "D2S221"


JUMPS = [(torch.tensor(v), torch.tensor(w)) for v in ([1.0, 3.0], [-1.0, -3.0]) for w in (1.0, -1.0)]


@row(9, 11, 12)
@pytest.mark.parametrize("items", [lambda x: [x, x + 1], lambda x: range(3), lambda x: x])
def test_every_arm_of_a_branch_jumps(items: Callable[[Tensor], Any]) -> None:
    def breaks(x: Tensor, y: Tensor) -> tuple[Tensor, int]:
        k = 0
        for _ in items(x):
            k += 1
            if x.sum() > 3:
                x = x * 2
                break
            else:  # noqa: RET508  # this form is what is tested
                x = x + y
                break
        else:
            k += 10
        return x, k

    def continues(x: Tensor, y: Tensor) -> tuple[Tensor, int]:
        k = 0
        for _ in items(x):
            k += 1
            if x.sum() > 3:
                x = x * 2
                continue
            else:  # noqa: RET507  # this form is what is tested
                x = x - y
                continue
        k += 10
        return x, k

    for model in (breaks, continues):
        agree(model, JUMPS, (dyn(0), None), whole=False)


@row(7, 11, 12)
def test_every_arm_of_a_branch_in_a_while_jumps() -> None:
    def model(x: Tensor, y: Tensor) -> tuple[Tensor, int]:
        k = 0
        while k < 3:
            k += 1
            if x.sum() > 3:
                x = x * 2
                continue
            elif y > 0:  # noqa: RET507  # this form is what is tested
                x = x - y
                continue
            else:
                break
        return x, k

    agree(model, JUMPS, (dyn(0), None), whole=False)


@row(10, 11)
def test_loops_that_only_a_jump_leaves() -> None:
    def inner(x: Tensor, n: int) -> tuple[Tensor, int]:
        while True:
            for k in range(3):
                x = x + 1
                if x.sum() > n:
                    return x, k
            x = x * 2

    def model(x: Tensor, y: Tensor) -> tuple[Tensor, int, int]:
        i = 0
        while True:
            i += 1
            if x.sum() > 4:
                break
            x = x + i
        else:
            i += 100
        a, k = inner(y, 5)
        while True:
            while True:
                a = a + 1
                if a.sum() > 40:
                    return a, i, k
                if a.sum() > 30:
                    break
            a = a + 5

    given = [(torch.tensor(v), torch.tensor(w)) for v in ([5.0, 1.0], [-5.0, 2.0, 3.0]) for w in ([1.0, 3.0], [30.0])]
    agree(model, given, (dyn(0), dyn(0)), whole=False)


@row(24, 59)
def test_lists_of_tensors_whose_sizes_only_the_graph_knows() -> None:
    def in_arms(x: Tensor, labels: Tensor) -> Tensor:
        out = []
        for c in range(2):
            picked = x[labels == c]
            if picked.numel() > 0:
                out.append(picked)
        return torch.cat(out)

    def on_some_trips(x: Tensor, labels: Tensor) -> Tensor:
        out = []
        for i in range(len(x)):
            if labels[i] > 0:
                out.append(x[i:])  # noqa: PERF401
        return torch.cat(out)

    def on_every_trip(x: Tensor, labels: Tensor) -> Tensor:
        out = [x * labels]
        for i in range(len(x)):
            out.append(x[i:])  # noqa: PERF401
        return torch.cat(out)

    for model in (in_arms, on_some_trips, on_every_trip):
        error = refuses(model, (torch.randn(6), torch.tensor([0, 1, 1, 1, 0, 1])), (dyn(0), dyn(0)))
        assert error.code == "D2S211"

    def alike(x: Tensor, k: Tensor) -> Tensor:
        row = torch.zeros(int(k))
        out = []
        for i in range(x.shape[0]):
            out.append(row + i)  # noqa: PERF401
        for i in range(x.shape[0]):
            if x[i] > 0:
                out.append(row - 1)  # noqa: PERF401
        return torch.stack(out)

    agree(alike, [(torch.randn(6), torch.tensor(2)), (torch.tensor([-1.0]), torch.tensor(0))], (dyn(0), None))


@row(15, 24)
def test_a_tuple_that_grows_with_every_iteration() -> None:
    def model(x: Tensor) -> Tensor:
        found: tuple[Tensor, ...] = ()
        while x.sum() < 20:
            found += (x.sum(),)
            x = x * 2
        return torch.stack(found)

    error = refuses(model, (torch.tensor([5.0, 1.0]),), (dyn(0),))
    assert error.code == "D2S215"
    assert "'found' is a tuple that grows" in str(error)


@row(15, 24)
def test_a_tuple_that_keeps_the_last_few() -> None:
    def model(x: Tensor) -> Tensor:
        last: tuple[Tensor, ...] = ()
        total = x.sum() * 0
        for line in x:
            last = (last + (line.sum(),))[-5:]  # noqa: RUF005  # as users write it
            total = total + sum(last)
        return total

    agree(model, [(torch.randn(n, 3),) for n in (1, 3, 9, 5)], (dyn(0),))


@row(17, 59)
def test_a_size_that_only_its_own_path_knows_to_be_no_less_than_none() -> None:
    def model(x: Tensor, count: Tensor) -> Tensor:
        steps, later = None, None
        if count > 0 and x.shape[0] > 1:
            steps = x[1:] - x[:-1]
        n = 0
        while n < count and x.shape[0] > 2:
            n += 1
            later = x[2:] * n
        if later is None:
            later = x
        return later if steps is None else steps.sum() + later

    cases = ((4, 1), (0, 1), (1, 3), (3, 0), (3, 2))
    sets = [(torch.arange(n).float() ** 2, torch.tensor(count)) for n, count in cases]
    agree(model, sets, (dyn(0), None))


@row(17, 59)
def test_results_of_another_size_by_path() -> None:
    def model(x: Tensor, flag: Tensor) -> tuple[Tensor, Tensor]:
        if flag:
            pass
        elif x.shape[0] > 1:
            return flag + 2, x[:-1]
        return flag + 1, torch.zeros(2)

    sets = [(torch.ones(n), torch.tensor(flag)) for n in (3, 0, 1) for flag in (0.0, 1.0)]
    agree(model, sets, (dyn(0), None))


@dataclass
class Held:
    v: Tensor


@row(31, 17)
@pytest.mark.parametrize("most", [1, 2, 5])
def test_an_object_that_a_loop_hands_on_in_place_of_one_of_another_class_and_then_changes(most: int) -> None:
    class Plain:
        def __init__(self, v: Tensor) -> None:
            self.v = v

    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        first, second = Plain(x + 2), Held(x * 4)
        i = 0
        while i < most and x.sum() > i:
            i += 1
            first = second
            second.v = second.v * 0.5
        return first.v, second.v

    agree_or_refuse(model, [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0], [2.0, -1.0], [5.0, 4.0])])


@row(25, 59)
def test_rows_of_a_size_that_only_their_own_path_knows_to_be_no_less_than_none() -> None:
    def model(x: Tensor, count: Tensor) -> tuple[int, Tensor]:
        rows = []
        if x.shape[0] > 1:
            for i in range(int(count)):
                rows.append(x[1:] * i)  # noqa: PERF401  a comprehension is another test
        return len(rows), torch.stack(rows).sum() if len(rows) > 0 else x.sum()

    sets = [(torch.ones(n), torch.tensor(count)) for n, count in ((4, 3), (0, 2), (1, 1), (3, 0))]
    agree(model, sets, (dyn(0), None))


@row(25, 32, 59)
def test_rows_of_such_a_size_in_a_loop() -> None:
    def model(x: Tensor, count: Tensor) -> tuple[int, Tensor]:
        first = [x[1:] * i for i in range(int(count)) if x.shape[0] > 1]
        rows = []
        for i in range(int(count)):
            if x.shape[0] > 2:
                rows.append(x[2:] + i)  # noqa: PERF401  a comprehension is another test
        return len(first), torch.stack(rows).sum() if rows else x.sum()

    sets = [(torch.ones(n), torch.tensor(count)) for n, count in ((4, 3), (0, 2), (1, 1), (3, 0), (2, 2))]
    agree_or_refuse(model, sets, (dyn(0), None))


@row(59)
def test_a_truth_of_what_has_one_element_or_is_refused_by_eager() -> None:
    def model(x: Tensor) -> tuple[float, Tensor]:
        found = x[x > 2.0]
        value = x.sum()
        if value > 0:
            value = x[x == 3]
        total = int(found) + x.new_ones(2)[int(bool(found)) : 2].sum()
        return (2.0 if value else 0.5), total

    agree(model, [(torch.tensor(v),) for v in ([1.0, 3.0, 0.0], [-1.0, -3.0, 3.0], [-4.0, 2.0, -8.0, 5.0])], (dyn(0),))


@row(59)
@pytest.mark.parametrize("given", [[3.0, 4.0], [0.0]])
def test_a_truth_of_another_number_of_elements_fails_as_in_eager(given: list[float], tmp_path: Path) -> None:
    def model(x: Tensor) -> Tensor:
        return x * 2 if x[x > 2.0] > 5 else x

    program = dy2st.export(model, (torch.tensor([1.0, 3.0, 0.0]),), dynamic_shapes=(dyn(0),))
    dy2st.onnx.export(program).save(str(tmp_path / "model.onnx"))
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    for run in (model, program.module(), lambda x: session.run(None, {"x": x.numpy()})):
        with pytest.raises(Exception, match=r"ambiguous|shape|Reshape|u0|Eq"):
            run(torch.tensor(given))


@dataclass
class Both:
    v: Any
    w: Any = None


@row(17, 31)
def test_an_object_that_is_in_one_place_on_one_path_and_in_another_on_the_other() -> None:
    class Plain:
        def __init__(self, v: Tensor, w: Any = None) -> None:
            self.v, self.w = v, w

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.held: Any = Plain(torch.tensor([0.5, 1.0]))

        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            a, b = x * 1, x + 1
            first, second = Plain(x + 2), Both(x * 4)
            old = self.held
            first.w = second
            for _ in range(2):
                if b.sum() > 2.5:
                    first = Plain(x)
                    self.held = second
                i = 0
                while i < 1 and a.sum() < 2.5:
                    i += 1
                    second = self.held
            self.held = old
            return first.v, second.v

    agree(Model(), [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0], [2.0, -1.0], [0.0, 0.0], [5.0, 4.0])])


@row(12, 59)
def test_a_loop_over_what_an_iteration_has_left_with_a_break_behind_it() -> None:
    def model(boxes: Tensor, scores: Tensor) -> Tensor:
        keep = []
        order = scores.argsort(descending=True)
        while order.numel() > 0:
            best = order[0]
            keep.append(best)
            if order.numel() == 1:
                break
            order = order[1:][(boxes[order[1:]] - boxes[best]).abs() > 1]
        return torch.stack(keep)

    # With one box or more the first iteration needs no condition, and is undone for the loop that is staged.
    least_one = {0: torch.export.Dim("boxes", min=1)}
    inputs = [torch.tensor(v) for v in ([-2.0, 2.5, -2.25], [1.0, 1.5], [0.5], [0.0, 3.0, 1.0, 7.0, 7.5])]
    agree(model, [(boxes, -boxes.abs()) for boxes in inputs], (least_one, least_one))


@row(20, 59)
def test_an_operand_that_fails_on_nothing_is_evaluated_where_it_is_asked_only() -> None:
    def model(x: Tensor) -> Tensor:
        kept = x[x > 1]
        y = x * 2 if x.sum() != 0 and 0.5 < x.max() <= x.sum() else x
        if kept.numel() > 0 and kept.max() > 2:
            y = y + 1
        if len(kept) and 0 < kept.amin() < 2:
            y = y - 3
        if kept.numel() == 0 or kept.min() < 1.5:
            y = y * 4
        return y

    inputs = [torch.tensor(v) for v in ([3.0, -1.0], [0.5, 1.25, -7.0], [-1.0], [2.0, 2.0, 3.0])]
    agree(model, [(x,) for x in (*inputs, torch.zeros(0))], (dyn(0),), whole=False)


@row(20, 59)
def test_a_name_that_an_operand_or_arm_binds_is_what_it_was_where_that_is_not_evaluated() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        kept = x[x > 1]
        y, n = x.sum(), 7
        if kept.numel() > 0 and (top := kept.max()) > 2 and (y := top + x.mean()) > 0:
            x = x - top
        first = 1 if x.sum() > 0 and (n := 5) > 4 else 2
        second = (a := n + 1) if y > 1 else (a := n) * 2
        value = n if x.mean() > 0 or (n := n * 3) > 20 else 0
        third = 1 if 0 < x.sum() < (n := n + 2) else 3
        return x, y, n, first, second, a, value, third

    inputs = [torch.tensor(v) for v in ([3.0, -1.0], [0.5, 1.25, -7.0], [-1.0], [2.0, 2.0, 3.0], [0.5])]
    agree(model, [(x,) for x in (*inputs, torch.zeros(0))], (dyn(0),), whole=False)


COUNT = 7


@row(54)
def test_such_a_name_of_the_module_or_of_a_function_around() -> None:
    def model(x: Tensor) -> tuple[int, ...]:
        global COUNT  # noqa: PLW0603  # that is what is tested
        COUNT = n = 7

        def inner() -> int:
            nonlocal n
            first = 1 if x.sum() > 0 and (n := 5) > 4 else 2
            return first + ((n := n + 1) if x[0] > 1 else n * 2)

        a = inner()
        b = (COUNT := 3) if x.sum() > 1 else (COUNT := COUNT + 1)
        c = 1 if 0 < x.sum() < (n := n + 20) else 2
        return a, b, c, n, COUNT

    agree(model, [(torch.tensor(v),) for v in ([3.0, -1.0], [0.5, 0.25], [-1.0], [2.0, -3.0])], (dyn(0),))


@row(20, 41)
def test_a_name_that_the_test_of_a_loop_binds_behind_and() -> None:
    def model(x: Tensor) -> tuple[Any, ...]:
        i, total = 0, x.new_zeros(())
        while i < x.shape[0] and (at := x[i]) < 1:
            total = total + at
            i += 1
        return i, total

    inputs = [torch.tensor(v) for v in ([0.5, -1.0, 2.0, 0.0], [0.5, 0.25], [3.0], [-1.0, -2.0, 0.5])]
    agree(model, [(x,) for x in (*inputs, torch.zeros(0))], (dyn(0),))


@row(18)
def test_promotions_are_no_part_of_the_graph() -> None:
    def model(x: Tensor, n: Tensor) -> Tensor:
        for _ in range(x.shape[0]):
            both = torch.tensor([x[0], n.to(torch.promote_types(x.dtype, n.dtype))])
            if both.sum() > 2 and torch.can_cast(n.dtype, x.dtype):
                x = x - both.mean()
        return x.to(torch.result_type(x, n))

    inputs = [(torch.tensor(v), torch.tensor(n)) for v, n in (([3.0, 1.0], 2), ([0.5], 0), ([1.0, 4.0, 2.0], 3))]
    agree(model, inputs, (dyn(0), None))
