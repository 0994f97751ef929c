"""Rows 1, 2, 10, 14, 18, 19 and 52: branches."""

# ruff: noqa: RUF005, SIM108 - the constructs under test are written as users write them
from __future__ import annotations

import torch
from harness import agree, agree_or_refuse, dyn, row, scalars, vectors
from torch import Tensor, nn


def signed(*sizes: int) -> list[tuple[Tensor]]:
    """Vectors whose sum is positive and negative, of each length."""
    return [(sign * (x.abs() + 0.5),) for (x,) in vectors(*sizes) for sign in (1.0, -1.0)]


@row(1)
def test_if_elif_else_without_and_with_else() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        total = x.sum()
        if total > 5:
            y = x * 2
        elif total > 0:
            y = x + 1
        elif total > -5:
            y = -x
        else:
            y = x.abs().sqrt()
        z = y
        if y.max() > 3:
            z = y - y.mean()
        return y, z

    values = [[3.0, 4.0], [1.0, 0.5, 0.25], [-1.0], [-4.0, -3.0], [1.0, 1.0, 1.5, 1.2], [-16.0, 2.0]]
    agree(model, [(torch.tensor(value),) for value in values], (dyn(0),), paths=5)


@row(1)
def test_nested_ifs_that_change_and_swap_several_variables() -> None:
    def model(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        bias = torch.zeros(3)
        if x.sum() > y.sum():
            x, y = y, x
            if x.min() < 0:
                bias = bias + x.min()
                if bias[0] < -1:
                    y = y * 2
            else:
                bias[0] = 7
        else:
            if (x == y).all():
                return x, y, bias
            x = x - 1
        return x, y + bias, bias

    def pair(a: float, b: float) -> tuple[Tensor, Tensor]:
        return torch.full((3,), float(a)), torch.full((3,), float(b))

    inputs = [pair(1, 2), pair(2, 1), pair(2, -0.5), pair(3, -2), pair(1, 1)]
    agree(model, inputs, paths=5)


@row(1)
def test_if_in_submodules_with_parameters_in_both_arms() -> None:
    class Expert(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.wide, self.narrow = nn.Linear(width, 3), nn.Linear(width, 3, bias=False)
            self.register_buffer("scale", torch.tensor([1.0, 2.0, 3.0]))

        def forward(self, x: Tensor, gate: Tensor) -> Tensor:
            if gate > 0:
                return self.wide(x) * self.scale
            return self.narrow(x)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Expert(4), Expert(3)

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.first(x, x.mean()).relu()
            if self.training:
                hidden = hidden.zero_()
            return self.second(hidden, hidden.mean() - 1)

    inputs = [
        (scale * torch.ones(batch, 4),) for batch, scale in ((2, 1.0), (3, 50.0), (1, -1.0), (2, -90.0), (0, 1.0))
    ]
    agree(Model().eval(), inputs, (dyn(0),), paths=3, whole=False)


@row(1)
def test_conditions_of_every_kind() -> None:
    def model(x: Tensor, flag: Tensor, n: Tensor) -> Tensor:
        if flag:
            x = x + 1
        if not flag:
            x = x * 2
        if n:
            x = x - n
        if x.sum():
            x = x / 2
        if x[0] > 0 and flag:
            x = x + 10
        if (x > 0).any():
            pass
        else:
            x = x.exp()
        if x[:1] > 1:
            x = -x
        return x

    def case(value: float, size: int, flag: bool, n: int) -> tuple[Tensor, ...]:
        return torch.full((size,), value), torch.tensor(flag), torch.tensor(n)

    inputs = [case(1.0, 3, True, 0), case(-1.0, 2, False, 3), case(0.0, 1, False, 0), case(0.0, 4, True, 1)]
    agree(model, inputs, (dyn(0), None, None), paths=4)


@row(2)
def test_ternaries() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor, float]:
        y = x * 2 if x.sum() > 0 else x - 1
        z = (y.max() if y.numel() > 2 else y.min()) if (y > 0).any() else torch.zeros(())
        weight = 0.5 if z > 1 else 2.0
        return torch.cat([y, y * weight]), z, weight

    agree(model, [*signed(3, 2, 5, 1), (torch.tensor([-2.0, 1.5, 0.0]),)], (dyn(0),), paths=4)


@row(2, 56)
def test_ternary_of_tuples_and_of_functions() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        low, high = (x, x + 1) if x.mean() > 0 else (x - 1, x)
        activation = torch.tanh if x.shape[0] > 100 else torch.relu
        return activation(low), -high if low.sum() > high.sum() - 2 else high

    agree(model, signed(4, 1, 2), (dyn(0),), paths=3)


@row(10)
def test_chain_of_early_returns() -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() > 10:
            return x
        y = x + 1
        if y.sum() > 5:
            y = y * 2
            if y.max() > 8:
                return y - 8
            y = y + 1
        elif y.sum() < 0:
            return y.abs()
        z = y.cumsum(0)
        if z[-1] > 3:
            return z
        return z - y

    values = [[6.0, 7.0], [1.0, 1.5, 0.5], [4.0, 0.5], [-9.0], [0.1, 0.1], [0.2, 0.2, 0.2, 0.0]]
    agree(model, [(torch.tensor(value),) for value in values], (dyn(0),), paths=5)


@row(10, 21)
def test_early_returns_of_tuples_and_numbers_in_callees() -> None:
    def classify(x: Tensor) -> tuple[Tensor, int]:
        if x.max() > 2:
            return x.clamp(max=2), 1
        if x.min() < -2:
            return x.clamp(min=-2), -1
        return x, 0

    def model(x: Tensor) -> tuple[Tensor, int, bool]:
        y, kind = classify(x)
        if kind == 0:
            return y, kind, False
        y, again = classify(y * 1.5)
        return y, kind + again, True

    values = [[0.5, 1.0], [3.0, 0.0], [-3.0, 0.0, 1.0], [3.0, -3.0], [-3.0]]
    agree(model, [(torch.tensor(value),) for value in values], (dyn(0),), paths=3)


@row(10)
def test_return_of_nothing_after_in_place_change() -> None:
    class Clipper(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(2))

        def note(self, x: Tensor) -> None:
            if x.norm() < 1:
                return
            self.seen += x

        def forward(self, x: Tensor) -> Tensor:
            self.note(x)
            self.note(x / 2)
            return x + self.seen

    agree(Clipper(), [(torch.tensor([3.0, 4.0]),), (torch.tensor([0.1, 0.2]),), (torch.tensor([1.0, 1.0]),)], paths=3)


@row(14)
def test_variable_set_in_one_branch_and_used_only_there() -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() > 0:
            extra = x.max()
            y = x + extra
        else:
            other = x.min()
            y = x - other
            if other < -2:
                deep = other * 2
                y = y + deep
        return y

    agree(model, signed(3, 1, 6) + [(torch.tensor([-5.0, 1.0]),)], (dyn(0),), paths=3)


@row(14)
def test_variable_read_only_where_it_was_set() -> None:
    def model(x: Tensor) -> Tensor:
        positive = x.sum() > 0
        if positive:
            scale = x.max()
        y = x + 1
        if y.mean() > 0:
            scale = y.mean()
            y = y * scale
        return y

    agree(model, signed(3, 2), (dyn(0),))


@row(14, 60)
def test_variable_that_may_be_missing_fails_where_eager_raises() -> None:
    def model(x: Tensor) -> Tensor:
        if x.sum() > 0:
            scale = x.max()
        return x * scale

    agree(model, [(torch.tensor([1.0, 2.0]),)], (dyn(0),), raising=[(torch.tensor([-1.0]),), (torch.zeros(0),)])


@row(18)
def test_dtype_differs_by_branch() -> None:
    def promoted(x: Tensor) -> Tensor:
        y = torch.arange(x.shape[0])
        if x.sum() > 0:
            y = y + 0.5
        return x + y

    agree_or_refuse(promoted, signed(3, 2), (dyn(0),))

    def integers(n: Tensor) -> Tensor:
        if n > 0:
            y = n * 2
        else:
            y = n / 2
        return y + 0.5

    agree_or_refuse(integers, scalars(3, -3))


@row(19)
def test_shape_differs_by_branch() -> None:
    def model(x: Tensor) -> tuple[Tensor, Tensor]:
        if x.sum() > 0:
            y = torch.cat([x, x])
        else:
            y = x[1:]
        return y, y.sum()

    agree_or_refuse(model, signed(3, 2, 1, 5), (dyn(0),))


@row(19)
def test_size_that_depends_on_the_branch_and_is_used_again() -> None:
    def model(x: Tensor) -> Tensor:
        y = x[:, :2] if x.sum() > 0 else x
        if y.shape[1] > 2:
            y = y[:, 1:]
        return y @ torch.ones(y.shape[1], 3)

    agree_or_refuse(model, [(sign * torch.ones(rows, 5),) for rows in (2, 1, 3) for sign in (1, -1)], (dyn(0),))


@row(52)
def test_match_on_numbers_and_sequences() -> None:
    def model(x: Tensor, k: Tensor) -> Tensor:
        match k:
            case 0:
                y = x
            case 1 | 2:
                y = x * 2
            case n if n > 10:
                y = x + n
            case _:
                y = -x
        match (x.shape[0], x.sum() > 0):
            case (_, 1):
                y = y + 1
            case (_, _):
                y = y - 1
        return y

    inputs = [(x, torch.tensor(k)) for (x,), k in zip(signed(3, 2, 4), (0, 1, 2, 11, 5, -1), strict=True)]
    agree(model, inputs, (dyn(0), None), paths=5)


@row(52, 56)
def test_match_on_structures_stays_python() -> None:
    def model(state: dict[str, Tensor], x: Tensor) -> Tensor:
        match state:
            case {"scale": scale, "shift": shift}:
                y = x * scale + shift
            case {"scale": scale}:
                y = x * scale
        match [x, y]:
            case [first, *rest] if rest[0].sum() > 0:
                return first + rest[0]
            case _:
                return y

    inputs = [({"scale": torch.tensor(2.0)}, x) for (x,) in signed(3, 1)]
    agree(model, inputs, ({"scale": None}, dyn(0)), whole=False)


@row(52)
def test_alternatives_with_structure() -> None:
    def model(x: Tensor) -> int:
        total = x.sum()
        out = 0
        match (3, int(total) % 3):
            case (0, _) | (_, 0):
                out = 1
            case [3, 1] | {"a": 1}:
                out = 7
            case (3, n) if n > 0:
                out = n + 5
        match (bool(total > 2), bool(total < 8)):
            case (True, True) | (False, False):
                out += 100
            case (True, _) | (_, True):
                out += 200
        return out

    agree(model, [(torch.tensor([v, 1.0]),) for v in (0.0, 1.0, 2.0, 3.0, 9.0, 10.0)], (dyn(0),))


@row(52)
def test_true_false_and_none_are_told_by_the_graph() -> None:
    def model(x: Tensor) -> int:
        large, small = bool(x.sum() > 2), bool(x.sum() < 8)
        out = 0
        match (large, small):
            case (True, True):
                out += 100
            case (True, False):
                out += 200
        match large:
            case True:
                out += 1
            case False:
                out += 2
        match [large, None]:
            case [True, None] | [False, 1]:
                out += 10
            case [False, None]:
                out += 20
        match {"large": large}:
            case {"large": True}:
                out += 1000
        return out

    def native(x: Tensor) -> int:
        out = 0
        match (bool(x.sum() > 2), 3):
            case (True, n) | (n, 4):
                out = n
        return out

    given = [(torch.tensor([v, 1.0]),) for v in (0.0, 1.0, 2.0, 3.0, 9.0)]
    agree(model, given, (dyn(0),), whole=False)
    agree_or_refuse(native, given, (dyn(0),), whole=False)
