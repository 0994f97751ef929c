"""What a model draws at random as inputs of its file."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from torch import nn

import dy2st
from dy2st.errors import RandomInputError, StateWarning, UsageError
from dy2st.onnx import Runner

X = torch.linspace(-1, 2, 12).reshape(4, 3)


class Noisy(nn.Module):
    """Draws of several kinds, of a size that may change, and a branch that depends on them."""

    def __init__(self):
        super().__init__()
        self.linear, self.dropout = nn.Linear(3, 3), nn.Dropout(0.25)

    def forward(self, x):
        h = self.dropout(self.linear(x))
        z = h + torch.randn_like(h) * 0.1 + torch.empty_like(h).uniform_(0, 1)
        if z.sum() > 0:
            z = z * 2
        return z, torch.bernoulli(torch.sigmoid(h)), torch.randint(0, 5, (2,)), torch.rand(x.shape[0])


def sampled(x):
    return F.gumbel_softmax(x, hard=True), torch.normal(0.0, 1.0, (3,)), torch.multinomial(F.softmax(x, -1), 1)


@pytest.mark.parametrize("model", [Noisy(), sampled])
def test_eager_and_the_file_are_given_the_same(model):
    report = dy2st.check(model, [(X,), (-X,), (torch.ones(2, 3),)], random_inputs=True)
    assert report.outcome == "equal", str(report)
    assert [each.stage for each in report.inputs[0].stages] == ["converted", "program", "onnxruntime"]


def test_without_it_they_differ():
    assert dy2st.check(sampled, [(X,)]).outcome == "differs"


def test_the_inputs_of_a_file(tmp_path):
    file = tmp_path / "model.onnx"

    def model(x, random_0):
        return F.dropout(x, 0.5) + random_0 + torch.rand(3)

    dy2st.onnx.export(model, (X[0], X[1]), file, random_inputs=True)
    run = Runner(file)
    assert run.input_names == ["x", "random_0", "random_0_", "random_1"]
    mask, drawn = np.array([1, 0, 1], np.float32), np.array([0.5, 0.25, 0], np.float32)
    found = run(X[0].numpy(), X[1].numpy(), mask, drawn)[0]
    np.testing.assert_allclose(found, X[0].numpy() * mask * 2 + X[1].numpy() + drawn, rtol=1e-6)
    report = dy2st.check(model, [(X[0], X[1]), (X[2], X[3])], onnx_file=file, random_inputs=True)
    assert report.outcome == "equal", str(report)


def test_what_draws_nothing_is_left():
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5)).eval()
    assert dy2st.check(model, [(X,)], random_inputs=True).outcome == "equal"


def test_state_is_behind_them(tmp_path):
    class Drifting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("at", torch.zeros(3))

        def forward(self, x):
            self.at = self.at + torch.rand(3)
            return x + self.at

    dy2st.onnx.export(Drifting(), (X,), tmp_path / "model.onnx", random_inputs=True)
    run = Runner(tmp_path / "model.onnx")
    assert run.input_names == ["x", "random_0"]
    run(X.numpy(), np.ones(3, np.float32))
    assert run(X.numpy(), np.ones(3, np.float32))[0][0].tolist() == (X[0] + 2).tolist()
    with pytest.raises(UsageError, match="with state and random inputs"):
        dy2st.check(Drifting(), [(X,)], random_inputs=True)
    with pytest.warns(StateWarning):
        report = dy2st.check(Drifting(), [(X,)], random_inputs=True, state="forget")
    assert report.outcome == "equal", str(report)


def test_draws_that_a_branch_makes_are_refused():
    def model(x):
        if x.sum() > 0:
            return x + torch.rand(3)
        return x

    with pytest.raises(RandomInputError, match="under a tensor condition"):
        dy2st.onnx.export(model, (X[0],), random_inputs=True)


def test_as_many_as_data_decides_are_refused():
    def model(x):
        kept = x[x > 0]
        return kept + torch.rand(kept.shape[0])

    with pytest.raises(RandomInputError, match="as many random numbers"):
        dy2st.onnx.export(model, (X[0],), random_inputs=True)


def test_draws_inside_an_operator_are_refused():
    def model(x):
        return F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)

    with pytest.raises(RandomInputError, match="scaled_dot_product_attention"):
        dy2st.onnx.export(model, (torch.ones(1, 2, 3, 4),), random_inputs=True)
