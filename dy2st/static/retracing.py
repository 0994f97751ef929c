"""What keeps changing, where a function is captured over and over."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from dy2st.errors import RetracingWarning

# After so many captures of one function it is worth a warning.
MANY_PROGRAMS = 6
LONGEST_TEXT = 40
# The parts of a tensor's key, in words.
_TENSOR = ("type", "dtype", "device", "layout", "shape", "strides")
_TENSOR_KEY_LENGTH = 7
Labelled = dict[str, Any]


def labelled(pairs: Iterable[tuple[str, Any]]) -> Labelled:
    """The keys of a world's sources by what they say, in words."""
    found: Labelled = {}
    for name, key in pairs:
        if isinstance(key, tuple) and len(key) >= _TENSOR_KEY_LENGTH and isinstance(key[4], tuple):
            found[f"the number of dimensions of {name}"] = len(key[4])
            found.update({f"the {word} of {name}": part for word, part in zip(_TENSOR, key, strict=False)})
            found[f"whether {name} needs gradients"] = key[6]
        else:
            found[f"the value of {name}"] = key
    return found


def changed(old: Labelled, new: Labelled) -> list[str]:
    """The labels under which two worlds differ, the most telling first."""
    labels = [label for label in {**old, **new} if old.get(label) != new.get(label)]
    telling = [label for label in labels if "dimensions" in label]
    return telling or labels


def advice(label: str) -> str:
    """What to do about a label that keeps changing."""
    subject = label.rpartition(" of ")[2]
    if label.startswith("the shape"):
        return f"a named dimension in input_spec ('{subject}=f32[n,...]') makes one program for all sizes"
    if label.startswith("the value of self."):
        return "keep what varies in a buffer, or pass it as an argument"
    if label.startswith("the value"):
        return f"pass {subject} as a tensor if it varies"
    return "bring it into one form before the call"


def shown_value(value: Any) -> str:
    """A key in few words."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], type):
        value = value[1]
    text = str(list(value)) if isinstance(value, tuple) else str(value).removeprefix("torch.")
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


class Retracing:
    """The captures of one function, and whether they have been warned of."""

    def __init__(self) -> None:
        self.worlds: list[Labelled] = []
        self.changes: list[set[str]] = []
        self.warned = False

    def add(self, world: Labelled) -> None:
        """Another capture: count what its world differs in from the one that is most like it."""
        if self.warned:
            return
        if self.worlds:
            differences = [changed(old, world) for old in self.worlds]
            fewest = min(len(labels) for labels in differences)
            self.changes.append(next(set(labels) for labels in differences if len(labels) == fewest))
        self.worlds.append(world)

    def warn(self, name: str, depth: int) -> None:
        """Say once what makes a function be captured over and over; ``depth`` is how far up its caller is."""
        if self.warned or len(self.worlds) < MANY_PROGRAMS:
            return
        always = set.intersection(*self.changes[2 - MANY_PROGRAMS :])
        if not always:
            return
        self.warned = True
        label = min(always)
        values: Sequence[str] = [shown_value(world.get(label)) for world in self.worlds[-3:]]
        count = len(self.worlds)
        self.worlds, self.changes = [], []
        warnings.warn(
            f"{name} has been captured {count} times, and may be again with each call: {label} keeps "
            f"changing ({', then '.join(values)}); {advice(label)}",
            RetracingWarning,
            stacklevel=depth + 1,
        )
