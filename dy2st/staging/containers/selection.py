"""One of several objects, by a data-dependent index or key: ``self.experts[i]``, ``table[n]``."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable, Sequence
from typing import Any

import torch

from dy2st.errors import GrownListError, StagingError
from dy2st.plan import plan
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.branches.case_distribution import choose
from dy2st.staging.conditions import condition, either, truth_number
from dy2st.staging.containers import row_ops
from dy2st.staging.containers.equality import same_elements
from dy2st.staging.containers.indices import in_range, plain, require
from dy2st.staging.loops.iterables import noted
from dy2st.staging.session import Session
from dy2st.tracing.emission import fresh_copy
from dy2st.tracing.grad_mode import gradient_mode
from dy2st.tracing.tracer import same_size
from dy2st.values.container_structure import changeable
from dy2st.values.elements import Variants, parts, pieces
from dy2st.values.number import SYMBOLS, Number, number_tensor, plain_number
from dy2st.values.stacked_list import StackedList, has_rows, row_list
from dy2st.values.tagged_union import TaggedUnion, cases_of, distributed

# Every element beyond the first costs a branch wherever the result is used.
MOST_CHOICES = 64


def picked(capture: Session, values: Sequence[Any], place: torch.Tensor) -> Any:
    """``values[place]``, the place being in range: numbers and tensors of one kind together, others by path."""
    first = values[0]
    if all(value is first for value in values):
        return first
    site = location_of(users_frame())
    if site in plan().by_path:
        return TaggedUnion(place, list(values))
    if gradient_mode().differentiated and len(values) <= MOST_CHOICES and _of_one_kind(values):
        return on_its_path(values, place)
    try:
        rows = _together(values)
    except StagingError as refusal:
        if has_rows(values) or any(isinstance(value, (StackedList, TaggedUnion)) for value in values):
            raise
        if len(values) > MOST_CHOICES:
            raise GrownListError(
                f"a data-dependent index or key chooses among {len(values)} different objects: at most {MOST_CHOICES} "
                "are possible",
                hint="choose among fewer, or stack what they compute with and index the tensor",
            ) from refusal
        return TaggedUnion(place, list(values))
    element = row_ops.element_at(rows, place)
    for part in cases_of(element):
        if isinstance(part, torch.Tensor):
            given = (case for value in values for case in cases_of(value))
            capture.aliases.is_one_of(part, *(case for case in given if isinstance(case, torch.Tensor)))
    for held in parts(element):
        if changeable(held):  # a copy of what eager has there: it may be read, but not changed
            capture.aliases.object_is_shared(held)
    if changeable(element) and len(values) <= MOST_CHOICES and not has_rows(values):
        capture.aliases.otherwise[id(element)] = element, functools.partial(plan().choose_by_path, site)
    return element


def picked_element(capture: Session, values: Sequence[Any], place: torch.Tensor) -> Any:
    """``picked`` of a list's elements: they themselves by path, or a copy, which may be read and not changed."""
    found = picked(capture, values, place)
    themselves = all(any(case is each for each in values) for case in cases_of(found))
    return found if themselves else noted(found)


def on_its_path(values: Sequence[torch.Tensor], place: torch.Tensor) -> Any:
    """``values[place]``, copied under a branch: those that are not taken have no gradient, rather than zeros."""
    return distributed(fresh_copy, TaggedUnion(place, list(values)))


def _of_one_kind(values: Sequence[Any]) -> bool:
    """Whether all are tensors that can have gradients, of one dtype and rank: those not chosen have none, not zeros."""
    kinds = {(value.dtype, value.dim()) if isinstance(value, torch.Tensor) else None for value in values}
    return len(kinds) == 1 and all(kind is not None and kind[0].is_floating_point for kind in kinds)


def _together(values: Sequence[Any]) -> StackedList:
    """The values as rows of one tensor; tensors whose sizes may differ have none."""
    if all(isinstance(value, torch.Tensor) for value in values):
        first, *rest = (value.shape for value in values)
        if any(len(shape) != len(first) or not all(map(same_size, shape, first)) for shape in rest):
            raise GrownListError("tensors of different sizes can't be rows of one tensor", hint="give them one size")
    rows = row_list(list(values))
    plain = not has_rows(values) and not any(isinstance(value, TaggedUnion) for value in values)
    if plain and any(isinstance(each, Variants) for each in pieces(rows.element)):
        raise GrownListError("values of several kinds are chosen by their places", hint="give them one type")
    return rows


def is_staged_key(key: Any) -> bool:
    """Whether a key is a data-dependent number, or a tuple with such, or of data-dependent length."""
    if isinstance(key, tuple):
        return has_rows(key) or any(map(is_staged_key, key))
    return isinstance(key, (Number, *SYMBOLS))


def _is_key(each: Any, key: Any) -> Any:
    """Whether a key of a dict is ``key``: a condition. Equal numbers are one key, and so are tuples of them."""
    if isinstance(key, tuple):
        return isinstance(each, tuple) and condition(same_elements(each, key))
    # A member of an IntEnum is a number, too, and numpy's are.
    return isinstance(each, (numbers.Number, *SYMBOLS)) and condition(key == plain_number(each))


def among(keys: Any, key: Any) -> Any:
    """``key in keys`` of a set or dict."""
    found: Any = False
    for each in keys:
        found = either(found, _is_key(each, key))
    return truth_number(found)


def entry(capture: Session, owner: dict[Any, Any], key: Any, *default: Any) -> Any:
    """``owner[key]``, or ``owner.get(key, default)``."""
    tests = [(_is_key(each, key), value) for each, value in owner.items()]
    possible = [(test, value) for test, value in tests if test is not False]
    if not default:
        require(capture, condition(among(owner, key)), KeyError(repr(key)), reads=True)
    values = [*default, *(value for _, value in possible)]
    place = number_tensor(0)
    for i, (test, _) in enumerate(possible, len(default)):
        place = torch.where(number_tensor(truth_number(test)), number_tensor(i), place)
    return picked(capture, values, capture.guards.after(place))


def chosen(capture: Session, key: TaggedUnion, get: Callable[[Any], Any]) -> Any:
    """What a key, a member or a container that is one of several gives: ``get`` of each, on its path."""
    return choose(capture, key, get, users_frame())


class Subscripted:
    """Stands for an object where it is subscripted."""

    __slots__ = ("capture", "owner")

    def __init__(self, capture: Session, owner: Any) -> None:
        self.capture = capture
        self.owner = owner


class Table(Subscripted):
    """A dict where it is subscripted by what is data-dependent."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, TaggedUnion):
            return chosen(self.capture, key, self.__getitem__)
        if is_staged_key(key):
            return entry(self.capture, self.owner, key)
        try:
            return self.owner[key]
        except KeyError as error:
            return self.capture.fail(error)


class ModuleSequence(Subscripted):
    """A ``ModuleList``, ``Sequential``, ``ParameterList`` or ``ModuleDict`` where it is subscripted."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, TaggedUnion):
            return chosen(self.capture, key, self.owner.__getitem__)
        index = key if isinstance(key, slice) else plain(key)
        if not is_staged_key(index):
            return self.owner[key]
        values = list(self.owner)
        place = in_range(self.capture, index, len(values), "index out of range", reads=True)
        return picked(self.capture, values, place if isinstance(place, torch.Tensor) else number_tensor(place))
