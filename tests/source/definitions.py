"""Functions whose source is looked for."""

from __future__ import annotations

import functools


def plain(x):
    if x:
        return 1
    return 2


def decorate(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args) if args else None

    return wrapper


@decorate
@decorate
def decorated(x):
    if x:
        raise LookupError(x)
    return 2


one, two = lambda x: x or 1, lambda x: x or 2
same, other = lambda x: x and 1, lambda x: x and 1
nested = lambda x: [lambda y: x or y, lambda y: x and y]  # noqa: E731
# fmt: off
several = (
    lambda x: (
        x
        or 3
    )
)
# fmt: on


def closure(n):
    total = n

    def add(k):
        nonlocal total
        if k:
            total += k
        return total

    def get():
        return total or "none"

    return add, get


class Owner:
    __secret = 3

    def method(self, x):
        if x:
            return self.__secret
        return __class__.__name__

    class Inner:
        def method(self):
            return [self.__name() for _ in range(2) if self]

        def __name(self):
            return "name" if self else None

    def maker(self):
        def inner():
            return self.__secret or 0

        return inner

    @property
    def value(self):
        return self.__secret if self else 0

    @staticmethod
    def static(x=1, *, y: int = 2):
        """Documented."""
        return x and y

    @classmethod
    def of(cls, x):
        return cls() if x else None


def nothing(x):
    return x


async def coroutine(x):
    if x:
        yield x


def nonlatin(ä):  # noqa: PLC2401  columns count bytes
    ß = "äöü" if ä else "ß"
    return ß.index("€") if not ä else ß
