"""One wrong constant, comparison or write inside a file is found at its line, in arms and iterations too."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from torch import Tensor

from dy2st.onnx.passes.source_lines import STACK, frames
from dy2st.onnx.runtime.stepping import metadata
from dy2st.parity.checking import compare_stages, eager_references, export_for
from dy2st.parity.localising import Localiser

COMPARISONS = {"Less": "Greater", "Greater": "Less", "LessOrEqual": "Greater", "GreaterOrEqual": "Less"}
WRITES = ("ScatterElements", "ScatterND")


def walk(x: Tensor) -> tuple[Tensor, Tensor, int]:
    """Branches in loops in branches."""
    total = torch.zeros(3)
    marks = torch.zeros(6)
    steps = 0
    for row in x:
        scaled = row * 1.5
        if row.sum() > 1:
            total = total + scaled.clamp(max=4.0)
            marks[2] = marks[2] + 7.0
            if total.max() > 9:
                total = total / 3.0
                marks[0] = total[1]
        else:
            shifted = scaled - 0.25
            while shifted.abs().sum() > 0.5:
                shifted = shifted * 0.5
                marks[1] = marks[1] + 0.125
            total[0] = total[0] + shifted.mean() + 2.0
    while total.sum() < 60:
        total = total * 1.25 + 1.0
        steps += 1
        if total[2] > 11:
            marks[4] = marks[4] - 3.0
    return total, marks, steps


INPUTS = [
    (torch.tensor([[1.0, 2.0, 3.0], [-1.0, 0.2, 0.1], [4.0, 5.0, 9.0], [8.0, 1.0, 2.0]]),),
    (torch.tensor([[-3.0, 2.0, 0.5], [5.0, 5.0, 6.0]]),),
]


def nodes_of(graph: onnx.GraphProto, depth: int = 0) -> Iterator[tuple[onnx.NodeProto, int]]:
    for node in graph.node:
        yield node, depth
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes_of(attribute.g, depth + 1)


def line_of(node: onnx.NodeProto) -> int | None:
    own = [line for file, line in frames(metadata(node, STACK)) if file == __file__]
    source = Path(__file__).read_text().splitlines()
    code = walk.__code__
    own = [line for line in own if code.co_firstlineno <= line <= code.co_firstlineno + 32]
    assert all(source[line - 1].strip() for line in own)
    return own[-1] if own else None


def changed(model: onnx.ModelProto) -> Iterator[tuple[str, int, onnx.ModelProto]]:
    """Copies of the file, each with one thing wrong in a subgraph, and the line that it belongs to."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for number, (node, depth) in enumerate(nodes_of(model.graph)):
        line = line_of(node)
        if not depth or line is None:
            continue
        wrong = copy.deepcopy(model)
        target = next(each for i, (each, _) in enumerate(nodes_of(wrong.graph)) if i == number)
        if node.op_type in COMPARISONS:
            target.op_type = COMPARISONS[node.op_type]
            yield "comparison", line, wrong
        elif node.op_type in WRITES:
            del target.input[1:], target.attribute[:]
            target.op_type = "Identity"
            yield "write", line, wrong
        elif node.op_type in ("Add", "Sub", "Mul", "Div", "Min"):
            for i, name in enumerate(node.input):
                value = numpy_helper.to_array(constants[name]) if name in constants else None
                if value is not None and value.dtype == np.float32:
                    wrong.graph.initializer.append(numpy_helper.from_array(value * np.float32(1.75), "flipped"))
                    target.input[i] = "flipped"
                    yield "constant", line, wrong


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Any:
    file = tmp_path_factory.mktemp("localising") / "walk.onnx"
    references = eager_references(walk, INPUTS)
    return references, export_for(walk, references, file), file


@pytest.mark.slow
def test_a_right_file_has_no_culprit(exported: Any) -> None:
    references, program, file = exported
    assert [Localiser(walk, program, file).first(each.inputs) for each in references] == [None, None]


@pytest.mark.slow
def test_a_check_tells_the_line(exported: Any, tmp_path: Path) -> None:
    references, program, file = exported
    kind, line, wrong = next(each for each in changed(onnx.load(str(file))) if each[0] == "constant")
    onnx.save(wrong, str(tmp_path / "wrong.onnx"))
    report = compare_stages(walk, references, program=program, onnx_file=tmp_path / "wrong.onnx")
    assert report.first_to_differ == "onnxruntime"
    culprit = report.inputs[0].stages[-1].culprit
    assert culprit is not None
    assert (culprit.file, culprit.line, kind) == (__file__, line, "constant")
    (told,) = [each for each in report.problems() if "it begins at " in each]
    assert f"it begins at {__file__}:{line}: scaled: eager 13.5 vs onnxruntime 23.625 at [2, 2]" in told
    assert "(all trips of loop); node node_" in told  # it is computed for all rows at once


def test_a_node_that_fails_is_found(exported: Any, tmp_path: Path) -> None:
    references, program, file = exported
    wrong = onnx.load(str(file))
    constants = {tensor.name for tensor in wrong.graph.initializer}
    gathers = [each for each, depth in nodes_of(wrong.graph) if depth > 1 and each.op_type == "Gather"]
    node = next(each for each in gathers if each.input[1] in constants)
    wrong.graph.initializer.append(numpy_helper.from_array(np.array(99), "far"))
    node.input[1] = "far"
    onnx.save(wrong, str(tmp_path / "fails.onnx"))
    found = Localiser(walk, program, tmp_path / "fails.onnx").first(references[0].inputs)
    assert found is not None
    assert found.line == line_of(node)
    assert found.message.startswith("onnxruntime fails: ")


@pytest.mark.slow
def test_every_error_is_found_at_its_line(exported: Any, tmp_path: Path) -> None:
    references, program, file = exported
    kinds, right, found_lines = [], 0, []
    localiser = Localiser(walk, program, tmp_path / "wrong.onnx")
    for kind, line, wrong in changed(onnx.load(str(file))):
        onnx.save(wrong, str(localiser.file))
        report = compare_stages(walk, references, onnx_file=localiser.file)
        if report.ok:
            continue  # an error that no output shows
        bad = next(r for r, each in zip(references, report.inputs, strict=True) if each.outcome == "differs")
        found = localiser.first(bad.inputs)
        kinds.append(kind)
        right += found is not None and found.line == line
        found_lines.append((kind, line, found))
    assert len(kinds) >= 20
    assert {"comparison", "constant", "write"} == set(kinds)
    assert right >= 0.95 * len(kinds), [each for each in found_lines if each[2] is None or each[2].line != each[1]]
