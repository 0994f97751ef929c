"""What is done with a value of one of several kinds is done with each of its cases, under a branch on its tag."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dy2st.errors import CaughtError, DifferentObjectsError, Dy2stError, GrownListError, Location
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.branches.implicit_exceptions import refusal
from dy2st.staging.branches.staged_branch import StagedBranch
from dy2st.staging.cases import all_there, is_case, maybe_absent, narrowed, possible
from dy2st.staging.conditions import negated
from dy2st.staging.flow import RAISES, Flow, StagedJump
from dy2st.staging.session import MODE, Session
from dy2st.values.elements import parts
from dy2st.values.number import Number
from dy2st.values.references import note_list, refer_to_lists
from dy2st.values.stacked_list import StackedList
from dy2st.values.tagged_union import TaggedUnion, cases_of
from dy2st.values.undefined import UNSET

_NO_CONTAINER = re.compile(
    rf"object of type '{Number.__name__}' has no len\(\)|"
    rf"'{Number.__name__}' object (is not (subscriptable|iterable)|does not support item (assignment|deletion))"
)


def not_in_try(
    capture: Session,
    what: str,
    location: Location | None,
    kind: type[Exception] = Exception,
    kinds: tuple[type[Exception], ...] = (),
) -> None:
    """Refuse a data-dependent exception (``kind``) where a ``try`` statement, or Python, may catch it.

    It is one of ``kinds``, if these are known.
    """
    if not capture.watched and capture.may_catch(kind):
        raise refusal(kind.__name__, location)
    if capture.watched and (not kinds or any(map(capture.may_catch, kinds))):
        raise CaughtError(
            f"{what} inside a try statement in a way that may raise an exception that the statement catches",
            hint="test for the case with an if in place of the try",
            location=location,
        )


def exclude(capture: Session, value: TaggedUnion, case: int, frame: FrameType) -> None:
    """From here on ``value`` is not this case: eager would have raised."""
    excluded = is_case(value, case)
    kinds = (AttributeError, TypeError) if cases_of(value)[case] is None else ()
    not_in_try(capture, "a value that is another one on some paths is used", location_of(frame), kinds=kinds)
    capture.guards.require(negated(excluded), location_of(frame), always=True)
    capture.learn(capture.trace_frames[-1], excluded, value=False)


def present(capture: Session, value: Any, frame: FrameType) -> Any:
    """``value`` where it is read: it has one, or eager raises."""
    if may_be_absent(capture, value):
        absent = next(i for i, case in enumerate(cases_of(value)) if case is UNSET)
        exclude(capture, value, absent, frame)
    return narrowed(capture, value)


def may_be_absent(capture: Session, value: Any) -> bool:
    """Whether there is a way to here on which there is no value."""
    return maybe_absent(value) and any(cases_of(value)[i] is UNSET for i in possible(capture, value))


def can_be_iterated(capture: Session, value: Any) -> Any:
    """``value`` without the cases that can't be iterated, as eager would raise for them; of one case it is that."""
    if not isinstance(value, TaggedUnion):
        return value
    for i in possible(capture, value):
        case = cases_of(value)[i]
        rank = case.dim() if isinstance(case, torch.Tensor) else 1
        if len(possible(capture, value)) > 1 and (not hasattr(case, "__iter__") or rank == 0):
            exclude(capture, value, i, users_frame())
    return narrowed(capture, value)


def iterated(capture: Session, value: Any) -> Any:
    """``value`` where it is iterated: cases that can't be are excluded, as eager would raise for them."""
    if isinstance(value, dict):
        all_there(capture, value)
    value = can_be_iterated(capture, value)
    if isinstance(value, TaggedUnion):
        for part in (part for case in cases_of(value) if isinstance(case, (list, tuple)) for part in parts(list(case))):
            if type(part) is list:
                note_list(part)
        raise DifferentObjectsError(
            "a loop iterates over one of several things: which one depends on the path taken before",
            hint="move the loop into each of the branches",
        ).or_else(refer_to_lists)
    return value


def subject(capture: Session, value: Any, *, classes: bool) -> Any:
    """The subject of a ``match`` that Python carries out itself, which sees through nothing that is staged."""
    value = narrowed(capture, value)
    for part in pytree.tree_leaves(value):
        if isinstance(part, StackedList):
            raise GrownListError(
                "a match looks at the structure of a list of data-dependent length",
                hint="write it as if statements with len() and indices",
            )
        if isinstance(part, TaggedUnion) or (classes and isinstance(part, Number)):
            raise DifferentObjectsError(
                "a match looks at the structure of a data-dependent value",
                hint="write it as if statements with isinstance(), is and ==",
            )
    return value


def verdict(value: TaggedUnion, test: Callable[[Any], Any]) -> Any:
    """What ``test``, which gives a Python bool or staged bool for each case, says of a value; no branch is needed."""
    capture = MODE.capture
    assert capture is not None
    answers = {i: test(cases_of(value)[i]) for i in possible(capture, value)}
    if all(isinstance(a, bool) for a in answers.values()):
        true = [i for i, answer in answers.items() if answer]
        if len(true) in (0, len(answers)):
            return bool(true)
        if len(true) == len(answers) - 1:
            (false,) = [i for i, answer in answers.items() if not answer]
            return Number(torch.logical_not(is_case(value, false)), bool)
        return Number(functools.reduce(torch.logical_or, (is_case(value, i) for i in true)), bool)
    return distribute(capture, test, (value,), {})


def distribute(capture: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``function(*args, **kwargs)`` for each case of the TaggedUnion arguments; None calls the first argument."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    chosen = next((leaf for leaf in leaves if isinstance(leaf, TaggedUnion)), None)
    if chosen is None:
        if function is None:
            function, *rest = args
            args = tuple(rest)
        if function in (operator.add, operator.mul) and any(type(each) is list for each in args):
            # Python's own operator joins what stands for several elements as it does elements.
            return function(*args)
        return capture.call(function)(*args, **kwargs)
    # What ``tensor == value`` calls first: unlike this method of tensors the operator knows what to do with None.
    function = {torch.Tensor.eq: operator.eq, torch.Tensor.ne: operator.ne}.get(function, function)
    if function in (operator.eq, operator.ne):
        # Most often a test of constants, which needs no branch.
        first = leaves[0] is chosen
        other = leaves[1 if first else 0]
        return verdict(chosen, lambda case: function(case, other) if first else function(other, case))
    frame = users_frame()

    def run(case: Any) -> Any:
        if case is UNSET:
            raise UnboundLocalError
        given = pytree.tree_unflatten([case if leaf is chosen else leaf for leaf in leaves], spec)
        return distribute(capture, function, *given)

    return choose(capture, chosen, run, frame)


def by_presence(
    capture: Session, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], key: str
) -> Any:
    """A call with the keyword argument ``key`` where there is one, and without it where there is none."""

    def run(case: Any) -> Any:
        given = {name: case if name == key else value for name, value in kwargs.items()}
        if case is UNSET:
            del given[key]
        return function(*args, **given)

    return choose(capture, kwargs[key], run, users_frame())


def choose(capture: Session, value: TaggedUnion, run: Callable[[Any], Any], frame: FrameType) -> Any:
    """``run(case)`` for the case that ``value`` is."""
    alive = possible(capture, value)
    cases = cases_of(value)
    if len(alive) == 1:
        return run(cases[alive[0]])
    first, rest = alive[0], alive[1:]
    branch = StagedBranch(capture, is_case(value, first), (), frame)
    branch.then()
    then = _attempt(branch, run, cases[first], frame)
    branch.orelse()
    last = len(rest) == 1
    orelse = _attempt(branch, run, cases[rest[0]], frame) if last else choose(capture, value, run, frame)
    return branch.choose(then, orelse)


def _attempt(branch: StagedBranch, run: Callable[[Any], Any], case: Any, frame: FrameType) -> Any:
    """``run(case)``; an exception of what is no tensor is one that eager raises too, if no other path is around it.

    So is an index that is out of range for a tensor whose sizes are known, and what Python says of a number that is
    used as a container.
    """
    depth = branch.capture.depth
    try:
        return run(case)
    except Dy2stError:
        raise
    except StagedJump as jump:  # eager raises for this case, at a statement of the user's
        branch.jump = jump.flow
        return UNSET
    except (TypeError, AttributeError, LookupError, ValueError, UnboundLocalError) as error:
        traced = any(isinstance(leaf, (torch.Tensor, Number)) for leaf in pytree.tree_leaves(case))
        if traced and isinstance(error, IndexError) and isinstance(case, torch.Tensor):
            traced = not all(type(size) is int for size in case.shape)
        traced = traced and not (isinstance(case, Number) and _taken_for_a_container(case, error))
        if traced or branch.capture.depth > depth:
            raise
        statement = branch.capture.catching(error)
        if statement is not None:
            branch.jump = statement.caught_flow(error)
            return UNSET
        what, kinds = "a value that is another one on some paths is used", (type(error),)
        not_in_try(branch.capture, what, location_of(frame), kinds=kinds)
        branch.jump = Flow({RAISES: location_of(frame)}, {RAISES: True})
        return UNSET


def _taken_for_a_container(number: Number, error: Exception) -> bool:
    """Whether eager raises the same for a number of Python's: it has no elements, and no methods of a list."""
    if isinstance(error, AttributeError):
        return str(error).startswith(f"{number.kind.__name__!r} object has no attribute ")
    return isinstance(error, TypeError) and _NO_CONTAINER.fullmatch(str(error)) is not None
