"""``functools.reduce``, converted as the loop that it stands for."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any, cast

import torch

from dy2st.calls.builtins.overloads import elements, stands_for
from dy2st.source.rewriting import rewrite
from dy2st.staging.loops.iterables import StagedIterable
from dy2st.staging.session import MODE


@stands_for(functools.reduce)
def _reduce(function: Any, iterable: Any, *initial: Any) -> Any:
    values = iterable if isinstance(iterable, (torch.Tensor, StagedIterable)) else elements(iterable)
    if not initial and not isinstance(values, (list, tuple, torch.Tensor)):
        values = elements(values) if isinstance(values, StagedIterable) else list(values)
    capture = MODE.capture
    if capture is None:
        return functools.reduce(function, values, *initial)
    # It is no loop of the user's, whose paths are to be taken.
    known = len(capture.sites.found)
    form = from_a_value if initial else from_the_first
    found = rewrite(cast("types.FunctionType", form))(function, values, *initial)
    capture.sites.forget(known)
    return found


def from_the_first(function: Callable[[Any, Any], Any], values: Any) -> Any:
    """``reduce(function, values)``; it is converted."""
    if len(values) == 0:
        raise TypeError("reduce() of empty iterable with no initial value")
    result = values[0]
    for each in values[1:]:
        result = function(result, each)
    return result


def from_a_value(function: Callable[[Any, Any], Any], values: Any, result: Any) -> Any:
    """``reduce(function, values, result)``; it is converted."""
    for each in values:
        result = function(result, each)
    return result
