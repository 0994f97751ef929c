"""What a model returns as a program can give it: lists that grow and values that are one of several have a form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.capture.result_forms import ABSENT, CaseForm, ListForm, cells_of
from dy2st.capture.results import caution, or_kinds, promoted
from dy2st.errors import GrownListError
from dy2st.plan import Alternative, plan
from dy2st.source.muting import muting
from dy2st.staging.cases import narrowed
from dy2st.staging.session import Session
from dy2st.values.describing import alternatives, article
from dy2st.values.elements import Element, Variants, pieces
from dy2st.values.number import DTYPES, number_kind, number_tensor, promoted_dtype
from dy2st.values.stacked_list import StackedList, has_rows, one_element, row_list, uneven_columns
from dy2st.values.staged_text import is_unknown
from dy2st.values.tagged_union import TaggedUnion, cases_of, tag_of


def with_forms(capture: Session, found: Any, *, exact: bool = False) -> Any:
    """A result in which a ``ListForm`` or ``CaseForm`` stands for what is not the same number of tensors in each call.

    With ``exact``, each of several values has its own type and dtype; else they have a common dtype, if there is one.
    What has no such form stays, to be refused where the results are checked. Raises what says that the elements of a
    list are unlike.
    """

    def formed(value: Any) -> Any:
        if has_rows(value):
            return _list_form(value)
        if not isinstance(value, TaggedUnion):
            return value
        value = narrowed(capture, value)
        if not isinstance(value, TaggedUnion):
            return with_forms(capture, value, exact=exact)
        if exact:
            return _case_form(value, exact=True)
        value = promoted(value)
        return _case_form(value) if isinstance(value, TaggedUnion) else value

    # A size is no tuple to whoever called.
    return pytree.tree_map(
        formed, found, is_leaf=lambda each: has_rows(each) or isinstance(each, (TaggedUnion, torch.Size))
    )


def _list_form(value: Any) -> ListForm:
    values = list(value)
    if any(isinstance(each, StackedList) and each.uneven for each in values):
        element = one_element(values)
        _warn_of_elements(element)
        return ListForm(uneven_columns(values), element, type(value), uneven=True)
    rows = row_list(values)
    if any(isinstance(each, Variants) for each in pieces(rows.element)):
        raise GrownListError(
            "the model returns a list of data-dependent length whose elements are of several kinds by the path taken",
            hint="make them of one type: numbers of one type, or tensors of one dtype",
        )
    _warn_of_elements(rows.element)
    return ListForm(rows.columns, rows.element, type(value))


def _warn_of_elements(element: Element) -> None:
    for cell in cells_of(element):
        if cell.lower:
            name = str(cell.dtype).removeprefix("torch.")
            caution(f"a list whose elements are {article(name)} tensor or {or_kinds(cell.lower)}", cell.dtype)


def _case_form(value: TaggedUnion, *, exact: bool = False) -> Any:
    """The form of a value that is one of several; the value itself, if it has none."""
    cases = cases_of(value)
    texts = [case for case in cases if isinstance(case, str) and not is_unknown(case)]
    valued = [case for case in cases if isinstance(case, torch.Tensor) or number_kind(case) is not None]
    others = [case for case in cases if case is None]
    if len(texts) + len(valued) + len(others) < len(cases) or (texts and valued):
        return value
    dtype = None if exact else _common_dtype(valued)
    if valued and dtype is None and not exact:
        return value
    ranks = {case.dim() if isinstance(case, torch.Tensor) else 0 for case in valued}
    # What looks for refusals makes no program, and tries one way alone.
    if len(ranks) > 1 and not exact and not plan().takes(Alternative.RESULTS_OF_ANY_RANK) and muting().mutes is None:
        return value
    if not exact and len({_kind(case, dtype) for case in valued}) > 1:
        caution(alternatives(valued), dtype)
    values: list[Any] = []
    places: list[int] = []
    for case in cases:
        if case is None or isinstance(case, str):
            places.append(ABSENT)
            continue
        places.append(len(values))
        values.append(case if exact else _as_dtype(case, dtype))
    constants = [case if place == ABSENT else None for case, place in zip(cases, places, strict=True)]
    return CaseForm(tag_of(value), values, places, constants)


def _kind(case: Any, dtype: torch.dtype | None) -> Any:
    """What tells in eager that a case is not of ``dtype``."""
    return number_kind(case) or (case.dtype if case.dtype is not dtype else None)


def _common_dtype(cases: Sequence[Any]) -> torch.dtype | None:
    """The dtype that holds the values of all tensors and numbers; None if there is none, or no cases."""
    tensors = [case for case in cases if isinstance(case, torch.Tensor)]
    kinds = [kind for kind in map(number_kind, cases) if kind is not None]
    if not tensors:
        dtypes = {DTYPES[kind] for kind in kinds}
        return torch.float64 if dtypes == {torch.float64, torch.int64} else dtypes.pop() if len(dtypes) == 1 else None
    found = {case.dtype for case in tensors}
    dtypes = found if len(found) == 1 else {dtype for dtype in found if dtype.is_floating_point}
    if len(dtypes) != 1 or (len(found) > 1 and any(dtype.is_complex for dtype in found)):
        return None
    dtype = dtypes.pop()
    for kind in kinds:
        dtype = promoted_dtype(torch.empty((), dtype=dtype, device="meta"), kind)
    return dtype


def _as_dtype(case: Any, dtype: torch.dtype | None) -> Any:
    kind = number_kind(case)
    if kind is not None and DTYPES[kind] is dtype:
        return case
    tensor = case if isinstance(case, torch.Tensor) else number_tensor(case)
    return tensor if dtype in (None, tensor.dtype) else tensor.to(dtype)
