"""The boxes of a file's graph: which nodes are one, what they read, and what lies inside."""

# ruff: noqa: SIM108 - the model is written as users write it
from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from onnx import TensorProto, helper

import dy2st
from dy2st.parity import graph_boxes
from dy2st.parity.graph_boxes import graph_drawing


def model(x):
    y = x * 2 + 1
    while y.sum() < 10:
        if y.max() > 1:
            y = y + x
        else:
            y = y + 1
    return y - x


@pytest.fixture(scope="module")
def drawing(tmp_path_factory):
    file = tmp_path_factory.mktemp("boxes") / "model.onnx"
    dy2st.onnx.export(model, torch.ones(3), file, without_passes=["chosen-values"])
    return graph_drawing(file)


def all_boxes(drawing):
    for box in drawing.boxes:
        yield drawing, box
        for inner in box.inner:
            yield from all_boxes(inner)


def test_a_box_is_a_line_of_the_source(drawing):
    first = model.__code__.co_firstlineno
    lines = Path(__file__).read_text("utf-8").splitlines()
    boxes = [box for _, box in all_boxes(drawing) if box.kind == "nodes"]
    assert {box.line - first for box in boxes if box.line} >= {1, 2, 3, 4, 6, 7}
    for box in boxes:
        assert box.title == (lines[box.line - 1].strip() if box.line else "")
        assert len(box.ops) == len(box.names)
    assert [box.kind for box in drawing.boxes if box.kind != "nodes"] == ["input", "output"]


def test_subgraphs_lie_inside_their_node(drawing):
    (loop,) = [box for box in drawing.boxes if box.inner]
    assert (loop.ops, [inner.name for inner in loop.inner]) == (("Loop",), ["body"])
    (branch,) = [box for box in loop.inner[0].boxes if box.inner]
    assert (branch.ops, [inner.name for inner in branch.inner]) == (("If",), ["then_branch", "else_branch"])


def test_every_node_is_in_one_box(drawing):
    for graph, _ in all_boxes(drawing):
        own = sum(len(box.ops) for box in graph.boxes)
        assert graph.nodes == own + sum(inner.nodes for box in graph.boxes for inner in box.inner)


def test_edges_go_from_earlier_to_later_boxes(drawing):
    for graph, _ in all_boxes(drawing):
        assert all(above < below for above, below in graph.edges)
    x = next(place for place, box in enumerate(drawing.boxes) if box.title == "x")
    (loop,) = [place for place, box in enumerate(drawing.boxes) if box.inner]
    assert (x, loop) in drawing.edges  # read by the body alone


def graph_of(*nodes, outputs=("y",)):
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", *outputs)]
    return helper.make_graph(list(nodes), "g", values[:1], values[1:])


def at(line, kind, inputs, output):
    node = helper.make_node(kind, inputs, [output], name=f"{kind}_{output}")
    entry = node.metadata_props.add()
    entry.key, entry.value = "pkg.torch.onnx.stack_trace", f'File "{Path(__file__).resolve()}", line {line}, in f'
    return node


def test_a_line_that_is_around_another_is_two_boxes(tmp_path):
    nodes = [at(1, "Neg", ["x"], "a"), at(2, "Abs", ["a"], "b"), at(1, "Exp", ["b"], "c"), at(1, "Log", ["c"], "y")]
    onnx.save(helper.make_model(graph_of(*nodes)), tmp_path / "m.onnx")
    drawn = graph_drawing(tmp_path / "m.onnx")
    assert [box.ops for box in drawn.boxes] == [(), ("Neg",), ("Abs",), ("Exp", "Log"), ()]
    assert drawn.edges == ((0, 1), (1, 2), (2, 3), (3, 4))


def test_a_box_that_reads_what_comes_after_its_first_node_stands_behind_it(tmp_path):
    nodes = [at(1, "Neg", ["x"], "a"), at(2, "Abs", ["x"], "b"), at(1, "Add", ["a", "b"], "y")]
    onnx.save(helper.make_model(graph_of(*nodes)), tmp_path / "m.onnx")
    drawn = graph_drawing(tmp_path / "m.onnx")
    assert [box.ops for box in drawn.boxes] == [(), ("Abs",), ("Neg", "Add"), ()]
    assert drawn.edges == ((0, 1), (0, 2), (1, 2), (2, 3))


def test_a_graph_of_very_many_lines_is_counted_only(tmp_path, monkeypatch):
    monkeypatch.setattr(graph_boxes, "MOST_BOXES", 3)
    nodes = [at(1, "Neg", ["x"], "a"), at(2, "Abs", ["a"], "y")]
    onnx.save(helper.make_model(graph_of(*nodes)), tmp_path / "m.onnx")
    drawn = graph_drawing(tmp_path / "m.onnx")
    assert (drawn.boxes, drawn.nodes) == ((), 2)
