"""What Python raises for data-dependent numbers, such as a division by zero: a graph goes on with infinity.

No value of eager's is missed by that, unless a ``try`` statement catches the exception: that is refused.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from typing import Any

from dy2st.errors import CaughtError
from dy2st.operators.export_session import current

# A power of zero with a negative exponent is a division, too.
DIVISIONS = ("truediv", "floordiv", "mod", "pow")


class Catching:
    """Whether a ``try`` statement that is running may catch exceptions of a type; a capture says so."""

    def __init__(self) -> None:
        self.may_catch: Callable[[type[Exception]], bool] = lambda _kind: False


def may_raise(kind: type[Exception], what: str) -> None:
    """Eager may raise ``kind`` at ``what``, for some values.

    Raises:
        CaughtError: a ``try`` statement may catch it.
    """
    if current().part(Catching).may_catch(kind):
        raise CaughtError(
            f"{what} may raise a {kind.__name__}, which a try statement around it (or Python itself) "
            "catches: whether it is raised is data-dependent",
            hint="test for the case with an if in place of the try: total / count if count > 0 else 0.0",
        )


def may_divide_by_zero(operator: str, divisor: Any) -> None:
    """As ``may_raise``, where an operator of numbers is one of those that divide."""
    if operator in DIVISIONS and (not isinstance(divisor, (int, float)) or divisor == 0):
        may_raise(ZeroDivisionError, "this division")


def names_catch(names: Iterable[str], kind: type[Exception]) -> bool:
    """Whether handlers for these types, as they are written, may catch ``kind``; an empty name is any type."""
    for name in names:
        known = getattr(builtins, name, None)
        if isinstance(known, type) and issubclass(known, BaseException):
            if issubclass(kind, known):
                return True
        elif not name.startswith("torch."):
            return True
    return False
