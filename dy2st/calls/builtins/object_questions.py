"""What asks about Python objects, where one of them is staged: ``isinstance``, ``type``, ``hasattr``, ``getattr``."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

# These register what they define; now, since torch.export will put other functions in place of some builtins.
from dy2st.calls.builtins.overloads import knows_cases, stands_for
from dy2st.errors import StagedNumberError
from dy2st.source.user_frames import is_users, users_frame
from dy2st.staging.branches.case_distribution import choose, verdict
from dy2st.staging.containers.data_keys import DataKeyed
from dy2st.staging.containers.data_lists import DataRow
from dy2st.staging.containers.dict_views import View
from dy2st.staging.containers.object_tables import Record
from dy2st.staging.containers.referred_objects import refuse_asking
from dy2st.staging.loops.iterables import StagedIterable
from dy2st.staging.session import MODE
from dy2st.values.number import SYMBOLS, Number, number_kind
from dy2st.values.numpy_floats import answers
from dy2st.values.references import class_behind, is_reference
from dy2st.values.tagged_union import TaggedUnion
from dy2st.values.undefined import UNSET, Undefined


@stands_for(hasattr)
@knows_cases
def _hasattr(owner: Any, name: str) -> Any:
    if isinstance(owner, TaggedUnion):
        return verdict(owner, lambda case: _hasattr(case, name))
    if isinstance(owner, StagedIterable):
        owner.refuse("hasattr()")
    if isinstance(owner, (Number, *SYMBOLS)):
        return _one_answer(owner, "hasattr()", lambda cls: hasattr(cls, name))
    value = getattr(owner, name, UNSET)
    if isinstance(value, TaggedUnion):
        return verdict(value, lambda case: case is not UNSET)
    return value is not UNSET


@stands_for(getattr)
@knows_cases
def _getattr(owner: Any, name: str, *default: Any) -> Any:
    if isinstance(name, TaggedUnion):
        assert MODE.capture is not None
        return choose(MODE.capture, name, lambda case: _getattr(owner, case, *default), users_frame())
    known = not isinstance(owner, (Number, *SYMBOLS)) or _hasattr(owner, name)
    # The class of a float has all of its attributes; what stands for it has others of its own.
    return getattr(owner, name, *default) if known else getattr(number_kind(owner)(), name, *default)  # type: ignore[misc]


def _of_kind(question: Callable[[Any], bool]) -> None:
    """A question that a value's kind answers: of one of several, its tag does; what stands for none has no kind."""

    @stands_for(question)
    @knows_cases
    def asked(value: Any) -> Any:
        if isinstance(value, Undefined):
            value.refuse()
        return verdict(value, question) if isinstance(value, TaggedUnion) else question(value)


for _question in (callable, torch.is_tensor, torch.is_floating_point, torch.is_complex):
    _of_kind(_question)


# What no range, enumerate, zip or reversed object is of.
_PYTHONS = {bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset}
OTHER_CLASSES = {*_PYTHONS, torch.Tensor, torch.nn.Module}


def _classes(kinds: Any) -> list[Any]:
    """The classes of a test: of a tuple of such, of a union."""
    if not isinstance(kinds, (tuple, types.UnionType)):
        return [kinds]
    return [each for part in (kinds if isinstance(kinds, tuple) else kinds.__args__) for each in _classes(part)]


def _is_of(value: Any, kind: type, kinds: Any) -> bool:
    """Whether a number of a class is of these: one is as good as another, but where a metaclass of the user's looks.

    Code that knows of torch's symbolic sizes is told of them.
    """
    return any(isinstance(value if each in SYMBOLS or _looks(each) else kind(), each) for each in _classes(kinds))


def _looks(cls: Any) -> bool:
    check = getattr(type(cls), "__instancecheck__", None)
    return isinstance(check, types.FunctionType) and is_users(check.__code__.co_filename)


def _one_answer(value: Any, question: str, ask: Callable[[type], Any]) -> Any:
    """The answer that every class gives which a staged number may be of."""
    kind = number_kind(value)
    assert kind is not None
    found = answers(kind, ask)
    if len(found) > 1:
        raise StagedNumberError(
            f"{question} of a float that may be one of Python's or one of numpy's: which one is data-dependent",
            hint="use math or torch functions in place of numpy's",
        )
    return found[0]


@stands_for(isinstance)
@knows_cases
def _isinstance(value: Any, kinds: Any) -> Any:
    if isinstance(value, Undefined):
        value.refuse()
    if isinstance(value, TaggedUnion):
        return verdict(value, lambda case: _isinstance(case, kinds))
    if isinstance(value, StagedIterable) and value.kind is not None:
        return issubclass(value.kind, kinds)
    if isinstance(value, StagedIterable) and not set(_classes(kinds)) <= OTHER_CLASSES:
        value.refuse("isinstance()")
    if isinstance(value, (Number, *SYMBOLS)):
        return _one_answer(value, "isinstance()", lambda cls: _is_of(value, cls, kinds))
    if isinstance(value, View):
        return issubclass(value.kind, kinds)
    stands_for_another = isinstance(value, (DataKeyed, DataRow, Record)) and isinstance(value.kind(), kinds)
    return stands_for_another or isinstance(value, kinds)


@stands_for(vars)
def _vars(*args: Any) -> Any:
    if args and is_reference(args[0]):
        refuse_asking(args[0], "vars()")
    return vars(*args)


@stands_for(type)
def _type(*args: Any) -> Any:
    if len(args) != 1:
        return type(*args)
    (value,) = args
    if isinstance(value, StagedIterable):
        if value.kind is not None:
            return value.kind
        value.refuse("type()")
    if isinstance(value, (Number, *SYMBOLS)):
        return _one_answer(value, "type()", lambda cls: cls)
    if isinstance(value, torch.Tensor):
        # A capture's tensors are of classes that only torch knows of.
        return torch.nn.Parameter if isinstance(value, torch.nn.Parameter) else torch.Tensor
    if isinstance(value, (DataKeyed, DataRow, Record, View)):
        return value.kind
    return class_behind(value) if is_reference(value) else type(value)
