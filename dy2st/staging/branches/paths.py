"""How the paths through staged code part and meet: pending branches are closed, two arms become one flow.

Code that follows a branch one arm of which has jumped away (``return``, ``break``) runs in the other arm: the branch
stays *pending*, and is closed where that code ends.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from dy2st.errors import GeneratorError, Location
from dy2st.staging.branches.branch_end import BranchEnd
from dy2st.staging.cases import narrowed
from dy2st.staging.conditions import either, negated
from dy2st.staging.flow import FAILS, RAISES, Flow, Name
from dy2st.staging.session import Session
from dy2st.staging.trace_frame import TraceFrame
from dy2st.tracing.subgraph import Subgraph
from dy2st.values.journal import Journal, Slot
from dy2st.values.undefined import UNSET


def merge(
    session: Session,
    test: torch.Tensor,
    arms: tuple[Subgraph, Subgraph],
    flows: tuple[Flow, Flow],
    fall_names: tuple[Name, ...],
    location: Location,
) -> Flow:
    """End a branch: emit it in the innermost subgraph, and return the joined flow."""
    if any(flow.raised for flow in flows):
        return guard(session, test, arms, flows)
    return BranchEnd(session, test, arms, flows, location).joined(fall_names)


def guard(session: Session, test: torch.Tensor, arms: tuple[Subgraph, Subgraph], flows: tuple[Flow, Flow]) -> Flow:
    """End a branch one arm of which raises: a guard, and the other arm as part of the innermost subgraph."""
    a, b = flows
    if a.raised and b.raised:
        return a
    goes_on, arm, raised = (b, arms[1], a) if a.raised else (a, arms[0], b)
    # No option drops what is no raise statement of the user's.
    implicit = FAILS in raised.flags
    session.guards.require(negated(test) if a.raised else test, raised.env[RAISES], always=implicit)
    session.adopt(arm)
    session.learn(session.trace_frames[-1], test, value=goes_on is a)
    for slot, value in goes_on.stores.items():
        session.store(slot, value)
    return Flow(goes_on.env, goes_on.flags)


def close_pending(session: Session, flow: Flow, fall_names: tuple[Name, ...]) -> Flow:
    """End the innermost pending branch, whose open arm ends with ``flow``."""
    scope = session.trace_frames[-1]
    pending = scope.pending
    if pending is None:
        raise consumed_elsewhere(session)
    ended = flow_at_end(session, flow, scope)
    session.pop()
    arms, flows = (pending.done, scope.subgraph), (pending.flow, ended)
    if not pending.done_is_then:
        arms, flows = (arms[1], arms[0]), (flows[1], flows[0])
    return merge(session, pending.test, arms, flows, fall_names, pending.location)


def consumed_elsewhere(session: Session) -> GeneratorError:
    """What to say of a comprehension that is still open where it should have ended."""
    return GeneratorError(
        "a generator expression over a tensor is consumed by code that dy2st does not convert",
        hint="make it a list, or write it as a for loop",
        location=session.comprehensions[-1].location if session.comprehensions else None,
    )


def flow_at_end(session: Session, flow: Flow, scope: TraceFrame) -> Flow:
    """The end of the innermost subgraph: its stores are undone, and its values are those that they can be here."""
    stores = scope.journal.take()
    if scope.failure is not None and not flow.raised:
        flow = Flow({RAISES: scope.failure.location}, {RAISES: True, FAILS: True})
        stores = {}
    if scope.known:
        env = {name: narrowed_parts(session, value, scope) for name, value in flow.env.items()}
        stores = {slot: narrowed_store(session, slot, value, scope) for slot, value in stores.items()}
        flow = Flow(env, flow.flags)
    return Flow(flow.env, flow.flags, stores, frozenset(scope.born))


def narrowed_parts(session: Session, value: Any, scope: TraceFrame) -> Any:
    """A value as far as it is known here, and so what it is made of; containers are changed that were made here."""
    if isinstance(value, tuple):
        parts = [narrowed_parts(session, part, scope) for part in value]
        if all(part is old for part, old in zip(parts, value, strict=True)):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if type(value) in (list, dict) and id(value) in scope.born:
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            value[key] = narrowed_parts(session, part, scope)
        return value
    return narrowed(session, value)


def narrowed_store(session: Session, slot: Slot, value: Any, scope: TraceFrame) -> Any:
    """A stored value as far as it is known here; the same for the values of a container."""
    if slot.kind != "content":
        return narrowed_parts(session, value, scope)
    if isinstance(value, dict):
        found = {key: narrowed(session, v) for key, v in value.items()}
        return type(value)({key: v for key, v in found.items() if v is not UNSET})
    return type(value)(narrowed(session, v) for v in value)


def close_to(session: Session, depth: int, flow: Flow, fall_names: tuple[Name, ...] = ()) -> Flow:
    """End the pending branches above ``depth``."""
    while session.depth > depth:
        flow = close_pending(session, flow, fall_names)
    return flow


def guard_rest(session: Session, flow: Flow, location: Location) -> None:
    """After a join from which control may have jumped away: the code that follows runs only if it has not."""
    jumped: Any = False
    for flag in flow.flags.values():
        jumped = either(jumped, flag)
    flags = dict.fromkeys(flow.flags, True) if len(flow.flags) == 1 else dict(flow.flags)
    test = jumped
    done = Subgraph.open(session.tracing, session.subgraph, f"exit_{location.line}")
    rest = Subgraph.open(session.tracing, session.subgraph, f"rest_{location.line}")
    # A branch of its own at the place of another: not what the user wrote.
    place = replace(location, construct="")
    session.leave_pending(test, done, Flow(dict(flow.env), flags), rest, Journal(), True, place)
