"""Arguments that are Python numbers as inputs of a file."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import dy2st
from dy2st.errors import UsageError
from dy2st.onnx import Runner
from dy2st.parity.embedding import embed_tests

X = torch.tensor([1.0, -2.0, 3.0])


def repeated(x, k: int, scale: float = 2.0, flip: bool = False):
    for i in range(k):
        x = x * scale + i
    if flip:
        x = -x
    return x, k + 1, scale * 2


def test_numbers_decide_loops_and_branches(tmp_path):
    file = tmp_path / "model.onnx"
    wanted = {"k": "tensor", "scale": "tensor", "flip": "tensor"}
    dy2st.onnx.export(repeated, (X, 3), file, inputs_as=wanted)
    run = Runner(file)
    assert run.input_names == ["x", "k", "scale", "flip"]
    assert [each.type for each in run.session.get_inputs()][1:] == ["tensor(int64)", "tensor(double)", "tensor(bool)"]
    for given in ((3, 2.0, False), (0, 0.5, True), (2, 0.1, True), (5, -1.0, False)):
        found, want = run(X.numpy(), *given), repeated(X, *given)
        np.testing.assert_allclose(found[0], want[0].numpy(), rtol=1e-6)
        assert found[0].dtype == np.float32
        assert (found[1].item(), found[2].item()) == want[1:]


def test_a_check_compares_each_value():
    sets = [(X, 3, 2.0, True), (X * 2, 0, 0.5, False), (X, 1, 0.5, True)]
    report = dy2st.check(repeated, sets, inputs_as={"k": "tensor", "scale": "tensor", "flip": "tensor"}, search=1)
    assert report.outcome == "equal", str(report)
    assert report.covered


def test_a_program_takes_tensors():
    program = dy2st.export(repeated, (X, 3), inputs_as={"k": "tensor"})
    torch.testing.assert_close(program.module()(X, torch.tensor(1))[0], repeated(X, 1)[0])


def test_numbers_in_containers_and_state():
    class Smoothed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, x, config):
            self.seen = self.seen + config["weights"][0]
            steps = 0
            while steps < config["steps"]:
                x = self.linear(x) * config["weights"][1]
                steps += 1
            return x, self.seen

    sets = [(X, {"steps": steps, "weights": (weight, 0.5)}) for steps, weight in ((2, 0.25), (0, 1.5), (1, -1.0))]
    report = dy2st.check(Smoothed(), sets, inputs_as={"config": "tensor"})
    assert report.outcome == "equal", str(report)


def test_sizes_that_are_numbers(tmp_path):
    def rows(x, k: int):
        return x.reshape(-1, k).sum(0) + torch.ones(k)

    file = tmp_path / "model.onnx"
    dy2st.onnx.export(rows, (torch.ones(6), 3), file, inputs_as={"k": "tensor"})
    assert Runner(file)(np.ones(6, np.float32), 2)[0].tolist() == [4, 4]


def test_tests_beside_the_file(tmp_path):
    file = tmp_path / "model.onnx"
    dy2st.onnx.export(repeated, (X, 3), file, inputs_as={"k": "tensor"})
    embed_tests(repeated, [(X, torch.tensor(2)), (X, torch.tensor(0))], file)
    assert dy2st.check_embedded(file).outcome == "equal"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"steps": "tensor"}, "no argument 'steps'"),
        ({"x": "tensor"}, "no number in it"),
        ({"k": "int"}, "inputs_as has 'int' for 'k'"),
        (["k"], "names no arguments"),
    ],
)
def test_what_is_no_number_is_refused(given, says):
    with pytest.raises(UsageError, match=says):
        dy2st.onnx.export(repeated, (X, 3), inputs_as=given)


def test_tensors_beside_numbers_are_refused():
    with pytest.raises(UsageError, match="taken for numbers"):
        dy2st.export(lambda x, c: x * c[0] + c[1], (X, (2, torch.tensor(3))), inputs_as={"c": "tensor"})
