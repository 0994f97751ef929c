"""``dy2st.check`` on programs and files that are made here with torch alone."""

from __future__ import annotations

import json

import onnx
import pytest
import torch
from onnx import TensorProto, helper
from torch import nn

import dy2st
from dy2st.errors import OnnxError, ParityError, UnusableInputError


def onnx_file(path, nodes, inputs, outputs, initializers=()):
    def values(pairs):
        return [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in pairs]

    graph = helper.make_graph(nodes, "g", values(inputs), values(outputs), list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 10
    onnx.save(model, path)
    return path


FLOAT = TensorProto.FLOAT


@pytest.fixture
def double(tmp_path):
    """A file that computes y = x + x and has one input."""
    nodes = [helper.make_node("Add", ["x", "x"], ["y"])]
    return onnx_file(tmp_path / "double.onnx", nodes, [("x", FLOAT, ["n"])], [("y", FLOAT, ["n"])])


def test_equal_file(double):
    report = dy2st.check(lambda x: x * 2, [(torch.ones(3),), (torch.ones(5),)], onnx_file=double)
    assert report.ok
    assert report.graph == {"Add": 1}
    assert report.opset == 18
    report.raise_if_different()


def test_different_file(double):
    report = dy2st.check(
        lambda x: torch.where(x > 0, x * 2, x), [(torch.ones(3),), (-torch.ones(5),)], onnx_file=double
    )
    assert report.outcome == "differs"
    assert [each.outcome for each in report.inputs] == ["equal", "differs"]
    with pytest.raises(
        ParityError, match=r"input 1 \(x: f32\[5\]\): onnxruntime: output: eager has -1 at \[0\], this -2"
    ):
        report.raise_if_different()


def test_argument_that_the_graph_does_not_use(double):
    def model(unused, x):
        return x * 2

    assert dy2st.check(model, [(torch.ones(7, 2), torch.ones(3))], onnx_file=double).ok
    assert dy2st.check(model, [{"x": torch.ones(3), "unused": 5}], onnx_file=double).ok


def test_other_names_are_matched_in_order(double):
    assert dy2st.check(lambda value: value * 2, [(torch.ones(3),)], onnx_file=double).ok


def test_inputs_that_do_not_fit_the_file(double):
    report = dy2st.check(lambda a, b: a * 2, [(torch.ones(3), torch.ones(3))], onnx_file=double)
    (stage,) = report.inputs[0].stages
    assert stage.status == "error"
    assert "the file has the inputs x; the arguments are a, b" in stage.message


def test_file_that_onnxruntime_refuses(tmp_path):
    path = onnx_file(
        tmp_path / "bad.onnx", [helper.make_node("NoSuchOp", ["x"], ["y"])], [("x", FLOAT, [1])], [("y", FLOAT, [1])]
    )
    with pytest.raises(OnnxError, match="onnxruntime can't load the file"):
        dy2st.check(lambda x: x, [(torch.ones(1),)], onnx_file=path)


def test_bfloat16_goes_in_and_out(tmp_path):
    kind = TensorProto.BFLOAT16
    path = onnx_file(
        tmp_path / "b.onnx", [helper.make_node("Identity", ["x"], ["y"])], [("x", kind, [2])], [("y", kind, [2])]
    )
    assert dy2st.check(lambda x: x.clone(), [(torch.tensor([1.5, 2.5], dtype=torch.bfloat16),)], onnx_file=path).ok


class Counter(nn.Module):
    """Writes into a buffer, an attribute, a list, and its own input."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.calls = 0
        self.seen = []

    def forward(self, x):
        self.count += 1
        self.calls += 1
        self.seen.append(self.calls)
        self.extra = x
        x.mul_(2)
        return x * self.count


def test_model_and_inputs_are_as_before_after_every_run(double):
    model, x = Counter(), torch.ones(3)
    report = dy2st.check(model, [(x,), (x,)], onnx_file=double)
    assert report.ok
    assert (model.count, model.calls, model.seen, hasattr(model, "extra")) == (0, 0, [], False)
    assert x.tolist() == [1, 1, 1]


def test_program_is_a_stage(double):
    def model(x, flag):
        return x + x

    class Module(nn.Module):
        forward = staticmethod(model)

    sets = [(torch.ones(3), True)]
    program = torch.export.export(Module(), *sets)
    report = dy2st.check(model, sets, program=program)
    assert [stage.stage for stage in report.inputs[0].stages] == ["program"]
    assert report.ok
    report = dy2st.check(model, [*sets, (torch.ones(4), True)], program=program, onnx_file=double)
    assert [stage.status for stage in report.inputs[1].stages] == ["error", "equal"]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda x: x @ torch.ones(4, 4), "eager itself raises RuntimeError"),
        (lambda x: x / 0 * 0, "all that eager returns is NaN"),
        (lambda x: None, "eager returns no tensor"),
        (lambda x: object(), "neither a tensor nor a number"),
    ],
)
def test_inputs_that_prove_nothing(model, words, double):
    report = dy2st.check(model, [(torch.ones(3),)], onnx_file=double)
    assert report.outcome == "unusable"
    assert words in report.problems()[0]
    with pytest.raises(UnusableInputError, match="input 0"):
        report.raise_if_different()


def test_problem_names_the_users_line(double):
    def model(x):
        return x.reshape(17)

    (problem,) = dy2st.check(model, [(torch.ones(3),)], onnx_file=double).problems()
    assert f"{__file__}:{model.__code__.co_firstlineno + 1}" in problem


def test_train_mode_and_seed_stay(double):
    model = nn.Dropout(0.5)
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    dy2st.check(model, [(torch.ones(3),)], onnx_file=double)
    assert model.training
    assert torch.equal(torch.random.get_rng_state(), before)


def test_json(double):
    report = dy2st.check(
        lambda x: x * 2, {"ones": (torch.ones(3),), "inf": (torch.full((2,), float("inf")),)}, onnx_file=double
    )
    plain = json.loads(report.to_json())
    assert plain["outcome"] == "equal"
    assert [each["name"] for each in plain["inputs"]] == ["ones", "inf"]
    assert plain["inputs"][0]["stages"][0] == {
        "stage": "onnxruntime",
        "status": "equal",
        "max_abs": 0.0,
        "max_rel": 0.0,
        "differences": [],
        "message": "",
        "pictures": [],
        "outputs": [
            {
                "output": "output",
                "max_abs": 0.0,
                "max_rel": 0.0,
                "max_ulps": 0.0,
                "cosine": pytest.approx(1.0),
                "mismatched": 0.0,
                "worst": [0],
                "dtype": "float32",
                "shape": [3],
                "of_tolerance": 0.0,
            }
        ],
        "culprit": None,
        "terms": 0,
        "rounding": 0.0,
    }
    assert plain["tolerances"]["float32"] == {"rtol": 1e-4, "atol": 1e-5}
    assert set(plain["versions"]) == {"torch", "onnx", "onnxruntime"}


def test_text(double):
    report = dy2st.check(lambda x: x.abs() + x, {"up": (torch.ones(2),), "down": (-torch.ones(2),)}, onnx_file=double)
    assert str(report).splitlines() == [
        "input             onnxruntime  largest difference",
        "-----  ---------  -----------  ------------------",
        "up     x: f32[2]  equal        0",
        "down   x: f32[2]  differs      2",
        "  input down (x: f32[2]): onnxruntime: output: eager has 0 at [0], this -2 (2 of 2 elements differ)",
        "differs: equal to eager on 1 of 2 inputs",
    ]


def test_floats_of_eight_bits():
    def model(x):
        if x.sum() > 0:
            x = x * 2
        return x.to(torch.float8_e4m3fn)

    assert dy2st.check(model, [(torch.tensor([0.5, 3.0]),), (torch.tensor([-0.5, -3.0]),)]).ok


def test_a_result_that_no_program_has_is_not_said_to_be_raised_by_eager():
    class Result:
        pass

    with pytest.raises(UnusableInputError, match="nothing can be compared: output is of type Result: neither"):
        dy2st.check(lambda x: Result(), [(torch.ones(2),)])
