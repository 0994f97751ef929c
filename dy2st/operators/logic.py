"""``and``, ``or``, ``not``, ``in``, ``is``, ``assert``: lazy where the original is lazy."""

from __future__ import annotations

import operator
from typing import Any

from dy2st.operators.export_session import current


class PythonLazy:
    """The first operand of ``and``/``or``, its truth taken once."""

    __slots__ = ("first", "goes_on", "truth")
    staged = False

    def __init__(self, first: Any, truth: bool, goes_on: bool) -> None:
        self.first = first
        self.truth = truth
        self.goes_on = goes_on

    def more(self) -> bool:
        """Whether the second operand is evaluated."""
        return self.goes_on

    def value(self, second: Any) -> Any:
        """The value of the whole expression."""
        return second if self.goes_on else self.first

    def test(self, second: Any) -> Any:
        """Like ``value``, where only the truth of the expression is used: the first operand isn't tested again."""
        return second if self.goes_on else self.truth


def lazy_and(first: Any, *names: str) -> Any:
    """Start ``first and ...``; ``names``: the variables that the rest binds."""
    if first is not True and first is not False and (capture := current().capture) is not None:
        return capture.lazy(first, names, conjunction=True)
    truth = True if first else False  # noqa: SIM210  bool(first) would hide the user's line in C
    return PythonLazy(first, truth, truth)


def lazy_or(first: Any, *names: str) -> Any:
    """Start ``first or ...``."""
    if first is not True and first is not False and (capture := current().capture) is not None:
        return capture.lazy(first, names, conjunction=False)
    truth = True if first else False  # noqa: SIM210
    return PythonLazy(first, truth, not truth)


def and_(lazy: Any, second: Any) -> Any:
    """The value of ``first and second``."""
    return lazy.value(second)


def and_test(lazy: Any, second: Any) -> Any:
    """The truth of ``first and second``."""
    return lazy.test(second)


or_ = and_
or_test = and_test


def not_(value: Any) -> Any:
    """``not value``."""
    return (not value) if (capture := current().capture) is None else capture.not_(value)


def in_(item: Any, container: Any) -> Any:
    """``item in container``."""
    return (item in container) if (capture := current().capture) is None else capture.in_(item, container)


def not_in(item: Any, container: Any) -> Any:
    """``item not in container``."""
    capture = current().capture
    return (item not in container) if capture is None else capture.not_(capture.in_(item, container))


def equal(a: Any, b: Any) -> Any:
    """``a == b``."""
    return (a == b) if (capture := current().capture) is None else capture.equal(a, b)


def not_equal(a: Any, b: Any) -> Any:
    """``a != b``."""
    return (a != b) if (capture := current().capture) is None else capture.not_equal(a, b)


def less(a: Any, b: Any) -> Any:
    """``a < b``."""
    return (a < b) if (capture := current().capture) is None else capture.ordered(a, b, operator.lt)


def less_equal(a: Any, b: Any) -> Any:
    """``a <= b``."""
    return (a <= b) if (capture := current().capture) is None else capture.ordered(a, b, operator.le)


def greater(a: Any, b: Any) -> Any:
    """``a > b``."""
    return (a > b) if (capture := current().capture) is None else capture.ordered(a, b, operator.gt)


def greater_equal(a: Any, b: Any) -> Any:
    """``a >= b``."""
    return (a >= b) if (capture := current().capture) is None else capture.ordered(a, b, operator.ge)


def concatenated(a: Any, b: Any) -> Any:
    """``a + b``, where one is a tuple display or a shape."""
    return (a + b) if (capture := current().capture) is None else capture.concatenated(a, b)


def is_(a: Any, b: Any) -> Any:
    """``a is b``."""
    return (a is b) if (capture := current().capture) is None else capture.is_(a, b)


def is_not(a: Any, b: Any) -> Any:
    """``a is not b``."""
    return (a is not b) if (capture := current().capture) is None else capture.not_(capture.is_(a, b))


def truth(value: Any) -> Any:
    """A condition in a place that can't be staged: refused when it is a tensor under capture."""
    return value if (capture := current().capture) is None else capture.truth(value)


def assertion(value: Any) -> Any:
    """The test of an ``assert``."""
    return value if (capture := current().capture) is None else capture.assertion(value)
