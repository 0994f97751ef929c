"""Programs that random generation has found to go wrong, shrunk."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from harness import agree, dyn, refuses, row
from torch import Tensor, nn

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
        return sum(made), len(made)

    given = [(torch.tensor(v),) for v in ([1.0, 2.0], [0.0, 1.0, 4.0, 2.0], [1.0, 1.0, 1.5], [-4.0, 1.0, 1.0])]
    agree(model, given, (dyn(0),), paths=3)


@row(30)
def test_an_object_that_one_arm_makes_is_refused_with_what_helps() -> None:
    class State:
        def __init__(self, x: Tensor) -> None:
            self.x = x

    def model(x: Tensor) -> Tensor:
        state = State(x)
        if x.sum() > 3:
            state = State(x.max() + x)
        return state.x

    refused = refuses(model, (torch.ones(2),))
    assert refused.code == "D2S206"
    assert "dataclass" in str(refused)


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
