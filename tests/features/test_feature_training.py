"""Row 66: training. Gradients of inputs and parameters are those of eager, through every form of a program."""

# ruff: noqa: PERF401, SIM108 - the constructs under test are written as users write them
from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from harness import outcomes, row
from torch import Tensor, nn
from torch.utils import _pytree as pytree

import dy2st
from dy2st.capture.program import capture_program
from dy2st.errors import CaptureError


def gradients(model: Any, x: Tensor) -> dict[str, Tensor]:
    """The outputs, and the gradient of the sum of their squares by the input and each parameter."""
    x = x.detach().clone().requires_grad_()
    parameters = dict(model.named_parameters()) if isinstance(model, nn.Module) else {}
    for parameter in parameters.values():
        parameter.grad = None
    leaves = [torch.as_tensor(leaf) for leaf in pytree.tree_leaves(model(x))]
    loss = sum((leaf * leaf).sum() for leaf in leaves if leaf.requires_grad)
    loss.backward()
    found = {f"output {i}": leaf.detach() for i, leaf in enumerate(leaves)}
    # What a path does not use has no gradient in eager code, and zeros in a program.
    for name, tensor in {"x": x, **parameters}.items():
        found[name] = torch.zeros_like(tensor) if tensor.grad is None else tensor.grad.clone()
    if isinstance(model, nn.Module):
        found.update({name: buffer.detach().clone() for name, buffer in model.named_buffers()})
    return found


def close(actual: Tensor, expected: Tensor, where: str) -> None:
    """Equal up to round-off; a number that eager returns has no dtype of its own."""
    torch.testing.assert_close(
        actual, expected, rtol=1e-4, atol=1e-5, check_dtype=False, msg=lambda text: f"{where}: {text}"
    )


def state_of(model: Any) -> dict[str, Tensor]:
    """The parameters and buffers of a model that is a module."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())} if isinstance(model, nn.Module) else {}


def agree(model: Any, *inputs: Tensor, compiled: bool = False) -> None:
    """Eager, the exported program in torch's operators and in ours, and to_static give the same gradients."""
    forms = {
        "program": lambda own, x: dy2st.export(own, (x,)).module(),
        "own operators": lambda own, x: capture_program(own, (x,)).module(),
        "to_static": lambda own, _: dy2st.to_static(own),
    }
    if compiled:
        forms["compiled"] = lambda own, _: dy2st.to_static(own, backend="aot_eager")
    for form, make in forms.items():
        # One for all inputs of a shape, as it is before any call: making it takes nearly all of the time.
        made: dict[torch.Size, Any] = {}
        for x in inputs:
            expected = gradients(copy.deepcopy(model), x)
            if x.shape not in made:
                form_of = make(copy.deepcopy(model), x)
                made[x.shape] = form_of, copy.deepcopy(state_of(form_of))
            form_of, before = made[x.shape]
            for name, value in state_of(form_of).items():
                value.data.copy_(before[name])
            actual = gradients(form_of, x)
            for name, value in expected.items():
                close(actual[name], value, f"{form}, {name}")
    outcomes.append("Y")


SIGNS = (torch.tensor([3.0, 1.0]), torch.tensor([-3.0, 1.0]), torch.tensor([0.1, 0.2]), torch.tensor([-0.1, 0.05]))


class Weighted(nn.Module):
    """A model with a weight, whose code is a function of its own."""

    def __init__(self, code: Any) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor([1.5, -0.5]))
        self.code = code
        self.register_buffer("memory", torch.zeros(2))

    def forward(self, x: Tensor) -> Any:
        return self.code(self, x)


@pytest.mark.slow
@row(66)
def test_branches() -> None:
    def model(self: Weighted, x: Tensor) -> tuple[Tensor, int, Tensor]:
        y = x * self.w
        kind = 0
        if y.sum() > 0:
            y = y * y
            kind = 1
            if y.max() > 4:
                return y / 4, 2, y > 1
        elif x.min() < -1:
            y = torch.sin(self.w)
        return y + x, kind, y > 0

    agree(Weighted(model), *SIGNS, compiled=True)


@pytest.mark.slow
@row(66)
def test_loops_that_run_never_once_and_often() -> None:
    def model(self: Weighted, x: Tensor) -> tuple[Tensor, int]:
        steps = 0
        y = x * self.w
        while y.norm() > 1:
            y = y * 0.6 + self.w * 0.01
            steps += 1
        return y * x, steps

    agree(Weighted(model), *SIGNS, 30 * SIGNS[0])


@row(66)
@pytest.mark.filterwarnings("ignore")  # torch's compiler warns of its own insides
def test_compiled_loops() -> None:
    def model(self: Weighted, x: Tensor) -> Tensor:
        y = x * self.w
        while y.norm() > 1:
            y = y * 0.6 + self.w * 0.01
        return y * x

    eager, static = Weighted(model), dy2st.to_static(Weighted(model), backend="aot_eager")
    with torch.no_grad():
        for x in (*SIGNS, 30 * SIGNS[0]):
            torch.testing.assert_close(static(x), eager(x))
    with pytest.raises(CaptureError, match="aot_eager can't compile the program with gradients"):
        gradients(static, SIGNS[0])
    outcomes.append("R")


@row(66)
def test_rows_that_a_loop_stacks_and_state_that_grows() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.GRUCell(2, 3)
            self.head = nn.Linear(3, 2)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            h = torch.zeros(1, 3)
            rows = []
            for line in x:
                h = self.cell(line[None], h)
                if h.mean() > 0.05:
                    h = h * 0.5
                rows.append(self.head(h[0]))
            seen = x
            while seen.shape[0] < 7 and seen.sum() < 30:
                seen = torch.cat([seen, self.head(h)])
            return torch.stack(rows), seen

    agree(Model(), torch.randn(3, 2), 5 * torch.randn(3, 2), 20 + torch.randn(3, 2))


@pytest.mark.slow
@row(66)
def test_writes_in_place() -> None:
    def model(self: Weighted, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * self.w
        first = y[0:1]
        if x.sum() > 0:
            y *= 2
        else:
            first += y[1:2]
        out = torch.zeros(3, 2)
        for i in range(3):
            out[i] = y * (i + 1)
            if out[i].sum() > 3:
                out[i] *= 0.5
        for i in range(x.shape[0]):
            y.add_(self.w * x[i])
        return y * first, out

    agree(Weighted(model), *SIGNS, compiled=True)


@row(66)
def test_no_grad_outside_of_staged_code() -> None:
    def model(self: Weighted, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            y = x * self.w
        with torch.set_grad_enabled(False):
            z = y * x
            with torch.enable_grad():
                z = z + x * self.w
        return x * y, z * self.w

    agree(Weighted(model), *SIGNS, compiled=True)


@row(66, 44)
def test_no_grad_around_staged_code() -> None:
    def model(self: Weighted, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * self.w
        with torch.no_grad():
            k = y
            if x.sum() > 0:
                k = k * 2
            for _ in range(3):
                if k.norm() < 1:
                    break
                k = k * 0.7
            rows = []
            for i in range(x.shape[0]):
                rows.append(y + i)
        return y * k, torch.stack(rows) * self.w

    agree(Weighted(model), *SIGNS)


@pytest.mark.slow
@row(66, 44)
def test_no_grad_inside_of_staged_code() -> None:
    def model(self: Weighted, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * self.w
        if x.sum() > 0:
            with torch.no_grad():
                z = y * 4
            y = z * x
        else:
            y = y.detach() * x
        h = y
        while h.norm() > 1:
            with torch.no_grad():
                k = h.norm()
            h = h / (k + 0.5) + 0.01 * self.w.detach()
        return y, h

    agree(Weighted(model), *SIGNS, 20 * SIGNS[0])


@pytest.mark.slow
@row(66, 44)
def test_values_that_no_grad_only_hands_on_keep_their_gradient() -> None:
    def model(self: Weighted, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * self.w
        with torch.no_grad():
            if x.sum() > 0:
                z = y
            else:
                z = y * 2
            rows = []
            for _ in range(x.shape[0]):
                rows.append(y)
            h = y
            while h.norm() > 1:
                with torch.enable_grad():
                    h = h * self.w * 0.5
        return z * self.w, torch.stack(rows).sum(0) + h

    agree(Weighted(model), *SIGNS)


@row(66, 44, 31)
def test_writes_in_place_without_gradients() -> None:
    def model(self: Weighted, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * self.w
        z = x + self.w
        with torch.no_grad():
            y.mul_(2)
            self.memory.copy_(y)
        if x.sum() > 0:
            with torch.no_grad():
                y.add_(1)
                z[0] = 3
                self.memory.mul_(0.5)
        for i in range(x.shape[0]):
            with torch.no_grad():
                z[i] = z[i] + x[i]
        return y * self.memory, z * z

    agree(Weighted(model), *SIGNS)


@row(66, 40)
def test_functions_decorated_with_modes() -> None:
    @torch.no_grad()
    def measured(x: Tensor) -> Tensor:
        if x.mean() > 0:
            return x.mean() + 1
        return x.max()

    @torch.enable_grad()
    def scaled(x: Tensor, k: Tensor) -> Tensor:
        return x * k if x.sum() > 0 else x / (k.abs() + 1)

    @torch.inference_mode()
    def counted(x: Tensor) -> Tensor:
        return (x > 0).sum() if x.sum() > 0 else (x < 0).sum()

    def model(self: Weighted, x: Tensor) -> tuple[Tensor, Tensor]:
        k = measured(x * self.w)
        with torch.no_grad():
            z = scaled(x * self.w, k)
        return z * self.w * k, x + counted(x)

    agree(Weighted(model), *SIGNS)


@row(66)
def test_what_asks_for_the_mode_of_gradients() -> None:
    def model(self: Weighted, x: Tensor) -> Tensor:
        y = x * self.w
        if torch.is_grad_enabled():
            y = y * 2
        with torch.no_grad():
            if not torch.is_grad_enabled():
                y = y + 1
        return y if y.sum() > 0 else -y

    static, eager = dy2st.to_static(Weighted(model)), Weighted(model)
    for x in SIGNS:
        torch.testing.assert_close(static(x), eager(x))
        with torch.no_grad():
            torch.testing.assert_close(static(x), eager(x))
    report = dy2st.check(Weighted(model), [(x,) for x in SIGNS])
    assert report.ok, str(report)
    outcomes.append("Y")


@row(66)
def test_steps_of_an_optimizer_are_those_of_eager() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Linear(2, 4)
            self.norm = nn.BatchNorm1d(4)
            self.step = nn.Linear(4, 4)
            self.frozen = nn.Linear(4, 1).requires_grad_(False)

        def forward(self, x: Tensor) -> Tensor:
            h = self.norm(self.embed(x))
            halted = torch.zeros(x.shape[0])
            total = torch.zeros_like(h)
            for _ in range(4):
                h = torch.tanh(self.step(h))
                halted = halted + torch.sigmoid(h.mean(1))
                total = total + h * (halted < 1.5)[:, None]
                if (halted >= 1.5).all():
                    break
            if total.norm() > 2:
                total = total / total.norm()
            return self.frozen(total)

    eager = Model()
    static = dy2st.to_static(copy.deepcopy(eager))
    generator = torch.Generator().manual_seed(1)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9) for model in (eager, static)]
    for _ in range(6):
        x = 2 * torch.randn(5, 2, generator=generator)
        losses = []
        for model, optimizer in zip((eager, static), optimizers, strict=True):
            optimizer.zero_grad()
            loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        torch.testing.assert_close(losses[1], losses[0])
    for (name, value), (_, other) in zip(eager.state_dict().items(), static.state_dict().items(), strict=True):
        torch.testing.assert_close(other, value, rtol=1e-4, atol=1e-5, msg=name)
    assert len(static.forward.programs) == 1
    outcomes.append("Y")
