"""What one arm or iteration knows of a size (rows 48, 59) holds there, and nowhere else."""

from __future__ import annotations

import torch
from harness import agree, agree_or_refuse, dyn, row
from torch import Tensor


@row(59)
def test_sizes_one_by_one() -> None:
    def model(x: Tensor) -> Tensor:
        count = int((x > 0).sum())
        y = torch.zeros(count, 2)
        if count > 1:
            y = x.new_ones(count, 2)
        return y

    agree(model, [(torch.tensor([1.0, -1.0]),), (torch.tensor([1.0, 2.0]),), (-torch.ones(2),)])


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
