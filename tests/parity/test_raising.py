"""Where the model raises as it means to, the others have to fail at the same line; that is what is compared then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from onnx import numpy_helper
from torch import Tensor

import dy2st
from dy2st.errors import UnusableInputError
from dy2st.parity.checking import compare_stages, eager_references, export_for


def root(x: Tensor) -> Tensor:
    if x.sum() < 0:
        raise ValueError("negative")
    assert x.max() < 100, "large"
    return x.sqrt()


def rows(x: Tensor, least: Tensor) -> Tensor:
    total = torch.zeros(3)
    for row in x:
        if row.sum() > 1:
            if row[0] < least:
                raise RuntimeError("below")
            total = total + row
    return total


def narrow(x: Tensor) -> Tensor:
    if x.shape[1] != 4:
        raise ValueError("four columns")
    if x.sum() > 0:
        return x + 1
    return x - 1


def statuses(report: Any) -> list[list[str]]:
    return [[stage.status for stage in each.stages] for each in report.inputs]


def test_a_guard_is_proved_by_an_input_that_eager_rejects() -> None:
    report = dy2st.check(root, [(torch.ones(3),), (-torch.ones(4),), (torch.full((2,), 1e4),)])
    assert report.ok
    assert report.covered
    assert statuses(report) == [["equal"] * 3] * 3
    assert [each.raises.partition(" at ")[0] for each in report.inputs] == [
        "",
        "ValueError: negative",
        "AssertionError: large",
    ]
    assert [line.split()[-3:] for line in str(report).splitlines() if "raises" in line] == [["raises"] * 3] * 2


def test_a_guard_in_a_loop_is_proved_too() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0], [-1.0, 0.0, 0.0], [0.5, 3.0, 1.0]])
    least = torch.tensor(0.0)
    report = dy2st.check(rows, [(x, least), (x, least + 0.75), (x[:1], least), (x[:0], least)])
    assert report.ok
    assert report.covered
    assert report.inputs[1].raises.startswith("RuntimeError: below at ")


def test_what_was_computed_before_it_raised_is_not_covered() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0], [-1.0, 0.0, 0.0]])
    report = dy2st.check(rows, [(x - 9, torch.tensor(0.0)), (x, torch.tensor(2.0))])
    missed = [line.partition(": ")[2] for line in report.uncovered]
    assert "if row.sum() > 1, row 0: its then-arm never ran" in missed
    assert "if row[0] < least, row 0: its then-arm never ran" not in missed
    assert "if row[0] < least, row 0: its else-arm never ran" in missed


def test_a_set_that_eager_rejects_elsewhere_proves_nothing() -> None:
    report = dy2st.check(root, [(torch.ones(3),), ("text",)], dynamic_shapes=None)
    assert report.outcome == "unusable"
    assert report.inputs[1].raises == ""


def test_a_check_in_python_is_no_guard() -> None:
    report = dy2st.check(narrow, [(torch.ones(3, 4),), (-torch.ones(3, 4),)], dynamic_shapes=None)
    assert report.ok
    assert report.covered


def test_a_single_set_may_be_one_that_raises() -> None:
    report = dy2st.check(root, [(-torch.ones(3),)])
    assert report.ok
    assert statuses(report) == [["equal"] * 3]
    assert [line.partition(": ")[2] for line in report.uncovered] == ["if x.sum() < 0: its else-arm never ran"]
    with pytest.raises(UnusableInputError, match="eager itself raises ValueError: four columns"):
        dy2st.check(narrow, [(torch.ones(3, 5),)])


def test_without_the_guards_there_is_nothing_to_compare() -> None:
    report = dy2st.check(root, [(torch.ones(3),), (-torch.ones(3),)], drop_guards=True)
    assert report.outcome == "unusable"
    assert report.inputs[1].problem.startswith("eager itself raises ValueError: negative")


def test_a_search_finds_what_makes_it_raise() -> None:
    report = dy2st.check(root, [(torch.ones(3),), (torch.ones(4),)], search=2)
    assert report.ok
    assert report.covered
    assert "1 input for 1 path, 2 near to where conditions flip; not compared: x: f32[0]: eager" in report.searched


def test_a_file_that_goes_on_differs(tmp_path: Path) -> None:
    references = eager_references(root, [(torch.ones(3),), (-torch.ones(3),)])
    program = export_for(root, references, tmp_path / "root.onnx")
    wrong = onnx.load(str(tmp_path / "root.onnx"))
    less = next(node for node in wrong.graph.node if node.op_type == "Less")
    wrong.graph.initializer.append(numpy_helper.from_array(torch.tensor(-1e9).numpy(), "far"))
    less.input[1] = "far"
    onnx.save(wrong, str(tmp_path / "wrong.onnx"))
    report = compare_stages(root, references, program=program, onnx_file=tmp_path / "wrong.onnx")
    assert report.first_to_differ == "onnxruntime"
    assert statuses(report)[1] == ["equal", "equal", "differs"]
    (line,) = report.problems()
    assert "onnxruntime: the call: eager raises ValueError: negative at " in line
    assert line.endswith(", and this raises nothing")


def test_a_file_that_fails_for_something_else_proves_nothing(tmp_path: Path) -> None:
    references = eager_references(root, [(torch.ones(3),), (-torch.ones(3),)])
    program = export_for(root, references, tmp_path / "root.onnx")
    wrong = onnx.load(str(tmp_path / "root.onnx"))
    for number, node in enumerate(wrong.graph.node):
        node.name = f"other_{number}"
    onnx.save(wrong, str(tmp_path / "wrong.onnx"))
    report = compare_stages(root, references, program=program, onnx_file=tmp_path / "wrong.onnx")
    assert report.outcome == "unusable"
    assert "onnxruntime fails, but not for this: " in report.inputs[1].problem


@pytest.mark.parametrize("value", [-1.0, 1000.0])
def test_the_command_line_says_that_it_raises(value: float, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from dy2st.cli.main import main

    source = (
        "import torch\n\n\ndef model(x):\n    if x.sum() < 0:\n        raise ValueError('negative')\n"
        "    assert x.max() < 100\n    return x.sqrt()\n\n\n"
        f"example_inputs = [(torch.ones(3),), (torch.full((3,), {value}),)]\n"
    )
    (tmp_path / "guarded.py").write_text(source)
    code = main(["check", str(tmp_path / "guarded.py"), "--allow-uncovered"])
    told = capfd.readouterr()
    assert (code, told.err) == (0, "")
    assert told.out.count("raises") == 3


class Checked(torch.nn.Module):
    """Tests an index before it is used."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(5, 2)

    def forward(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        if (i < 0).any() or (i >= 5).any():
            raise ValueError("no such row")
        rows = x.index_select(0, i) + self.table(i)
        return rows + x.gather(0, i[:, None].expand(-1, 2)) + x[i]


def test_what_is_tested_first_fails_first() -> None:
    sets = [(torch.rand(5, 2), torch.tensor(each)) for each in ([0, 4], [1, 5], [7, -1])]
    report = dy2st.check(Checked(), sets)
    assert report.ok
    assert [each.raises[:10] for each in report.inputs] == ["", "ValueError", "ValueError"]
