"""Random functions from a grammar of the whole language: original against rewritten, run by the interpreter."""

from __future__ import annotations

import enum
import linecache
import sys
import types
import warnings
from collections.abc import Callable, Coroutine, Generator, Iterator
from typing import Any

import pytest
from differential import LOG, compare, note, shown
from generated import source

PROGRAMS = 40
MORE = 300


class StoppedError(BaseException):
    """A program ran long enough."""


class Box:
    """An object with a value that any statement may change."""

    __match_args__ = ("value",)

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Box({shown(vars(self))})"

    def add(self, value: Any) -> Any:
        """Put a value in front of the others."""
        self.value = (value, self.value)
        return len(shown(self.value)) % 5

    def method(self) -> Any:
        """What a derived class may ask for."""
        return ("base", self.value)


class Value:
    """What any operator takes: its number tells what became of it."""

    def __init__(self, number: int) -> None:
        self.number = number % 97

    def __repr__(self) -> str:
        return f"v({self.number})"

    def __bool__(self) -> bool:
        # Whether `(a and b) and c` asks `a` once or twice is up to the compiler, and differs between versions.
        if LOG[-1:] != [("truth", self.number)]:
            LOG.append(("truth", self.number))
        return self.number % 3 != 0

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and other.number == self.number

    def __index__(self) -> int:
        return self.number % 3

    def __iter__(self) -> Iterator[Value]:
        return iter([Value(self.number + 1), Value(self.number * 2)])

    def __len__(self) -> int:
        return self.number % 4

    def __getitem__(self, key: object) -> Value:
        return Value(self.number + 3)

    def __setitem__(self, key: object, value: object) -> None:
        LOG.append(("set", self, key, value))

    def __delitem__(self, key: object) -> None:
        LOG.append(("delete", self, key))

    def __call__(self, *args: Any, **kwargs: Any) -> Value:
        return Value(self.number + 5 * len(args))

    def append(self, value: object) -> None:
        """As a list would."""
        LOG.append(("append", self, value))


def operator(place: int) -> Callable[[Value, object], Value]:
    """A binary operator of values."""

    def combine(left: Value, right: object) -> Value:
        return Value(left.number * (place + 3) + (right.number if isinstance(right, Value) else 11) + place)

    return combine


for place, name in enumerate("add sub mul floordiv truediv mod and or lt le gt ge".split()):
    setattr(Value, f"__{name}__", operator(place))
    setattr(Value, f"__r{name}__", operator(place + 20))
Value.__neg__ = lambda self: Value(-self.number)  # type: ignore[attr-defined]


class Table(dict[Any, Any]):
    """A dict that has all keys."""

    def __missing__(self, key: object) -> Value:
        return Value(len(shown(key)))


class Names(enum.Enum):
    """A name with a dot, for patterns."""

    one = 1


class Manager:
    """Notes what happens, and swallows errors of a class."""

    def __init__(self, value: Any, swallowed: Any = KeyError) -> None:
        self.value = value
        self.swallowed = swallowed

    def __enter__(self) -> Any:
        note("enter")
        return self.value

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> bool:
        note(("exit", kind and kind.__name__))
        return kind is not None and issubclass(kind, self.swallowed)

    async def __aenter__(self) -> Any:
        return self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, *rest: object) -> bool:
        return self.__exit__(kind, *rest)


class Later:
    """Something to await, which suspends once."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __await__(self) -> Generator[Any, Any, Any]:
        sent = yield self.value
        return (sent, self.value)


class Slow:
    """Something to iterate over asynchronously."""

    def __init__(self) -> None:
        self.left = 2

    def __aiter__(self) -> Slow:
        return self

    async def __anext__(self) -> Any:
        self.left -= 1
        if self.left < 0:
            raise StopAsyncIteration
        return await Later(self.left)


ARGUMENTS = [
    (Value(1), [Value(2), Value(3)], Table(k=Value(4))),
    (Value(3), [Value(6), (2, 3)], Table()),
    (0, [5, Value(0)], {0: [], "k": "ab"}),
]


def drive(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine, answering what it waits for."""
    answer = None
    for _ in range(50):
        try:
            answer = coroutine.send(answer)
        except StopIteration as stop:
            return ("done", stop.value)
    coroutine.close()
    return "stopped"


def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
    """Note each call."""

    def call(*args: Any, **kwargs: Any) -> Any:
        note("called")
        return function(*args, **kwargs)

    return call


def attempt(function: Callable[[], Any]) -> Any:
    """What a function gives, or what it raises."""
    try:
        return function()
    except Exception as error:  # noqa: BLE001  programs raise anything
        return repr(error)


def pair(*args: Any, key: Any = None) -> Any:
    """What a call passed."""
    return (*args, key)[:3]


def build(text: str, number: int) -> types.FunctionType:
    """The function of that text, with the text where tracebacks look for it."""
    filename = f"<random {number}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {name: globals()[name] for name in ("note", "Box", "Names", "Later", "Slow")}
    namespace |= {
        "drive": drive,
        "v": Value,
        "decorate": decorate,
        "pair": pair,
        "attempt": attempt,
        "manager": Manager,
        "STATE": [0],
    }

    def tick() -> bool:
        if len(LOG) > 400:
            raise StoppedError
        LOG.append("tick")
        return LOG.count("tick") < 20 or bool(LOG.append("end"))

    namespace["tick"] = tick
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # `1 is 1`, and calls of what is no function
        exec(compile(text, filename, "exec"), namespace)
    function = namespace["program"]
    assert isinstance(function, types.FunctionType)
    return function


def check(number: int) -> bool:
    """Whether the program of that number is one, and is the same rewritten."""
    text = source(number)
    try:
        function = build(text, number)
    except SyntaxError:
        return False
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")  # programs leave coroutines unawaited, and add bools
        patch.setattr(sys, "unraisablehook", lambda _: None)  # and generators that yield while they are closed
        for a, b, d in ARGUMENTS:
            # Lines only: the columns of a comparison in `not (a < b)` depend on how Python's version fuses the two.
            compare(function, (a, b, d, Box([1])), columns=False)
    del linecache.cache[function.__code__.co_filename]
    return True


def test_random_programs() -> None:
    assert sum(map(check, range(PROGRAMS))) > 0.9 * PROGRAMS


@pytest.mark.slow
def test_more_random_programs() -> None:
    assert sum(map(check, range(PROGRAMS, PROGRAMS + MORE))) > 0.9 * MORE
