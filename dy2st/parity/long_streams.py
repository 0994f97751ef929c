"""Streams: many calls in a row, for what three calls of a model with state do not lead to.

A warm-up ends after ten calls, a ring buffer begins again after sixty, a hangover has to run out. An input stays for
some calls, then comes another: so counters get to their limits. Eager alone runs a stream. A file is compared on single
calls of it, each from the state that eager has come to: those that do to a counter, an index or a flag what few calls
before have done. No rounding adds up from call to call then, and a file that is wrong in one call is seen in that one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from dy2st.capture.carried_state import PREFIX
from dy2st.capture.observing import observing
from dy2st.capture.program import CAPTURING
from dy2st.parity.calls_in_a_row import CallsInARow
from dy2st.parity.gradient_mode import gradients_as_asked
from dy2st.parity.inputs import InputSet
from dy2st.parity.stages import SEED, Reference
from dy2st.parity.state import preserved
from dy2st.parity.stateful_calls import called, initial_state

if TYPE_CHECKING:
    from dy2st.parity.space import Candidate, Space
    from dy2st.staging.routes import Copies, Copy

# The calls of a stream, and those of one that a report lists since it takes a path.
MOST_CALLS, MOST_TOLD = 400, 64
# What the inputs, the state and the outputs of a stream may take.
_MOST_BYTES = 64 << 20
# On so many calls of a stream a file is compared, some of them spread over it; so many for what one part of the state
# has gone through.
_MOST_COMPARED, _SPREAD, _CHANGES = 60, 10, 6
# So many streams that start from the given sets are tried for paths.
_TRIED = 6

Way = tuple["Copy", str]


class Streams:
    """The streams of a model: made of ``given`` sets of one call, and of the candidates of ``space``, for three calls.

    ``seconds`` is what one call takes, and ``limit`` what a stream may take.
    """

    def __init__(
        self, row: CallsInARow, space: Space, given: Sequence[InputSet], *, seconds: float, limit: float
    ) -> None:
        self.row, self.space, self.given = row, space, given
        size = _bytes_of((given[0].args, given[0].kwargs)) + sum(_bytes_of(part.initial) for part in row.carried.parts)
        # The state is there before and after each call, and outputs are about as large.
        self.most = max(1, min(MOST_CALLS, _MOST_BYTES // (4 * size + 1), round(limit / max(seconds, 1e-6))))

    def stream(self, number: int, seen: Sequence[Candidate] = (), *, most: int = MOST_CALLS) -> list[InputSet]:
        """One of them: the first has the given sets one after the other, all others have chance.

        ``seen`` are candidates that are worth more than others.
        """
        count, random = min(self.most, most), self.space.random
        sets = self._alike(number, seen)
        if number == 0:
            longest = -(-count // len(sets))
            return [sets[i // longest] for i in range(count)]
        calls: list[InputSet] = []
        while len(calls) < count:
            calls += [random.choice(sets)] * round(2 ** random.uniform(0, max(1, count.bit_length() - 2)))
        return calls[:count]

    def _alike(self, number: int, seen: Sequence[Candidate]) -> list[InputSet]:
        """Sets of one call with the same sizes: the state may have these."""
        given = [each for each in self.given if _sizes(each) == _sizes(self.given[number % len(self.given)])]
        if number < len(self.given):
            return given
        first = self.space.random.choice(seen) if seen else self.space.fresh()
        sets = self.row.calls(self.space.as_set("", first))
        for _ in range(3):
            sets += self.row.calls(self.space.as_set("", self.space.changed(first)))
        return [each for each in sets if _sizes(each) == _sizes(sets[0])]

    def reaching(
        self, targets: Iterable[Way], copies: Copies, goes_on: Callable[[], bool]
    ) -> Iterator[tuple[list[Way], list[InputSet]]]:
        """Calls that take some of the targets, with these: the last call is the one that does."""
        missing = set(targets)
        for number in range(_TRIED):
            if not missing or not goes_on():
                return
            calls = self.stream(number, most=MOST_TOLD)
            for end, taken in self._ways(calls, copies, missing, goes_on):
                missing -= taken
                yield sorted(taken, key=str), calls[:end]

    def _ways(
        self, calls: Sequence[InputSet], copies: Copies, missing: set[Way], goes_on: Callable[[], bool]
    ) -> list[tuple[int, set[Way]]]:
        """The numbers of the calls, from 1, that take what is missing and no call before has taken, with that."""
        model, carried = self.row.model, self.row.carried
        state = initial_state(model, carried, self.row.program, calls[0])
        found: list[tuple[int, set[Way]]] = []
        missing = set(missing)
        with carried.holding(state), preserved(model):
            for number, each in enumerate(calls, 1):
                if not missing or not goes_on():
                    break
                try:
                    new = missing & _taken(model, each, copies)
                except Exception:  # noqa: BLE001 - what eager rejects is no call, and none follows
                    break
                missing -= new
                found += [(number, new)] if new else []
        return found


def _taken(model: Any, inputs: InputSet, copies: Copies) -> set[Way]:
    """The ways that a call takes; the model's state is another one then."""
    given = inputs.copied()
    with CAPTURING, observing() as observer, gradients_as_asked(model), torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        called(observer.call, model)(*given.args, **given.kwargs)
    taken = observer.taken.items()
    return {(copy, way) for place, ways in taken if (copy := copies.of(place)) is not None for way in ways}


def compared_calls(references: Sequence[Reference]) -> list[Reference]:
    """The calls of a stream on which a file is compared, each from the state that is given with it.

    First are some that are spread over the stream. The others do to a part of the state what no call before has done: a
    counter that has counted up goes back to zero.
    """
    known: defaultdict[int, set[Any]] = defaultdict(set)
    every = max(1, len(references) // _SPREAD)
    spread, changing = [], []
    for number, each in enumerate(references):
        reference = replace(each, inputs=replace(each.inputs, sequence=None))
        # Of what is another one each time, the first few are enough.
        new = [
            (part, change)
            for part, change in enumerate(_changes(reference))
            if change not in known[part] and len(known[part]) < _CHANGES
        ]
        for part, change in new:
            known[part].add(change)
        if new:
            changing.append(reference)
        elif number % every == 0:
            spread.append(reference)
    return [*spread, *changing][-_MOST_COMPARED:]  # sequences of three have what comes first


def _changes(reference: Reference) -> Iterator[Any]:
    """What a call does to each part of the state: how far whole numbers move; of others, that is no matter."""
    before = [value for name, value in reference.inputs.kwargs.items() if name.startswith(PREFIX)]
    outputs = reference.outputs[len(reference.outputs) - len(before) :]
    for old, new in zip(before, (each.tensor for each in outputs), strict=True):
        if old.shape != new.shape:
            yield "sizes"
        elif old.is_complex() or not (_is_whole(old) and _is_whole(new)):
            yield "numbers"
        else:
            yield tuple((new.double() - old.double()).flatten().tolist())


def _is_whole(tensor: torch.Tensor) -> bool:
    return not tensor.is_floating_point() or bool((tensor == tensor.round()).all())


def _sizes(inputs: InputSet) -> list[Any]:
    leaves = pytree.tree_leaves((inputs.args, inputs.kwargs))
    return [tuple(each.shape) if isinstance(each, torch.Tensor) else each for each in leaves]


def _bytes_of(value: Any) -> int:
    leaves = [each for each in pytree.tree_leaves(value) if isinstance(each, torch.Tensor)]
    return sum(each.numel() * each.element_size() for each in leaves)
