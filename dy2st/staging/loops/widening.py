"""The join of a loop's state before and after one run of its body, as far as earlier runs have found it."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from dy2st.staging.lattice.join import (
    TAGGED_UNION,
    Incompatible,
    Invariant,
    Join,
    Phi,
    Structured,
    UnequalLengths,
    join,
    join_cases,
    join_content,
    numeric,
)
from dy2st.staging.lattice.tagged_join import MISSING
from dy2st.staging.loops.stacked_outputs import StackedOutput
from dy2st.staging.unequal_lengths import is_rows
from dy2st.values.container_structure import open_alike, open_container
from dy2st.values.error_recovery import RecoveryValue
from dy2st.values.number import number_kind
from dy2st.values.undefined import UNSET

Entry = Join | StackedOutput


def refined(old: Entry | None, before: Any, after: Any, *, need_before: bool = True, content: bool = False) -> Join:
    """``join(before, after)``, never below what an earlier run of the body has found."""
    if isinstance(old, Incompatible):
        return old
    if isinstance(before, RecoveryValue):
        return Invariant(before)
    if isinstance(after, RecoveryValue):
        after = before
    if isinstance(old, Structured) and old.signature[0] == TAGGED_UNION:
        joined = join_cases(before if need_before else MISSING, after, old, refined_case)
        return joined or join(before, after, need_before, True)
    new = join_content(before, after) if content else join(before, after, need_before, True)
    if is_rows(old) and type(before) is list and type(after) is list and not isinstance(new, UnequalLengths):
        # Of the same length in this run, by chance.
        return UnequalLengths(before, after, lambda: new)
    if isinstance(old, Phi) and isinstance(new, Invariant) and numeric(after):
        return dataclasses.replace(old, a=before, b=after)
    if isinstance(old, Structured) and isinstance(new, (Invariant, Structured)):
        opened = open_alike(before, after)
        if opened is not None and opened[0][2] == old.signature:
            a, b = opened
            children = [refined(o, x, y) for o, x, y in zip(old.children, a[0], b[0], strict=True)]
            return Structured(children, a[1], a[2], (before, after))
    if isinstance(old, (Phi, Structured)) and isinstance(new, Structured) and new.signature[0] == TAGGED_UNION:
        # Of one kind until now: what is known of it goes on as what is known of that case.
        cases = Structured([Invariant(0), old], new.build, (TAGGED_UNION, (_kind(old),)))
        return join_cases(before if need_before else MISSING, after, cases, refined_case) or new
    return new


def refined_case(old: Join, before: Any, after: Any) -> Join:
    """One case of a value of several kinds, which either side may not have."""
    missing = [side is MISSING for side in (before, after)]
    if not any(missing):
        return refined(old, before, after)
    if isinstance(old, Phi):
        a, b = (UNSET if gone else side for side, gone in zip((before, after), missing, strict=True))
        return dataclasses.replace(old, a=a, b=b)
    opened = None if all(missing) else open_container(after if missing[0] else before)
    if isinstance(old, Structured) and opened is not None and opened[2] == old.signature:
        parts = [(MISSING, part) if missing[0] else (part, MISSING) for part in opened[0]]
        children = [refined_case(o, *part) for o, part in zip(old.children, parts, strict=True)]
        return Structured(
            children, opened[1], opened[2], (UNSET if missing[0] else before, UNSET if missing[1] else after)
        )
    return join(before, after, not missing[0], not missing[1])


def kept_for_reuse(template: dict[Any, Entry]) -> dict[str, Join]:
    """The structure of a loop's variables, without their values: what is kept of them would be seen as in use."""
    found = {key: _without_values(entry) for key, entry in template.items() if isinstance(key, str)}
    return {key: entry for key, entry in found.items() if entry is not None}


def _without_values(entry: Entry) -> Join | None:
    if isinstance(entry, Invariant):
        return Invariant(None)
    if isinstance(entry, Phi):
        a, b = (torch.empty_like(v) if isinstance(v, torch.Tensor) else v for v in (entry.a, entry.b))
        return dataclasses.replace(entry, a=a, b=b)
    if isinstance(entry, Structured):
        children = [_without_values(child) for child in entry.children]
        whole = [child for child in children if child is not None]
        return Structured(whole, entry.build, entry.signature) if len(whole) == len(children) else None
    return None


def reused(old: Entry, before: Any) -> Join | None:
    """The same structure as in an earlier run of the whole loop, for new values before it; None if it doesn't fit."""
    if isinstance(old, Invariant):
        return Invariant(before)
    if isinstance(old, Phi):
        if before is UNSET:
            return dataclasses.replace(old, a=UNSET) if old.a is UNSET else None
        if not numeric(before) or number_kind(before) is not old.kind:
            return None
        if old.kind is None and (before.dtype is not old.dtype or before.dim() != _rank(old)):
            return None
        return dataclasses.replace(old, a=before, b=UNSET)
    if isinstance(old, Structured):
        opened = open_container(before)
        if opened is None or opened[2] != old.signature:
            return None
        children = [reused(o, x) for o, x in zip(old.children, opened[0], strict=True)]
        if any(c is None for c in children):
            return None
        return Structured([c for c in children if c is not None], opened[1], opened[2], (before, UNSET))
    return None


def _kind(joined: Phi | Structured) -> Any:
    """The kind of a value as a case of several."""
    if isinstance(joined, Structured):
        return ("container", joined.signature)
    return ("tensor", joined.dtype, _rank(joined)) if joined.kind is None else ("number", joined.kind)


def _rank(leaf: Phi) -> int:
    value = leaf.a if leaf.a is not UNSET else leaf.b
    return value.dim() if isinstance(value, torch.Tensor) else 0


def builds(before: Any, after: Any) -> bool:
    """Whether an iteration has put a tuple of another length in place of one: the next will hardly do so again."""
    if isinstance(before, tuple) and isinstance(after, tuple):
        if len(before) != len(after):
            return True
        return any(builds(a, b) for a, b in zip(before, after, strict=True))
    return False
