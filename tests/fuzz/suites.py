"""Suites of statements, with account of what is in scope after them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from choices import Choices
from expressions import Expressions, random_kind
from kinds import (
    FLOAT,
    INDEX,
    INT,
    NUMBER,
    TABLE,
    Function,
    Maybe,
    Record,
    Scope,
    Tensor,
)

Lines = list[str]


def indented(lines: Lines) -> Lines:
    """The lines as a block."""
    return ["    " + line for line in lines] or ["    pass"]


@dataclass
class Shared:
    """What all functions of one program share."""

    budget: int
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    methods: dict[str, dict[str, Function]] = field(default_factory=dict)
    names: int = 0
    properties: dict[str, dict[str, Any]] = field(default_factory=dict)
    uses_global: bool = False


class Suites(Expressions):
    """Writes the body of one function.

    ``returns`` is the kind that every ``return`` gives, or None where only the end of the body returns.
    """

    def __init__(self, choices: Choices, scope: Scope, shared: Shared, returns: Any = None) -> None:
        super().__init__(choices, scope)
        self.shared = shared
        self.returns = returns
        self.loops = 0
        self.dead = False
        self.depth = 0
        self.foreign: set[str] = set()

    def name(self, prefix: str = "e") -> str:
        """A name that is not used elsewhere in the program."""
        self.shared.names += 1
        return f"{prefix}{self.shared.names}"

    def suite(self, depth: int, most: int = 3) -> Lines:
        """One to so many statements."""
        lines: Lines = []
        for _ in range(self.choices.number(1, most)):
            if self.dead or (self.shared.budget <= 0 and lines):
                break
            lines += self.statement(depth)
        return lines

    def arms(self, *writers: Callable[[], Lines], passed: bool = False) -> list[Lines]:
        """Write alternatives, and join what holds after those that end; ``passed`` if none of them may run."""
        before, after, texts = self.scope, [], []
        for write in writers:
            self.scope, self.dead = before.copy(), False
            texts.append(write())
            if not self.dead:
                after.append(self.scope)
        if passed:
            after.append(before.copy())
        self.dead = not after
        self.scope = before
        if after:
            self.scope.join(after)
        return texts

    def body(self, depth: int, bind: Callable[[], Lines]) -> Lines:
        """A loop's body: nothing that was in scope before it changes its kind in it."""
        before = self.scope
        self.scope = before.copy()
        self.scope.frozen |= set(before.kinds)
        self.loops += 1
        lines = bind()
        lines += self.suite(depth - 1, 4)
        self.loops -= 1
        self.scope, self.dead = before, False
        return lines

    def assignable(self, *kinds: Any) -> list[str]:
        """The places of these kinds that this function may assign."""
        return [
            place
            for place in self.scope.places(*kinds)
            if place not in self.scope.fixed and (place not in self.foreign or "." in place or "[" in place)
        ]

    def bind(self, place: str, kind: Any) -> None:
        """The place has a new value of this kind."""
        if "." not in place and "[" not in place:
            self.scope.forget(place)
        if kind == INDEX:
            kind = INT
        self.scope.kinds[place] = kind

    def target(self, kind: Any) -> str:
        """A new name, or a place that may take the kind."""
        wide = (kind, NUMBER) if kind in (INT, FLOAT) else (kind, Maybe(kind))
        same = self.assignable(*wide)
        if same and self.choices.chance(65):
            return self.pick(same)
        free = [
            p for p in self.assignable(*self.scope.kinds.values()) if p.isidentifier() and p not in self.scope.frozen
        ]
        if free and self.choices.chance(25):
            place = self.pick(free)
        else:
            place = self.name({"int": "k", "float": "f", "bool": "b"}.get(kind if isinstance(kind, str) else "", "y"))
        self.bind(place, kind)
        return place

    def any_kind(self) -> Any:
        """A kind that can be written here."""
        kind = random_kind(self.choices, self.anchor() is not None)
        known = [k for p, k in self.scope.kinds.items() if p in self.assignable(k) and self.possible(k)]
        known = [k for k in known if not isinstance(k, (Function, Record)) and k not in (TABLE, INDEX)]
        return self.pick(known) if known and self.choices.chance(65) else kind

    def bounded(self, kind: Any, text: str) -> str:
        """In a loop, numbers must not grow."""
        match kind:
            case Tensor(dtype="f32" | "f64"):
                return f"({text}).clamp(-8, 8)" if not text.isidentifier() else text
            case "int":
                return self.pick([f"({text}) % 7", f"min({text}, 6)", f"max(-4, min({text}, 9))"])
            case "float":
                return f"max(-8.0, min({text}, 8.0))"
        return text

    def bound_all(self, kinds: list[Any], text: str) -> Lines:
        """Bind new names of these kinds by a statement with a slot for each."""
        names = [self.name("y") for _ in kinds]
        for name, kind in zip(names, kinds, strict=True):
            self.bind(name, kind)
        for name in names:
            text = text.replace("{}", name, 1)
        return [text]
