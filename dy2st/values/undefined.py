"""A variable without a usable value after a staged branch or loop: an error only if it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dy2st.errors import Location, NoValueError, StagingError
from dy2st.source.assigning_lines import by_path, quoted

DUNDERS = (
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul and rand or ror "
    "xor rxor lshift rshift neg pos invert abs lt le gt ge eq ne bool int float index len iter next getitem setitem "
    "delitem contains call enter exit round format str repr iadd isub imul itruediv hash array complex reduce_ex trunc "
    "floor ceil divmod rdivmod reversed"
).split()


class Undefined:
    """Stands for a value that can't be staged; ``reason`` says why, ``location`` where it was lost.

    ``kind`` is the error that a read raises; ``sides`` describes the values on the two paths, where these differ.
    ``otherwise`` gives the attempt up for another one, if there is one in which the value is known.
    """

    # numpy leaves operators to this class.
    __array_ufunc__ = None

    def __init__(
        self,
        name: str,
        reason: str,
        hint: str,
        location: Location | None = None,
        kind: type[StagingError] = NoValueError,
        sides: tuple[str, str] | None = None,
        *,
        otherwise: Callable[[], None] | None = None,
    ) -> None:
        object.__setattr__(self, "_poison", (name, reason, hint, location, kind, sides))
        object.__setattr__(self, "_otherwise", otherwise)

    def refuse(self, called: str | None = None) -> Any:
        """Raise the error of a read, at the line that runs; ``called`` is the name of a value without one."""
        name, reason, hint, location, kind, sides = object.__getattribute__(self, "_poison")
        name = called or name
        what = by_path(name, sides, location) if sides else f"{quoted(name)} is read here, but {reason}"
        raise kind(what, hint=hint, origin=location).or_else(object.__getattribute__(self, "_otherwise"))

    def truth(self) -> Any:
        """The value as a condition."""
        return self.refuse()

    def __deepcopy__(self, memo: Any) -> Undefined:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "_poison")):
            raise AttributeError(name)
        return self.refuse()

    def __setattr__(self, name: str, value: Any) -> None:
        self.refuse()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for value in (*args, *(kwargs or {}).values()):
            for leaf in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(leaf, Undefined):
                    leaf.refuse()
        return NotImplemented


def unset(value: Any) -> bool:
    """Whether there is no value, whatever stands for that."""
    if value is UNSET:
        return True
    if not isinstance(value, Undefined):
        return False
    *_, kind, sides = object.__getattribute__(value, "_poison")
    return kind is NoValueError and sides is None


def _refusing(self: Undefined, /, *args: Any, **kwargs: Any) -> Any:
    return self.refuse()


for _name in DUNDERS:
    setattr(Undefined, f"__{_name}__", _refusing)


class _Unset:
    """A variable that has no value yet."""

    def __repr__(self) -> str:
        return "<unset>"


UNSET = _Unset()


def no_value(name: str, location: Location) -> Undefined:
    """A variable that only some of the paths of the branch at ``location`` have bound."""
    return Undefined(
        name,
        "it has no value on a path that leads here",
        f"give {name!r} a value before the branch at line {location.line}, or on every path",
        location,
    )
