"""Functions and properties with a cache: ``functools.lru_cache``, ``cache`` and ``cached_property``.

Source: Python library reference, ``functools``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch._subclasses.fake_tensor import FakeTensor

from dy2st.calls.asked_again import Answer
from dy2st.calls.outside_world import Constants
from dy2st.errors import LeakedValueError, NoValueError, SharedContainerError
from dy2st.operators.export_session import current
from dy2st.source.user_frames import running_location, users_frame
from dy2st.staging.branches.case_distribution import choose, may_be_absent
from dy2st.staging.loops.iterables import noted
from dy2st.staging.memory.heap_snapshot import Observed, reached
from dy2st.staging.session import MODE, Session
from dy2st.tracing.tracer import outside_the_trace
from dy2st.values.container_structure import changeable
from dy2st.values.number import Number, number_kind
from dy2st.values.references import is_reference
from dy2st.values.stacked_list import StackedList
from dy2st.values.tagged_union import TaggedUnion, distributed
from dy2st.values.undefined import UNSET, Undefined


def cached(capture: Session, function: Any) -> Callable[..., Any]:
    """A function with a cache: on Python values it is called as it is, in eager mode, and remembers what is real.

    On tensors of the graph it may remember nothing: they exist in this capture only. There, what it has given is known
    where it was called and inside of the subgraphs that are opened there.
    """
    wrapped = function.__wrapped__

    def run(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        by_case = capture.constants.by_case((args, kwargs))
        if by_case is not None:  # eager remembers what it gives for each
            return distributed(function, *by_case[0], **by_case[1])
        of_graph = any(_is_given_by_graph(value) for value in reached(given))
        if not of_graph and not any(map(_is_of_graph, reached((wrapped,)))):
            state = Observed((wrapped, *given)) if capture.depth > 1 else Observed(())
            with outside_the_trace():
                result = function(*args, **kwargs)
            if state.changed():
                _refuse(wrapped, "under a tensor condition or in a staged loop")
            current().part(Constants).answers.append(Answer(function, args, kwargs, result))
            return result
        key = wrapped, tuple(map(_key, args)), tuple((name, _key(value)) for name, value in kwargs.items())
        for scope in capture.trace_frames:
            if key in scope.cached:
                return scope.cached[key][1]
        return call(key, *args, **kwargs)

    def call(key: Any, /, *args: Any, **kwargs: Any) -> Any:
        state = Observed((wrapped, *args, *kwargs.values()))
        result = capture.call(wrapped)(*args, **kwargs)
        if state.changed():
            _refuse(wrapped, "when it is called with tensors")
        # With the arguments, so that their identities remain theirs.
        capture.trace_frames[-1].cached[key] = (args, kwargs), result
        if not all(scope.certain for scope in capture.trace_frames[1:]):
            _freeze(capture, result)
        return result

    return run


def _freeze(capture: Session, result: Any) -> None:
    """Refuse changes of what was given on one path: later calls give it again, if that path was taken."""
    for part in reached((result,)):
        if isinstance(part, torch.Tensor):
            capture.aliases.remember(part)
        elif is_reference(part):
            raise SharedContainerError(
                "a function with a cache gives an object on one path and gives it again, and it is changed",
                hint="change a copy of it",
                location=running_location(),
            )
        elif changeable(part):
            capture.trace_frames[-1].born.pop(id(part), None)
            capture.aliases.object_is_shared(part)


def _is_of_graph(value: Any) -> bool:
    """Whether an object is data-dependent."""
    return isinstance(value, (FakeTensor, Number, TaggedUnion, Undefined, StackedList)) or (
        number_kind(value) is not None and type(value) not in (int, float, bool)
    )


def _is_given_by_graph(value: Any) -> bool:
    """Whether an argument is a tensor, a module (its parameters are such of the graph), or known to the graph only."""
    return isinstance(value, (torch.Tensor, torch.nn.Module)) or _is_of_graph(value)


def _key(value: Any) -> Any:
    return value if type(value) in (int, float, bool, str, type(None)) else (type(value), id(value))


def _refuse(function: Any, where: str) -> NoReturn:
    raise LeakedValueError(
        f"{function.__name__}() has a cache and changes state around it {where}: eager changes it once for all calls "
        "that are alike",
        hint="change the state outside of the function, or take its cache away",
    )


class TracedCachedProperty:
    """A ``functools.cached_property`` whose value is stored as converted code stores an attribute."""

    def __init__(self, native: functools.cached_property[Any], function: Callable[..., Any]) -> None:
        self.native = native
        self.function = function

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        if owner is None or MODE.capture is None:
            return self.native.__get__(owner, kind)
        name = str(self.native.attrname)
        capture = MODE.capture
        known = vars(owner).get(name, UNSET)
        if isinstance(known, Undefined) or (isinstance(known, TaggedUnion) and not may_be_absent(capture, known)):
            raise NoValueError(
                f"the cached property {name!r} is read here, but it has been computed on one path only",
                hint="read it once before the branch or loop",
            )
        if isinstance(known, TaggedUnion):
            # Computed where it has not been yet. A tensor is then a copy of one of two.
            value = noted(choose(capture, known, lambda case: self._value(owner, case), users_frame()))
        elif known is not UNSET:
            return known
        else:
            value = self.function(owner)
        setattr(capture.target(owner), name, value)
        return value

    def _value(self, owner: Any, known: Any) -> Any:
        return self.function(owner) if known is UNSET else known

    def __set__(self, owner: Any, value: Any) -> None:
        """Makes Python ask this descriptor first, also where the object has a value."""
        vars(owner)[str(self.native.attrname)] = value

    def __delete__(self, owner: Any) -> None:
        del vars(owner)[str(self.native.attrname)]
