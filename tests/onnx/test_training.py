"""A training step as one file: on onnxruntime it trains as eager does."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import nn
from torch.export import Dim

import dy2st
from dy2st.errors import NoGradientError, UsageError

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def sample(name):
    spec = importlib.util.spec_from_file_location(f"{name}_trained", SAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def momentum(parameters):
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=0.01)


def nesterov(parameters):
    return torch.optim.SGD(parameters, lr=0.02, momentum=0.9, nesterov=True)


def dampened(parameters):
    return torch.optim.SGD(parameters, lr=0.02, momentum=0.9, dampening=0.5, maximize=True)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=0.01)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=0.01, weight_decay=0.02, amsgrad=True)


def mse(output, target):
    return (output - target).square().mean()


def random(*shapes, count=5):
    return [tuple(torch.randn(*shape) for shape in shapes) for _ in range(count)]


def close(given, wanted, tolerance):
    wanted = wanted.detach().numpy()
    np.testing.assert_allclose(given, wanted, rtol=0, atol=tolerance * max(1, np.abs(wanted).max(initial=0)))


def trains_as_eager(model, loss, batches, make, path, *, steps=20, tolerance=3e-6, shapes=None, targets=1):
    """How often a parameter had no gradient; parameters, buffers, state and loss are compared at each step."""
    optimizer, count = make(model.parameters()), len(batches[0]) - targets
    first = batches[0]
    dy2st.onnx.export_training(
        model,
        first[:count],
        path,
        loss=loss,
        targets=first[count:],
        optimizer=optimizer,
        dynamic_shapes=shapes,
    )
    runner = dy2st.onnx.TrainingRunner(path)
    names = [each.name for each in runner.session.get_inputs()]
    parameters, buffers, skipped = dict(model.named_parameters()), dict(model.named_buffers()), 0
    for i in range(steps):
        batch = batches[i % len(batches)]
        optimizer.zero_grad()
        wanted = loss(model(*batch[:count]), *batch[count:])
        wanted.backward()
        optimizer.step()
        skipped += sum(each.grad is None for each in parameters.values())
        close(runner.step(dict(zip(names, batch, strict=True)))["loss"], wanted, tolerance)
        compared = set()
        for name, value in runner.state.items():
            owner, _, key = name.rpartition(".")
            if name in parameters or name in buffers:
                close(value, parameters[name] if name in parameters else buffers[name], tolerance)
            elif key in optimizer.state[parameters[owner]]:
                close(value, torch.as_tensor(optimizer.state[parameters[owner]][key]), tolerance)
            compared.add(name)
        assert {name for name, each in parameters.items() if each.requires_grad} <= compared
    return skipped


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.left, self.right = nn.BatchNorm1d(3), nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        h = self.norm(x)
        return self.left(h) if x[0, 0] > 0 else self.right(h).relu()


class Adaptive(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.halt, self.out = nn.GRUCell(3, 4), nn.Linear(4, 1), nn.Linear(4, 3)

    def forward(self, x):
        h = torch.zeros(x.shape[0], 4)
        total, spent, n = self.out(h), torch.zeros(()), 0
        while spent < 1.0 + x[0, 0] and n < 8:
            h = self.cell(x, h)
            share = torch.sigmoid(self.halt(h)).mean()
            total = total + share * self.out(h)
            spent = spent + share
            n += 1
        return total


@pytest.mark.slow_but_for("momentum")
@pytest.mark.parametrize("make", [momentum, adamw])
def test_branch(make, tmp_path):
    """The layer of the arm that is not taken has no gradient, and keeps its value, momentum and steps."""
    torch.manual_seed(0)
    batches = random((4, 3), (4, 3))
    assert any(x[0, 0] > 0 for x, _ in batches)
    assert any(x[0, 0] < 0 for x, _ in batches)
    assert trains_as_eager(Branch(), mse, batches, make, tmp_path / "step.onnx") == 40


@pytest.mark.slow
@pytest.mark.parametrize("make", [momentum, pytest.param(adamw, marks=pytest.mark.slow)])
def test_while(make, tmp_path):
    """The number of iterations is data; where it is zero, what only the loop uses has no gradient."""
    torch.manual_seed(0)
    batches = random((2, 3), (2, 3))
    batches[2][0][0, 0] = -2
    skipped = trains_as_eager(Adaptive(), mse, batches, make, tmp_path / "step.onnx")
    assert skipped
    kinds = {node.op_type for node in onnx.load(tmp_path / "step.onnx").graph.node}
    assert "Loop" in kinds


@pytest.mark.slow_for("adam")
@pytest.mark.parametrize("make", [nesterov, dampened, adam])
def test_options_of_optimisers(make, tmp_path):
    torch.manual_seed(0)
    trains_as_eager(Branch(), lambda y, t: mse(y, t).tanh(), random((4, 3), (4, 3)), make, tmp_path / "step.onnx")


def decoded(output, targets):
    logits, h = output
    return nn.functional.cross_entropy(logits.reshape(-1, 12), targets.reshape(-1)) + h.square().mean() * 0.1


@pytest.mark.slow
@pytest.mark.parametrize("make", [momentum, pytest.param(adamw, marks=pytest.mark.slow)])
def test_gru_decoder(make, tmp_path):
    torch.manual_seed(0)
    time, batch = Dim("time"), Dim("batch")

    def case(steps, lengths):
        n = len(lengths)
        tokens, targets = (torch.randint(0, 12, (steps, n)) for _ in range(2))
        return tokens, torch.tensor(lengths), torch.randn(n, 16), targets

    shapes = {"tokens": {0: time, 1: batch}, "lengths": {0: batch}, "context": {0: batch}}
    trains_as_eager(
        sample("gru_decoder").GRUDecoder(),
        decoded,
        [case(5, [5, 3, 4]), case(9, [2, 9]), case(3, [0, 3, 1, 2]), case(1, [1])],
        make,
        tmp_path / "step.onnx",
        shapes=shapes | {"targets": {0: time, 1: batch}},
    )


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(2, 8), nn.Linear(8, 2)

    def forward(self, y, mu):
        return self.second(torch.tanh(self.first(y))) * mu[:, None]


@pytest.mark.slow
def test_ode_solver(tmp_path):
    """A loop with a branch in it, and a break."""
    torch.manual_seed(0)
    batches = [
        (torch.randn(n, 2), torch.rand(n) + 0.5, torch.tensor(end), torch.randn(n, 2))
        for n, end in ((3, 2.0), (1, 0.05), (2, 6.0), (4, 1.0))
    ]
    batch = Dim("batch")
    trains_as_eager(
        sample("ode_solver").AdaptiveSolver(Field(), max_steps=20),
        lambda output, target: mse(output[0], target),
        batches,
        adamw,
        tmp_path / "step.onnx",
        shapes={"y": {0: batch}, "mu": {0: batch}, "target": {0: batch}},
    )


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        h, i = self.c(x), 0
        while h.abs().sum() < 10 and i < 4:
            j = 0
            while j < 3 and h[0, 0] + j < 2:
                if h[0, 1] > 0:  # noqa: SIM108
                    h = h + 0.3 * torch.tanh(self.a(h))
                else:
                    h = h * 1.1 + 0.1 * self.b(x)
                j += 1
            h = h * 1.1
            i += 1
        return torch.tanh(h)


class Infinite(nn.Module):
    """The derivative of the root is infinite, and counts only where that arm is taken."""

    def __init__(self):
        super().__init__()
        self.scale, self.linear = nn.Parameter(torch.zeros(3)), nn.Linear(3, 3)

    def forward(self, x):
        root = self.scale.abs().sqrt()
        h = self.linear(x)
        return h + root if x[0, 0] > 9 else h + self.scale


class Rounding(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * x.cos() * 0.1


class OwnDerivative(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        h = Rounding.apply(self.linear(x) * 3)
        if x.sum() > 0:
            h = h + Rounding.apply(self.linear(x))
        with torch.no_grad():
            scale = torch.sigmoid(self.linear(x))
        return torch.tanh(h * scale + self.linear(x).detach())


class Rows(nn.Module):
    """Rows that a loop writes, and one that it changes again."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        h, kept, i = self.linear(x), torch.zeros(4, 2, 3), torch.zeros((), dtype=torch.int64)
        while i < 4 and h.sum() < 2:
            h = torch.tanh(self.linear(h)) + 0.5
            kept[i] = h * 2
            kept[0] += kept[i]
            i = i + 1
        h = h.clone()
        h[:, 0] = h[:, 1] * 2
        return torch.tanh((h + kept.sum(0)) * 0.2)


class Guarded(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        h = self.linear(x)
        assert h.abs().max() < 1e6
        while h.norm() < 3:
            assert h.abs().max() < 1e5, "large"
            h = h * 1.5
        return torch.tanh(h)


@pytest.mark.slow_for("Rows")
@pytest.mark.parametrize("kind", [pytest.param(Nested, marks=pytest.mark.slow), Infinite, OwnDerivative, Rows, Guarded])
def test_constructs(kind, tmp_path):
    torch.manual_seed(0)
    trains_as_eager(kind(), mse, random((2, 3), (2, 3)), momentum, tmp_path / "step.onnx", steps=10)


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm = nn.Conv2d(2, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4)
        self.b = nn.Conv2d(4, 4, 3, groups=2, padding=1)
        self.c = nn.ConvTranspose2d(4, 2, 3, stride=2, output_padding=1, padding=1)
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        h = nn.functional.relu(self.norm(self.a(x)))
        h = nn.functional.max_pool2d(h, 2) if h.mean() > 0.39 else nn.functional.avg_pool2d(h, 2)
        return self.out(nn.functional.adaptive_avg_pool2d(self.c(self.b(h)), (2, 2)).flatten(1))


class Attention(nn.Module):
    """An embedding that is the output's weight too, and a layer that is applied as often as data says."""

    def __init__(self):
        super().__init__()
        self.embedding, self.out = nn.Embedding(10, 8), nn.Linear(8, 10)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.out.weight = self.embedding.weight

    def forward(self, x):
        h, n = self.embedding(x), 0
        while h.square().mean() < 1.5 and n < 3:
            h = self.layer(h) * 1.2
            n += 1
        return self.out(h).transpose(1, 2)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.out = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 2)
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x):
        y, (h, _) = self.lstm(x)
        self.seen += h.detach().mean()
        return self.out(h[0] + y[:, -1])


def classes(count, *shape):
    return [(torch.randint(0, count, shape), torch.randint(0, count, shape)) for _ in range(3)]


def images():
    return [(torch.randn(3, 2, 8, 8), torch.randint(0, 3, (3,))) for _ in range(4)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "loss", "batches"),
    [
        (Convolutions, nn.functional.cross_entropy, images),
        pytest.param(Attention, nn.CrossEntropyLoss(), lambda: classes(10, 2, 5), marks=pytest.mark.slow),
        pytest.param(Recurrent, mse, lambda: random((2, 5, 3), (2, 2)), marks=pytest.mark.slow),
    ],
)
def test_layers(kind, loss, batches, tmp_path):
    torch.manual_seed(0)
    trains_as_eager(kind(), loss, batches(), momentum, tmp_path / "step.onnx", steps=6)


class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.drop = nn.Parameter(torch.ones(50)), nn.Dropout(0.5)

    def forward(self, x):
        h, n = self.scale * x, 0
        while n < 3 and h.abs().sum() < 1e4:
            h = self.drop(h)
            n += 1
        if h.sum() > 0:
            h = self.drop(h)
        return h


def test_dropout_is_that_of_the_forward_pass(tmp_path):
    """Of a linear function of each element, gradient times value is what the element adds to the loss."""
    torch.manual_seed(0)
    path = tmp_path / "step.onnx"
    dy2st.onnx.export_training(Dropping(), (torch.ones(50),), path, loss=torch.sum)
    found = dy2st.onnx.TrainingRunner(path).step({"x": np.ones(50, np.float32)})
    assert set(np.unique(found["scale_grad"])) <= {0, 16}
    assert found["scale_grad"].sum() == found["loss"]


@pytest.mark.slow
def test_gradients_without_an_optimiser(tmp_path):
    torch.manual_seed(0)
    model, path = Adaptive(), tmp_path / "step.onnx"
    x, target = torch.randn(2, 3), torch.randn(2, 3)
    dy2st.onnx.export_training(model, (x,), path, loss=mse, targets=(target,))
    found = dy2st.onnx.TrainingRunner(path).step({"x": x, "target": target})
    mse(model(x), target).backward()
    for name, parameter in model.named_parameters():
        close(found[f"{name}_grad"], parameter.grad, 1e-6)


def test_state_that_an_optimiser_has_and_rates_of_groups(tmp_path):
    torch.manual_seed(0)
    model, path = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)), tmp_path / "step.onnx"
    model[0].bias.requires_grad_(False)
    groups = [{"params": model[0].parameters()}, {"params": model[1].parameters(), "lr": 0.1}]
    optimizer = torch.optim.AdamW(groups, lr=0.01)
    x, target = torch.randn(4, 3), torch.randn(4, 3)

    def eager():
        optimizer.zero_grad()
        mse(model(x), target).backward()
        optimizer.step()

    eager()
    dy2st.onnx.export_training(model, (x,), path, loss=mse, targets=(target,), optimizer=optimizer)
    runner = dy2st.onnx.TrainingRunner(path)
    assert "0.bias" not in {each.name for each in runner.session.get_overridable_initializers()}
    runner.step({"input": x, "target": target})
    eager()
    runner.learning_rate = 0.5
    for group in optimizer.param_groups:
        group["lr"] = 0.5
    runner.step({"input": x, "target": target})
    eager()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            close(runner.state[name], parameter, 1e-6)
    assert runner.state["1.weight.step"] == 3


class Growing(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        y = x * self.scale
        while y.sum() < 10:
            y = torch.cat([y, y * self.scale])
        return y


class NestedDraws(Dropping):
    def forward(self, x):
        h = self.scale * x
        while h.abs().sum() < 1e4:
            if h[0] > 0:
                h = self.drop(h) * 2
            h = h + 1
        return h


@pytest.mark.parametrize(
    ("model", "text"), [(Growing(), "while y.sum() < 10"), (NestedDraws(), "h = self.drop(h) * 2")]
)
def test_refused_at_its_line(model, text):
    with pytest.raises(NoGradientError) as caught:
        dy2st.onnx.export_training(model, (torch.ones(2 if isinstance(model, Growing) else 50),), loss=torch.sum)
    lines = Path(__file__).read_text().splitlines()
    assert text in lines[caught.value.location.line - 1]


def test_refused_use():
    model, x = nn.Linear(3, 3), torch.ones(2, 3)

    def attempt(text, **options):
        with pytest.raises(UsageError, match=text):
            dy2st.onnx.export_training(model, (x,), **{"loss": torch.sum, **options})

    attempt("RMSprop", optimizer=torch.optim.RMSprop(model.parameters()))
    attempt("none of the model", optimizer=torch.optim.SGD([nn.Parameter(x)], lr=0.1))
    attempt("the loss gives", loss=torch.relu)
    model.weight.register_hook(lambda gradient: gradient * 2)
    attempt("'weight'")
    with pytest.raises(UsageError, match=r"no torch\.nn\.Module"):
        dy2st.onnx.export_training(torch.relu, (x,), loss=torch.sum)


def test_a_file_that_does_not_train(tmp_path):
    dy2st.onnx.export(nn.ReLU(), (torch.ones(3),), tmp_path / "model.onnx")
    with pytest.raises(UsageError, match="computes no training step"):
        dy2st.onnx.TrainingRunner(tmp_path / "model.onnx")


def test_an_input_is_called_like_a_value(tmp_path):
    class Model(nn.Module):
        def forward(self, x):
            return (x + 1) * 2

    made = dy2st.onnx.export(Model(), (torch.ones(3),), input_names=["add"], output_names=["sub"])
    onnx.checker.check_model(made.model_proto, full_check=True)
    assert made.model_proto.graph.input[0].name == "add"
