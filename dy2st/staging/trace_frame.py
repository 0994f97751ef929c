"""An open subgraph of a capture, and what is known there."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Protocol

import torch
from torch import fx

from dy2st.errors import Location
from dy2st.source.user_frames import look_up, snapshot
from dy2st.staging.flow import Flow
from dy2st.staging.memory.heap_snapshot import UnchangedBuffers
from dy2st.tracing.subgraph import Subgraph
from dy2st.values.journal import Journal
from dy2st.values.python_errors import names_catch
from dy2st.values.undefined import UNSET, Undefined


def variables(frame: FrameType, names: Iterable[str]) -> dict[Any, Any]:
    """The variables of a frame of the user's, and what else these names stand for in it."""
    env = snapshot(frame)
    for name in names:
        if name not in env:
            env[name] = look_up(env, name, frame, UNSET)
    return env


class CatchingStatement(Protocol):
    """A ``try`` statement whose handlers run for exceptions on staged paths."""

    def takes(self, error: Exception) -> bool:
        """Whether one of the handlers is certainly for such an exception."""

    def lets_pass(self, error: Exception) -> bool:
        """Whether certainly none of them is."""

    def caught_flow(self, error: Exception) -> Flow:
        """How a path goes on that ends in an exception."""


@dataclass(frozen=True)
class Watch:
    """What may catch an exception: a ``try`` statement whose body is running, or a context manager.

    ``depth``: how many subgraphs were open at its start. ``kinds``: the types that its handlers name, as written.
    ``statement``: a ``try`` statement that takes exceptions on staged paths, too.
    """

    depth: int
    kinds: tuple[str, ...]
    statement: CatchingStatement | None = None

    def catches(self, kind: type[Exception]) -> bool:
        """Whether it may catch exceptions of a type."""
        return names_catch(self.kinds, kind)

    def lets_pass(self, error: Exception) -> bool:
        """Whether it certainly does not catch an exception."""
        return self.statement.lets_pass(error) if self.statement is not None else not self.catches(type(error))


@dataclass
class Failure:
    """An exception of Python's own that every run of a subgraph ends with."""

    error: Exception
    location: Location


class Present:
    """Every object that there is when this is made; they are kept, so that identities stay unique."""

    def __init__(self) -> None:
        self.objects = gc.get_objects()
        self.known: dict[int, bool] = {}
        self._all: set[int] | None = None

    def __contains__(self, identity: int) -> bool:
        if identity not in self.known:
            self.known[identity] = self._look(identity)
        return self.known[identity]

    def _look(self, identity: int) -> bool:
        # There are many. A set of them all takes longer than to look for a few.
        if self._all is None and len(self.known) < MOST_LOOKS:
            return identity in map(id, self.objects)
        if self._all is None:
            self._all = set(map(id, self.objects))
        return identity in self._all


# After as many objects, a set of all is made.
MOST_LOOKS = 8


@dataclass
class TraceFrame:
    """An open subgraph with its journal; ``pending`` is set when the code after a branch goes on in one of its arms."""

    subgraph: Subgraph
    journal: Journal = field(default_factory=Journal)
    pending: Pending | None = None
    # Objects made while this subgraph was the innermost one, by identity: changes of them are nobody else's business.
    born: dict[int, Any] = field(default_factory=dict)
    # Containers and objects that stand for others since a branch or loop of this subgraph, by identity: they came with
    # it, as what was made here did, but what they stand for may be older.
    stand_ins: dict[int, Any] = field(default_factory=dict)
    # The scope that this one, a tried iteration, has become part of.
    merged: TraceFrame | None = None
    # Every object that there was when the subgraph was opened, where that has to be known.
    older: Present | None = None
    # What is traced here runs in any case: an iteration of a native loop, tried out.
    certain: bool = False
    # What the tests on the way to here say of tags: (tag, case) pairs that hold, or don't.
    known: dict[tuple[fx.Node, int], bool] = field(default_factory=dict)
    # What the tests on the way to here say of numbers: the least that the tensor of a node is.
    least: dict[fx.Node, int] = field(default_factory=dict)
    # Whether what is traced here runs once or not at all; what follows an iteration's jump does too.
    arm: bool = False
    # The numpy arrays and other buffers that the user's function had when the subgraph was opened.
    buffers: UnchangedBuffers = field(default_factory=UnchangedBuffers)
    # What functions with a cache have given here, by function and arguments.
    cached: dict[Any, Any] = field(default_factory=dict)
    # How often a route has led to a construct here.
    visits: Counter[Any] = field(default_factory=Counter)
    # How many copies of constructs there were when the subgraph was opened.
    sites: int = 0
    # By the frame and the name, variables that have no value at the head of the loop whose body this is, for the first
    # iteration has none.
    unset: dict[tuple[FrameType, str], Undefined] = field(default_factory=dict)
    # What eager raises here, and where, if it comes here at all.
    failure: Failure | None = None

    def owns(self, identity: int) -> bool:
        """Whether an object was made in this subgraph."""
        made = identity in self.born or identity in self.stand_ins
        return made or (self.older is not None and identity not in self.older)


@dataclass
class Pending:
    """A branch one arm of which has jumped away; the code that follows runs in the other one."""

    test: torch.Tensor
    done: Subgraph
    flow: Flow
    done_is_then: bool
    location: Location
