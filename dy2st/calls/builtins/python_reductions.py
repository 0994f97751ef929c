"""``max``, ``min``, ``sum``, ``any``, ``all`` and ``functools.reduce`` under a capture."""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from dy2st.calls.builtins.overloads import elements, is_staged, stands_for, with_own_values
from dy2st.calls.builtins.short_circuit import ShortCircuit, staged_clause
from dy2st.plan import Alternative, plan
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.conditions import condition, truth_number
from dy2st.staging.containers.data_keys import DataKeyed
from dy2st.staging.containers.list_functions import extreme_or, reduced, reduced_from
from dy2st.staging.containers.list_values import extreme, order_themselves
from dy2st.staging.containers.lists import elements as rows_of
from dy2st.staging.containers.selection import on_its_path
from dy2st.staging.loops.iterables import StagedIterable, has_dynamic_length
from dy2st.staging.loops.looped_comprehension import LoopedComprehension, decided
from dy2st.staging.session import MODE
from dy2st.tracing.grad_mode import gradient_mode
from dy2st.tracing.tracer import at_least, same_size
from dy2st.values.dtype_provenance import note_lower_kinds
from dy2st.values.number import Number, number_kind, number_tensor, promoted_dtype
from dy2st.values.stacked_list import has_rows, row_list
from dy2st.values.staged_text import characters
from dy2st.values.tagged_union import TaggedUnion, distributed


def _extreme(name: str, /, *args: Any, **kwargs: Any) -> Any:
    python = getattr(builtins, name)
    values = args
    if len(args) == 1:
        kwargs = with_own_values(args[0], kwargs)
        only = elements(args[0], in_any_order=kwargs.get("key") is None)
        args = (only,)
        if isinstance(only, torch.Tensor) and only.dim() == 1 and not kwargs:
            return _one_of(_extreme_of(name, only), only)
        if isinstance(only, torch.Tensor) and only.dim() and MODE.capture is not None:
            only = rows_of(only)
            args = (only,)
        if has_rows(only) and MODE.capture is not None:
            if "default" in kwargs:
                default = kwargs.pop("default")
                return MODE.capture.call(extreme_or)(python, only, default, **kwargs)
            return extreme(MODE.capture, name, only, **kwargs)
        if not isinstance(only, (list, tuple)) and (isinstance(only, torch.Tensor) or kwargs.get("key") is None):
            return python(*args, **kwargs)
        values = tuple(only)
        if values:
            kwargs.pop("default", None)
        if not values and "default" not in kwargs and MODE.capture is not None:
            return MODE.capture.fail(ValueError(f"{name}() arg is an empty sequence"))
    values = tuple(map(characters, values))
    structured = kwargs or any(isinstance(v, tuple) or order_themselves([v]) for v in values)
    if set(kwargs) <= {"key"} and structured and values and MODE.capture is not None:
        return extreme(MODE.capture, name, values, **kwargs)
    if not any(is_staged(v) for v in values) or kwargs:
        return python(*args, **kwargs)
    return functools.reduce(lambda a, b: _pick_extreme(name, a, b), values)


def _extreme_of(name: str, values: torch.Tensor) -> torch.Tensor:
    """The first greatest or least number [n]: NaN is never beyond another, and stays if it is the first."""
    if not values.dtype.is_floating_point:
        return values.max() if name == "max" else values.min()
    missing = torch.isnan(values)
    others = values.masked_fill(missing, -math.inf if name == "max" else math.inf)
    return torch.where(missing[0], values[0], others.max() if name == "max" else others.min())


def _pick_extreme(name: str, a: Any, b: Any) -> Any:
    """Python's rule: the later one only if it is strictly beyond the earlier."""
    if a is b:
        return a
    if isinstance(a, TaggedUnion) or isinstance(b, TaggedUnion):
        return distributed(functools.partial(_pick_extreme, name), a, b)
    beyond = condition(b > a if name == "max" else b < a)
    if isinstance(beyond, bool):
        return b if beyond else a
    sizes = all(isinstance(v, (int, torch.SymInt)) and not isinstance(v, bool) for v in (a, b))
    if sizes and not plan().takes(Alternative.EXTREME_SIZES_ARE_NUMBERS):
        return torch.sym_max(a, b) if name == "max" else torch.sym_min(a, b)
    kinds = number_kind(a), number_kind(b)
    if kinds[0] is not None and kinds[0] is kinds[1]:
        return Number(torch.where(beyond, number_tensor(b), number_tensor(a)), kinds[0])
    tensors = [v for v in (a, b) if isinstance(v, torch.Tensor)]
    if len(tensors) == 2 and a.dtype is b.dtype and a.dim() == b.dim():
        return _one_of(_chosen(beyond, b, a), a, b)
    kind = kinds[0] or kinds[1]
    one = tensors[0] if len(tensors) == 1 and tensors[0].dim() == 0 else None
    fits = one is not None and kind is not None and promoted_dtype(one, kind) is one.dtype
    if one is not None and fits and not plan().has_taken(Alternative.NUMBERS_STAY_NUMBERS):
        x, y = (v if v is one else number_tensor(v).to(one.dtype) for v in (a, b))
        chosen = _one_of(_chosen(beyond, y, x), one)
        note_lower_kinds(chosen, a, b)
        return chosen
    return TaggedUnion(beyond.to(torch.int64), [a, b])


def _chosen(beyond: torch.Tensor, b: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    """``b`` where the condition holds, else ``a``."""
    if not gradient_mode().differentiated:
        return torch.where(beyond, b, a)
    chosen: torch.Tensor = on_its_path((a, b), beyond.to(torch.int64))
    return chosen


def _one_of(result: torch.Tensor, *older: torch.Tensor) -> torch.Tensor:
    """``result`` is eagerly one of these itself, or a part of one: a write to either is seen through the other."""
    if MODE.capture is not None:
        MODE.capture.aliases.is_one_of(result, *older)
    return result


stands_for(max)(functools.partial(_extreme, "max"))
stands_for(min)(functools.partial(_extreme, "min"))


@stands_for(sum)
def _sum(values: Any, start: Any = 0) -> Any:
    values = elements(values, in_any_order=True)
    if has_rows(values):
        rows = row_list(values)
        total = _added(rows.stack)
        kind = int if rows.kind is bool else rows.kind
        return _from(start, Number(total, kind) if kind else total, rows.length)
    if isinstance(values, torch.Tensor) and values.dim() > 0 and has_dynamic_length(values):
        return _from(start, _added(values), values.shape[0])
    return sum(values, start)


def _added(rows: torch.Tensor) -> torch.Tensor:
    """``0 + rows[0] + ...``: of flags it is int64, of other integers their own dtype."""
    return rows.sum(0) if rows.dtype is torch.bool else rows.sum(0, dtype=rows.dtype)


def _from(start: Any, total: Any, count: Any) -> Any:
    """``start + total``; the sum of nothing is ``start`` itself."""
    result = total if isinstance(start, int) and start == 0 else start + total
    if at_least(count, 1):
        return result
    if isinstance(start, torch.Tensor):
        alike = start.dtype is result.dtype and len(start.shape) == len(result.shape)
        if alike and all(map(same_size, start.shape, result.shape)):
            return _one_of(result, start)
    elif (
        isinstance(result, torch.Tensor)
        and result.dim() == 0
        and not plan().has_taken(Alternative.NUMBERS_STAY_NUMBERS)
    ):
        note_lower_kinds(result, start)
        return result
    elif number_kind(start) is number_kind(result):
        return result
    number = number_tensor(count)
    capture, declared = MODE.capture, isinstance(count, torch.SymInt) and not free_unbacked_symbols(count)
    if capture is not None and declared and plan().takes(Alternative.SUMS_HAVE_ELEMENTS):
        what = "exported for a sum of one element at least"
        capture.guards.require(number > 0, location_of(users_frame()), what, always=True)
        return result
    return TaggedUnion((number == 0).to(torch.int64), [result, start])


def _fold(values: Any, /, *, reduce: Callable[[torch.Tensor], Any], conjunction: bool) -> Any:
    capture = MODE.capture
    values = elements(values, in_any_order=True) if isinstance(values, DataKeyed) else values
    if capture is not None and (clause := staged_clause(capture, values)) is not None:
        if isinstance(clause, LoopedComprehension):
            clause.conjunction = conjunction
            return elements(values)[0]
        clause.lazily = True
        values = elements(values)
    if isinstance(values, StagedIterable):
        return decided(values, conjunction=conjunction, frame=users_frame())
    if has_rows(values):
        values = row_list(values).stack
    if isinstance(values, torch.Tensor) and values.dim() == 1:
        return truth_number(reduce(values if values.dtype is torch.bool else values != 0))
    if capture is None:
        return all(values) if conjunction else any(values)
    return ShortCircuit(capture, values, conjunction=conjunction).result()


stands_for(any)(functools.partial(_fold, reduce=torch.any, conjunction=False))
stands_for(all)(functools.partial(_fold, reduce=torch.all, conjunction=True))


@stands_for(functools.reduce)
def _reduce(function: Any, iterable: Any, *initial: Any) -> Any:
    values = iterable if isinstance(iterable, (torch.Tensor, StagedIterable)) else elements(iterable)
    if not initial and not isinstance(values, (list, tuple, torch.Tensor)):
        values = elements(values) if isinstance(values, StagedIterable) else list(values)
    if MODE.capture is None:
        return functools.reduce(function, values, *initial)
    return MODE.capture.call(reduced_from if initial else reduced)(function, values, *initial)
