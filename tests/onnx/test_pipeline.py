"""Passes that are left out by name: the file computes the same, and what each does is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.export import Dim

import dy2st
import dy2st.onnx
from dy2st.errors import UsageError
from dy2st.onnx.passes.pipeline import NAMES, PASSES, choosing
from dy2st.parity.stages import OnnxSession


class Decoder(torch.nn.Module):
    """Rows, indices, conditions, what is the same in each trip, and what is computed twice."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = torch.nn.Linear(4, 4)

    def forward(self, x: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
        h, kept = torch.zeros(4), torch.zeros((), dtype=torch.int64)
        for row in x:
            scale = limit.abs() + 1
            h = torch.tanh(self.cell(row) + self.cell.weight.t() @ h) / scale + row / scale
            if h.sum() > 0 and row[0] > row[1]:
                kept = kept + 1
        while h.abs().max() > limit:
            h = h / 2
        return h, kept


SHAPES = ({0: Dim("n", min=0, max=50)}, None)
SETS = [(torch.linspace(-2, 3, 4 * n).reshape(n, 4), torch.tensor(0.3)) for n in (0, 1, 2, 6)]


def exported(file: Path, **options: Any) -> list[list[Tensor]]:
    torch.manual_seed(0)
    dy2st.onnx.export(Decoder(), SETS[-1], file, dynamic_shapes=SHAPES, **options)
    session = OnnxSession(file)
    return [session.values(dict(zip(session.input_names, given, strict=True))) for given in SETS]


@pytest.mark.parametrize("left_out", [[name] for name in NAMES] + [list(NAMES)], ids=lambda names: "+".join(names[:2]))
def test_without_a_pass_the_file_computes_the_same(tmp_path: Path, left_out: list[str]) -> None:
    whole = exported(tmp_path / "whole.onnx")
    with choosing() as done:
        without = exported(tmp_path / "without.onnx", without_passes=left_out)
    torch.testing.assert_close(without, whole)
    assert {each.name for each in done} == set(NAMES) - set(left_out)


def test_what_each_did_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exported(tmp_path / "m.onnx", verbose=True)
    lines = [line for line in capsys.readouterr().out.splitlines() if " nodes to " in line]
    assert [line.split("] ")[1].split(":")[0] for line in lines] == [each.name for each in PASSES]
    exported(tmp_path / "m.onnx", verbose=True, optimize=False)
    assert " nodes to " not in capsys.readouterr().out


def test_blocks_in_blocks(tmp_path: Path) -> None:
    with choosing(["scans"]) as outer:
        with choosing(["expansions"]) as inner:
            exported(tmp_path / "m.onnx")
        assert {each.name for each in inner} == set(NAMES) - {"scans", "expansions"}
        exported(tmp_path / "m.onnx")
    assert {each.name for each in outer} == set(NAMES) - {"scans"}
    assert len(outer) > len(inner)


def test_a_pass_that_there_is_not() -> None:
    with pytest.raises(UsageError, match="there is no pass 'foo'"):
        dy2st.onnx.export(Decoder(), SETS[-1], without_passes=["foo"])
