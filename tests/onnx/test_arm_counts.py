"""A copy of a file that counts which arms ran, against what plain Python says of them; its outputs are the file's."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, parser
from torch import Tensor

import dy2st
from dy2st.cli.target import load_target
from dy2st.errors import OnnxError
from dy2st.onnx.runtime.arm_counts import CountedModel
from dy2st.onnx.runtime.counted_file import counted_file, data_files
from dy2st.parity.inputs import input_sets
from dy2st.parity.stages import OnnxSession

SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.py"))
LARGE = {"adaptive_computation", "early_exit", "kv_cache_generation", "viterbi"}


def session(model: onnx.ModelProto) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


def counts(model: onnx.ModelProto, *given: Any) -> dict[str, tuple[int, ...]]:
    """The counts of each node; the other outputs are those of the model itself, value for value."""
    counted = CountedModel(model)
    onnx.checker.check_model(counted.model)
    feed = {each.name: np.asarray(value) for each, value in zip(model.graph.input, given, strict=True)}
    *outputs, found = session(counted.model).run(None, feed)
    for want, got in zip(session(model).run(None, feed), outputs, strict=True):
        np.testing.assert_array_equal(want, got)
    sizes = [*(each.first for each in counted.nodes[1:]), len(found)]
    return {each.name: tuple(found[each.first : end].tolist()) for each, end in zip(counted.nodes, sizes, strict=True)}


def exported(model: Any, *args: Tensor, **options: Any) -> onnx.ModelProto:
    return dy2st.onnx.export(model, args, **options).model_proto


def by_kind(found: dict[str, tuple[int, ...]]) -> list[tuple[int, ...]]:
    return list(found.values())


def nested(x: Tensor) -> tuple[Tensor, Tensor]:
    """Branches in loops in branches, with a way out."""
    n = torch.zeros((), dtype=torch.int64)
    if x.sum() > 0:
        while x.sum() < 100:
            if x[0] > x[1]:
                x = x * 2
            else:
                x = x + 3
                k = torch.zeros(())
                while k < x[0] - 5:
                    k = k + 4
                    n = n + 1
            if n > 6:
                break
    return x, n


def reference(values: list[float]) -> list[Counter[str]]:
    """What ``nested`` does, in plain Python: the outer branch, the loop, the inner branch and loop, and the way out."""
    x, n = list(values), 0
    outer, loop, inner, small, out = (Counter[str]() for _ in range(5))
    outer["then" if sum(x) > 0 else "else"] += 1
    if sum(x) > 0:
        trips = 0
        while sum(x) < 100:
            trips += 1
            inner["then" if x[0] > x[1] else "else"] += 1
            if x[0] > x[1]:
                x = [2 * each for each in x]
            else:
                x = [each + 3 for each in x]
                k, steps = 0, 0
                while k < x[0] - 5:
                    k, n, steps = k + 4, n + 1, steps + 1
                small[str(min(steps, 2))] += 1
            out["then" if n > 6 else "else"] += 1
            if n > 6:
                break
        loop[str(min(trips, 2))] += 1
    return [outer, loop, inner, small, out]


def in_order(kinds: list[Counter[str]]) -> list[tuple[int, ...]]:
    return sorted(
        tuple(each[way] for way in (("then", "else") if len(each) and set(each) <= {"then", "else"} else "012"))
        for each in kinds
    )


@pytest.mark.parametrize("values", [[-1.0, 0.5], [60, 70], [3, 1], [1, 3], [2, 2], [0.1, 8], [49, 50], [5, 40]])
def test_branches_in_loops_in_branches(values):
    # The passes would leave out branches: that of the way out, in which nothing is computed, and those for one number.
    model = exported(nested, torch.tensor([1.0, 3.0]), without_passes=["plain-conditions", "chosen-values"])
    found = by_kind(counts(model, np.float32(values)))
    wanted = [tuple(each) for each in in_order(reference(values)) if any(each)]
    assert sorted(each for each in found if any(each)) == wanted
    assert len(found) == 5


def test_an_arm_in_a_loop_is_counted_each_time():
    def model(x):
        total = x.sum() * 0
        for row in x:
            total = total + row if row > 0 else total - 2 * row
        return total

    shapes = ({0: torch.export.Dim.DYNAMIC},)
    file = exported(model, torch.ones(4), dynamic_shapes=shapes)
    # The first is a branch around the loop, for no rows: its other arm counts as the loop without a trip.
    assert by_kind(counts(file, np.float32([1, -1, 2, 3, -4]))) == [(1, 0), (0, 0, 1), (3, 2)]
    assert by_kind(counts(file, np.float32([1]))) == [(1, 0), (0, 1, 0), (1, 0)]
    assert by_kind(counts(file, np.zeros(0, np.float32))) == [(0, 1), (1, 0, 0), (0, 0)]


def test_copies_of_a_line_are_counted_one_by_one():
    def clipped(x, bound):
        if x.sum() > bound:
            return x * 0.5
        return x + 1

    def model(x):
        for bound in (1.0, 2.0, 3.0):
            x = clipped(x, bound)
        return x

    file = exported(model, torch.ones(2))
    taken = by_kind(counts(file, np.float32([0, 0])))  # sums: 0 -> 2 -> 4 -> 2
    assert sorted(taken) == [(0, 1), (0, 1), (1, 0)]
    assert len(taken) == 3


SCAN = """
<ir_version: 9, opset_import: ["" : 20]>
scanned (float[n,2] x, float[2] start) => (float[2] last, float[n,2] rows) {
    last, rows = Scan <num_scan_inputs = 1, body = body (float[2] so_far, float[2] row)
                       => (float[2] after, float[2] kept) {
        sum = ReduceSum <keepdims = 0> (row)
        zero = Constant <value = float {0}> ()
        positive = Greater (sum, zero)
        after = If (positive) <
            then_branch = add () => (float[2] added) { added = Add (so_far, row) },
            else_branch = keep () => (float[2] same) { same = Identity (so_far) }
        >
        kept = Identity (after)
    }> (start, x)
}
"""


def test_scans():
    model = parser.parse_model(SCAN)
    assert by_kind(counts(model, np.float32([[1, 1], [-1, -1], [2, 2]]), np.float32([0, 0]))) == [(0, 0, 1), (2, 1)]
    assert by_kind(counts(model, np.float32([[-1, 1]]), np.float32([0, 0]))) == [(0, 1, 0), (0, 1)]


MAP = """
<ir_version: 9, opset_import: ["" : 20]>
mapped (float[n] x, int64[m] sizes) => (float[n] y) {
    pieces = SplitToSequence <axis = 0> (x, sizes)
    changed = SequenceMap <body = body (float[k] piece) => (float[k] made) {
        sum = ReduceSum <keepdims = 0> (piece)
        zero = Constant <value = float {0}> ()
        positive = Greater (sum, zero)
        made = If (positive) <
            then_branch = twice () => (float[k] more) { more = Add (piece, piece) },
            else_branch = keep () => (float[k] same) { same = Identity (piece) }
        >
    }> (pieces)
    y = ConcatFromSequence <axis = 0> (changed)
}
"""


def test_maps_over_sequences():
    model = parser.parse_model(MAP)
    assert by_kind(counts(model, np.float32([1, 2, -3, 4]), np.int64([2, 1, 1]))) == [(0, 0, 1), (2, 1)]
    assert by_kind(counts(model, np.float32([-1]), np.int64([1]))) == [(0, 1, 0), (0, 1)]


LOOP = """
<ir_version: 9, opset_import: ["" : 20]>
looped (int64 trips, float x, float arms_0) => (float last, float[n] rows) {
    last, rows = Loop <body = body (int64 i, bool go, float before) => (bool going, float after, float row) {
        going = Identity (go)
        after = Add (before, arms_0)
        row = Identity (after)
    }> (trips, , x)
}
"""


@pytest.mark.parametrize(("trips", "wanted"), [(0, (1, 0, 0)), (1, (0, 1, 0)), (5, (0, 0, 1))])
def test_rows_come_behind_what_is_carried_and_names_never_clash(trips, wanted):
    model = parser.parse_model(LOOP)
    assert by_kind(counts(model, np.int64(trips), np.float32(1), np.float32(2))) == [wanted]


FUNCTION = """
<ir_version: 9, opset_import: ["" : 20, "own" : 1]>
main (float x) => (float z) { y = own.half (x) z = own.half (y) }
<domain: "own", opset_import: ["" : 20]>
half (x) => (y) {
    zero = Constant <value = float {0}> ()
    two = Constant <value = float {2}> ()
    positive = Greater (x, zero)
    y = If (positive) <
        then_branch = less () => (float a) { a = Sub (x, two) },
        else_branch = keep () => (float b) { b = Identity (x) }
    >
}
"""


def test_functions_are_counted_where_they_are_called():
    model = parser.parse_model(FUNCTION)
    assert by_kind(counts(model, np.float32(3))) == [(1, 0), (1, 0)]
    assert by_kind(counts(model, np.float32(1))) == [(1, 0), (0, 1)]


def test_without_arms_there_is_nothing_to_count():
    counted = CountedModel(exported(lambda x: x * 2, torch.ones(2)))
    assert not counted.nodes
    assert not counted.output
    assert len(counted.model.graph.output) == 1


def test_what_is_not_known_is_refused():
    model = parser.parse_model(FUNCTION.replace('"" : 20', '"" : 12'))
    with pytest.raises(OnnxError, match="from opset 13 on, and this is 12"):
        CountedModel(model)
    inner = parser.parse_model(LOOP).graph
    strange = helper.make_node("Strange", ["trips"], ["y"], name="it", domain="other", body=inner)
    kinds = [helper.make_tensor_value_info(name, TensorProto.INT64, []) for name in ("trips", "y")]
    loop = next(iter(parser.parse_model(LOOP).graph.node))
    graph = helper.make_graph([loop, strange], "g", kinds[:1], kinds[1:])
    with pytest.raises(OnnxError, match="not known what runs in it"):
        CountedModel(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))


def test_weights_beside_the_file_are_linked(tmp_path):
    torch.manual_seed(0)
    net = torch.nn.Linear(64, 64)

    def model(x):
        return net(x) if x.sum() > 0 else x

    file = tmp_path / "model.onnx"
    onnx.save(exported(model, torch.ones(64)), file, save_as_external_data=True, location="w.bin", size_threshold=1024)
    before = sorted(tmp_path.iterdir())
    with counted_file(file) as (counted, path):
        assert data_files(counted.model) == ["w.bin"]
        assert (path.parent / "w.bin").samefile(tmp_path / "w.bin")
        assert path.stat().st_size < 16_000
        found = OnnxSession(path).outputs({"x": torch.ones(64)})
        assert found[-1].tensor.tolist() == [1, 0]
    assert sorted(tmp_path.iterdir()) == before


def test_data_that_cannot_be_linked_is_copied(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError

    monkeypatch.setattr("os.link", refuse)
    test_weights = shutil.copyfile
    copied = []
    monkeypatch.setattr("shutil.copyfile", lambda *pair: copied.append(pair) or test_weights(*pair))
    torch.manual_seed(0)
    net = torch.nn.Linear(64, 64)
    file = tmp_path / "model.onnx"
    proto = exported(lambda x: net(x) if x.sum() > 0 else x, torch.ones(64))
    onnx.save(proto, file, save_as_external_data=True, location="w.bin", size_threshold=1024)
    with counted_file(file) as (_, path):
        assert OnnxSession(path).outputs({"x": -torch.ones(64)})[-1].tensor.tolist() == [0, 1]
    assert len(copied) == 1


@pytest.mark.parametrize(
    "sample",
    [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem in LARGE)) for path in SAMPLES],
)
def test_samples_give_the_same(sample, tmp_path):
    target = load_target(str(sample))
    given = target.module.example_inputs
    sets = list(input_sets(given() if callable(given) else given))
    file = tmp_path / "model.onnx"
    shapes = getattr(target.module, "dynamic_shapes", None)
    dy2st.onnx.export(target.model, sets[0].args, file, kwargs=sets[0].kwargs, dynamic_shapes=shapes)
    plain = OnnxSession(file)
    with counted_file(file) as (counted, path):
        assert counted.nodes
        counting = OnnxSession(path)
        for each in sets if shapes is not None else sets[:1]:
            feed = plain.feed(target.model, each)
            given = counting.outputs(feed)
            found = [output for output in given if output.name != counted.output]
            assert len(found) == len(given) - 1
            for want, got in zip(plain.outputs(feed), found, strict=True):
                assert want.name == got.name
                assert torch.equal(want.tensor.nan_to_num(7), got.tensor.nan_to_num(7))


@pytest.mark.parametrize("kept", ["state", "rows", "both"])
def test_a_row_in_place_of_none_is_no_trip(kept):
    """Such a ``Scan`` runs once on zeros where there are no rows, and what it makes of them is left out."""

    def model(x: Tensor) -> Any:
        total, rows = torch.zeros(2), []
        for row in x:
            total = total * 0.5 + row
            rows.append(total.abs())
        made = torch.stack(rows) if rows else torch.zeros(0, 2)
        return {"state": total, "rows": made, "both": (total, made)}[kept]

    sizes = {"x": {0: torch.export.Dim("n", min=0, max=9)}}
    file = exported(model, torch.ones(5, 2), dynamic_shapes=sizes)
    (scan,) = [node for node in file.graph.node if node.op_type == "Scan"]
    for rows, expected in ((0, (1, 0, 0)), (1, (0, 1, 0)), (4, (0, 0, 1))):
        assert counts(file, np.ones((rows, 2), np.float32))[scan.name] == expected
