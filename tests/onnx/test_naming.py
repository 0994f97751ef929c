"""Outputs are named by the keys and fields of what a model returns; tolerances go by these names."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import onnx
import onnx_ir as ir
import pytest
import torch
from torch import Tensor, nn

import dy2st
import dy2st.onnx
from dy2st.cli.main import main
from dy2st.errors import UsageError
from dy2st.onnx.passes.value_names import result_name


class State(NamedTuple):
    """Fields."""

    h: Tensor
    c: Tensor


class Net(nn.Module):
    """Keys like inputs, weights and values within the graph."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> dict[str, Any]:
        y = self.linear(x) + 1
        if y.sum() > 0:
            y = y * 2
        return {
            "linear": {"weight": self.linear.weight * 2, "other": y},
            "add": y - 1,
            "sub": y + 1,
            "x": x * 2,
            "y": y,
        }


def nested(x: Tensor) -> dict[str, Any]:
    if x.sum() > 0:
        x = x * 2
    return {
        "state": State(x + 1, x * 3),
        "boxes": [x - 1, x],
        "log-p": x.exp(),
        "n": 3,
        "nothing": None,
        "same": x,
        "size": len(x),
    }


def twins(x: Tensor) -> dict[str, Any]:
    return {"a": {"b": x + 1}, "a.b": x + 2}


def names(model: Any, **options: Any) -> list[str]:
    program = dy2st.onnx.export(model, (torch.ones(2, 3),), **options)
    onnx.checker.check_model(program.model_proto, full_check=True)
    return [value.name for value in program.model_proto.graph.output]


def test_keys_and_fields() -> None:
    found = names(nested)
    assert found[:4] == ["state.h", "state.c", "boxes.0", "boxes.1"]
    assert found[5:] == ["n", "same", "size"]
    assert names(lambda x: State(x + 1, x * 2)) == ["h", "c"]


def test_names_that_are_taken() -> None:
    assert names(Net()) == ["linear.weight_out", "linear.other", "add", "sub", "x_out", "y"]
    assert dy2st.check(Net(), [(torch.ones(2, 3),), (-torch.ones(2, 3),)]).ok
    assert names(twins)[1:] != ["a.b"]


def test_what_the_user_says_comes_first() -> None:
    assert names(lambda x: State(x + 1, x * 2), output_names=["first", "second"]) == ["first", "second"]
    assert "h" not in names(lambda x: (x + 1, x * 2))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("output['scores']", "scores"),
        ("output['state'].h", "state.h"),
        ("output.boxes[1]['a']", "boxes.1.a"),
        ("output[1]", None),
        ("output[1]['a']", None),
        ("output['log-p']", None),
        ("output[3.5]", None),
        ("output", None),
    ],
)
def test_names_of_paths(path: str, name: str | None) -> None:
    assert result_name(path) == name


def test_tolerances_go_by_these_names() -> None:
    given = [(torch.ones(2, 3),), (-torch.ones(2, 3),)]
    report = dy2st.check(nested, given, rtol={"state.h": 0.5, "boxes.1": 0.25, "same": 0.125})
    assert report.ok
    with pytest.raises(UsageError, match=r"there is no output 'state.x' to compare"):
        dy2st.check(nested, given, rtol={"state.x": 0.5})


def test_a_bound_of_one_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "noisy.py"
    file.write_text(
        "import torch\n"
        "def model(x):\n"
        "    return {'state': {'h': x + torch.rand(100) * 0.05}, 'y': x}\n"
        "example_inputs = [(torch.ones(100),)]\n"
    )
    assert main(["check", str(file), "--no-cache", "--atol", "state.h=0.1", "--rtol", "y=0"]) == 0
    assert main(["check", str(file), "--no-cache", "--atol", "y=0.1"]) == 1
    capsys.readouterr()


def looped(x: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
    total, best = torch.zeros(()), x
    while total < limit:
        total = total + x.sum().abs() + 1
        for row in x:
            best = torch.where(row > best, row, best) + total
    return total, best


@pytest.mark.parametrize("exported", [False, True])
def test_the_state_of_loops_is_called_as_in_the_source(exported: bool) -> None:
    args, shapes = (torch.ones(3), torch.tensor(4.0)), {"x": {0: "n"}, "limit": None}
    model = dy2st.export(looped, args, dynamic_shapes=shapes) if exported else looped
    program = dy2st.onnx.export(model, args, dynamic_shapes=shapes, without_passes=["scans"])
    found = []
    for node in ir.traversal.RecursiveGraphIterator(program.model.graph):
        if node.op_type == "Loop":
            body = node.attributes["body"].as_graph()
            found += [[value.name for value in values] for values in (body.inputs[2:], body.outputs[1:])]
    assert found == [
        ["best_body_0_in", "total_body_0_in"],
        ["best_body_0_out", "total_body_0_out"],
        ["best_body_0__body_0_in"],
        ["best_body_0__body_0_out"],
    ]
