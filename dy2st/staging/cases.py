"""Which cases a value of one of several kinds can be where the capture stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dy2st.errors import KeysChangeError
from dy2st.staging.session import Session
from dy2st.staging.trace_frame import TraceFrame
from dy2st.values.tagged_union import TaggedUnion, cases_of, tag_of
from dy2st.values.undefined import UNSET


def possible(capture: Session, value: TaggedUnion, trace_frames: Sequence[TraceFrame] | None = None) -> list[int]:
    """The cases that ``value`` may be, by the tests on the way to here, or to the end of other ``trace_frames``."""
    node = capture.tracing.node_of(tag_of(value))
    excluded: set[int] = set()
    count = len(cases_of(value))
    for scope in capture.trace_frames if trace_frames is None else trace_frames:
        for (tag, case), holds in scope.known.items():
            if tag is node:
                excluded |= set(range(count)) - {case} if holds else {case}
    return [i for i in range(count) if i not in excluded]


def narrowed(capture: Session, value: Any, trace_frames: Sequence[TraceFrame] | None = None) -> Any:
    """``value``, or the only case that it can be."""
    if not isinstance(value, TaggedUnion):
        return value
    alive = possible(capture, value, trace_frames)
    return cases_of(value)[alive[0]] if len(alive) == 1 else value


def is_case(value: TaggedUnion, case: int) -> torch.Tensor:
    """Whether ``value`` is its case number ``case``; traced."""
    test: torch.Tensor = tag_of(value) == case
    return test


def maybe_absent(value: Any) -> bool:
    """Whether there may be no value at all."""
    return isinstance(value, TaggedUnion) and any(case is UNSET for case in cases_of(value))


def has_maybe_keys(value: Any) -> bool:
    """Whether a dict has keys that may not be there."""
    return isinstance(value, dict) and any(maybe_absent(v) for v in value.values())


def all_there(capture: Session, owner: dict[Any, Any]) -> None:
    """Refuse a dict of which the capture does not know the keys."""
    for key, value in owner.items():
        if maybe_absent(narrowed(capture, value)):
            raise KeysChangeError(
                f"a dict is used as a whole, and it has the key {key!r} on some paths only",
                hint=f"set {key!r} on every path, or before the branch or loop",
            )
