"""Recurrent layers over a dynamic number of steps and a dynamic batch (row 48)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from harness import agree, dyn, refused, row
from torch import Tensor, nn

import dy2st.onnx
from dy2st.errors import OnnxError


def sequences(*sizes: tuple[int, int]) -> list[tuple[Tensor]]:
    """One-argument inputs [batch, steps, 3]."""
    generator = torch.Generator().manual_seed(3)
    return [(torch.randn(batch, steps, 3, generator=generator),) for batch, steps in sizes]


class Layer(nn.Module):
    """A recurrent layer; its outputs and last states."""

    def __init__(self, kind: Any, **options: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = kind(3, 4, **options)

    def forward(self, x: Tensor) -> Any:
        return self.layer(x)


OPTIONS: tuple[dict[str, Any], ...] = (
    {"batch_first": True},
    {"num_layers": 2, "bidirectional": True},
    {"bias": False, "dropout": 0.5, "num_layers": 2},
)


@row(48)
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("options", OPTIONS)
def test_layers(kind: Any, options: dict[str, Any]) -> None:
    model = Layer(kind, **options).eval()
    agree(model, sequences((2, 5), (1, 3), (4, 1)), (dyn(0, 1),), paths=1)


@row(48)
def test_one_sequence() -> None:
    agree(
        Layer(nn.RNN, nonlinearity="relu").eval(), [(x[0],) for (x,) in sequences((1, 5), (1, 2))], (dyn(0),), paths=1
    )


class Decoder(nn.Module):
    """Goes on until all have said the last token: layers in a staged loop."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.GRU(3, 4, batch_first=True)
        self.embedding = nn.Embedding(5, 3)
        self.head = nn.Linear(4, 5)
        torch.manual_seed(17)
        for parameter in self.parameters():
            nn.init.normal_(parameter)

    def forward(self, x: Tensor) -> Tensor:
        _, h = self.encoder(x)
        token = torch.zeros(x.shape[0], 1, dtype=torch.int64)
        tokens = []
        for _ in range(6):
            outputs, h = self.encoder(self.embedding(token), h)
            token = self.head(outputs[:, -1]).argmax(-1, keepdim=True)
            tokens.append(token)
            if (token == 2).all():
                break
        return torch.cat(tokens, 1)


@row(48)
def test_a_decoder_that_stops() -> None:
    agree(Decoder().eval(), sequences((2, 5), (1, 3), (3, 2), (1, 6)), (dyn(0, 1),))


@row(48)
@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_cells(kind: Any) -> None:
    agree(Layer(kind).eval(), [(x[:, 0],) for (x,) in sequences((3, 1), (1, 1), (5, 1))], (dyn(0),), paths=1)


@row(48)
def test_projections_are_refused() -> None:
    with refused(OnnxError, match="projections"):
        dy2st.onnx.export(Layer(nn.LSTM, proj_size=2).eval(), sequences((2, 5))[0])
