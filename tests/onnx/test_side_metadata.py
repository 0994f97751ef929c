"""Metadata of nodes beside the file: whoever looks into the file finds it there; whoever runs it needs it not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import Tensor

import dy2st
import dy2st.onnx
from dy2st.errors import UsageError
from dy2st.errors.places import from_here
from dy2st.onnx.runtime.side_metadata import load_model, path_of_metadata, place_metadata


def halved(x: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
    steps = torch.zeros((), dtype=torch.int64)
    while x.abs().max() > limit:
        x = x / 2 if x.sum() > 0 else x / 4
        steps = steps + 1
    return x, steps


SETS = [(torch.tensor([v, 1.0]), torch.tensor(1.5)) for v in (1.0, 2.0, 9.0, -9.0)]


def told(model: onnx.ModelProto) -> list[Any]:
    found: list[Any] = []

    def visit(graph: onnx.GraphProto) -> None:
        for node in graph.node:
            found.append((node.name, sorted((each.key, each.value) for each in node.metadata_props)))
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    visit(attribute.g)

    visit(model.graph)
    return found


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    whole, small = tmp_path / "whole.onnx", tmp_path / "small.onnx"
    # The pass would leave out the branch, of two small values.
    dy2st.onnx.export(halved, SETS[2], whole, without_passes=["chosen-values"])
    dy2st.onnx.export(halved, SETS[2], small, without_passes=["chosen-values"], metadata="side")
    return whole, small


def test_it_is_found_beside_the_file(files: tuple[Path, Path]) -> None:
    whole, small = files
    assert small.stat().st_size < whole.stat().st_size / 3
    assert not any(entries for _, entries in told(onnx.load(small)))
    assert told(load_model(small)) == told(onnx.load(whole))
    onnx.checker.check_model(onnx.load(small), full_check=True)


def test_a_check_finds_the_line(files: tuple[Path, Path]) -> None:
    _, small = files

    def quartered(x: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
        steps = torch.zeros((), dtype=torch.int64)
        while x.abs().max() > limit:
            x = x / 2 if x.sum() > 0 else x / 8
            steps = steps + 1
        return x, steps

    assert dy2st.check(halved, SETS, onnx_file=small).covered
    text = str(dy2st.check(quartered, SETS, onnx_file=small))
    line = halved.__code__.co_firstlineno + 3
    assert f"takes the else-arm at {from_here(__file__)}:{line}" in text, text
    path_of_metadata(small).unlink()
    assert dy2st.check(halved, SETS, onnx_file=small).ok


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 9, "nodes": []}', '{"format": 1, "nodes": [["a"]]}'])
def test_what_is_damaged_is_left_alone(files: tuple[Path, Path], content: str) -> None:
    _, small = files
    path_of_metadata(small).write_text(content)
    assert not any(entries for _, entries in told(load_model(small)))


def test_what_is_of_another_file_is_left_alone(files: tuple[Path, Path], tmp_path: Path) -> None:
    whole, small = files
    shutil.copy(path_of_metadata(small), path_of_metadata(whole))
    assert told(load_model(whole)) == told(onnx.load(whole))
    other = tmp_path / "other.onnx"
    model = onnx.load(small)
    model.producer_version = "1"
    onnx.save(model, other)
    shutil.copy(path_of_metadata(small), path_of_metadata(other))
    assert not any(entries for _, entries in told(load_model(other)))


def test_none_at_all(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    dy2st.onnx.export(halved, SETS[2], file, metadata="none")
    assert not path_of_metadata(file).exists()
    assert not any(entries for _, entries in told(load_model(file)))
    assert dy2st.check(halved, SETS, onnx_file=file).ok


def test_weights_stay_where_they_are(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    made = dy2st.onnx.export(torch.nn.Linear(64, 64), (torch.ones(2, 64),))
    made.save(str(file), external_data=True)
    weights = (tmp_path / "m.onnx.data").read_bytes()
    place_metadata(file, "side")
    assert (tmp_path / "m.onnx.data").read_bytes() == weights
    assert json.loads(path_of_metadata(file).read_text())["format"] == 1
    assert load_model(file).graph.initializer[0].raw_data


def test_another_choice() -> None:
    with pytest.raises(UsageError, match="is no place for it"):
        dy2st.onnx.export(halved, SETS[2], metadata="there")  # type: ignore[arg-type]
