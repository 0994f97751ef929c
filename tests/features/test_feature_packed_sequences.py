"""Sequences of data-dependent lengths (row 59): ``pack_padded_sequence`` and recurrent modules over what it packs."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import onnx
import pytest
import torch
from harness import agree, dyn, row
from torch import Tensor, nn
from torch.nn.utils.rnn import (
    PackedSequence,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    unpad_sequence,
)

import dy2st

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def lengths(*values: int) -> Tensor:
    return torch.tensor(values)


def inputs() -> list[tuple[Tensor, Tensor]]:
    """Sequences [B, T, 3] and their lengths, of which the second may be the longest, and one may be as long as all."""
    generator = torch.Generator().manual_seed(0)
    given = [(3, 6, (6, 4, 2)), (1, 4, (3,)), (4, 7, (3, 6, 5, 1)), (2, 1, (1, 1))]
    return [(torch.randn(b, t, 3, generator=generator), lengths(*each)) for b, t, each in given]


DYNAMIC = (dyn(0, 1), dyn(0))


class Encoder(nn.Module):
    """Pack, run, pad: what tutorials have."""

    def __init__(self, net: nn.RNNBase, *, total: int | None = None) -> None:
        super().__init__()
        self.net = net
        self.total = total

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Any, ...]:
        first = self.net.batch_first
        x = x if first else x.transpose(0, 1)
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=first, enforce_sorted=False)
        outputs, states = self.net(input=packed)
        padded, found = pad_packed_sequence(outputs, batch_first=first, padding_value=-1.0, total_length=self.total)
        return padded, found, states


NETS: dict[str, Callable[[], Any]] = {
    "gru": lambda: nn.GRU(3, 4),
    "lstm": lambda: nn.LSTM(3, 4, batch_first=True),
    "rnn": lambda: nn.RNN(3, 4, batch_first=True),
    "rnn of relu, without biases": lambda: nn.RNN(3, 4, 2, nonlinearity="relu", bias=False),
    "gru, both directions": lambda: nn.GRU(3, 2, 2, bidirectional=True, batch_first=True),
    "lstm, both directions, without biases": lambda: nn.LSTM(3, 2, 2, bidirectional=True, bias=False),
    "lstm whose weights are normed": lambda: nn.utils.parametrizations.weight_norm(nn.LSTM(3, 4), "weight_hh_l0"),
}


@pytest.mark.slow_but_for("gru")
@row(59)
@pytest.mark.parametrize("net", NETS.values(), ids=NETS.keys())
def test_recurrent_modules(net: Any) -> None:
    torch.manual_seed(0)
    agree(Encoder(net()).eval(), inputs(), DYNAMIC, paths=1)


@pytest.mark.slow
@row(59)
def test_lengths_that_the_file_does_not_take() -> None:
    torch.manual_seed(0)
    x = torch.ones(3, 6, 3)
    raising = [(x, lengths(6, 0, 2)), (x, lengths(7, 1, 1))]
    given = [(x, lengths(6, 4, 2)), (x, lengths(1, 1, 1)), (x, lengths(3, 6, 5))]
    agree(Encoder(nn.GRU(3, 4, batch_first=True), total=6).eval(), given, paths=1, raising=raising)
    short = [(x, lengths(4, 4, 2)), (x, lengths(1, 1, 4))]
    agree(Encoder(nn.GRU(3, 4), total=4).eval(), short, paths=1, raising=[(x, lengths(1, 5, 1))])


def sorted_states(x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
    data, sizes, _, _ = pack_padded_sequence(x, n, batch_first=True)
    if sizes.shape[0] > 3:
        return data * 2, sizes
    return data, sizes


@row(59)
def test_sequences_that_are_to_be_sorted() -> None:
    x = torch.arange(36.0).view(3, 4, 3)
    given = [(x, lengths(4, 2, 1)), (x, lengths(3, 3, 2)), (x, lengths(1, 1, 1))]
    agree(sorted_states, given, paths=2, raising=[(x, lengths(2, 3, 1))])


def sequences(a: Tensor, b: Tensor) -> tuple[Any, ...]:
    count = 1 if b.sum() > 0 else 2
    packed = pack_sequence([b[:count], a, b], enforce_sorted=False)
    doubled = PackedSequence(packed.data * 2, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)
    padded, found = pad_packed_sequence(doubled)
    return padded, found, unpad_sequence(padded, found)[1], packed.to(torch.float64).data


@pytest.mark.slow
@row(59)
def test_sequences_of_a_list() -> None:
    a, b = torch.arange(8.0).view(4, 2), torch.ones(3, 2)
    agree(sequences, [(a, b), (a, -b)], paths=2)


class Tagger(nn.Module):
    """States before the first step, what is computed of the packed elements, and a loop around it all."""

    def __init__(self) -> None:
        super().__init__()
        self.embedded = nn.Embedding(9, 3, padding_idx=0)
        self.net = nn.LSTM(3, 3, 2, dropout=0.5)
        self.out = nn.Linear(3, 3)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        n = (tokens != 0).sum(1)
        x = self.embedded(tokens).transpose(0, 1)
        cells = before = x.mean(0).expand(2, -1, -1).contiguous()
        rounds = 0
        while rounds < 3 and x.abs().sum() > 1:
            packed = pack_padded_sequence(x, n.tolist(), enforce_sorted=False)
            found, (_, cells) = self.net(packed, (before, cells))
            scores = PackedSequence(self.out(found.data), *found[1:])
            x = x + pad_packed_sequence(scores, total_length=x.shape[0])[0]
            if n.max() > 3:
                break
            rounds += 1
        return x, cells


def tokens() -> list[tuple[Tensor]]:
    rows = [[[1, 2, 3, 0], [4, 5, 0, 0], [6, 0, 0, 0]], [[1, 2, 3, 4, 5]], [[1, 0], [2, 3]]]
    return [(torch.tensor(each),) for each in rows]


@pytest.mark.slow
@row(59)
def test_what_stands_for_a_module_has_no_paths_to_take() -> None:
    report = dy2st.check(Encoder(NETS["lstm"]()).eval(), inputs(), dynamic_shapes=DYNAMIC)
    assert report.ok, str(report)
    assert not report.paths


@pytest.mark.slow
@row(59)
def test_a_tagger() -> None:
    torch.manual_seed(0)
    agree(Tagger().eval(), tokens(), (dyn(0, 1),), paths=2)


@pytest.mark.slow
@row(59)
def test_packed_sequences_as_inputs_and_results() -> None:
    def packed(x: Tensor, n: Tensor) -> PackedSequence:
        return pack_padded_sequence(x, n, batch_first=True, enforce_sorted=False)

    net = nn.GRU(3, 4, batch_first=True)

    def model(given: PackedSequence) -> tuple[PackedSequence, Tensor]:
        found, state = net(given)
        if state.sum() > 0:
            state = state * 2
        return found, state

    x = torch.linspace(-2, 2, 54).view(3, 6, 3)
    given = [(packed(x * sign, lengths(*each)),) for sign in (1, -1) for each in ((6, 4, 2), (3, 6, 1))]
    report = dy2st.check(model, given)
    assert report.ok, str(report)
    static = dy2st.to_static(model)
    for (each,) in given:
        for got, want in zip(static(each), model(each), strict=True):
            torch.testing.assert_close(got, want)


@pytest.mark.slow_but_for("gru")
@row(66)
@pytest.mark.parametrize("net", ["gru", "lstm", "lstm, both directions, without biases"])
def test_gradients(net: str) -> None:
    torch.manual_seed(0)
    model = Encoder(NETS[net]())
    static = dy2st.to_static(copy.deepcopy(model))
    for x, n in inputs():
        found: list[list[Tensor | None]] = []
        for each in (model, static):
            each.zero_grad()
            padded, _, states = each(x, n)
            states = states if isinstance(states, tuple) else (states,)
            total = padded.sin().sum() + torch.cat([state.flatten() for state in states]).square().sum()
            torch.autograd.backward(total)
            found.append([parameter.grad for parameter in each.parameters()])
        torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@row(59)
def test_the_operator_of_the_name_runs(tmp_path: Path) -> None:
    """Cells that nobody reads cost no loop of their own."""

    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.LSTM(3, 4, batch_first=True)

        def forward(self, x: Tensor, n: Tensor) -> Tensor:
            found: Tensor = self.net(pack_padded_sequence(x, n, batch_first=True, enforce_sorted=False))[1][0]
            return found

    file = tmp_path / "model.onnx"
    dy2st.onnx.export(Last(), inputs()[0], file, dynamic_shapes=DYNAMIC)
    graph = onnx.load(file).graph
    assert "Loop" not in {node.op_type for node in graph.node}
    (choice,) = (node for node in graph.node if node.op_type == "If")
    assert "LSTM" in {node.op_type for node in choice.attribute[0].g.node}
