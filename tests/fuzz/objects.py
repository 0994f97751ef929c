"""Statements on objects whose classes say what ``len``, ``bool``, ``in``, ``int`` and assignments mean."""

from __future__ import annotations

from assignments import Assignments
from expressions import FLOATS
from kinds import BOOL, FLOAT, INT, Tensor
from suites import Lines, indented

CLASSES = """

class Tally:
    count = 0
    last = None
    scale = 1.0

    def __init__(self):
        self.items = []

    def see(self, value):
        self.count += 1
        self.last = value
        self.items.append(value)

    def __len__(self):
        return len(self.items)

    def __bool__(self):
        return self.count > 1

    def __contains__(self, number):
        return number == self.count

    def __int__(self):
        return self.count * 2

    @property
    def twice(self):
        return self.scale * 2

    @twice.setter
    def twice(self, value):
        self.scale = value / 2

    @twice.deleter
    def twice(self):
        self.scale = 0.5


class Options(dict):
    def __getattr__(self, name):
        return self[name]

    def __setattr__(self, name, value):
        self[name] = value


class Counted:
    stores = 0

    def __setattr__(self, name, value):
        object.__setattr__(self, "stores", self.stores + 1)
        super().__setattr__(name, value)
"""


class Objects(Assignments):
    """Writes what makes, changes and reads such objects."""

    def under(self, change: str) -> Lines:
        """A change on all paths, on some, or in a loop."""
        rows = self.scope.tensors("n u n2 u2")
        loops = [f"for {self.name('i')} in range({self.pick('23')}):"]
        loops += [f"for {self.name('e')} in {self.pick(rows)}:"] * 2 if rows else []
        head = self.pick(["", f"if {self.truth(1)}:", f"if {self.truth(1)}:", *loops])
        if head.startswith("for") and self.choices.chance(50):
            return [head, *indented([f"if {self.truth(1)}:", *indented([change])])]
        return [head, *indented([change])] if head else [change]

    def tallied(self, depth: int) -> Lines:
        """An object with attributes of its class, and special methods."""
        place, result = self.name("o"), self.name("y")
        scalar = lambda: self.of(Tensor(), 1)  # noqa: E731
        lines = [f"{place} = Tally()"]
        for _ in range(self.choices.number(1, 3)):
            changes = [
                f"{place}.see({scalar()})",
                f"{place}.see({scalar()})",
                f"{place}.count += 2",
                f"{place}.scale = {self.pick(FLOATS)}",
                f"{place}.twice = {self.pick(FLOATS)}",
                f"del {place}.twice",
                f"{place}.items.append({scalar()})",
            ]
            lines += self.under(self.pick(changes))
        kind, text = self.pick([
            (INT, f"{place}.count"),
            (INT, f"len({place})"),
            (INT, f"int({place}) + (1 if {place} else 0)"),
            (INT, f"(3 if not {place} or {place}.count == 4 else 2)"),
            (BOOL, f"{self.pick('123')} in {place}"),
            (FLOAT, f"{place}.twice"),
            (FLOAT, f"{place}.scale + Tally.scale"),
            (Tensor(), f"({scalar()} if {place}.last is None else {place}.last)"),
            (Tensor(), f"{scalar()} + sum({place}.items)"),
        ])  # fmt: skip
        self.bind(result, kind)
        return [*lines, f"{result} = {text}"]

    def stored_by_method(self, depth: int) -> Lines:
        """An object whose class says what an assignment to an attribute does."""
        place, result = self.name("o"), self.name("y")
        scalar = lambda: self.of(Tensor(), 1)  # noqa: E731
        mapping = self.choices.chance(50)
        made = f"Options(a={scalar()}, b={scalar()})" if mapping else "Counted()"
        lines = [f"{place} = {made}"]
        lines += [] if mapping else [f"{place}.a = {place}.b = {scalar()}"]
        for _ in range(self.choices.number(1, 2)):
            changes = [
                f"{place}.a = {scalar()}",
                f"{place}.b = {place}.a * 0.5",
                f'setattr({place}, "{self.pick("ab")}", {scalar()})',
                f'{place}["a"] = {scalar()}' if mapping else f'object.__setattr__({place}, "a", {scalar()})',
            ]
            lines += self.under(self.pick(changes))
        kind, text = self.pick([
            (Tensor(), f"{place}.a - {place}.b"),
            (Tensor(), f'getattr({place}, "{self.pick("ab")}")'),
            (INT, f"len({place})" if mapping else f"{place}.stores"),
        ])  # fmt: skip
        self.bind(result, kind)
        return [*lines, f"{result} = {text}"]
