"""A loop statement, and the template of the state that it carries, which the parts of a loop are written against."""

from __future__ import annotations

import enum
from types import FrameType
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree

from dy2st.errors import Location
from dy2st.source.user_frames import location_of
from dy2st.staging.lattice.join import TAGGED_UNION, Invariant, Phi, Structured
from dy2st.staging.loops.gathered_generators import is_gathered
from dy2st.staging.loops.widening import Entry
from dy2st.staging.memory.points_to import Pair
from dy2st.staging.session import Session
from dy2st.staging.trace_frame import TraceFrame, variables
from dy2st.tracing.graph_ops import Varying
from dy2st.values.number import Number
from dy2st.values.undefined import UNSET, Undefined

# A leaf of the state: the variable or slot, and its number in there.
Place = tuple[Any, int]
# Dimension to class: sizes of one class are apart by the same number in every iteration.
Vary = dict[int, int]


def shape_of(value: Any) -> tuple[Any, ...]:
    """The sizes of a numeric value."""
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()


class Phase(enum.Enum):
    """Where one run of a loop statement stands; its transitions are those of ``driver``."""

    NATIVE = enum.auto()
    TRYING = enum.auto()
    RESTARTING = enum.auto()
    STAGED = enum.auto()
    DONE = enum.auto()
    LEFT = enum.auto()

    @property
    def python(self) -> bool:
        """Whether Python itself carries the loop out, or has done so."""
        return self in (Phase.NATIVE, Phase.TRYING, Phase.LEFT)


class LoopStatement:
    """One run of a loop statement: where it stands, and which variables it changes.

    ``names`` are changed by its body, ``targets`` bound by its ``for`` clause; ``yields`` says whether the body hands
    control to the consumer of a generator; ``before`` is what the variables were when it was staged.
    """

    # Whether it can be staged at any of its iterations, and whether a hint says that it never is.
    restartable: bool
    unrolled: bool
    # Whether its body has jumps, and whether reports name it.
    jumps = False
    reported = True

    def __init__(
        self, capture: Session, names: tuple[str, ...], targets: tuple[str, ...], yields: bool, frame: FrameType
    ) -> None:
        self.capture = capture
        self.names = names
        self.targets = targets
        self.all_names: tuple[Any, ...] = (*names, *targets)
        self.yields = yields and not is_gathered(frame)
        self.frame = frame
        self.location: Location = location_of(frame)
        # How many trace frames are open around it.
        self.depth = capture.depth
        # The same statement, whenever it runs.
        self.site = (frame.f_code, self.location.line, self.all_names)
        self.before: dict[Any, Any] = {}
        # The iterations that Python has begun, and whether one of its own is running.
        self.begun = 0
        self.active = False
        self.phase = Phase.NATIVE
        # Whether iterations stand before those that are staged, and are no part of that loop.
        self.apart = False

    @property
    def position(self) -> int | None:
        """The number of the iteration that is running; None where all of them are one."""
        return self.begun - 1 if self.phase.python else None

    def begins(self, going: bool) -> None:
        """Python has asked whether there is another iteration."""
        self.active = going
        self.begun += going

    def takes_next(self) -> Any:
        """Whether a ``for`` takes the next element, if there is one."""
        return True

    def environment(self) -> dict[Any, Any]:
        """The variables as the user's frame has them now."""
        return variables(self.frame, self.all_names)

    def entered(self) -> dict[Any, Any]:
        """The variables where the loop or an iteration begins.

        Where a body around it is traced once more, the frame has values of the time before, which no path reads.
        """
        env, known = self.environment(), self.capture.tracing.node_of
        for name in self.names:
            value = env.get(name)
            tensors = [each.tensor if isinstance(each, Number) else each for each in pytree.tree_leaves(value)]
            if any(isinstance(each, FakeTensor) and known(each) is None for each in tensors):
                env[name] = UNSET
        return env

    def usable(self, name: str, value: Any) -> Any:
        """A variable's value after the loop; what stands for one that has none is an error only if it is read."""
        if value is not UNSET:
            return value
        return Undefined(
            name,
            "it has no value if the loop does not run",
            f"give {name!r} a value before the loop at line {self.location.line}",
            self.location,
        )


class LoopTemplate:
    """What a loop carries, as far as it is known: an entry for each variable and slot that an iteration changes."""

    scope: TraceFrame

    def __init__(self, loop: LoopStatement) -> None:
        self.loop = loop
        self.capture = loop.capture
        self.before: dict[Any, Any] = {n: loop.before.get(n, UNSET) for n in loop.all_names}
        self.template: dict[Any, Entry] = {}
        # By key and leaf: which of its dimensions change from one iteration to the next.
        self.vary: dict[Any, list[Vary]] = {}
        # By class, how large its least size is at least, in every iteration.
        self.least: dict[int, int] = {}
        # The leaves that may share memory at the head of an iteration, with each other or with storages from outside.
        self.shared: set[Pair] = set()
        # Leaves that are one tensor before the loop and at the end of an iteration: each by the first of them.
        self.same: dict[Place, Place] = {}
        # What the last run of the body has made.
        self.ended_born: frozenset[int] = frozenset()

    def varying(self, classes: Vary) -> tuple[Varying, ...]:
        """The dimensions of a leaf that change, as the loop's operator takes them."""
        return tuple((d, number, self.least.get(number, 0)) for d, number in classes.items())

    def initial_sizes(self, leaf: Phi) -> list[Any]:
        """The sizes of a leaf before the loop."""
        if leaf.a is not UNSET:
            return list(shape_of(leaf.a))
        first = self.scope.subgraph.layer.first_symbol
        return self.capture.tracing.sizes_outside(shape_of(leaf.b), first)


def tuple_lengths(entry: Entry | None) -> set[int]:
    """The lengths of the tuples that a value is one of."""
    if not isinstance(entry, Structured) or entry.signature[0] != TAGGED_UNION:
        return set()
    found = {len(c.children) for c in entry.children if isinstance(c, Structured) and c.signature[0] is tuple}
    return found | {len(c.value) for c in entry.children if isinstance(c, Invariant) and type(c.value) is tuple}
