"""The programs of one function or object, when each of them holds, and which one a call runs."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from dy2st.capture.program import CAPTURING, MESSAGES
from dy2st.errors import Dy2stError
from dy2st.guards.ambient import modes, modes_unchanged
from dy2st.guards.arguments import match_lines
from dy2st.guards.constants import is_constant
from dy2st.guards.names import Names
from dy2st.guards.paths import moved_tensors
from dy2st.guards.process_answers import Asked, all_the_same
from dy2st.guards.source import Source
from dy2st.guards.sources import World, observe
from dy2st.guards.torch_guards import FastGuard, NoFastGuardError
from dy2st.static.apart import Apart
from dy2st.static.executable import NOT_OF_THE_CODE, Executable
from dy2st.static.filled_once import Filled
from dy2st.static.rebinding import Place, Rebinding
from dy2st.static.retracing import Retracing, labelled
from dy2st.static.saved_arguments import Given
from dy2st.static.sizes import Open, SizeRules, seen_to_change
from dy2st.static.undoing import is_undone

# So many programs are kept for a function, those that were run last.
MOST_PROGRAMS = 64


class CacheInfo(NamedTuple):
    """As of ``functools.lru_cache``: calls that found a program, that did not, the bound, and how many there are."""

    hits: int
    misses: int
    maxsize: int
    currsize: int


@dataclass
class Call:
    """What a call starts from: the object that a method is bound to, the function, and the arguments by parameter."""

    fixed: tuple[tuple[str, Any], ...]
    arguments: tuple[tuple[str, Any], ...]

    def world(self, names: Names, sizes: Open, *, learn: bool = False) -> World:
        """What the code with these names can read; ``sizes`` are those that are left open."""
        return observe((*self.fixed, *self.arguments), names, sizes, learn=learn)

    def parts(self, world: World) -> tuple[list[Source], list[Source]]:
        """The sources of what is fixed and of the arguments."""
        count = len(self.fixed)
        return world.sources[:count], world.sources[count : count + len(self.arguments)]

    def tensors(self, world: World) -> list[torch.Tensor]:
        """The tensors that the arguments lead to."""
        inside = _tensors_below(self.parts(world)[1])
        return [source.value for source in world.tensors if id(source) in inside]


class Entry:
    """One program, and the world that it holds in."""

    def __init__(
        self,
        program: torch.export.ExportedProgram,
        run: Executable,
        names: Names,
        world: World,
        call: Call,
        sizes: Open,
        rules: SizeRules,
        assigned: Mapping[int, Place],
        answers: Sequence[Asked] = (),
    ) -> None:
        self.program = program
        self._assigned = assigned
        self._answers = answers
        self.executable = run
        # Once it has failed halfway, what it has written stays written, and what it has said has been said.
        self.writes = (names.memory and not run.whole) or bool(program.graph_module.meta.get(MESSAGES))
        self.names, self.sizes, self.rules = names, sizes, rules
        self.modes = modes()
        self.given = Given(call.arguments, [source.value for source in world.tensors])
        self.key = world.key
        self.labels = [source.name for source in world.sources]
        # By number, the tensors that are no arguments; and which are fetched in each call, having been other ones.
        self._own: dict[int, torch.Tensor] = {}
        self._moving: frozenset[int] = frozenset()
        self.bind(world, call)

    def is_final(self, error: Exception) -> bool:
        """Whether an error of a run is the caller's: it is not eager's, or the run has left something behind."""
        return isinstance(error, NOT_OF_THE_CODE) or (self.writes and not is_undone(error))

    def holds(self, world: World) -> bool:
        """Whether the program is right in a world, its modes included."""
        if self.key != world.key or self.modes != modes() or not all_the_same(self._answers):
            return False
        return self.rules.hold([source.value for source in world.tensors])

    def bind(self, world: World, call: Call) -> None:
        """Run with the tensors of this world from now on, as long as nothing changes.

        Tensors that are others than in the world before are fetched in each call from now on.
        """
        fixed, arguments = call.parts(world)
        inside = _tensors_below(arguments)
        numbers = {id(source): i for i, source in enumerate(world.tensors)}
        given = [source for source in world.tensors if id(source) in inside]
        own = {numbers[id(source)]: source.value for source in world.tensors if id(source) not in inside}
        changed = {i for i, tensor in own.items() if self._own.get(i, tensor) is not tensor}
        moving = [] if self.names.memory else sorted(self._moving | changed)
        moved = moved_tensors(fixed, [world.tensors[i] for i in moving], own.values()) if moving else None
        moving = [] if moved is None else moving
        self._moving = frozenset(moving)
        self._own = {i: tensor for i, tensor in own.items() if i not in self._moving}
        take = self.executable.bound(self._own, [*moving, *self._assigned, *(numbers[id(each)] for each in given)])
        beside = list(own.values()) if self.names.memory else None
        rebinding = Rebinding(list(self._assigned.values()), [own[i] for i in self._assigned], beside)
        take = rebinding.taking(take) if self._assigned else take
        places = {numbers[id(source)]: i for i, source in enumerate(given)}
        equal = [[(places[number], d) for number, d in group] for group in self.rules.groups]
        quick, guard = _never, None
        space: dict[str, Any] = {}
        leaves = self.names.asks_for_leaves()
        lines = match_lines(space, arguments, given, self.sizes, beside, equal, own.values(), leaves=leaves)
        tied = _tied(fixed, arguments)
        if lines is not None and tied is not None:
            # Their guards see to it that those are alive in these places.
            same = [(i, id(each.value)) for i, each in enumerate(given) if id(each.value) in tied]
            ties = [f"if id(t{i}) != {identity}: return None" for i, identity in same]
            with contextlib.suppress(NoFastGuardError):
                guard = FastGuard(
                    fixed, {id(own[i]) for i in (*moving, *self._assigned)}, leaves=leaves, asks=self.names.asks
                )
                tests = f"{modes_unchanged(space)} and {guard.unchanged(space)}"
                if self._answers:
                    space |= {"all_the_same": all_the_same, "answers": self._answers}
                    tests = f"{tests} and all_the_same(answers)"
                if self._assigned:
                    space["holds"] = rebinding.holds
                    tests = f"holds() and {tests}"
                found = lines[1] if moved is None else f"moved(roots, {lines[1]})"
                text = "\n    ".join([*lines[0], *ties, f"return {found} if {tests} else None"])
                space["moved"] = moved
                exec(f"def quick(args, roots):\n    {text}\n", space)  # noqa: S102  nothing of the user's is in it
                quick = space["quick"]
        self.binding = Binding(take, quick, guard)

    def tensors(self, world: World, call: Call) -> list[torch.Tensor]:
        """What its binding takes in the world that it was bound in."""
        return [*(world.tensors[i].value for i in sorted(self._moving)), *call.tensors(world)]


def _never(_: Sequence[Any], __: tuple[Any, ...]) -> None:
    """Of a program whose world has to be walked."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A program with the tensors that are no arguments, and how to know that they and all else are still the same.

    ``quick(arguments, roots)`` gives the tensors to run with, if it is certain at once that the program holds;
    else None. ``take(tensors)`` runs it. ``guard`` keeps alive what is compared by identity.
    """

    take: Callable[[Sequence[Any]], Any]
    quick: Callable[[Sequence[Any], tuple[Any, ...]], tuple[torch.Tensor, ...] | None]
    guard: FastGuard | None


def _tied(fixed: Sequence[Source], arguments: Sequence[Source]) -> set[int] | None:
    """The tensors of arguments, by identity, that are found elsewhere too; None if something else of them is."""
    inside = {id(each.value) for each in _all_below(arguments) if not each.is_known() and not is_constant(each.value)}
    again = [each.value for each in _all_below(fixed) if each.is_known() and id(each.value) in inside]
    return {id(value) for value in again} if all(isinstance(value, torch.Tensor) for value in again) else None


def _all_below(sources: Sequence[Source]) -> list[Source]:
    found = list(sources)
    for source in found:  # it grows
        found += source.parts
    return found


def _tensors_below(sources: Sequence[Source]) -> set[int]:
    """The tensors that some sources lead to, by the identities of their sources."""
    below = _all_below(sources)
    return {id(each) for each in below if isinstance(each.value, torch.Tensor) and not each.is_known()}


class Worlds:
    """The world of one call as each program's code can read it: walked once for all programs that read the same."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._walked: dict[Any, World] = {}

    def of(self, entry: Entry) -> World:
        """The world as the code of one program reads it."""
        sizes = tuple((name, tuple(each)) for name, each in entry.sizes.items())
        key = entry.names.identity(), sizes
        if key not in self._walked:
            self._walked[key] = self._call.world(entry.names, entry.sizes)
        return self._walked[key]

    def given(self, entry: Entry) -> set[int]:
        """The tensors among the sources of that world that the arguments lead to, by identity."""
        return _tensors_below(self._call.parts(self.of(entry))[1])


class Programs:
    """The programs of one function or object, the last one that was run first."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.entries: tuple[Entry, ...] = ()
        self.hits = self.misses = 0
        self.opens_sizes = True
        self.retracing = Retracing()
        self.apart = Apart()
        self.filled = Filled()

    def __reduce__(self) -> tuple[type[Programs], tuple[()]]:
        """A copy of an object has programs of its own."""
        return Programs, ()

    def __deepcopy__(self, memo: dict[int, Any]) -> Programs:
        return Programs()

    def __copy__(self) -> Programs:
        return Programs()

    def found_for(self, call: Call, capture: Callable[[Open | None], Entry]) -> tuple[Entry, Callable[[], Any]]:
        """Walk the world for a program that holds in it, or capture one; and a function that runs it."""
        with self.lock:
            worlds = Worlds(call)
            found = self._holding(worlds)
            if found is None:
                with CAPTURING:  # a capture of another thread changes classes while it runs
                    worlds = Worlds(call)
                    found = self._holding(worlds)
            if found is None:
                self.apart.look((*call.fixed, *call.arguments))
                with self.apart.noticing():
                    found = self._captured(worlds, capture)
                self.misses += 1
                self.entries = (found, *self.entries)[:MOST_PROGRAMS]
                self.retracing.add(labelled((*zip(found.labels, found.key, strict=True), *found.modes)))
            else:
                self.hits += 1
                found.bind(worlds.of(found), call)
                self._first(found)
            # Another thread may bind the program to other tensors as soon as the lock is free.
            return found, functools.partial(found.binding.take, found.tensors(worlds.of(found), call))

    def _holding(self, worlds: Worlds) -> Entry | None:
        return next((entry for entry in self.entries if entry.holds(worlds.of(entry))), None)

    def _captured(self, worlds: Worlds, capture: Callable[[Open | None], Entry]) -> Entry:
        """A program for a call, which leaves sizes open that have been seen to change."""
        for entry in self.entries if self.opens_sizes else ():
            sizes = {}
            if entry.modes == modes():
                sizes = seen_to_change(entry.key, entry.labels, entry.sizes, worlds.of(entry), worlds.given(entry))
            if sizes:
                with contextlib.suppress(Dy2stError):
                    return capture(sizes)
                self.opens_sizes = False  # they decide something
                break
        return capture(None)

    def _first(self, entry: Entry) -> None:
        if self.entries[0] is not entry:
            self.entries = (entry, *(each for each in self.entries if each is not entry))

    def info(self) -> CacheInfo:
        """How the programs were used."""
        return CacheInfo(self.hits, self.misses, MOST_PROGRAMS, len(self.entries))
