"""``item in container`` where tensors or staged numbers have to be compared."""

from __future__ import annotations

from typing import Any

import torch

from dy2st.staging.cases import has_maybe_keys
from dy2st.staging.conditions import condition, either, truth_number
from dy2st.staging.containers import list_values
from dy2st.staging.containers.dicts import contains_key
from dy2st.staging.containers.equality import are_staged, same_elements
from dy2st.staging.containers.selection import among, chosen, is_staged_key
from dy2st.staging.session import MODE
from dy2st.staging.users_code import special
from dy2st.values.number import SYMBOLS, Number
from dy2st.values.stacked_list import has_rows
from dy2st.values.staged_text import characters
from dy2st.values.tagged_union import TaggedUnion


def contains(item: Any, container: Any) -> Any:
    """``item in container``."""
    if isinstance(container, TaggedUnion):
        assert MODE.capture is not None
        return chosen(MODE.capture, container, lambda case: contains(item, case))
    if isinstance(item, TaggedUnion):
        assert MODE.capture is not None
        return chosen(MODE.capture, item, lambda case: contains(case, container))
    if has_maybe_keys(container):
        return contains_key(container, item)
    method = special(container, "__contains__")
    if method is not None:
        return truth_number(condition(method(item)))
    if isinstance(container, (dict, set, frozenset)) and is_staged_key(item):
        return among(container, item)
    if isinstance(container, str):
        characters(item)
    if isinstance(container, torch.Tensor):
        return truth_number(condition((container == item).any()))
    if has_rows(container):
        return list_values.contains(container, item)
    if isinstance(container, (list, tuple)) and any(_is_compared(each, item) for each in container):
        found: Any = False
        for element in container:
            same = same_elements(element, item) if are_staged(element, item) else element == item
            found = either(found, True if element is item else condition(same))
        return truth_number(found)
    return item in container


def _is_compared(element: Any, item: Any) -> bool:
    """Whether it is data-dependent whether these are equal, or a tensor says it."""
    return are_staged(element, item) or any(
        isinstance(each, (torch.Tensor, Number, *SYMBOLS)) for each in (element, item)
    )
