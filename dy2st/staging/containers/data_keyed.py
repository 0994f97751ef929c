"""Where dicts and sets are made, and which of them have data-dependent keys: see ``data_keys``.

The first attempt to stage a model makes Python's own. Where one meets a data-dependent int as a key, the attempt is
given up for one that makes a :class:`DataDict` or :class:`DataSet` at this place of the code.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

from dy2st.errors import ComprehensionError
from dy2st.plan import plan
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.containers.data_key_limits import SITE
from dy2st.staging.containers.data_keys import (
    DataCounter,
    DataDefaultDict,
    DataDict,
    DataKeyed,
    DataOrderedDict,
    DataSet,
)
from dy2st.staging.containers.data_lists import DataListDict
from dy2st.staging.containers.lists import elements as rows_of
from dy2st.staging.containers.referred_objects import listed, record
from dy2st.staging.containers.selection import is_staged_key
from dy2st.staging.session import Session
from dy2st.values.elements import Cell, Composite, Constant, Variants
from dy2st.values.number import SYMBOLS, Number
from dy2st.values.stacked_list import StackedList, has_rows

_ELEMENTS = (StackedList, Cell, Composite, Constant, Variants)
_KINDS = (dict, set, collections.OrderedDict, collections.Counter, collections.defaultdict)
# Those that are called; ``defaultdict`` has a stand-in of its own.
CALLED = (dict, set, collections.OrderedDict, collections.Counter)


def is_data_key(key: Any) -> bool:
    """Whether a key is a data-dependent int or bool, or a tuple with such and no other data in it."""
    if isinstance(key, tuple):
        return is_staged_key(key) and not has_rows(key) and all(map(_is_whole, key))
    return is_staged_key(key) and _is_whole(key)


def _is_whole(part: Any) -> bool:
    """NaN is no key that is found again, unless it is the same object."""
    if isinstance(part, tuple):
        return all(map(_is_whole, part))
    if isinstance(part, Number):
        return part.kind in (int, bool)
    return not isinstance(part, (torch.Tensor, torch.SymFloat)) and (isinstance(part, SYMBOLS) or _is_plain(part))


def _is_plain(part: Any) -> bool:
    return isinstance(part, (int, str, bytes, type(None)))


def as_made(capture: Any, owner: Any, frame: FrameType) -> Any:
    """A dict or set that the code in ``frame`` has made: as it is, or with data-dependent keys."""
    if not isinstance(capture, Session):  # eager runs with Python's own
        return owner
    if type(owner) is list:
        return listed(capture, owner, (frame.f_code, frame.f_lasti))
    if not isinstance(owner, _KINDS):
        return owner
    if type(owner) is dict and plan().records and (made := record(capture, owner)) is not owner:
        return made
    place = location_of(frame)
    site = place.filename, place.line, place.column
    if site in plan().keyed:
        found = keyed(capture, owner, lists=site in plan().keyed_lists)
        vars(found)[SITE] = site
        return found
    capture.made_at[id(owner)] = owner, site
    return owner


def key_by_data(capture: Any, owner: Any, key: Any, *, lists: bool = False) -> None:
    """``owner`` is to have a key: where that is data-dependent, and it is known where it was made, it is made anew.

    With ``lists`` its values are lists that change.
    """
    if not isinstance(capture, Session):
        return
    known, site = capture.made_at.get(id(owner), (None, None))
    if known is owner and known is not None and is_data_key(key):
        plan().key_by_data(site, lists=lists)


def gather_by_data(capture: Any, owner: Any, given: tuple[Any, ...]) -> None:
    """``owner`` is to take over what is ``given``: where that has data-dependent keys, it is made anew."""
    if not isinstance(owner, _KINDS) or not isinstance(capture, Session):
        return
    paired = isinstance(owner, dict) and not isinstance(owner, collections.Counter)
    known, site = capture.made_at.get(id(owner), (None, None))
    if known is owner and any(isinstance(each, DataKeyed) or has_data_keys(each, paired=paired) for each in given):
        plan().key_by_data(site)


def keyed(capture: Session, owner: Any, *, lists: bool = False) -> Any:
    """The same container, for data-dependent keys; a dict perhaps whose values are ``lists``."""
    if isinstance(owner, set):
        return capture.call(DataSet)(sorted(owner, key=repr))
    pairs = list(owner.items())
    factory = getattr(owner, "default_factory", None)
    if lists or factory is list:
        native = dict if factory is None else collections.defaultdict
        return capture.call(DataListDict)(pairs, native, factory)
    if isinstance(owner, collections.defaultdict):
        return capture.call(DataDefaultDict)(owner.default_factory, pairs, collections.defaultdict)
    kinds = ((collections.Counter, DataCounter), (collections.OrderedDict, DataOrderedDict), (dict, DataDict))
    made = next(kind for native, kind in kinds if isinstance(owner, native))
    return capture.call(made)(pairs, type(owner))


def making(capture: Session, cls: type[Any], native: Callable[..., Any]) -> Callable[..., Any]:
    """``set(...)``, ``dict(...)``, ``Counter(...)``: of what has data-dependent members, or none yet."""

    def make(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs:
            given = args[0]
            if isinstance(given, (DataDict, DataSet)):
                return _of_keyed(capture, cls, given)
            if has_data_keys(given, paired=issubclass(cls, dict) and cls is not collections.Counter):
                made_empty = keyed(capture, cls())
                capture.call(made_empty.update)(rows_of(given) if has_rows(given) else given)
                return made_empty
        return as_made(capture, native(*args, **kwargs), users_frame())

    return functools.wraps(cls, updated=())(make)


def gathered(capture: Session, kind: type[Any], members: list[Any], frame: FrameType) -> Any:
    """The set of these members, or the dict of these pairs.

    Raises:
        ComprehensionError: which of other keys there are is data-dependent.
    """
    if has_rows(members) and not has_data_keys(members, paired=kind is dict):
        raise ComprehensionError(
            f"data decides which keys a {kind.__name__} comprehension makes, and they are no ints",
            hint="write it as a for loop with an if statement",
            location=location_of(frame),
        )
    if not has_data_keys(members, paired=kind is dict):
        return as_made(capture, capture.new(kind(members)), frame)
    made_empty = keyed(capture, kind())
    capture.call(made_empty.update)(members)
    return made_empty


def _of_keyed(capture: Session, cls: type[Any], given: Any) -> Any:
    if cls is set and isinstance(given, DataSet):
        return capture.call(given.copy)()
    made_empty = keyed(capture, cls())
    capture.call(made_empty.update)(given)
    return made_empty


def has_data_keys(given: Any, *, paired: bool = False) -> bool:
    """Whether a list has elements, or pairs with first elements, that are data keys, or is of data-dependent length."""
    if not isinstance(given, (list, tuple)):
        return False
    keys = [_first_of(each) if paired else each for each in given]
    return any(_are_whole(key) if isinstance(key, _ELEMENTS) else is_data_key(key) for key in keys)


def _first_of(pair: Any) -> Any:
    if isinstance(pair, StackedList):
        element = pair.element
        return element.children[0] if isinstance(element, Composite) and element.children else element
    return pair[0] if isinstance(pair, tuple) and pair else pair


def _are_whole(key: Any) -> bool:
    """Whether all elements of rows are keys, by the structure that they have in common."""
    element = key.element if isinstance(key, StackedList) else key
    if isinstance(element, Composite):
        return element.signature[0] is tuple and all(map(_are_whole, element.children))
    return element.kind in (int, bool) if isinstance(element, Cell) else isinstance(element, Constant)
