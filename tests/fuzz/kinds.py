"""The static types of generated programs, and the variables in scope with theirs.

A tensor's shape is one of six: ``""`` (0-d), ``"2"``, ``"n"``, ``"n2"`` (n rows of 2), and ``"u"`` and ``"u2"``, whose
first size nothing is known of. Values in programs are multiples of a quarter and small, so that additions are exact in
every order and a difference is a defect.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Tensor:
    """A tensor; ``dtype`` is ``f32``, ``f64``, ``i64``, ``bool``, or ``any`` where it depends on the path."""

    shape: str = ""
    dtype: str = "f32"


@dataclass(frozen=True)
class Many:
    """A list of items of one kind."""

    item: Any
    nonempty: bool


@dataclass(frozen=True)
class Maybe:
    """None or a value of the kind."""

    item: Any


@dataclass(frozen=True)
class Together:
    """A tuple."""

    items: tuple[Any, ...]


@dataclass(frozen=True)
class Record:
    """An object of a generated class, whose fields are places of their own."""

    name: str


@dataclass(frozen=True)
class Function:
    """Something to call: what it takes and gives.

    ``names`` are those of the parameters where arguments may be named, with a star where they must be.
    """

    takes: tuple[Any, ...]
    gives: Any
    names: tuple[str, ...] = ()


INT, FLOAT, BOOL, INDEX, NUMBER, TABLE = "int", "float", "bool", "index", "number", "table"
"""Python values; an index lies below n, a number is an int or a float by path, a table is a dict."""

ROW = {"n": "", "u": "", "n2": "2", "u2": "2"}
LOOSE = {"n": "u", "u": "u", "n2": "u2", "u2": "u2"}
TORCH = {"f32": "torch.float32", "f64": "torch.float64", "i64": "torch.int64", "bool": "torch.bool"}


def joined(left: Any, right: Any) -> Any:
    """The kind of a variable that has one on each of two paths; None if there is none."""
    if left == right:
        return left
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        dtype = left.dtype if left.dtype == right.dtype else "any"
        if left.shape == right.shape:
            return Tensor(left.shape, dtype)
        if LOOSE.get(left.shape, "l") == LOOSE.get(right.shape, "r"):
            return Tensor(LOOSE[left.shape], dtype)
        return None
    if isinstance(left, Many) and isinstance(right, Many) and left.item == right.item:
        return Many(left.item, False)
    if {left, right} <= {INT, INDEX}:
        return INT
    if {left, right} <= {INT, INDEX, FLOAT, NUMBER}:
        return NUMBER
    return None


@dataclass
class Scope:
    """The places in scope: variables, attributes and items by their source text.

    ``frozen`` keep their kind (a loop around here, or a closure, relies on it), ``fixed`` are not assigned at all.
    """

    kinds: dict[str, Any] = field(default_factory=dict)
    frozen: set[str] = field(default_factory=set)
    fixed: set[str] = field(default_factory=set)

    def copy(self) -> Scope:
        """A scope of its own with the same places."""
        return Scope(dict(self.kinds), set(self.frozen), set(self.fixed))

    def places(self, *kinds: Any) -> list[str]:
        """The places of one of these kinds."""
        return [place for place, kind in self.kinds.items() if kind in kinds]

    def of(self, kind: type) -> list[str]:
        """The places whose kind is of this class."""
        return [place for place, found in self.kinds.items() if isinstance(found, kind)]

    def tensors(self, shapes: str = "", dtypes: str = "f32") -> list[str]:
        """The tensors of one of these shapes and dtypes; a hyphen is the 0-d shape, an empty text all of them."""
        wanted = {"" if shape == "-" else shape for shape in shapes.split()} if shapes else None
        return [
            place
            for place, kind in self.kinds.items()
            if isinstance(kind, Tensor) and (wanted is None or kind.shape in wanted) and kind.dtype in dtypes.split()
        ]

    def forget(self, name: str) -> None:
        """Remove a variable with its fields and items."""
        for place in list(self.kinds):
            if place == name or place.startswith((f"{name}.", f"{name}[")):
                del self.kinds[place]

    def join(self, others: list[Scope]) -> None:
        """Become what holds after any of these paths."""
        kinds = dict(others[0].kinds)
        for other in others[1:]:
            for place in list(kinds):
                kind = joined(kinds[place], other.kinds[place]) if place in other.kinds else None
                if kind is None:
                    del kinds[place]
                else:
                    kinds[place] = kind
        self.kinds = kinds
        self.frozen |= {place for other in others for place in other.frozen}
