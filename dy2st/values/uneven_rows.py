"""Tensors of several lengths in a list of data-dependent length: their rows one after the other, and their lengths.

Source: ``pad_sequence`` of ATen/native/PackedSequence.cpp, torch 2.13.
"""

from __future__ import annotations

from typing import Any

import torch

from dy2st.values.number import Number, number_tensor, symbolic

Tensor = torch.Tensor


def piece(rows: Tensor, lengths: Tensor, place: Any) -> Tensor:
    """One of the tensors [length, ...], of all their ``rows`` [m, ...].

    ``lengths`` are int64 [n]; ``place``, a staged int or an int64 0-d tensor, is in range, as an int, which may be
    negative, is. Traced.
    """
    if isinstance(place, int):
        end, length = lengths.cumsum(0)[place], lengths[place]
    else:
        at = (place if isinstance(place, Tensor) else number_tensor(place)).to(torch.int64).reshape(1)
        end, length = (each.index_select(0, at).reshape(()) for each in (lengths.cumsum(0), lengths))
    bounds = [symbolic(Number(each, int)) for each in (end - length, end)]
    found: Tensor = torch.ops.aten.slice.Tensor(rows, 0, *bounds)
    return found


def selected(rows: Tensor, lengths: Tensor, places: Tensor) -> Tensor:
    """The rows [k, ...] of the tensors at ``places``, int64 [p], one after the other. Traced."""
    taken = lengths.index_select(0, places)
    which = torch.repeat_interleave(taken)
    # By how much the rows of each lie elsewhere than behind those before it.
    moved = (lengths.cumsum(0) - lengths).index_select(0, places) - (taken.cumsum(0) - taken)
    return rows.index_select(0, torch.arange(which.shape[0]) + moved.index_select(0, which))


def padded(rows: Tensor, lengths: Tensor, fill: Any, *, left: bool = False) -> Tensor:
    """The tensors behind each other [n, longest, ...], filled up at the end or, ``left``, at the beginning.

    There is one at least. ``rows`` are [m, ...], ``lengths`` int64 [n]. Traced.
    """
    longest = lengths.max()
    size = symbolic(Number(longest, int))
    at: Tensor = torch.arange(size) - ((longest - lengths)[:, None] if left else 0)
    inside = (at >= 0) & (at < lengths[:, None])
    starts = (lengths.cumsum(0) - lengths)[:, None]
    # The row behind the last one is a row of padding.
    place = torch.where(inside, starts + at, number_tensor(rows.shape[0]))
    more = torch.cat([rows, rows.new_full((1, *rows.shape[1:]), fill)])
    return more.index_select(0, place.flatten()).reshape(lengths.shape[0], size, *rows.shape[1:])
