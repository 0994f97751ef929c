"""What a model stores that outlives its call, and that a program doesn't store."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from dy2st.calls.gradients.leaves import Reached
from dy2st.calls.outside_world import Constants
from dy2st.calls.torch_functions.gradient_marks import Leaves
from dy2st.capture.given_tensors import GivenAttributes, changeable_parts
from dy2st.capture.root_module import original_of
from dy2st.errors import Location
from dy2st.operators.export_session import current
from dy2st.source.assigning_lines import stored_at
from dy2st.source.user_frames import is_users, place
from dy2st.staging.containers.dereferencing import dereferenced
from dy2st.staging.memory.heap import (
    attributes,
    elements,
    held_by_function,
    is_closed,
    is_machinery,
    named_globals,
    walk,
)
from dy2st.staging.session import Session
from dy2st.values.journal import Slot, Store
from dy2st.values.staged_text import text_of

# Kinds of slots that every function may read, and what they are called.
_OF_A_NAME = {"global": "global", "context": "context variable"}


def lost_state(capture: Session, call: Any, arguments: Any) -> list[tuple[str, Location | None]]:
    """What the code changed of objects that existed before, buffers and tensors apart: a predicate, with a place.

    ``call`` is what is captured, ``arguments`` what it was called with.
    """
    found: list[tuple[str, Location | None]] = []
    journal = capture.trace_frames[0].journal.old
    changed = [slot for slot, old in journal.items() if not is_same(slot, old, slot.get()) and not _is_buffer(slot)]
    cells = {id(cell) for cell in getattr(_function(call), "__closure__", None) or ()}
    outside = _among({slot.identity for slot in changed if slot.kind in ("attribute", "content")}, call, arguments)
    stores = current().part(Constants).stored = []
    for slot in changed:
        if slot.kind in _OF_A_NAME or slot.identity in (cells if slot.kind == "cell" else outside):
            owner = original_of(slot.owner) if isinstance(slot.owner, torch.nn.Module) else slot.owner
            old, new = journal[slot], slot.get()
            of_arguments = _is_made_of(capture, new, arguments)
            stores.append(Store(Slot.of(slot.kind, owner, slot.name), old, new, of_arguments))
            by_class = slot.kind == "attribute" and not isinstance(slot.owner, torch.Tensor)
            found_at = stored_at(type(slot.owner), slot.name) if by_class else None
            stored = capture.stored.get(slot)
            found.append(
                (f"changes {_words(slot)}", place(*stored) if found_at is None and stored is not None else found_at)
            )
    return found


def _is_made_of(capture: Session, value: Any, arguments: Any) -> bool:
    """Whether a tensor in a value is computed of values of tensors among the arguments, not of sizes alone."""
    nodes = [
        {capture.tracing.node_of(leaf) for leaf in pytree.tree_leaves(each) if isinstance(leaf, torch.Tensor)}
        for each in (value, arguments)
    ]
    left, given = list(nodes[0] - {None}), nodes[1]
    seen = set(left)
    while left:
        each = left.pop()
        if each in given:
            return True
        made_of = [] if each is None else [n for n in each.all_input_nodes if n not in seen]
        left += [n for n in made_of if isinstance(n.meta.get("val"), (torch.Tensor, tuple, list))]
        seen.update(made_of)
    return False


class Returned:
    """The result of the code that is captured, as it returned it; a part of an export's session."""

    result: Any = None


def returned(result: Any) -> Any:
    """Note a result, and give it on without references."""
    result = dereferenced(result)
    current().part(Returned).result = result
    return result


def all_lost(capture: Session, call: Any, arguments: Any) -> list[tuple[str, Location | None]]:
    """See ``lost_state``; also what is lost of the result that was noted."""
    return [
        *lost_state(capture, call, arguments),
        *_lost_of_results(current().part(Returned).result, call, arguments),
    ]


def _lost_of_results(results: Any, call: Any, arguments: Any) -> list[tuple[str, Location | None]]:
    """What eager leaves: the ``grad`` of a parameter or result, attributes of one; a list that is the caller's own."""
    if current().part(Constants).everything:
        return []
    found: list[tuple[str, Location | None]] = []
    if current().part(Reached).nodes:
        found.append(("adds to the grad of a parameter or input by backward()", current().part(Reached).location))
    held = {id(each): each for each in changeable_parts(results)}
    shared = _among(set(held), call, arguments)
    found += [
        (f"returns the very {type(each).__name__} that it was given", None) for i, each in held.items() if i in shared
    ]
    retained = current().part(Leaves).retained
    for each in pytree.tree_leaves(results):
        if isinstance(each, torch.Tensor):
            if id(each) in retained:
                found.append(("changes whether a result keeps its gradient (retain_grad)", retained[id(each)]))
            new = vars(each).keys() - _OF_FAKE_TENSORS - current().part(GivenAttributes).names.get(id(each), set())
            own = sorted(name for name in new if not name.startswith("_"))
            if own and isinstance(each, FakeTensor):
                found.append((f"changes the attribute {own[0]!r} of a tensor that it returns", None))
    return found


_OF_FAKE_TENSORS = frozenset(
    "fake_mode fake_device constant real_tensor pytype dispatch_keys nonzero_memo item_memo unique_memo "
    "unique_consecutive_memo nested_int_memo grad".split()
)


def outlived(slot: Slot, old: Any, model: Any) -> bool:
    """Whether a slot has another value than the ``old`` one, and what is called leads to its owner."""
    call = model.forward if isinstance(model, torch.nn.Module) else model
    return not is_same(slot, old, slot.get()) and slot.identity in _among({slot.identity}, call, ())


def _function(call: Any) -> Any:
    return getattr(call, "__func__", call)


def _words(slot: Slot) -> str:
    if isinstance(slot.owner, FakeTensor):
        return f"the attribute {slot.name!r} of a tensor"
    return f"the {_OF_A_NAME[slot.kind]} {slot.name!r}" if slot.kind in _OF_A_NAME else str(slot)


def is_same(slot: Slot, old: Any, new: Any) -> bool:
    """Whether a slot has the value that it had."""
    if slot.kind != "content":
        plain = type(old) is type(new) and isinstance(old, (int, float, str))
        return old is new or (plain and text_of(old) == text_of(new))
    if isinstance(old, dict):
        return list(old) == list(new) and all(x is y for x, y in zip(old.values(), new.values(), strict=True))
    if isinstance(old, frozenset):
        return bool(old == new)
    return len(old) == len(new) and all(x is y for x, y in zip(old, new, strict=True))


def _is_buffer(slot: Slot) -> bool:
    owner = slot.owner
    return slot.kind == "attribute" and isinstance(owner, torch.nn.Module) and slot.name in owner.__dict__["_buffers"]


def _among(owners: set[int], call: Any, arguments: Any) -> set[int]:
    """Those of some owners, by identity, that a call leads to, or its arguments."""
    found: set[int] = set()
    if owners:
        # What is called may be a function of ours that holds the user's.
        roots = [getattr(call, "__self__", None), arguments, call, *attributes(call)]
        for each in walk(roots, (attributes, elements, held_by_function, named_globals), _is_end):
            held = {id(every) for every in _with_its_own(each)} & owners
            if held:
                found |= held
                if found == owners:
                    break
    return found


def _with_its_own(value: Any) -> Iterator[Any]:
    """A value, its namespace, its classes; for a function its globals."""
    yield value
    yield getattr(value, "__dict__", value)
    yield from type(value).__mro__
    if isinstance(value, types.FunctionType):
        yield value.__globals__


def _is_end(value: Any) -> bool:
    if isinstance(value, types.FunctionType):
        return not is_users(value.__code__.co_filename)
    return is_closed(value) or is_machinery(value)
