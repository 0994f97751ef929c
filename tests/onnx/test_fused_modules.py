"""Cells of torch in loops of Python: the file has their operators, is equal to eager, and its loops are no gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import dy2st
import dy2st.onnx
from dy2st.parity.stages import OnnxSession

INPUTS, HIDDEN = 3, 4
TIME, BATCH = Dim("time"), Dim("batch")


class Backwards(nn.Module):
    """The backward direction of an encoder of padded sequences, over embedded tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.cell = nn.Embedding(9, INPUTS), nn.GRUCell(INPUTS, HIDDEN)

    def forward(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        h, out = torch.zeros(ids.shape[0], HIDDEN), []
        for t in range(ids.shape[1] - 1, -1, -1):
            h = torch.where((t < lengths)[:, None], self.cell(self.tokens(ids[:, t]), h), h)
            out.append(h)
        return torch.stack(out[::-1], 1), h


class Layers(nn.Module):
    """An LSTM over a GRU, with what is told of both, and a state that is neither's."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.GRUCell(INPUTS, HIDDEN), nn.LSTMCell(HIDDEN, HIDDEN)
        self.out = nn.Linear(HIDDEN, 2)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        h = g = c = total = x.new_zeros(x.shape[1], HIDDEN)
        out = []
        for t in range(x.shape[0]):
            alive = (t < lengths)[:, None]
            new = self.first(x[t], h)
            before, h = h, torch.where(alive, new, h)
            g, c = self.second(h, (g, c))
            total = total / 2 + g
            out.append(self.out(g) + torch.where(alive, new, torch.zeros_like(new))[:, :2] * before[:, :2])
        return torch.stack(out), h, c, total


def ids(time: int, batch: int) -> tuple[Tensor, Tensor]:
    return torch.arange(time * batch).reshape(batch, time) % 9, torch.arange(batch) % (time + 1)


def rows(time: int, batch: int) -> tuple[Tensor, Tensor]:
    return torch.linspace(-2, 3, time * batch * INPUTS).reshape(time, batch, INPUTS), torch.arange(batch) % (time + 1)


CASES = [
    (Backwards, ids, ({0: BATCH, 1: TIME}, {0: BATCH}), {"GRU": 1}),
    (Layers, rows, ({0: TIME, 1: BATCH}, {0: BATCH}), {"GRU": 1, "LSTM": 1}),
]


@pytest.mark.slow_but_for("backwards")
@pytest.mark.parametrize(("kind", "make", "shapes", "operators"), CASES, ids=["backwards", "layers"])
def test_modules(tmp_path: Path, kind: Any, make: Any, shapes: Any, operators: dict[str, int]) -> None:
    torch.manual_seed(0)
    model, file = kind(), tmp_path / "m.onnx"
    program = dy2st.onnx.export(model, make(4, 3), file, dynamic_shapes=shapes)
    found = [node.op_type for node in program.model.graph.all_nodes()]
    assert {name: found.count(name) for name in ("GRU", "LSTM", "RNN") if name in found} == operators
    session = OnnxSession(file)
    for time, batch in ((1, 1), (2, 5), (9, 2), (3, 0)):
        args = make(time, batch)
        wanted = [each.detach() for each in model(*args)]
        given = session.values(dict(zip(session.input_names, args, strict=True)))
        torch.testing.assert_close(given, wanted, rtol=1e-5, atol=1e-6)


def test_the_users_loop_is_covered() -> None:
    """What a check demands of a loop is that of the source: the file has it twice, and runs one of them."""
    report = dy2st.check(Backwards(), [ids(4, 3), ids(1, 2)], dynamic_shapes=CASES[0][2])
    assert report.ok
    assert report.arms
    assert not [site for site in report.arms if site.demanded]


@pytest.mark.slow
def test_nan_goes_through(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, file = Layers(), tmp_path / "m.onnx"
    dy2st.onnx.export(model, rows(4, 3), file, dynamic_shapes=CASES[1][2])
    x, lengths = rows(5, 3)
    x[1, 2, 0] = torch.nan
    session = OnnxSession(file)
    wanted = [each.detach() for each in model(x, lengths)]
    given = session.values(dict(zip(session.input_names, (x, lengths), strict=True)))
    torch.testing.assert_close(given, wanted, rtol=1e-5, atol=1e-6, equal_nan=True)
    assert torch.isnan(wanted[2]).any()


@pytest.mark.slow_but_for("options1")
@pytest.mark.parametrize("options", [{"without_passes": ["recurrences"]}, {"keep_initializers_as_inputs": True}])
def test_left_as_a_loop(options: dict[str, Any]) -> None:
    program = dy2st.onnx.export(Layers(), rows(4, 3), dynamic_shapes=CASES[1][2], **options)
    assert not {node.op_type for node in program.model.graph.all_nodes()} & {"GRU", "LSTM", "RNN"}
