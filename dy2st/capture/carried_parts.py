"""The parts of a model's state that a program takes and gives back: tensors, numbers, and whether there is a value.

A *unit* is what changes as a whole: a tensor or a number, or what is None before the first call and a tensor or tuple
of tensors from then on (``if self.h is None: self.h = torch.zeros(...)``). Such a unit has one part more, a bool that
says whether there is a value yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from dy2st.capture.carried_places import Place, Steps, is_absent, leaves, rebuilt
from dy2st.errors import Location
from dy2st.values.number import Number
from dy2st.values.tagged_union import TaggedUnion

# The case of a union that a unit without a value is, and the one that it is with a value.
ABSENT, PRESENT = 0, 1


@dataclass(eq=False)
class Part:
    """One input and one output. ``kind`` is buffer, attribute, number or presence; ``number`` a number's type.

    ``shape`` is that of the example which the program is captured with, ``dynamic`` what is declared of those sizes
    that may change, ``initial`` the value before the first call.
    """

    name: str
    kind: str
    number: type | None
    dtype: torch.dtype
    shape: list[int]
    dynamic: dict[int, Any] = field(default_factory=dict)
    initial: torch.Tensor = field(default_factory=lambda: torch.zeros(()))

    def example(self) -> torch.Tensor:
        """What the program is captured with: its values are of no matter."""
        return torch.zeros(self.shape, dtype=self.dtype)

    def staged(self, given: torch.Tensor) -> Any:
        """The value that the model's code sees, of a tensor of the trace."""
        return given if self.number is None else Number(given, self.number)

    def plain(self, tensor: torch.Tensor) -> Any:
        """The value outside of a trace: a Python number, or a tensor of its own."""
        return tensor.detach().clone() if self.number is None else self.number(tensor.item())

    def become_float(self) -> None:
        """An int before the first call is a float from then on: it is one from the start."""
        self.number, self.dtype = float, torch.float64


@dataclass(eq=False)
class Unit:
    """What changes as a whole: at ``steps`` in a place. ``template`` has its containers, ``parts`` its leaves.

    ``flag`` is the part that says whether there is a value, where there may be none; then ``absent`` (None, or UNSET
    for no attribute at all) is what there is without.
    """

    place: Place
    steps: Steps
    template: Any
    parts: dict[Steps, Part]
    flag: Part | None = None
    absent: Any = None
    location: Location | None = None

    @property
    def name(self) -> str:
        """How the model names it."""
        return ".".join([self.place.path, *map(str, self.steps)])

    @property
    def key(self) -> tuple[Any, ...]:
        """The same for the same unit of another capture."""
        return (*self.place.key, self.steps)

    def all_parts(self) -> Iterator[Part]:
        """Its parts, the flag first."""
        if self.flag is not None:
            yield self.flag
        yield from self.parts.values()

    def value(self, given: Mapping[Part, torch.Tensor]) -> Any:
        """What the model's code sees, of the tensors of a trace."""
        found = rebuilt(self.template, {steps: part.staged(given[part]) for steps, part in self.parts.items()})
        if self.flag is None:
            return found
        cases = [None, None]
        cases[ABSENT], cases[PRESENT] = self.absent, found
        return TaggedUnion(given[self.flag].to(torch.int64), cases)

    def read(self, value: Any, otherwise: Mapping[Part, torch.Tensor]) -> dict[Part, torch.Tensor]:
        """The parts as tensors, of what the user's own object holds; without a value, what they are ``otherwise``."""
        found = {part: otherwise[part] for part in self.parts.values()}
        if self.flag is not None:
            found[self.flag] = torch.tensor(not is_absent(value))
        if self.flag is None or not is_absent(value):
            held = leaves(value)
            found |= {part: _as_tensor(held[steps], part.dtype) for steps, part in self.parts.items()}
        return found

    def plain(self, given: Mapping[Part, torch.Tensor]) -> Any:
        """The value for the user's own object, of the parts as tensors."""
        if self.flag is not None and not given[self.flag]:
            return self.absent
        return rebuilt(self.template, {steps: part.plain(given[part]) for steps, part in self.parts.items()})

    def settle(self, value: Any) -> None:
        """Note the values before the first call, of what the user's own object holds."""
        for part in self.parts.values():
            part.initial = part.example()
        for part, tensor in self.read(value, {part: part.initial for part in self.parts.values()}).items():
            part.initial = tensor


def _as_tensor(value: Any, dtype: torch.dtype) -> torch.Tensor:
    """A tensor without its history, or a number as one."""
    return value.detach().clone() if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=dtype)
