"""Runs a function and its rewritten self on equal arguments, and compares everything that can be seen."""

from __future__ import annotations

import copy
import re
import reprlib
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dy2st import operators
from dy2st.source.rewriting import rewrite

if TYPE_CHECKING:
    import types
    from collections.abc import Callable

OPERATORS = str(Path(operators.__file__).parent)
LOG: list[Any] = []


def note(value: Any) -> Any:
    """Write ``value`` in the log, and return it: shows what is evaluated, and in which order."""
    LOG.append(value)
    return value


LARGE = 10_000  # elements
ABRIDGED = reprlib.Repr()
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def shown(value: Any) -> str:
    """The text of a value; its beginnings, if it holds so many lists in lists that the text would fill the memory."""
    text = repr(value) if _elements_left(value, LARGE, set()) > 0 else ABRIDGED.repr(value)
    return ADDRESS.sub("", text)


def _elements_left(value: Any, left: int, around: set[int]) -> int:
    """How many of ``left`` elements remain after those of ``value``, one counted as often as it is reached."""
    if id(value) in around or left <= 0:
        return left
    inner = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(inner, (list, tuple, set)):
        inner = [*vars(inner).values()] if isinstance(getattr(inner, "__dict__", None), dict) else []
    around.add(id(value))
    for each in inner:
        left = _elements_left(each, left - 1, around)
    around.discard(id(value))
    return left


class Truth:
    """A value that notes each time its truth is asked for."""

    def __init__(self, truth: bool, name: str = "truth") -> None:
        self.truth = truth
        self.name = name

    def __bool__(self) -> bool:
        LOG.append((self.name, self.truth))
        return self.truth

    def __repr__(self) -> str:
        return f"{self.name}({self.truth})"


class Unsure:
    """A value that has no truth."""

    def __bool__(self) -> bool:
        raise ValueError("no truth")

    def __repr__(self) -> str:
        return "Unsure()"


@dataclass
class Case:
    """A function and the arguments to run it on."""

    function: Callable[..., Any]
    arguments: list[tuple[Any, ...]]

    @property
    def name(self) -> str:
        return f"{self.function.__module__}.{self.function.__name__}"


CASES: list[Case] = []


def case(*arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function, with one argument or one tuple of arguments for each run."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        runs = [a if isinstance(a, tuple) else (a,) for a in arguments] or [()]
        CASES.append(Case(function, runs))
        return function

    return register


@dataclass
class Outcome:
    """What one run did."""

    value: str = ""
    error: str = ""
    frames: list[tuple[Any, ...]] = field(default_factory=list)
    notes: str = ""
    log: list[Any] = field(default_factory=list)
    arguments: str = ""
    globals: str = ""


def frames(error: BaseException) -> list[tuple[Any, ...]]:
    """The traceback, operators apart: files, lines, names, and columns.

    Where an operator asks for a truth, the columns are the whole test's; Python's own are the statement's or the last
    operand's, as its version has it.
    """
    found: list[tuple[Any, ...]] = []
    for frame in traceback.extract_tb(error.__traceback__)[1:]:
        if frame.filename.startswith(OPERATORS):
            found[-1] = (*found[-1][:3], *WILD)
        else:
            place = frame.lineno, frame.end_lineno, frame.colno, frame.end_colno
            found.append((frame.filename, frame.name, *place))
    return found


class _Wild:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


WILD = (_Wild(), _Wild(), _Wild())


def run(function: Callable[..., Any], arguments: tuple[Any, ...], namespace: dict[str, Any]) -> Outcome:
    """Run once, and look at everything."""
    while LOG:
        LOG.clear()  # a generator held by an exception in the log ends here, and may log that
    own = copy.deepcopy(arguments)
    outcome = Outcome()
    before = {k: copy.copy(v) for k, v in namespace.items() if k.startswith("STATE")}
    try:
        outcome.value = shown(function(*own))
    except BaseException as error:  # noqa: BLE001  the other run must raise it too, whatever it is
        outcome.error = ADDRESS.sub("", f"{type(error).__name__}: {error}")
        outcome.frames = frames(error)
        chain = error.__cause__ or error.__context__
        while chain is not None:
            outcome.notes += ADDRESS.sub("", f"{type(chain).__name__}: {chain}\n")
            chain = chain.__cause__ or chain.__context__
    outcome.log = list(map(shown, LOG))
    outcome.arguments = shown(own)
    outcome.globals = shown({k: v for k, v in namespace.items() if k.startswith("STATE")})
    namespace.update(before)
    return outcome


def compare(function: types.FunctionType, arguments: tuple[Any, ...], *, columns: bool = True) -> types.FunctionType:
    """Both runs must look alike; the rewritten function is returned."""
    made = rewrite(function)
    # Of what it has run some times CPython 3.11 gives the line of another instruction: it takes two for one.
    code, function.__code__ = function.__code__, function.__code__.replace()
    expected = run(function, arguments, function.__globals__)
    function.__code__ = code
    actual = run(made, arguments, function.__globals__)
    if not columns:
        for outcome in (expected, actual):
            outcome.frames = [frame[:3] for frame in outcome.frames]
    assert actual == expected, f"{function.__qualname__}{arguments!r}\nexpected {expected}\n but got {actual}"
    return made
