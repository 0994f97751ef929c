"""What arms in loops compute of rows: moved out of them, with the same values on onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st.onnx
from dy2st.onnx.passes.arm_rows import take_rows_out_of_arms
from dy2st.parity.stages import OnnxSession
from tests.onnx.graph_text import OPSET, changed, parsed, shown

LOOP = """
    g (bool[n, n] table, bool[n] first, bool[n] other) => (bool[n] last) {{
        zero = Constant<value_int = 0>()
        one = Constant<value_int = 1>()
        sizes = Shape<start = 0, end = 1>(table)
        trips = Squeeze(sizes)
        {start}
        last = Loop(trips, {going}, first) <body = step (int64 i, bool go, bool[n] state) => (bool on, bool[n] next) {{
            {on}
            test = Gather({asked}, i)
            next = If(test) <then_branch = t () => (bool[n] a) {{ {then} }},
                else_branch = e () => (bool[n] b) {{ {orelse} }}>
        }}>
    }}"""
ROW = "row = Gather(table, {}) hit = Or(row, other) free = Not(hit)"
KEPT = "{} = Identity(state)"


def typed(model: ir.Model) -> None:
    """Give the values of arms their shapes, which ONNX's inference keeps to itself."""
    size = model.graph.inputs[0].shape
    assert size is not None
    for node in model.graph.all_nodes():
        out = node.outputs[0]
        if out.name in {"row", "hit", "free", "a", "b", "next"}:
            out.shape, out.type = ir.Shape([size[0]]), ir.TensorType(ir.DataType.BOOL)
        if out.name in {"test", "trips", "place"}:
            out.shape = ir.Shape([])


def written(then: str, orelse: str, **parts: str) -> list[str]:
    given = {"start": "", "going": "", "on": "on = Identity(go)", "asked": "state"} | parts
    rng = np.random.default_rng(0)
    calls = [(rng.random((n, n)) < 0.3, rng.random(n) < 0.7, rng.random(n) < 0.2) for n in (0, 1, 2, 9, 9, 9)]

    def apply(model: ir.Model) -> None:
        typed(model)
        take_rows_out_of_arms(model, OPSET)

    return changed(LOOP.format(then=then, orelse=orelse, **given), apply, *calls)


@pytest.mark.parametrize("kind", ["And", "Or"])
@pytest.mark.parametrize("operands", ["state, free", "free, state"])
@pytest.mark.parametrize("turned", [False, True])
def test_a_mask_is_written_without_a_branch(kind: str, operands: str, turned: bool) -> None:
    change = f"{ROW.format('i')} {{}} = {kind}({operands})"
    then, orelse = (KEPT.format("a"), change.format("b")) if turned else (change.format("a"), KEPT.format("b"))
    lines = written(then, orelse)
    assert "  If" not in lines
    assert lines.index("  Not") < len(lines) - 1


def test_what_is_left_may_be_an_arm() -> None:
    lines = written(f"{ROW.format('i')} near = Xor(state, free) a = And(near, state)", KEPT.format("b"))
    assert lines[lines.index("  If") + 1 :] == ["    Xor", "    And", "    Identity"]
    assert lines.index("  Gather") < lines.index("  If")


@pytest.mark.parametrize(
    ("then", "left", "parts"),
    [
        ("row = Gather(table, i) hit = Or(row, state) free = Not(hit)", ["Or", "Not"], {}),
        ("hit = And(first, other) free = Not(hit)", ["And", "Not"], {}),  # of no row
        (ROW.format("i"), ["Gather", "Or", "Not"], {"on": "on = Gather(state, i)"}),  # a loop that may end
        (
            ROW.format("i"),
            ["Gather", "Or", "Not"],
            {"start": "start = Constant<value = bool {0}>()", "going": "start"},
        ),
        (
            ROW.format("place"),
            ["Gather", "Or", "Not"],
            {"on": "on = Identity(go) back = Sub(trips, i) place = Sub(back, one)"},
        ),
    ],
    ids=["state", "no row", "ends", "may not begin", "from the last"],
)
def test_what_stays_in_an_arm(then: str, left: list[str], parts: dict[str, str]) -> None:
    lines = written(f"{then} a = And(state, free)", KEPT.format("b"), **parts)
    assert lines[lines.index("  If") + 1 :] == [f"    {kind}" for kind in (*left, "And", "Identity")]


def test_a_row_that_may_not_be_there_stays() -> None:
    model = parsed(
        LOOP.format(
            then="place = Add(i, one) row = Gather(table, place) free = Not(row) a = And(state, free)",
            orelse=KEPT.format("b"),
            start="",
            going="",
            on="on = Identity(go)",
            asked="state",
        )
    )
    typed(model)
    before = shown(model.graph)
    take_rows_out_of_arms(model, OPSET)
    assert shown(model.graph) == before


def suppress(clash: Tensor, keep: Tensor) -> Tensor:
    index = torch.arange(keep.shape[0])
    for i in range(keep.shape[0]):
        if keep[i]:
            keep = keep & ~(clash[i] & (index > i))
    return keep


def test_a_suppression_is_a_scan_of_four_operators(tmp_path: object) -> None:
    n = Dim("n")
    path = f"{tmp_path}/m.onnx"
    args = (torch.rand(6, 6) < 0.3, torch.ones(6, dtype=torch.bool))
    dy2st.onnx.export(suppress, args, path, dynamic_shapes=({0: n, 1: n}, {0: n}))
    (scan,) = [node for node in ir.load(path).graph.all_nodes() if node.op_type == "Scan"]
    assert [node.op_type for node in scan.attributes["body"].as_graph()] == ["Gather", "Not", "Or", "And"]
    session = OnnxSession(path)
    for size in (0, 1, 2, 30):
        clash, keep = torch.rand(size, size) < 0.2, torch.rand(size) < 0.8
        found = session.values({"clash": clash, "keep": keep})[0]
        torch.testing.assert_close(found, suppress(clash, keep))
