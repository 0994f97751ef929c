"""Sequences of several lengths in one tensor, and recurrent networks over them: ``pack_padded_sequence`` and readers.

Packed data [elements, *] is the sequences side by side, step by step, the longest one first: of S steps, each has as
many rows as there are sequences left (``batch_sizes`` [S], int64). How many elements and steps there are is known only
when the graph runs. A network runs over the sequences padded to S steps, [S, B, *]: what a step gives does not depend
on later ones, and a direction from the end begins at each sequence's own end.

Source: ATen/native/PackedSequence.cpp and RNN.cpp, torch 2.13.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence
from torch.utils.weak import WeakIdKeyDictionary

from dy2st.calls.torch_functions.registry import replaces
from dy2st.source.rewriting import rewrite
from dy2st.staging.conditions import require
from dy2st.staging.session import MODE
from dy2st.tracing.row_reads import rows_at
from dy2st.tracing.tracer import same_size

Tensor = torch.Tensor

# How many sequences there are, by the tensor of batch sizes: the size of another tensor, where one was packed.
_SEQUENCES: Any = WeakIdKeyDictionary()


@replaces(torch._VF._pack_padded_sequence)
def pack(input: Tensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:  # noqa: A002 - torch's name
    """Of padded sequences [T, B, *] (or [B, T, *]) the packed data and the batch sizes."""
    padded = input.transpose(0, 1) if batch_first else input
    count = padded.shape[1]
    require(lengths.shape[0] == count, RuntimeError, "Expected `len(lengths)` to be equal to batch_size")
    require((lengths > 0).all(), RuntimeError, "Length of all samples has to be greater than 0")
    require((lengths[1:] <= lengths[:-1]).all(), RuntimeError, "`lengths` array must be sorted in decreasing order")
    require(lengths[0] <= padded.shape[0], RuntimeError, "a sequence is longer than the padded input")
    inside = torch.arange(padded.shape[0])[:, None] < lengths
    batch_sizes = inside.sum(1)
    batch_sizes = batch_sizes[batch_sizes > 0]
    _SEQUENCES[batch_sizes] = count
    return padded[inside], batch_sizes


@replaces(torch._VF._pad_packed_sequence)
def pad(
    data: Tensor, batch_sizes: Tensor, batch_first: bool, padding_value: Any, total_length: Any
) -> tuple[Tensor, Tensor]:
    """Of packed data the sequences [total_length, B, *] (or [B, total_length, *]) and their lengths [B] (int64)."""
    steps = batch_sizes.shape[0]
    if not same_size(steps, total_length):
        # Steps that no sequence has; how many, a runtime may be told only once it is known that they are not too few.
        every = torch.arange(total_length)
        later = torch.where(every < steps, batch_sizes[every.clamp(max=steps - 1)], 0)
        _SEQUENCES[later] = _count(batch_sizes)
        batch_sizes = later
    inside = _inside(batch_sizes)
    padded = _padded(data, batch_sizes, inside, padding_value)
    return padded.transpose(0, 1) if batch_first else padded, inside.sum(0)


def _count(batch_sizes: Tensor) -> Any:
    """How many sequences there are."""
    found = _SEQUENCES.get(batch_sizes)
    if found is None:
        found = batch_sizes[0].item()
        torch._check(found >= 0)
    return found


def _inside(batch_sizes: Tensor) -> Tensor:
    """Whether a sequence is as long: [S, B] (bool)."""
    return torch.arange(_count(batch_sizes)) < batch_sizes[:, None]


def _padded(data: Tensor, batch_sizes: Tensor, inside: Tensor, padding_value: Any = 0.0) -> Tensor:
    places = (batch_sizes.cumsum(0) - batch_sizes)[:, None] + torch.arange(inside.shape[1])
    rows = data[torch.where(inside, places, 0)]
    return torch.where(_over(inside, rows), rows, padding_value)


def _packed(padded: Tensor, inside: Tensor, data: Tensor) -> Tensor:
    """The elements of sequences [S, B, *]: as many as ``data`` has."""
    found = padded[inside]
    torch._check(found.shape[0] == data.shape[0])
    return found


def _over(inside: Tensor, rows: Tensor) -> Tensor:
    return inside.reshape(*inside.shape, *[1] * (rows.dim() - inside.dim()))


def is_packed(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a recurrent module is called with a packed sequence."""
    return isinstance(args[0] if args else kwargs.get("input"), PackedSequence)


def over_packed(module: Any, input: PackedSequence, hx: Any = None) -> Any:  # noqa: A002
    """``module(input, hx)``: the packed outputs, and the states [layers * directions, B, *] after each sequence's end.

    Raises:
        RuntimeError: the input has another number of features than the module, or the states have other sizes.
    """
    data, batch_sizes, order, back = input
    inside = _inside(batch_sizes)
    count = inside.shape[1]
    with_cells = isinstance(module, torch.nn.LSTM)
    module.check_input(data, batch_sizes)
    rows = module.num_layers * (2 if module.bidirectional else 1)
    widths = [module.proj_size or module.hidden_size, *([module.hidden_size] if with_cells else [])]
    expected = [(rows, count, width) for width in widths]
    if hx is None:
        before = [data.new_zeros(sizes) for sizes in expected]
    else:
        before = list(hx) if with_cells else [hx]
        for each, sizes in zip(before, expected, strict=True):
            module.check_hidden_size(each, sizes)
        before = [_ordered(each, order) for each in before]
    outputs, after = _layers(module, _padded(data, batch_sizes, inside), inside, before)
    states = tuple(_ordered(each, back) for each in after)
    packed = PackedSequence(_packed(outputs, inside, data), batch_sizes, order, back)
    return packed, states if with_cells else states[0]


def _ordered(states: Tensor, order: Tensor | None) -> Tensor:
    return states if order is None else rows_at(states, order, 1)


def _layers(module: torch.nn.RNNBase, x: Tensor, inside: Tensor, before: Sequence[Tensor]) -> tuple[Tensor, Any]:
    """The outputs [S, B, directions * width] of the last layer, and the last states of all."""
    directions = 2 if module.bidirectional else 1
    steps, last = torch.arange(inside.shape[0])[:, None], inside.sum(0) - 1
    turned = torch.where(inside, last - steps, steps)
    found: list[list[Tensor]] = []
    for layer in range(module.num_layers):
        if layer and module.training and module.dropout:
            x = functional.dropout(x, module.dropout)
        outputs = []
        for direction in range(directions):
            row = layer * directions + direction
            given = _by_steps(x, turned) if direction else x
            own = [each[row : row + 1] for each in before]
            output, *states = _direction(module, given, inside, last, own, module.all_weights[row])
            outputs.append(_by_steps(output, turned) if direction else output)
            found.append(states)
        x = torch.cat(outputs, 2)
    return x, [torch.stack(states) for states in zip(*found, strict=True)]


def _by_steps(x: Tensor, places: Tensor) -> Tensor:
    """Of each sequence of [S, B, *] the steps at ``places`` [S, B]."""
    return x.gather(0, _over(places, x).expand(x.shape))


def _direction(
    module: torch.nn.RNNBase, x: Tensor, inside: Tensor, last: Tensor, own: list[Tensor], weights: Any
) -> list[Tensor]:
    """The outputs [S, B, width] of one direction, and its states [B, *] after each sequence's last step."""
    options = (module.bias, 1, 0.0, False, False, False)
    if not isinstance(module, torch.nn.LSTM):
        run = torch.gru if isinstance(module, torch.nn.GRU) else getattr(torch, module.mode.lower())
        output = run(x, own[0], weights, *options)[0]
        return [output, _at(output, last)]
    output = torch.lstm(x, own, weights, *options)[0]
    # What the gates were given is known, so that only the cells are a matter of one step after the other.
    hidden = torch.cat([own[0], output[:-1]])
    w_ih, w_hh = weights[:2]
    b_ih, b_hh = weights[2:4] if module.bias else (None, None)
    given = functional.linear(x, w_ih, b_ih) + functional.linear(hidden, w_hh, b_hh)
    into, kept, new, _ = given.chunk(4, 2)
    return [output, _at(output, last), _cells(kept.sigmoid(), into.sigmoid() * new.tanh(), inside, own[1][0])]


def _cells(*given: Tensor) -> Tensor:
    """``last_cells``, staged; it is no loop of the user's, whose paths are to be taken."""
    capture = MODE.capture
    assert capture is not None
    known = len(capture.sites.found)
    found: Tensor = rewrite(cast("types.FunctionType", last_cells))(*given)
    capture.sites.forget(known)
    return found


def _at(output: Tensor, last: Tensor) -> Tensor:
    """The rows [B, *] of [S, B, *] at the last steps [B]."""
    return _by_steps(output, last[None])[0]


def last_cells(kept: Tensor, added: Tensor, inside: Tensor, cell: Tensor) -> Tensor:
    """An LSTM's cells [B, H] after each sequence's last step: ``kept`` and ``added`` are [S, B, H]. It is converted."""
    for step in range(kept.shape[0]):
        cell = torch.where(inside[step][:, None], kept[step] * cell + added[step], cell)
    return cell
