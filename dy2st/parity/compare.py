"""Comparing what a stage returned with what eager returned: places, count, dtypes, shapes, NaN and infinity, values."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import torch

from dy2st.embedded.file_outputs import steps
from dy2st.parity.metrics import output_metrics
from dy2st.parity.outputs import Output, is_narrow, widened
from dy2st.parity.pictures import pictures
from dy2st.parity.tolerances import Bound, bound_for, tolerance_for
from dy2st.report.model import Difference, OutputMetrics, StageResult, Tolerance

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence


_DEFAULT_FLOATS = {torch.float32, torch.float64}


def compare(
    stage: str,
    expected: Sequence[Output],
    actual: Sequence[Output],
    *,
    rtol: Bound = None,
    atol: Bound = None,
    terms: Callable[[], int] = lambda: 1,
    spread: Callable[[], Sequence[torch.Tensor] | None] = lambda: None,
    texts: Collection[str] = (),
) -> StageResult:
    """Compare all outputs of one stage with eager's; see :mod:`dy2st.parity.tolerances` for what counts as equal.

    ``terms`` counts those of the model's largest sum; it is asked where a value is beyond the table's tolerance. Where
    that does not do, ``spread`` says how far rounding may move each element of each output, if anybody knows: infinity
    where rounding decides whether it is a number at all.
    ``texts`` are the places of texts that depend on the path.
    """
    kept, actual, uneven = _aligned(stage, expected, actual, texts)
    if uneven:
        return StageResult(stage, "differs", differences=(Difference("output", "count", uneven),))
    count_before, expected = len(expected), [expected[number] for number in kept]
    found = _compared(stage, expected, actual, rtol, atol, 1)
    if not found.differences or any(each.kind not in ("value", "nan") for each in found.differences):
        return found
    count = terms() if all(each.kind == "value" for each in found.differences) else 1
    scaled = _compared(stage, expected, actual, rtol, atol, count) if count > 1 else found
    if not scaled.differences:
        return replace(scaled, terms=count)
    given = any(
        bound_for(bound, want.name, got.name) is not None
        for want, got in zip(expected, actual, strict=True)
        for bound in (rtol, atol)
    )
    moved = None if given else spread()
    if moved is None or len(moved) != count_before:
        return found
    moved = [moved[number] for number in kept]
    rounded = _compared(stage, expected, actual, rtol, atol, count, moved)
    return found if rounded.differences else replace(rounded, rounding=rounded.max_abs)


def _aligned(
    stage: str, expected: Sequence[Output], actual: Sequence[Output], texts: Collection[str] = ()
) -> tuple[list[int], list[Output], str]:
    """The numbers of eager's outputs that are compared, what each is compared with, and what is uneven, if anything.

    Eager's outputs are named by their places. A text that a stage does not return is the same on all paths, and no part
    of a file, unless its place is in ``texts``. A stage that says nothing of places has its outputs in eager's order;
    its texts are the same on all paths.
    """
    if not all(output.place for output in actual):
        kept = [number for number, output in enumerate(expected) if not output.is_text]
        found = [output for output in actual if not output.is_text]
        uneven = f"eager returns {len(kept)} tensors, {stage} {len(found)}" if len(kept) != len(found) else ""
        return kept, found, uneven
    placed = {steps(output.place): output for output in actual}
    known = {*placed, *map(steps, texts)}
    kept = [number for number, each in enumerate(expected) if not each.is_text or steps(each.name) in known]
    wanted = {steps(expected[number].name): expected[number].name for number in kept}
    missing = [place for key, place in wanted.items() if key not in placed]
    more = [output.place for key, output in placed.items() if key not in wanted]
    if missing:
        return kept, [], f"eager returns {missing[0]}, {stage} does not"
    if more:
        return kept, [], f"{stage} returns {more[0]}, eager does not"
    return kept, [placed[key] for key in wanted], ""


def _compared(
    stage: str,
    expected: Sequence[Output],
    actual: Sequence[Output],
    rtol: Bound,
    atol: Bound,
    terms: int,
    spread: Sequence[torch.Tensor] | None = None,
) -> StageResult:
    differences: list[Difference] = []
    max_abs = max_rel = 0.0
    metrics: list[OutputMetrics] = []
    for i, (want, got) in enumerate(zip(expected, actual, strict=True)):
        bounds = bound_for(rtol, want.name, got.name), bound_for(atol, want.name, got.name)
        moved = None if spread is None else spread[i]
        difference, apart, relative = _compare_one(want, got, *bounds, terms, metrics, moved)
        max_abs, max_rel = max(max_abs, apart), max(max_rel, relative)
        if difference is not None:
            differences.append(difference)
    status: Literal["equal", "differs"] = "differs" if differences else "equal"
    return StageResult(
        stage, status, max_abs, max_rel, tuple(differences), "", pictures(expected, actual), tuple(metrics)
    )


def _compare_one(
    want: Output,
    got: Output,
    rtol: float | None,
    atol: float | None,
    terms: int,
    metrics: list[OutputMetrics],
    spread: torch.Tensor | None,
) -> tuple[Difference | None, float, float]:
    expected, actual = want.tensor.cpu(), got.tensor.cpu()
    if want.is_text and got.is_text:
        same = expected.tolist() == actual.tolist()
        message = f"eager has {_text(expected)}, this {_text(actual)}"
        return None if same else Difference(want.name, "value", message), 0.0, 0.0
    if expected.is_complex() and not actual.is_complex() and actual.dim() == expected.dim() + 1:
        actual = torch.view_as_complex(actual.contiguous())  # ONNX has real numbers: pairs along the last dimension
    if want.is_number and {expected.dtype, actual.dtype} <= _DEFAULT_FLOATS:
        expected = expected.to(actual.dtype)  # a Python float has no dtype: a file may hold it in either width
    if is_narrow(expected) and actual.dtype is torch.uint8:
        actual = actual.view(expected.dtype)  # onnxruntime gives them as bytes
    if expected.dtype != actual.dtype:
        return Difference(want.name, "dtype", f"eager has {expected.dtype}, this {actual.dtype}"), 0.0, 0.0
    if expected.shape != actual.shape:
        message = f"eager has shape {list(expected.shape)}, this {list(actual.shape)}"
        return Difference(want.name, "shape", message), 0.0, 0.0
    bounds = tolerance_for(expected.dtype, rtol=rtol, atol=atol, terms=terms)
    expected, actual = widened(expected), widened(actual)
    if expected.is_complex():
        expected, actual, spread = torch.view_as_real(expected), torch.view_as_real(actual), None
    return _compare_values(want.name, expected, actual, bounds, metrics, spread)


def _compare_values(
    name: str,
    expected: torch.Tensor,
    actual: torch.Tensor,
    bounds: Tolerance,
    metrics: list[OutputMetrics],
    spread: torch.Tensor | None,
) -> tuple[Difference | None, float, float]:
    if expected.numel() == 0:
        return None, 0.0, 0.0
    if expected.is_floating_point():
        special = ~(torch.isfinite(expected) & torch.isfinite(actual))
        wrong = special & ~((expected == actual) | (expected.isnan() & actual.isnan()))
        if spread is not None:
            wrong &= ~spread.isinf()
        if wrong.any():
            metrics.append(output_metrics(name, expected, actual, wrong))
            return _difference(name, "nan", expected, actual, wrong, int(wrong.flatten().int().argmax())), 0.0, 0.0
        expected, actual = expected.masked_fill(special, 0), actual.masked_fill(special, 0)
        wide = torch.float64
    else:  # integers beyond 2**53 are no doubles; their differences are formed as integers
        wide = torch.int64
    exact_want, exact_got = expected.to(wide), actual.to(wide)
    apart = (exact_want - exact_got).abs().double()
    apart = torch.where(exact_want == exact_got, 0.0, apart.clamp(min=torch.finfo(torch.float64).tiny))
    size = exact_want.double().abs()
    tolerated = bounds.atol + bounds.rtol * size
    if spread is not None and expected.is_floating_point():
        tolerated = tolerated + spread
    wrong = apart > tolerated
    share = float((apart / tolerated).max()) if tolerated.all() else None
    metrics.append(replace(output_metrics(name, expected, actual, wrong), of_tolerance=share))
    max_abs = float(apart.max())
    max_rel = float((apart / size.clamp(min=torch.finfo(torch.float64).tiny)).where(apart > 0, 0.0).max())
    if not wrong.any():
        return None, max_abs, max_rel
    worst = int(apart.where(wrong, -1.0).flatten().argmax())
    return _difference(name, "value", expected, actual, wrong, worst), max_abs, max_rel


def _difference(
    name: str,
    kind: Literal["nan", "value"],
    expected: torch.Tensor,
    actual: torch.Tensor,
    wrong: torch.Tensor,
    worst: int,
) -> Difference:
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(worst), expected.shape))
    want, got = expected.flatten()[worst].item(), actual.flatten()[worst].item()
    where = f" at {list(index)}" if index else ""
    count = f" ({int(wrong.sum())} of {wrong.numel()} elements differ)" if wrong.numel() > 1 else ""
    message = f"eager has {_shown(want)}{where}, this {_shown(got)}{count}"
    return Difference(name, kind, message, index)


def _text(value: torch.Tensor) -> str:
    return repr(bytes(value.tolist()).decode(errors="replace"))


def _shown(value: object) -> str:
    return f"{value:.9g}" if isinstance(value, float) else str(value)
