"""Indices that are data-dependent: as places of elements, guarded where eager raises for one that is out of range."""

from __future__ import annotations

from typing import Any

import torch

from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.branches.case_distribution import not_in_try
from dy2st.staging.branches.try_statement import raise_if
from dy2st.staging.conditions import condition
from dy2st.staging.containers import row_ops
from dy2st.staging.session import Session
from dy2st.tracing.tracer import at_least
from dy2st.values.number import Number, number_tensor, one_element


def require(capture: Session, ok: Any, error: Exception, *, reads: bool = False) -> None:
    """``ok`` (a condition) has to hold; eager raises ``error`` otherwise.

    What only ``reads`` hands that to the ``try`` around. A change has been announced already, on the path around.
    """
    if ok is True:
        return
    if ok is False:
        raise error
    location = location_of(users_frame())
    if reads and isinstance(ok, torch.Tensor) and capture.catching(error) is not None:
        raise_if(capture, torch.logical_not(ok), error, location)
        return
    not_in_try(capture, "a list is used", location, type(error), (type(error),))
    capture.guards.require(ok, location, always=True)


def in_range(
    capture: Session, index: Any, length: Any, what: str = "list index out of range", *, reads: bool = False
) -> row_ops.Place:
    """The place of an element, guarded where it may be out of range."""
    if isinstance(index, torch.Tensor):
        index = Number(one_element(index).to(torch.int64), int)
    if isinstance(index, bool):
        index = int(index)
    error = IndexError(what)
    if isinstance(index, int):
        least = index + 1 if index >= 0 else -index
        if at_least(length, least):
            return index
        require(capture, condition(length >= least), error, reads=reads)
    count = number_tensor(length)
    at = row_ops.wrapped(index, count)
    if not isinstance(index, int):
        ok = (at >= 0) & (at < count)
        require(capture, ok, error, reads=reads)
    return capture.guards.after(at)


def plain(key: Any) -> Any:
    """A key with tensors as staged numbers."""
    if isinstance(key, slice):
        return slice(plain(key.start), plain(key.stop), plain(key.step))
    if isinstance(key, torch.Tensor):
        return Number(one_element(key).to(torch.int64), int)
    return key
