"""Row 71: gradients that a model takes by itself. What eager's autograd gives is what the program computes.

The models switch autograd on by themselves, since eager runs under ``torch.no_grad()`` here.
"""

# ruff: noqa: SIM108 - the constructs under test are written as users write them
from __future__ import annotations

import pytest
import torch
from harness import agree, both_signs, dyn, outcomes, refuses, row, tables, vectors
from torch import Tensor, nn
from torch.autograd import grad

import dy2st
from dy2st.errors import NoGradientError


class Attack(nn.Module):
    """One step of the fast gradient sign method on a small classifier."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 3)
        ).eval()

    def forward(self, image, label):
        with torch.enable_grad():
            image = image.detach().requires_grad_()
            loss = nn.functional.cross_entropy(self.layers(image), label)
            (slope,) = torch.autograd.grad(loss, image)
        return (image.detach() + 0.1 * slope.sign()).clamp(0, 1), loss.detach()


def attacked(x, weight):
    start = x.detach()
    x = start.clone()
    for _ in range(3):
        with torch.enable_grad():
            x.requires_grad = True
            loss = torch.tanh(x @ weight).square().mean()
            loss.backward()
        x = start + (x + 0.05 * x.grad.sign() - start).clamp(-0.1, 0.1)
        x = x.detach()
    return x


def minimised(x):
    x = x.detach().clone()
    steps = 0
    while True:
        with torch.enable_grad():
            x.requires_grad_()
            value = ((x - 1) ** 2 * torch.exp(-0.1 * x)).sum()
            slope = grad(value, x)[0]
        if slope.norm() < 1e-2 or steps > 100:
            break
        x = (x - 0.2 * slope).detach()
        steps += 1
    return x.detach(), steps


def descended(x):
    with torch.enable_grad():
        x = x.detach().clone().requires_grad_()
        while True:
            x.grad = None
            ((x - 1) ** 2 + 0.1 * x.sin()).sum().backward()
            if x.grad.norm() < 0.1:
                break
            with torch.no_grad():
                x -= 0.2 * x.grad
    return x.detach()


def carried_leaf(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        while x.norm() > 0.1:
            (slope,) = torch.autograd.grad((x**2).sum(), x)
            x = (x - 0.2 * slope).detach().requires_grad_()
    return x.detach()


def with_momentum(x):
    x = x.detach().clone()
    speed = torch.zeros_like(x)
    for _ in range(50):
        with torch.enable_grad():
            y = x.detach().requires_grad_()
            (slope,) = torch.autograd.grad((y - 1).square().sum() + 0.1 * (speed * y).sum(), y)
        speed = 0.5 * speed + slope
        if speed.norm() < 0.05:
            break
        x = x - 0.1 * speed
    return x


def through_a_loop(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        y = x
        while y.abs().max() > 1:
            y = 0.5 * y + 0.01 * y.sin()
        (slope,) = torch.autograd.grad((y * x).sum(), x)
    return slope, y.detach()


def through_a_branch(x):
    with torch.enable_grad():
        y = x.detach().requires_grad_()
        if x.sum() > 0:
            z = y**3
        else:
            z = y.sin()
        (slope,) = torch.autograd.grad(z.sum(), y)
    return slope


def under_a_condition(x):
    with torch.enable_grad():
        y = x.detach().requires_grad_()
        z = y**3
        if x.sum() > 0:
            (slope,) = torch.autograd.grad(z.sum(), y)
        else:
            slope = z.detach()
    return slope


def recurrent(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        state = torch.zeros(2)
        for t in range(x.shape[0]):
            state = torch.tanh(state + x[t])
        (slope,) = torch.autograd.grad(state.sum(), x)
    return slope


def curvature(x, v):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        value = (x**4).sum() + (x[0] * x[1]).sin()
        (slope,) = torch.autograd.grad(value, x, create_graph=True)
        (product,) = torch.autograd.grad((slope * v).sum(), x)
    return slope.detach(), product


def forward_mode(x, v):
    """The double backward trick: the derivative of a gradient by what it is multiplied by."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        values = torch.stack([x.sin().sum(), x.prod(), (x**2).sum()])
        weights = torch.zeros_like(values, requires_grad=True)
        (pulled,) = torch.autograd.grad(values, x, weights, create_graph=True)
        (pushed,) = torch.autograd.grad(pulled, weights, v)
    return pushed


def hessian(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad((x**4).sum() + x.prod(), x, create_graph=True)
        rows = [torch.autograd.grad(slope[i], x, retain_graph=True)[0] for i in range(3)]
    return torch.stack(rows)


def functional(x):
    jacobian = torch.autograd.functional.jacobian(lambda z: torch.sin(z) * z.sum(), x)
    return jacobian + torch.autograd.functional.hessian(lambda z: (torch.sin(z) * z.sum()).sum(), x)


def twice_through_a_loop(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        y = x
        while y.norm() > 1:
            y = 0.5 * y * (1 + 0.1 * x.sin())
        (slope,) = torch.autograd.grad((y * x).sum(), x, create_graph=True)
        (curved,) = torch.autograd.grad(slope.sum(), x)
    return slope.detach(), curved


class OfParameters(nn.Module):
    """Its gradient is one by parameters, of which some want none."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(4, 3), nn.Linear(3, 2)
        self.last.requires_grad_(False)

    def forward(self, x):
        with torch.enable_grad():
            loss = self.last(torch.tanh(self.first(x))).square().sum()
            slopes = torch.autograd.grad(loss, [each for each in self.parameters() if each.requires_grad])
        return nn.functional.linear(x, self.first.weight - 0.1 * slopes[0], self.first.bias - 0.1 * slopes[1])


def penalty(x, weight):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        scores = torch.tanh(x @ weight).sum(1)
        (slope,) = torch.autograd.grad(scores, x, torch.ones_like(scores), create_graph=True)
        loss = ((slope.norm(dim=1) - 1) ** 2).mean()
    return loss.detach()


def overwritten(x):
    """A tensor on the way is written to after it was read, and slices of one are written to."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        h = x * 2
        e = h.exp()
        h.mul_(3)
        out = torch.zeros(3, 4)
        out[0] = h * e
        out[1:] = x.sin()
        out[2, 1] *= 3
        (slope,) = torch.autograd.grad((out**2).sum(), x)
    return slope


def of_a_buffer(x):
    """What is read beside the way is written to before the gradient is taken."""
    with torch.enable_grad():
        scale = torch.ones(4)
        y = x.detach().requires_grad_()
        z = (y + scale).square().sum()
        scale.add_(1)
        z = z + (y + scale).sum()
        (slope,) = torch.autograd.grad(z, y)
    return slope, scale


def stepped(x):
    """A leaf that is written to in place without gradients stays a leaf."""
    with torch.enable_grad():
        x = x.detach().clone().requires_grad_()
        for _ in range(3):
            (slope,) = torch.autograd.grad((x.sin() * x).sum(), x)
            with torch.no_grad():
                x -= 0.1 * slope
    return x.detach()


def accumulated(x):
    with torch.enable_grad():
        x = x.clone().requires_grad_(True)
        first = None
        for i in range(3):
            (x.sin() * i).sum().backward()
            if first is None:
                first = x.grad
        total = x.grad.clone()
        x.grad.zero_()
        (x**2).sum().backward()
    return total, x.grad, first


def stopped(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        with torch.no_grad():
            size = x.norm()
        y = x / size + x.detach() * x.sin()
        (slope,) = torch.autograd.grad(y.sum(), x)
    return slope


def told_late(x):
    """What is computed before ``requires_grad_()`` has no part in the gradient."""
    with torch.enable_grad():
        x = x.detach()
        before = x * 2
        x.requires_grad_()
        (slope,) = torch.autograd.grad((before * x).sum(), x)
    return slope


def inner_and_outer(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        y = x**2
        by_x, by_y, unused = torch.autograd.grad(
            (y * x).sum(), (x, y, torch.ones(1, requires_grad=True)), allow_unused=True
        )
    return by_x, by_y, unused is None


def answers(x):
    with torch.enable_grad():
        y = x.detach()
        told = [y.requires_grad]
        y.requires_grad_()
        z = y * 2
        with torch.no_grad():
            w = y * 2
        told += [y.requires_grad, z.requires_grad, w.requires_grad, y.is_leaf, z.is_leaf, z.detach().requires_grad]
        told += [w.grad_fn is None, y.grad is None]
    return x, *told


def of_functions(x):
    by_x = torch.func.grad(lambda y: torch.func.grad(lambda z: (z**3 * y).sum())(y).sum())(x)
    slope, value = torch.func.grad_and_value(lambda y, z: (y * z).prod(), argnums=(0, 1))(x, x)
    values, pull = torch.func.vjp(lambda y: torch.stack([y.sin().sum(), y.prod()]), x)
    jacobian = torch.func.jacrev(lambda y: y**2 * y.sum())(x)
    curved = torch.func.jacrev(torch.func.grad(lambda y: (y**3).sum() * y.sum()))(x)
    return by_x, slope, value, values, pull(torch.ones(2))[0], jacobian, curved


def of_rows(x):
    with torch.enable_grad():
        y = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad((y**3).sum() * y.sum(), y, create_graph=True)
        products = torch.vmap(lambda v: torch.autograd.grad(slope, y, v, retain_graph=True)[0])(torch.eye(3))
    return products.detach(), torch.vmap(torch.func.grad(lambda row: row.prod()))(products.detach())


def minimised_by_functions(x):
    for _ in range(20):
        slope, value = torch.func.grad_and_value(lambda y: (y - 1).square().sum())(x)
        if value < 0.01:
            break
        x = x - 0.2 * slope
    return x


def retained(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        y = x * 2
        y.retain_grad()
        z = (y**2).sum()
        z.backward()
        assert z.grad_fn is not None
    return y.grad, x.grad


CLASSIFIER = [(torch.rand(2, 1, 8, 8), torch.tensor([0, 2])), (torch.rand(2, 1, 8, 8), torch.tensor([1, 1]))]
WEIGHT = torch.linspace(-1, 1, 12).reshape(4, 3)


@pytest.mark.slow_for("hessian-list-NoneType")
@row(73)
@pytest.mark.parametrize(
    ("model", "inputs", "shapes"),
    [
        (Attack(), CLASSIFIER, None),
        (attacked, [(x, WEIGHT) for (x,) in tables((2, 4))], None),
        (penalty, [(x, WEIGHT) for (x,) in tables((3, 4), (5, 4))], ({0: torch.export.Dim.DYNAMIC}, None)),
        (OfParameters(), tables((2, 4)), None),
        (curvature, [(x, x.flip(0)) for (x,) in vectors(4)], None),
        (forward_mode, [(x, x.flip(0)) for (x,) in vectors(4)], None),
        (hessian, vectors(3), None),
        (functional, vectors(3), None),
        (overwritten, vectors(4), None),
        (of_a_buffer, vectors(4), None),
        (stepped, vectors(4), None),
        (accumulated, vectors(4), None),
        (stopped, vectors(4, 6), (dyn(0),)),
        (told_late, vectors(4), None),
        (inner_and_outer, vectors(4), None),
        (answers, vectors(4), None),
        (of_functions, vectors(3), None),
        (of_rows, vectors(3), None),
        (retained, vectors(4), None),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_straight(model, inputs, shapes):
    agree(model, inputs, shapes, paths=1)


@pytest.mark.slow_for("twice_through_a_loop-list-tuple")
@row(73)
@pytest.mark.parametrize(
    ("model", "inputs", "shapes"),
    [
        (minimised, [(torch.zeros(3),), (torch.full((5,), 4.0),)], (dyn(0),)),
        (descended, [(torch.zeros(3),), (torch.full((5,), 4.0),)], (dyn(0),)),
        (carried_leaf, vectors(3, 4), (dyn(0),)),
        (with_momentum, vectors(3, 4), (dyn(0),)),
        (through_a_loop, [(4 * x,) for (x,) in vectors(3, 4)] + [(torch.full((2,), 0.5),)], (dyn(0),)),
        (twice_through_a_loop, [(4 * x,) for (x,) in vectors(3, 4)] + [(torch.full((2,), 0.5),)], (dyn(0),)),
        (through_a_branch, both_signs(3, 4), (dyn(0),)),
        (under_a_condition, both_signs(3, 4), (dyn(0),)),
        (recurrent, tables((3, 2), (5, 2)), (dyn(0),)),
        (minimised_by_functions, [(torch.zeros(3),), (torch.full((5,), 4.0),)], (dyn(0),)),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_with_control_flow(model, inputs, shapes):
    agree(model, inputs, shapes)


def unused_on_a_path(x):
    with torch.enable_grad():
        y, z = x.detach().requires_grad_(), torch.ones(1, requires_grad=True)
        value = y.sum() if x.sum() > 0 else z.sum()
        (slope,) = torch.autograd.grad(value, y)
    return slope


@row(73)
def test_a_gradient_that_is_not_there_raises_as_in_eager():
    agree(unused_on_a_path, [(torch.ones(3),)], raising=[(-torch.ones(3),)])


def none_on_a_path(x):
    with torch.enable_grad():
        y, z = x.detach().requires_grad_(), torch.ones(1, requires_grad=True)
        value = y.sum() if x.sum() > 0 else z.sum()
        return torch.autograd.grad(value, y, allow_unused=True)[0]


def through_earlier_iterations(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        y, slope = x, torch.zeros(4)
        while y.norm() > 1:
            y = y * 0.5
            (slope,) = torch.autograd.grad((y**2).sum(), x, retain_graph=True)
    return slope


def through_a_leaf_of_an_earlier_iteration(x):
    with torch.enable_grad():
        p = x.detach().requires_grad_()
        q = p * 2
        slope = torch.zeros(4)
        while q.norm() > 1:
            slope = torch.autograd.grad((q**2).sum() + p.sum(), p, allow_unused=True)[0]
            p = (p * 0.5).detach().requires_grad_()
            q = p * 2
    return slope


def through_what_is_handed_on(x):
    """What one iteration computes is read in the one after the next."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        p, q, slope = torch.zeros(4), torch.zeros(4), torch.zeros(4)
        while slope.sum() < 20:
            (slope,) = torch.autograd.grad((q * x).sum() + x.sum(), x, retain_graph=True)
            q = p
            p = x * 3
    return slope


def through_what_iterations_write(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        out, slope = torch.zeros(5), torch.zeros(4)
        k = 0
        while k < 3:
            out[k] = (x**2).sum() * (k + 1)
            (slope,) = torch.autograd.grad(out.sum(), x, retain_graph=True)
            k = k + int(x.sum() > -100)
    return slope


def through_rows_of_earlier_iterations(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        rows, h, slope = [], x, torch.zeros(4)
        while h.norm() > 1:
            rows.append(h * 0.5)
            (slope,) = torch.autograd.grad(torch.stack(rows).sum() * x.sum(), x, retain_graph=True)
            h = (h * 0.5).detach()
    return slope


def through_a_write_without_gradients(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        y = x * 2
        with torch.no_grad():
            y.mul_(3)
        (slope,) = torch.autograd.grad((y**3).sum(), x)
    return slope


class Norm(nn.Module):
    """It reads the gradients of its parameters that its own ``backward()`` has left there."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        with torch.enable_grad():
            (x * self.scale).square().sum().backward()
        return self.scale.grad


class Clamped(torch.autograd.Function):
    """Its backward is not the derivative of its forward."""

    @staticmethod
    def forward(ctx, x):
        return x.clamp(0, 1)

    @staticmethod
    def backward(ctx, slope):
        return slope


def through_a_function(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        return torch.autograd.grad(Clamped.apply(x).sum(), x)[0]


class Descent(torch.autograd.Function):
    """Its forward takes gradients of its own."""

    @staticmethod
    def forward(ctx, x):
        while x.norm() > 0.1:
            with torch.enable_grad():
                y = x.detach().requires_grad_()
                (slope,) = torch.autograd.grad(y.square().sum(), y)
            x = x - 0.2 * slope
        return x

    @staticmethod
    def backward(ctx, slope):
        return slope


def inside_a_function(x):
    return Descent.apply(x.detach()) * 2


@row(73)
def test_a_function_takes_gradients_in_its_forward():
    agree(inside_a_function, [(torch.zeros(3),), (torch.ones(3),)], whole=False)


def of_rows(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        losses = (x**3).sum(1)
        (slope,) = torch.autograd.grad(torch.unbind(losses), x, retain_graph=True)
        (scaled,) = torch.autograd.grad(torch.unbind(losses), x, grad_outputs=torch.unbind(losses.detach() * 2))
        return slope, scaled


def back_from_rows(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        y = x * 2
        torch.autograd.backward(torch.unbind(y.exp().sum(1)), inputs=[x])
        torch.autograd.backward(torch.unbind(x**3), torch.unbind(x.detach()))
        return x.grad


@row(73)
@pytest.mark.parametrize("model", [of_rows, back_from_rows])
def test_gradients_of_as_many_tensors_as_there_are_rows(model):
    tables = [(torch.randn(n, 3),) for n in (3, 1, 5)]
    agree(model, tables, ({0: torch.export.Dim("b", min=1)},), paths=1)


@row(73)
def test_of_no_rows_there_are_no_gradients():
    program = dy2st.export(of_rows, (torch.ones(2, 3),), dynamic_shapes=({0: torch.export.Dim("b", min=0)},))
    with pytest.raises(RuntimeError, match="gradients of one tensor at least"):
        program.module()(torch.ones(0, 3))
    with pytest.raises(RuntimeError, match="not have been used"):
        of_rows(torch.ones(0, 3))
    outcomes.append("R")


@row(73)
def test_gradients_of_rows_that_are_no_scalars():
    def model(x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return torch.autograd.grad(torch.unbind(x * 2), x)[0]

    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        model(torch.ones(2, 3))
    refuses(model, (torch.ones(2, 3),), ({0: torch.export.Dim("b", min=1)},))


def by_rows(x):
    with torch.enable_grad():
        parts = [part.detach().requires_grad_() for part in torch.unbind(x)]
        return torch.autograd.grad((torch.stack(parts) ** 2).sum(), parts)[0]


def of_each_row(x):
    with torch.enable_grad():
        y = x.detach().requires_grad_()
        other = torch.ones(2).requires_grad_()
        values = torch.stack([(y**2).sum(), y[0] * y[-1], y.prod()])
        if values[0] > 1:
            values = values * 3
        rows = torch.eye(3)
        found, unused = torch.autograd.grad(values, [y, other], rows, allow_unused=True, is_grads_batched=True)
        assert unused is None
        return found, torch.autograd.functional.jacobian(lambda z: z * found[0], y, vectorize=True)


def of_many_rows(x):
    y = x.detach().requires_grad_()
    return torch.autograd.grad(y * 2, y, torch.eye(x.shape[0]), is_grads_batched=True)[0]


@row(73)
def test_gradients_of_each_row():
    agree(of_each_row, [(torch.tensor(each),) for each in ([1.0, 2.0], [0.5, -0.5], [3.0, -1.0])])
    with torch.enable_grad():
        assert isinstance(
            refuses(of_many_rows, (torch.ones(3),), ({0: torch.export.Dim("b", min=1)},)), NoGradientError
        )


@row(73)
def test_gradients_by_rows_are_refused():
    error = refuses(by_rows, (torch.ones(3, 2),), ({0: torch.export.Dim("b", min=1)},))
    assert isinstance(error, NoGradientError)


def with_dropout(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        return torch.autograd.grad(nn.functional.dropout(x, 0.5).sum(), x)[0]


def with_a_hook(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        x.register_hook(lambda slope: slope * 2)
        return torch.autograd.grad(x.square().sum(), x)[0]


@row(73)
@pytest.mark.parametrize(
    "model",
    [
        none_on_a_path,
        through_earlier_iterations,
        through_what_is_handed_on,
        through_what_iterations_write,
        through_rows_of_earlier_iterations,
        through_a_write_without_gradients,
        Norm(),
        through_a_leaf_of_an_earlier_iteration,
        through_a_function,
        with_dropout,
        with_a_hook,
    ],
)
def test_refused(model):
    assert isinstance(refuses(model, (torch.full((4,), 2.0),)), NoGradientError)


class Outer(nn.Module):
    """A loss that has a gradient of its own model in it, for ``to_static`` to be trained by."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        x = x.detach().requires_grad_()
        y = torch.tanh(self.layer(x)).sum()
        (slope,) = torch.autograd.grad(y, x, create_graph=True)
        (fixed,) = torch.autograd.grad(y, x, retain_graph=True)
        return y + (slope.norm() - 1) ** 2 + fixed.sum()


@row(73)
def test_a_static_model_is_trained_through_its_own_gradients():
    model, x = Outer(), torch.randn(4, 3)
    wanted = grad(model(x), list(model.parameters()))
    found = grad(dy2st.to_static(model)(x), list(model.parameters()))
    for want, got in zip(wanted, found, strict=True):
        torch.testing.assert_close(got, want)
    outcomes.append("Y")


def asks(x):
    y = x.detach().requires_grad_()
    value = (y**3).sum() if x.sum() > 0 else y.sin().sum()
    return torch.autograd.grad(value, y)[0]


@row(73)
def test_a_check_runs_eager_with_gradients_where_the_model_needs_them():
    report = dy2st.check(asks, [(torch.rand(3),), (-torch.rand(3),)])
    assert report.ok
    outcomes.append("Y")


def untouched(x: Tensor) -> Tensor:
    with torch.enable_grad():
        y = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad(y.exp().sum(), y)
    return slope


@row(73)
def test_a_capture_leaves_autograd_as_it_is():
    before = torch.autograd.grad, torch.autograd.backward, torch.is_grad_enabled, torch.is_grad_enabled()
    dy2st.export(untouched, (torch.ones(3),))
    assert (torch.autograd.grad, torch.autograd.backward, torch.is_grad_enabled, torch.is_grad_enabled()) == before
    outcomes.append("Y")


@torch.no_grad()
def without(x):
    with torch.enable_grad():
        y = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad((y**3).sum(), y, create_graph=True)
        twice = 2 if slope.grad_fn is not None and slope.requires_grad else 1
    quiet = 1 if (x * slope).requires_grad or not torch.is_grad_enabled() else 2
    if x.sum() > 0:
        return slope.detach() * twice * quiet
    return torch.autograd.grad(slope, y, torch.ones_like(slope))[0] * twice


@row(73)
def test_gradients_that_are_switched_on_inside_of_a_function_without():
    agree(without, [(torch.full((3,), 0.5),), (torch.full((3,), -0.5),)])


@row(73)
def test_gradients_that_are_switched_on_inside_of_a_call_without():
    inputs = [(torch.full((3,), 0.5),), (torch.full((3,), -0.5),)]
    with torch.no_grad():
        agree(without, inputs)
    assert dy2st.check(without, inputs).outcome == "equal"
