"""Programs that random generation has found to go wrong, shrunk."""

from __future__ import annotations

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
