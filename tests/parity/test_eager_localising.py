"""One wrong node of a program, or one wrong step of a converted model, is found at its line."""

from __future__ import annotations

import copy
import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, fx

import dy2st
from dy2st.onnx.passes.source_lines import innermost
from dy2st.parity.checking import compare_stages, eager_references, export_for
from dy2st.parity.line_values import recorded_lines

ATEN = torch.ops.aten
WRONG = {
    ATEN.add.Tensor: ATEN.mul.Tensor,
    ATEN.sub.Tensor: ATEN.add.Tensor,
    ATEN.mul.Tensor: ATEN.add.Tensor,
    ATEN.tanh.default: ATEN.sin.default,
}


def walk(x: Tensor) -> tuple[Tensor, Tensor, int]:
    """Branches in loops in branches."""
    total = torch.zeros(3)
    marks = torch.zeros(6)
    steps = 0
    for row in x:
        scaled = row * 1.5
        if row.sum() > 1:
            total = total + scaled.tanh()
            marks[2] = marks[2] + 7.0
        else:
            shifted = scaled - 0.25
            total = torch.mul(
                total,
                shifted.mean(),
            )
    while total.sum() < 6:
        total = total + 1.5
        steps += 1
        if total[2] > 3:
            marks[4] = marks[4] - 3.0
    return total, marks, steps


INPUTS = [(torch.tensor([[1.0, 2.0, 3.0], [-1.0, 0.2, 0.1], [4.0, 5.0, 9.0]]),)]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Any:
    references = eager_references(walk, INPUTS)
    return references, export_for(walk, references, tmp_path_factory.mktemp("program") / "walk.onnx")


def modules(module: fx.GraphModule) -> Iterator[fx.GraphModule]:
    return (each for each in module.modules() if isinstance(each, fx.GraphModule))


def changed(program: Any) -> Iterator[tuple[int, Any]]:
    """Copies of the program, each with one other operation, and the first line of its statement."""
    lines, begin = inspect.getsourcelines(walk)
    several = begin + next(i for i, line in enumerate(lines) if line.endswith("total = torch.mul(\n"))
    count = sum(len(each.graph.nodes) for each in modules(program.graph_module))
    for number in range(count):
        wrong = copy.deepcopy(program)
        node = [node for each in modules(wrong.graph_module) for node in each.graph.nodes][number]
        if node.target in WRONG and not isinstance(node.args[1] if len(node.args) > 1 else None, str):
            frame = innermost(str(node.meta.get("stack_trace")))
            if frame is None:
                continue
            node.target = WRONG[node.target]
            for each in modules(wrong.graph_module):
                each.recompile()
            yield several if several <= frame[1] <= several + 3 else frame[1], wrong


@pytest.mark.slow
@pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.slow)])
def test_each_wrong_node_is_found(exported: Any, every: int) -> None:
    references, program = exported
    found = 0
    for line, wrong in itertools.islice(changed(program), 0, None, every):
        report = compare_stages(walk, references, program=wrong)
        if report.ok:
            continue
        assert report.first_to_differ == "program"
        culprit = report.inputs[0].stages[1].culprit
        assert culprit is not None, line
        assert (culprit.file, culprit.line) == (__file__, line)
        assert "vs program" in culprit.message
        assert culprit.node
        found += 1
    assert found >= 6 / every


def test_a_right_program_has_no_culprit(exported: Any) -> None:
    references, program = exported
    report = compare_stages(walk, references, program=program)
    assert report.ok
    assert all(stage.culprit is None for stage in report.inputs[0].stages)


def test_a_wrong_step_of_the_converted_model_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from dy2st.parity import paths

    real = paths.flat_outputs

    class Wrong(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            return result + 1 if func is Tensor.tanh else result

    def run(model: Any, inputs: Any) -> Any:
        with Wrong():
            return paths.converted_run(model, inputs)

    monkeypatch.setattr("dy2st.parity.stage_runs.converted_run", run)
    monkeypatch.setattr("dy2st.parity.eager_localising.converted_run", run)
    report = dy2st.check(walk, INPUTS)
    assert report.first_to_differ == "converted"
    culprit = report.inputs[0].stages[0].culprit
    assert culprit is not None
    assert culprit.variable == "total"
    assert "tanh" in inspect.getsource(walk).splitlines()[culprit.line - walk.__code__.co_firstlineno]
    assert "vs converted" in str(culprit)
    assert "; node" not in str(culprit)
    assert real is paths.flat_outputs


def test_lines_with_what_they_assign() -> None:
    def model(x: Tensor) -> Any:
        a, (b, _) = x + 1, (2, None)
        for i in range(2):
            x[i] = b
        while x.sum() > 3:
            x = x - 1
        return {
            "a": a,
        }

    begin = model.__code__.co_firstlineno
    with recorded_lines() as found:
        model(torch.ones(2) * 3)
    told = [(each.line - begin, each.time, each.part) for each in found.values]
    assert told == [(1, 0, 0), (1, 0, 1), (3, 0, 0), (3, 1, 0), (5, 0, 0), (6, 0, 0)]
    assert found.runs[__file__, begin + 4] == 2
    last = found.values[-1].value
    assert isinstance(last, Tensor)
    assert torch.equal(last, torch.full((2,), 4.0))
