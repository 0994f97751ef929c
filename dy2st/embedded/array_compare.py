"""Comparing arrays with what eager returned: the rules of :mod:`dy2st.parity.compare`, on numpy.

A test holds that both find the same. The arrays of ``bfloat16`` are compared as float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from dy2st.embedded.array_file import BFLOAT16, Array
from dy2st.report.model import Difference, OutputMetrics, StageResult, Tolerance

Numbers = np.ndarray[Any, Any]

_TINY = float(np.finfo(np.float64).tiny)


def compare_arrays(
    stage: str,
    expected: Sequence[tuple[str, Array]],
    actual: Sequence[Array],
    tolerances: Sequence[Tolerance],
    scaled: Sequence[Tolerance],
    terms: int,
    spread: Sequence[Numbers | None] | None = None,
) -> StageResult:
    """Compare all outputs of a stage with eager's, which come with their names.

    Where values alone are beyond ``tolerances``, those ``scaled`` by the ``terms`` of the model's largest sum decide;
    and where that does not do, how far rounding may move each element, the ``spread``, is added to them.
    """
    with np.errstate(all="ignore"):
        found = _compared(stage, expected, actual, tolerances)
        if not found.differences or any(each.kind not in ("value", "nan") for each in found.differences):
            return found
        again = _compared(stage, expected, actual, scaled) if terms > 1 else found
        if not again.differences:
            return replace(again, terms=terms)
        if spread is None:
            return found
        rounded = _compared(stage, expected, actual, scaled, spread)
    return found if rounded.differences else replace(rounded, rounding=rounded.max_abs)


def _compared(
    stage: str,
    expected: Sequence[tuple[str, Array]],
    actual: Sequence[Array],
    tolerances: Sequence[Tolerance],
    spread: Sequence[Numbers | None] | None = None,
) -> StageResult:
    if len(expected) != len(actual):
        message = f"eager returns {len(expected)} tensors, {stage} {len(actual)}"
        return StageResult(stage, "differs", differences=(Difference("output", "count", message),))
    differences: list[Difference] = []
    metrics: list[OutputMetrics] = []
    max_abs = max_rel = 0.0
    moved = [None] * len(expected) if spread is None else spread
    for (name, want), got, bounds, apart_by in zip(expected, actual, tolerances, moved, strict=True):
        if want.dtype != got.dtype:
            differences.append(Difference(name, "dtype", f"eager has {want.dtype}, this {got.dtype}"))
            continue
        if want.shape != got.shape:
            message = f"eager has shape {list(want.shape)}, this {list(got.shape)}"
            differences.append(Difference(name, "shape", message))
            continue
        difference, apart, relative = _values(name, want, got, bounds, apart_by, metrics)
        max_abs, max_rel = max(max_abs, apart), max(max_rel, relative)
        differences += [] if difference is None else [difference]
    status: Literal["equal", "differs"] = "differs" if differences else "equal"
    return StageResult(stage, status, max_abs, max_rel, tuple(differences), outputs=tuple(metrics))


def _values(
    name: str, want: Array, got: Array, bounds: Tolerance, spread: Numbers | None, metrics: list[OutputMetrics]
) -> tuple[Difference | None, float, float]:
    expected, actual = want.numbers(), got.numbers()
    if expected.size == 0:
        return None, 0.0, 0.0
    both = np.ones(expected.shape, np.bool_)
    wide: type[np.generic] = np.int64  # integers beyond 2**53 are no doubles; their differences are formed as integers
    if np.issubdtype(expected.dtype, np.floating):
        both, wide = np.isfinite(expected) & np.isfinite(actual), np.float64
        wrong = ~both & ~((expected == actual) | (np.isnan(expected) & np.isnan(actual)))
        if spread is not None:
            wrong &= ~np.isinf(spread)
        if wrong.any():
            metrics.append(_metrics(name, want, got, both, wrong))
            return _difference(name, "nan", expected, actual, wrong, int(wrong.argmax())), 0.0, 0.0
    exact_want, exact_got = (_without(each, both).astype(wide) for each in (expected, actual))
    apart = np.abs(exact_want - exact_got).astype(np.float64)
    apart = np.where(exact_want == exact_got, 0.0, np.maximum(apart, _TINY))
    size = np.abs(exact_want.astype(np.float64))
    tolerated = bounds.atol + bounds.rtol * size
    if spread is not None and wide is np.float64:
        tolerated = tolerated + spread
    wrong = apart > tolerated
    share = float((apart / tolerated).max()) if tolerated.all() else None
    metrics.append(replace(_metrics(name, want, got, both, wrong), of_tolerance=share))
    max_rel = float(np.where(apart > 0, apart / np.maximum(size, _TINY), 0.0).max())
    difference = None
    if wrong.any():
        worst = int(np.where(wrong, apart, -1.0).argmax())
        difference = _difference(name, "value", expected, actual, wrong, worst)
    return difference, float(apart.max()), max_rel


def _metrics(name: str, expected: Array, actual: Array, both: Numbers, wrong: Numbers) -> OutputMetrics:
    """As :func:`dy2st.parity.metrics.output_metrics`; ``both`` marks the elements that are finite on both sides."""
    want, got = (_without(each.numbers(), both).astype(np.float64) for each in (expected, actual))
    apart = np.abs(want - got)
    relative = np.where(apart > 0, apart / np.maximum(np.abs(want), _TINY), 0.0)
    worst = int(np.where(wrong, apart, -1.0).argmax()) if wrong.any() else int(apart.argmax())
    norm = float(np.linalg.norm(want.ravel()) * np.linalg.norm(got.ravel()))
    return OutputMetrics(
        name,
        max_abs=float(apart.max()),
        max_rel=float(relative.max()),
        max_ulps=_ulps(expected, actual, both),
        cosine=min(1.0, float((want * got).sum()) / norm) if norm > 0 and math.isfinite(norm) else None,
        mismatched=float(wrong.mean()),
        worst=_place(worst, expected.shape),
        dtype=expected.dtype,
        shape=expected.shape,
    )


def _ulps(expected: Array, actual: Array, both: Numbers) -> float | None:
    """How many numbers of the dtype lie between the two, at most; None for what is no float."""
    if expected.dtype != BFLOAT16 and not np.issubdtype(expected.bits.dtype, np.floating):
        return None
    first, second = (_ordered(_without(each.bits, both)) for each in (expected, actual))
    # Between float64s of two signs there are more steps than int64 can count.
    alike = (first < 0) == (second < 0)
    steps = np.where(alike, (first - second).astype(np.float64), first.astype(np.float64) - second.astype(np.float64))
    return float(np.abs(steps).max())


def _ordered(bits: Numbers) -> Numbers:
    """Integers in the order of the floats, neighbours being one apart; -0.0 and 0.0 are one."""
    kind = np.dtype(f"i{bits.itemsize}")
    raw = np.ascontiguousarray(bits).view(kind).astype(np.int64)
    found: Numbers = np.where(raw < 0, np.int64(np.iinfo(kind).min) - raw, raw)
    return found


def _without(values: Numbers, kept: Numbers) -> Numbers:
    """Zeros in place of what is not kept."""
    found: Numbers = np.where(kept, values, values.dtype.type(0))
    return found


def _difference(
    name: str, kind: Literal["nan", "value"], expected: Numbers, actual: Numbers, wrong: Numbers, worst: int
) -> Difference:
    index = _place(worst, expected.shape)
    want, got = expected.ravel()[worst].item(), actual.ravel()[worst].item()
    where = f" at {list(index)}" if index else ""
    count = f" ({int(wrong.sum())} of {wrong.size} elements differ)" if wrong.size > 1 else ""
    return Difference(name, kind, f"eager has {_shown(want)}{where}, this {_shown(got)}{count}", index)


def _place(index: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(each) for each in np.unravel_index(index, shape)) if shape else ()


def _shown(value: object) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)
