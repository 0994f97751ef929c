"""The arms of a file itself: a file that is wrong where no input goes does not pass, and is blamed where one does."""

from __future__ import annotations

import json
from typing import Any

import onnx
import pytest
import torch
from onnx import parser

import dy2st
from dy2st.onnx.passes.node_constructs import CONSTRUCT, construct_of
from dy2st.onnx.runtime.stepping import metadata
from dy2st.report.file_arms import FileSite, blamed_inputs, merged_arms, untaken_lines
from dy2st.report.model import InputResult, StageResult

NET = """\
import torch

def clipped(x):
    if x.sum() > 4:
        return x * 0.5
    return x + 1

def model(x):
    for bound in (1.0, 2.0, 3.0):
        if x[0] < bound:
            x = x + bound
    return clipped(x) + clipped(x * 2)

example_inputs = [(torch.tensor(x),) for x in ([5.0, 5.0], [-9.0, 0.0], [0.5, 0.0])]
"""
# With the last of these, inputs take every arm.
MORE = ([5.0, 5.0], [-9.0, 0.0], [0.5, 0.0], [2.5, -9.5])


def control_flow(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    found = []
    for node in graph.node:
        found += [node] if node.op_type in ("If", "Loop") else []
        for attribute in node.attribute:
            found += control_flow(attribute.g)
    return found


def change(file: Any, number: int, branch: str) -> None:
    """Make one arm of one branch of a file give something else."""
    model = onnx.load(file)
    node = control_flow(model.graph)[number]
    (arm,) = [each.g for each in node.attribute if each.name == branch]
    arm.node.append(onnx.helper.make_node("Neg", [arm.output[0].name], ["negated"]))
    arm.output[0].name = "negated"
    onnx.save(model, file)


@pytest.fixture
def net(dy2st_command, write):
    """A model with a helper that is called twice and an unrolled loop, and its file."""
    write("net.py", NET)
    assert dy2st_command("convert", "net.py", "-o", "net.onnx").code == 0


def test_a_wrong_arm_of_a_copy_that_no_input_takes(net, dy2st_command, folder, snapshot):
    change(folder / "net.onnx", 4, "else_branch")
    done = dy2st_command("check", "net.py", "--onnx", "net.onnx")
    assert done.code == 1
    snapshot("arm_not_taken", done.out)


def test_the_same_arm_where_an_input_takes_it(net, dy2st_command, folder, snapshot):
    change(folder / "net.onnx", 4, "else_branch")
    torch.save([(torch.tensor(x),) for x in MORE], folder / "more.pt")
    done = dy2st_command("check", "net.py", "--onnx", "net.onnx", "--inputs", "more.pt")
    assert done.code == 1
    snapshot("arm_to_blame", done.out)
    assert "the one failing input takes the else-arm" in done.out


@pytest.mark.slow
def test_each_arm_that_is_changed_is_found(net, dy2st_command, folder):
    """Whichever arm is wrong: no file passes."""
    whole = (folder / "net.onnx").read_bytes()
    torch.save([(torch.tensor(x),) for x in MORE], folder / "more.pt")
    check = ("check", "net.py", "--onnx", "net.onnx", "--inputs", "more.pt", "--no-cache")
    assert dy2st_command(*check).code == 0
    for number in range(5):
        for branch in ("then_branch", "else_branch"):
            (folder / "net.onnx").write_bytes(whole)
            change(folder / "net.onnx", number, branch)
            assert dy2st_command(*check).code == 1, (number, branch)


# A file of another exporter, which has a branch where the source has none.
FOREIGN = """
<ir_version: 9, opset_import: ["" : 20]>
doubled (float[n] x) => (float[n] y) {
    sum = ReduceSum <keepdims = 0> (x)
    bound = Constant <value = float {100}> ()
    much = Greater (sum, bound)
    y = If (much) <
        then_branch = wrong () => (float[n] a) { a = Neg (x) },
        else_branch = right () => (float[n] b) { b = Add (x, x) }
    >
}
"""


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def foreign(tmp_path: Any, *, text: str = FOREIGN) -> Any:
    file = tmp_path / "foreign.onnx"
    onnx.save(parser.parse_model(text), file)
    return file


def test_a_branch_that_only_the_file_has(tmp_path):
    report = dy2st.check(doubled, [(torch.ones(3),), (-torch.ones(3),)], onnx_file=foreign(tmp_path))
    assert report.ok
    assert not report.covered
    assert report.uncovered == ["file: If (node of y): its then-arm never ran"]
    assert "not covered: file: If (node of y): its then-arm never ran" in str(report)
    report = dy2st.check(doubled, [(torch.ones(3),), (torch.full((3,), 50.0),)], onnx_file=foreign(tmp_path))
    assert report.outcome == "differs"
    assert report.covered
    assert report.blame == "the one failing input takes the then-arm (node of y); no input that passes does"
    assert report.problems()[-1] == report.blame


def test_a_loop_of_another_exporter_has_to_run(tmp_path):
    text = """
    <ir_version: 9, opset_import: ["" : 20]>
    summed (float[n] x) => (float[n] y) {
        length = Size (x)
        three = Constant <value = int64 {3}> ()
        long = Sub (length, three)
        twice = Add (x, x)
        y = Loop <body = body (int64 i, bool go, float[n] before) => (bool going, float[n] after) {
            going = Identity (go)
            after = Neg (before)
        }> (long, , twice)
    }
    """
    file = foreign(tmp_path, text=text)
    report = dy2st.check(doubled, [(torch.ones(3),), (torch.ones(2),)], onnx_file=file)
    assert report.ok
    assert report.uncovered == ["file: Loop (node of y): its body never ran"]


def test_what_can_not_be_counted_is_said(tmp_path, monkeypatch):
    file = foreign(tmp_path)

    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no kernel\nand more")

    monkeypatch.setattr("dy2st.onnx.runtime.counted_file.CountedModel", refuse)
    report = dy2st.check(doubled, [(torch.ones(3),)], onnx_file=file)
    assert report.ok
    assert report.uncovered == ["the file's arms can't be counted: RuntimeError: no kernel"]


def test_a_comment_accepts_the_arms_of_a_line(tmp_path):
    def accepted(x):
        for bound in (1.0, 2.0):
            if x.sum() < bound:  # dy2st: uncovered ok (else)
                x = x + bound
        return x

    report = dy2st.check(accepted, [(-5 * torch.ones(3),)])
    assert report.covered
    assert [site.accepted for site in report.arms] == [("else",), ("else",)]
    assert [site.demanded for site in report.arms] == [("then", "else")] * 2


def test_what_a_translation_makes_is_not_demanded():
    def products(x):
        return torch.cumprod(x, 0)

    report = dy2st.check(products, [(torch.ones(3),)])
    assert report.covered
    assert {site.op for site in report.arms} == {"Loop"}
    assert all(not site.demanded and not site.construct for site in report.arms)


def test_files_say_what_their_nodes_stand_for(tmp_path):
    def model(x, k):
        while x.sum() < 9:
            x = x * 2 if x[0] > x[1] else x + 1
        return x

    # The pass would leave out the branch, of two small values.
    program = dy2st.onnx.export(model, (torch.ones(2), torch.ones(2)), without_passes=["chosen-values"])
    proto = program.model_proto
    told = [construct_of(metadata(node, CONSTRUCT)) for node in control_flow(proto.graph)]
    assert [(each.kind, each.ways) for each in told if each] == [
        ("loop", ("no trip", "one trip", "more trips")),
        ("if", ()),
    ]
    assert " at column " not in str(proto)


def site(node: str, *inside: tuple[str, str], **taken: tuple[str, ...]) -> FileSite:
    return FileSite(node, "If", inside, "net.py", 3, 4, "if", "if x:", ("then", "else"), taken=dict(taken))


def test_what_lies_in_an_arm_that_never_ran_is_not_told():
    sites = [site("a", then=("0",)), site("b", ("a", "else"))]
    assert untaken_lines(sites) == ["file: If at net.py:3 (node a): its else-arm never ran"]
    sites = [site("a", then=("0",)), site("b", ("a", "then"), then=("0",))]
    assert untaken_lines(sites)[1] == "file: If at net.py:3 (node b, then-arm of a): its else-arm never ran"


def test_shares_of_the_inputs_are_put_together():
    parts = [site("a", then=("2", "0"))], [site("a", **{"then": ("1",), "else": ("3",)})]
    whole = merged_arms(parts, ["0", "1", "2", "3"])
    assert [each.taken for each in whole] == [{"then": ("0", "1", "2"), "else": ("3",)}]
    assert untaken_lines(whole) == []


def test_blame_is_of_what_all_failing_inputs_take_and_no_other():
    def result(name: str, status: Any) -> InputResult:
        return InputResult(name, "", (StageResult("onnxruntime", status),))

    results = [result("0", "equal"), result("1", "differs"), result("2", "differs")]
    sites = [site("a", then=("0", "1", "2")), site("b", ("a", "then"), **{"then": ("1", "2"), "else": ("0",)})]
    said = "all 2 failing inputs take the then-arm at net.py:3 (node b); no input that passes does"
    assert blamed_inputs(sites, results) == said
    assert blamed_inputs(sites[:1], results) == ""
    assert blamed_inputs(sites, results[1:]) == ""


def test_an_input_that_raises_covers_the_branch_that_raises():
    def model(x):
        if x.sum() > 0:
            y = x * 2
            if y[0] > 5:
                raise ValueError("too much")
        else:
            y = x
        return y

    report = dy2st.check(model, [(torch.ones(2),), (-torch.ones(2),), (9 * torch.ones(2),)])
    assert report.ok
    assert report.covered, report.uncovered


def test_json_has_the_arms(net, dy2st_command):
    found = json.loads(dy2st_command("check", "net.py", "--onnx", "net.onnx", "--json").out)["targets"][0]
    assert found["outcome"] == "equal"
    assert not found["covered"]
    assert len(found["arms"]) == 5
    last = found["arms"][-1]
    assert last["line"] == 4
    assert last["taken"] == {"then": ["0", "1", "2"]}
    assert found["blame"] == ""
    assert found["arms_problem"] == ""
