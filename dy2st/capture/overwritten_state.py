"""Attributes that each call stores to before it reads them: what is there between two calls is none of the state.

    def forward(self, x):
        self.neuron.v = 0.0  # a number here, a tensor behind the first step
        return torch.stack([self.neuron(step) for step in x])

The proof. The model is captured once more, with a value in such a place that nothing may read. If that is no error, and
the call leaves another value there on all paths, no call depends on what an earlier one has left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch.utils import _pytree as pytree

from dy2st.capture.carried_places import Place
from dy2st.errors import CarriedStateError
from dy2st.values.journal import Slot
from dy2st.values.tagged_union import TaggedUnion, cases_of
from dy2st.values.undefined import Undefined


class Overwritten:
    """The places that are taken to be such, with the errors of those that turn out not to be."""

    def __init__(self) -> None:
        self._errors: dict[Any, tuple[Place, CarriedStateError]] = {}
        # Whether the last capture has found more of them.
        self.more = False

    def takes(self, place: Place, error: CarriedStateError) -> bool:
        """Whether there may be another capture, in which ``place`` is one; ``error`` is that of the last one."""
        if place.kind != "attribute" or place.key in self._errors:
            return False
        self._errors[place.key] = place, error
        self.more = True
        return True

    @property
    def error(self) -> CarriedStateError | None:
        """What is wrong with the model if one of the places is read."""
        return next((error for _, error in self._errors.values()), None)

    def put(self, slots: Callable[[Place], list[Slot]]) -> Iterator[tuple[Place, Slot, Undefined]]:
        """In a capture, what each place is to hold, and the slots that stand for it."""
        self.more = False
        for place, error in self._errors.values():
            value = Undefined(place.path, "each call leaves another value there", "", error.location, CarriedStateError)
            for slot in slots(place):
                yield place, slot, value

    def are(self, place: Place, after: Any) -> bool:
        """Whether a place is one; ``after`` is what a call leaves there.

        Raises:
            CarriedStateError: that may be what was there before.
        """
        if place.key not in self._errors:
            return False
        leaves = pytree.tree_leaves(after)
        leaves += [
            leaf for each in leaves if isinstance(each, TaggedUnion) for leaf in pytree.tree_leaves(cases_of(each))
        ]
        if any(isinstance(leaf, Undefined) for leaf in leaves):
            raise self._errors[place.key][1]
        return True
