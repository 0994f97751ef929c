"""The register of what stands for Python's functions under a capture, and what stand-ins share."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

from dy2st.calls.outside_world import constant_value
from dy2st.staging.containers.data_keys import DataDict, DataSet
from dy2st.staging.containers.lists import elements as rows_of
from dy2st.staging.loops.iterables import StagedIterable, as_iterable, gone_over
from dy2st.staging.session import MODE, Session
from dy2st.tracing.grad_mode import stopped
from dy2st.tracing.tracer import outside_the_trace
from dy2st.values.container_structure import Listed
from dy2st.values.number import DTYPES, SYMBOLS, Number, cast, one_element
from dy2st.values.tagged_union import TaggedUnion

STAND_INS: dict[Any, Callable[..., Any]] = {}


def elements(values: Any, *, in_any_order: bool = False) -> Any:
    """A generator expression, or what has a data-dependent length, as the list of its elements; all else as it is.

    A set with data-dependent members is for who takes them ``in_any_order``.
    """
    if isinstance(values, TaggedUnion) and MODE.capture is not None:
        values = gone_over(MODE.capture, values)
    if isinstance(values, Listed):
        return list(values._keys if in_any_order and isinstance(values, DataSet) else values.listed())
    if isinstance(values, StagedIterable):
        return rows_of(values)
    if isinstance(values, types.GeneratorType) and MODE.capture is not None:
        MODE.capture.advances.note(values)
        return MODE.capture.collected(values)
    return values if MODE.capture is None else MODE.capture.advances.watched(values)


def spread(capture: Session, value: Any) -> Any:
    """What a display takes all elements of: a list of those that only the graph can count."""
    value = gone_over(capture, value)
    if isinstance(value, torch.Tensor) and as_iterable(value) is not None:
        return rows_of(value)
    return elements(value) if isinstance(value, (StagedIterable, Listed, types.GeneratorType)) else value


def with_own_values(values: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments of ``max`` or ``sorted``: for each key of a dict ``key=d.get`` is its value, and never None."""
    asked = kwargs.get("key")
    if isinstance(values, DataDict) and isinstance(asked, types.MethodType) and asked == values.get:
        return {**kwargs, "key": values.__getitem__}
    return kwargs


def is_staged(value: Any) -> bool:
    """Whether a value is known only when the graph runs."""
    return isinstance(value, (torch.Tensor, Number, TaggedUnion, *SYMBOLS))


def stands_for(*originals: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a stand-in."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for original in originals:
            STAND_INS[original] = function
        return function

    return register


def known_int(value: Any) -> Any:
    """A tensor of one int as the int that it holds, where it is computed of constants alone; else the value itself."""
    if MODE.capture is None or not isinstance(value, torch.Tensor) or not _has_one_int(value):
        return value
    known = constant_value(MODE.capture, value)
    if known is None:
        return value
    with outside_the_trace():
        return int(known)


def _has_one_int(tensor: torch.Tensor) -> bool:
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex or tensor.dtype is torch.bool:
        return False
    return isinstance(tensor.numel(), int) and tensor.numel() == 1


def number_of(tensor: torch.Tensor, kind: type) -> Any:
    """``int(t)``, ``float(t)``, ``bool(t)`` of a tensor with one element."""
    if isinstance(tensor.numel(), int) and tensor.numel() != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    # A number is no alias of the tensor that it was read from.
    with stopped():
        flat = one_element(tensor).clone()
    if kind is bool:
        return Number(flat if flat.dtype is torch.bool else flat != 0, bool)
    if kind is int and flat.dtype.is_floating_point:
        flat = torch.trunc(flat)
    return Number(cast(flat, DTYPES[kind]), kind)


def item(tensor: torch.Tensor) -> Any:
    """``t.item()``: the Python number that its dtype gives."""
    if tensor.dtype is torch.bool:
        return number_of(tensor, bool)
    return number_of(tensor, float if tensor.dtype.is_floating_point else int)


def knows_cases(function: Callable[..., Any]) -> Callable[..., Any]:
    """A stand-in that takes a value of one of several kinds as it is."""
    function.takes_cases = True  # type: ignore[attr-defined]
    return function
