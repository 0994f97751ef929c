"""What stands for Python's builtins under a capture, where an argument is a tensor or a staged number."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import torch

# Each registers what it defines where it is imported, before torch.export puts other functions in place of builtins.
from dy2st.calls.builtins import (  # noqa: F401
    asking_for_compilers,
    clocks,
    copies,
    math_functions,
    numpy_functions,
    object_questions,
    printing,
    python_reductions,
    tensor_classes,
    tensor_methods,
    torch_control_flow_calls,
)
from dy2st.calls.builtins.overloads import (
    STAND_INS,
    elements,
    is_staged,
    known_int,
    knows_cases,
    number_of,
    stands_for,
    with_own_values,
)
from dy2st.errors import DynamicLengthError, GrownListError
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.branches.case_distribution import verdict
from dy2st.staging.cases import maybe_absent
from dy2st.staging.conditions import condition, truth_number
from dy2st.staging.containers.data_keyed import as_made
from dy2st.staging.containers.indices import require
from dy2st.staging.containers.list_functions import taken_or
from dy2st.staging.containers.list_values import sorted_list
from dy2st.staging.containers.lists import elements as rows_of
from dy2st.staging.containers.row_ops import transposed
from dy2st.staging.loops.hinted import HINTS
from dy2st.staging.loops.iterables import StagedIterable, as_iterable, staged_range
from dy2st.staging.loops.staged_iterators import (
    StagedIterator,
    staged_enumerate,
    staged_iter,
    staged_map,
    staged_reversed,
    staged_zip,
)
from dy2st.staging.session import MODE
from dy2st.staging.users_code import special
from dy2st.tracing.unchanged_process import replacements
from dy2st.values.number import Number, number_tensor
from dy2st.values.python_errors import may_raise
from dy2st.values.stacked_list import StackedList, has_rows
from dy2st.values.staged_text import characters, text
from dy2st.values.tagged_union import TaggedUnion, distributed
from dy2st.values.undefined import UNSET


@stands_for(len)
@knows_cases
def _len(value: Any) -> Any:
    if isinstance(value, TaggedUnion):
        return distributed(_len, value)
    if isinstance(value, torch.Tensor):
        if value.dim() == 0:
            raise TypeError("len() of a 0-d tensor")
        return value.shape[0]
    method = special(value, "__len__")
    if method is not None:
        return method()
    if has_rows(value):
        return sum(v.length if isinstance(v, StackedList) else 1 for v in value)
    if isinstance(value, StagedIterator):
        raise TypeError(f"object of type {value.name!r} has no len()")
    if isinstance(value, StagedIterable):
        return value.length
    if isinstance(value, dict) and any(maybe_absent(v) for v in value.values()):
        there = [v for v in value.values() if maybe_absent(v)]
        counts = [verdict(v, lambda case: case is not UNSET) for v in there]
        return sum(counts, len(value) - len(there))
    return len(text(value))


def _may_be_infinite(value: torch.Tensor) -> None:
    """There is no int for infinity and NaN."""
    if value.dtype.is_floating_point:
        may_raise(OverflowError, "int()")
        may_raise(ValueError, "int()")


@stands_for(int)
def _int(*args: Any, **kwargs: Any) -> Any:
    if len(args) == 1 and is_staged(args[0]):
        value = known_int(args[0])
        if isinstance(value, (int, torch.SymInt)) or (isinstance(value, Number) and value.kind is int):
            return value
        value = value if isinstance(value, torch.Tensor) else number_tensor(value)
        _may_be_infinite(value)
        return number_of(value, int)
    method = special(args[0], "__int__") if args else None
    return int(*map(characters, args), **kwargs) if method is None else _int(method())


@stands_for(float)
def _float(*args: Any) -> Any:
    if args and is_staged(args[0]):
        return number_of(args[0] if isinstance(args[0], torch.Tensor) else number_tensor(args[0]), float)
    method = special(args[0], "__float__") if args else None
    return float(*map(characters, args)) if method is None else _float(method())


@stands_for(bool)
@knows_cases
def _bool(*args: Any) -> Any:
    return truth_number(condition(*args)) if args else False


@stands_for(range)
def _range(*args: Any) -> Any:
    args = tuple(map(known_int, args))
    return staged_range(*args) if any(is_staged(a) for a in args) else range(*args)


def _own(made: Any) -> Any:
    """An iterator that Python has made."""
    return made if MODE.capture is None else MODE.capture.advances.noted(made)


@stands_for(enumerate)
def _enumerate(iterable: Any, start: Any = 0) -> Any:
    found = staged_enumerate(iterable, start)
    return _own(enumerate(iterable, start)) if found is None else found


@stands_for(zip)
def _zip(*iterables: Any, **kwargs: Any) -> Any:
    capture = MODE.capture
    if capture is not None and len(iterables) == 1 and isinstance(iterables[0], StackedList):
        # zip(*rows): of no rows there is nothing.
        some, here = number_tensor(iterables[0].length) > 0, location_of(users_frame())
        capture.guards.require(some, here, "exported for zip(*rows) of one row at least", always=True)
        return _own(iter(transposed(iterables[0])))
    found = staged_zip(*iterables, strict=bool(kwargs.get("strict")))
    return _own(zip(*iterables, **kwargs)) if found is None else found  # noqa: B905  # kwargs may say it


@stands_for(map)
def _map(function: Any, *iterables: Any) -> Any:
    capture = MODE.capture
    if capture is None:
        return map(function, *iterables)

    def call(*given: Any) -> Any:
        return capture.call(function)(*given)

    found = staged_map(call, *iterables)
    return _own(map(call, *map(capture.advances.watched, iterables))) if found is None else found


@stands_for(reversed)
def _reversed(value: Any) -> Any:
    found = staged_reversed(value)
    return _own(reversed(value)) if found is None else found


@stands_for(list)
def _list(*args: Any) -> Any:
    args = tuple(elements(a) for a in args)
    if args and has_rows(args[0]):
        args = (list(args[0]),)
    elif args and isinstance(args[0], (StagedIterable, torch.Tensor)) and as_iterable(args[0]) is not None:
        args = (rows_of(args[0]),)
    elif args:
        found = as_iterable(args[0])
        if found is not None:
            raise DynamicLengthError(
                f"list() of {found.what} whose length is known only when the graph runs",
                hint="iterate over it with a for loop, or keep it a tensor",
            )
    made: list[Any] = list(*args)
    if MODE.capture is not None:
        MODE.capture.trace_frames[-1].born[id(made)] = made
    return made


@stands_for(tuple)
def _tuple(*args: Any) -> Any:
    values = elements(*args) if args else ()
    return tuple(rows_of(values) if has_rows(values) or as_iterable(values) is not None else values)


@stands_for(sorted)
def _sorted(values: Any, **kwargs: Any) -> Any:
    kwargs = with_own_values(values, kwargs)
    if MODE.capture is not None:
        return sorted_list(MODE.capture, elements(values, in_any_order=kwargs.get("key") is None), **kwargs)
    return sorted(values, **kwargs)


def seed(*args: Any) -> torch.Generator:
    """Stands for ``torch.manual_seed``, which torch itself wraps anew at times: drawing after it is refused."""
    if MODE.capture is not None:
        MODE.capture.seeded = True
    return torch.default_generator


class TrackedDefaultDict(collections.defaultdict[Any, Any]):
    """A defaultdict made under a capture: reading a missing key is a store like any other."""

    tracks_missing = True

    def __missing__(self, key: Any) -> Any:
        """Store the default."""
        if MODE.capture is not None:
            MODE.capture.touch_content(self)
        return super().__missing__(key)


@stands_for(collections.defaultdict)
def _defaultdict(*args: Any, **kwargs: Any) -> Any:
    found = TrackedDefaultDict(*args, **kwargs)
    return found if MODE.capture is None else as_made(MODE.capture, MODE.capture.new(found), users_frame())


def overloads() -> dict[Any, Callable[..., Any]]:
    """The overloads, under the names that torch.export has put in place of builtins and ``math`` functions too."""
    found = {**STAND_INS, **HINTS}
    for torchs, function, pythons in replacements():
        found[torchs] = STAND_INS[function] if pythons else _calling(function)
    return found


def _calling(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that the user has put in the place of one of Python's."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return (function if MODE.capture is None else MODE.capture.call(function))(*args, **kwargs)

    return call


@stands_for(next)
def _next(iterator: Any, *default: Any) -> Any:
    if isinstance(iterator, StagedIterator):
        return _next_staged(iterator, *default)
    if MODE.capture is not None:
        MODE.capture.advances.note(iterator)
    found = next(iterator, *default)
    if isinstance(found, StackedList):
        raise GrownListError(
            "next() is called on an iterator over a list of data-dependent length",
            hint="use the list itself: first, rest = values[0], values[1:]",
        )
    return found


def _next_staged(iterator: StagedIterator, *default: Any) -> Any:
    capture = MODE.capture
    assert capture is not None
    there, take = iterator.taken()
    if default and there is False:
        return default[0]
    if default and there is not True:
        return capture.call(taken_or)(there, take, default[0])
    require(capture, there, StopIteration(), reads=True)
    return take()


@stands_for(iter)
def _iter(*args: Any) -> Any:
    capture = MODE.capture
    found = staged_iter(args[0]) if len(args) == 1 and capture is not None else None
    if found is not None:
        return found
    if len(args) == 2 and capture is not None:
        asked = args[0]

        def ask() -> Any:
            return capture.call(asked)()

        args = ask, args[1]
    made = iter(*args)
    return made if capture is None or made is args[0] else capture.new(capture.advances.noted(made))


@stands_for(setattr)
def _setattr(owner: Any, name: str, value: Any) -> None:
    setattr(owner if MODE.capture is None else MODE.capture.target(owner), name, value)


@stands_for(delattr)
def _delattr(owner: Any, name: str) -> None:
    delattr(owner if MODE.capture is None else MODE.capture.target(owner), name)
