"""Sequences, optionals and texts among the outputs of a file: their names, their metadata, and who reads them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch.export import Dim

import dy2st
from dy2st.embedded.file_outputs import OUTPUTS, told_outputs
from dy2st.embedded.replaying import check_embedded
from dy2st.errors import OnnxError, UsageError
from dy2st.onnx import Runner
from dy2st.parity.embedding import embed_tests

SHAPES = ({0: Dim.DYNAMIC},)
INPUTS = [(torch.tensor(values),) for values in ([4.0, 2.0, -1.0], [-1.0, -2.0], [0.125, 0.25])]


def model(x):
    rows, found = [], None
    while x.abs().sum() > 1:
        x = x / 2
        rows.append((x, x.max()))
    if x.sum() > 0:
        found = x
    return {"rows": rows, "found": found, "says": "up" if x.sum() > 0 else "down", "last": x}


def written(folder, made=model, **options):
    file = Path(folder) / "model.onnx"
    dy2st.onnx.export(made, INPUTS[0], file, dynamic_shapes=SHAPES, **options)
    onnx.checker.check_model(onnx.load(file), full_check=True)
    return file


def test_names_and_values(tmp_path):
    run = Runner(written(tmp_path))
    assert run.output_names == ["rows.0", "rows.1", "found", "says", "last"]
    rows, tops, found, says, _ = run(np.array([4, 2, -1], np.float32))
    assert [row.tolist() for row in rows] == [[2, 1, -0.5], [1, 0.5, -0.25], [0.5, 0.25, -0.125]]
    assert [top.item() for top in tops] == [2, 1, 0.5]
    assert found.tolist() == [0.5, 0.25, -0.125]
    assert says.item() == "up"
    rows, tops, found, says, _ = run(np.array([-0.5], np.float32))
    assert (rows, tops, found, says.item()) == ([], [], None, "down")


def test_flags(tmp_path):
    run = Runner(written(tmp_path, optional_outputs="flag"))
    assert run.output_names == ["rows.0", "rows.1", "found", "found_present", "says", "last"]
    assert run(np.array([0.5], np.float32))[3].item() is True
    assert run(np.array([-0.5], np.float32))[3].item() is False
    with pytest.raises(UsageError, match="no way to write them"):
        dy2st.onnx.export(model, INPUTS[0], optional_outputs="zeros")


def test_names_that_the_user_gives(tmp_path):
    names = ["lines", "tops", "hit", "word", "rest"]
    assert Runner(written(tmp_path, output_names=names)).output_names == names
    with_flag = Runner(written(tmp_path, output_names=names, optional_outputs="flag")).output_names
    assert with_flag == ["lines", "tops", "hit", "hit_present", "word", "rest"]


def test_metadata(tmp_path):
    file = written(tmp_path, optional_outputs="flag")
    (text,) = [each.value for each in onnx.load(file).metadata_props if each.key == OUTPUTS]
    assert [(each["output"], each["form"], each["place"], each["inner"]) for each in json.loads(text)] == [
        ("rows.0", "sequence", "output['rows']", "[0]"),
        ("rows.1", "sequence", "output['rows']", "[1]"),
        ("found", "flag", "output['found']", ""),
        ("found_present", "present", "output['found']", ""),
        ("says", "text", "output['says']", ""),
        ("last", "tensor", "output['last']", ""),
    ]
    assert told_outputs({OUTPUTS: text})["found"].present == "found_present"


def test_nothing_is_told_of_tensors_alone(tmp_path):
    file = written(tmp_path, lambda x: {"a": x * 2, "b": None})
    assert OUTPUTS not in {each.key for each in onnx.load(file).metadata_props}


@pytest.mark.parametrize("form", ["optional", "flag"])
@pytest.mark.parametrize("isolated", [False, True])
def test_a_check_of_the_file(tmp_path, form, isolated):
    report = dy2st.check(model, INPUTS, onnx_file=written(tmp_path, optional_outputs=form), isolated=isolated)
    assert report.outcome == "equal", str(report)


@pytest.mark.parametrize("form", ["optional", "flag"])
def test_tests_beside_the_file(tmp_path, form):
    file = written(tmp_path, optional_outputs=form)
    assert embed_tests(model, INPUTS, file).outcome == "equal"
    assert check_embedded(file, levels=True).outcome == "equal"


@pytest.mark.slow
@pytest.mark.parametrize("form", ["optional", pytest.param("flag", marks=pytest.mark.slow)])
def test_a_file_of_another_model_differs(tmp_path, form):
    def other(x):
        found = model(x)
        return {**found, "found": None if x.sum() > 0 else x}

    def longer(x):
        found = model(x)
        return {**found, "rows": [*found["rows"], (x, x.max())]}

    def louder(x):
        return {**model(x), "says": "UP" if x.sum() > 0 else "down"}

    for made, says in ((other, "output['found']"), (longer, "output['rows'][3][0]"), (louder, "'UP'")):
        file = written(tmp_path, made, optional_outputs=form)
        report = dy2st.check(model, INPUTS, onnx_file=file)
        assert report.outcome == "differs"
        assert says in str(report)
        right = written(tmp_path, optional_outputs=form)
        embed_tests(model, INPUTS, right)
        written(tmp_path, made, optional_outputs=form)
        assert check_embedded(file).outcome == "differs"


@pytest.mark.parametrize("answer", ["static", "eager"])
def test_a_shadow(tmp_path, answer):
    shadow = dy2st.shadow(model, written(tmp_path), rate=1.0, answer=answer, on_difference="raise")
    for given in INPUTS:
        shadow(*given)
    assert shadow.counts.equal == len(INPUTS)


def test_a_program_that_was_saved(tmp_path):
    program = dy2st.export(model, INPUTS[0])
    torch.export.save(program, tmp_path / "model.pt2")
    run = torch.export.load(tmp_path / "model.pt2").module()
    got, want = run(*INPUTS[0]), model(*INPUTS[0])
    assert got.pop("says") == want.pop("says")
    torch.testing.assert_close(got, want)


def test_what_has_several_numbers_of_dimensions_has_no_flag(tmp_path):
    def either(x):
        return x if x.sum() > 0 else None if x.max() < 0 else x.sum()

    report = dy2st.check(either, [*INPUTS, (torch.tensor([1.0, -2.0]),)], onnx_file=written(tmp_path, either))
    assert report.outcome == "equal", str(report)
    with pytest.raises(OnnxError, match="tensors of 0 and 1 dimensions"):
        written(tmp_path, either, optional_outputs="flag")


def test_nothing_of_them_is_refused():
    def several(x):
        pieces = [x[x > value] for value in x]
        return model(x), pieces, x if x.sum() > 0 else x.sum() if x.max() > 0 else None

    assert dy2st.refusals(several, INPUTS) == []


def test_state_beside_them(tmp_path):
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, x):
            self.seen = self.seen + 1
            kept = [value for value in x if value > self.seen]
            return kept, self.seen * 2 if self.seen > 2 else None

    report = dy2st.check(Counting(), INPUTS)
    assert report.outcome == "equal", str(report)
    run = Runner(written(tmp_path, Counting()))
    assert [run(np.array([1.5, 2.5], np.float32))[1] for _ in range(3)][:2] == [None, None]
    assert run.state["seen"] == 3
