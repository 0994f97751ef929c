"""Are the names of a branch enough? Both suites of every branch run, as while staging, and the result stays the same.

A run time for tests: the suite that isn't taken runs too, and what it did to the branch's names is put back. A name
that the analysis forgot keeps the value of the wrong suite, and shows.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from lowering import lowered

from dy2st import operators

NAMES = ("a", "b", "c")
UNDEFINED = object()


# For each suite that is running, the variables of closures that it has announced to store to, and their old values.
Journal = dict[int, tuple[Any, Any]]
JOURNALS: list[Journal] = []


def content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return UNDEFINED


def put(cell: Any, value: Any) -> None:
    if value is UNDEFINED:
        del cell.cell_contents
    else:
        cell.cell_contents = value


class Branch:
    """An ``if`` whose two suites both run."""

    staged = True

    def __init__(self, test: Any, names: tuple[str, ...]) -> None:
        self.test = bool(test)
        self.depth = len(JOURNALS)
        self.cells: list[Journal] = []
        self.names = names
        self.before = self.values(sys._getframe(2))
        self.first: tuple[Any, ...] | None = None

    def values(self, frame: Any) -> tuple[Any, ...]:
        return tuple(frame.f_locals.get(name, UNDEFINED) for name in self.names)

    def then(self) -> bool:
        JOURNALS.append({})
        return True

    def orelse(self) -> bool:
        self.first = self.values(sys._getframe(1))  # before the variables of closures are put back
        self.undo()
        JOURNALS.append({})
        return True

    def undo(self) -> None:
        """What the suite stored to variables of closures; the old values are put back."""
        old: Journal = {}
        for journal in JOURNALS[self.depth :]:  # an exception has left the branches inside
            old = {**journal, **old}
        del JOURNALS[self.depth :]
        self.cells.append({key: (cell, content(cell)) for key, (cell, _) in old.items()})
        for cell, value in old.values():
            put(cell, value)

    def restore(self) -> tuple[Any, ...]:
        return self.before

    def join(self) -> tuple[Any, ...]:
        last = self.values(sys._getframe(1))
        self.undo()
        taken = self.cells[0] if self.test else (*self.cells, {})[1]
        for cell, value in taken.values():
            announce(cell)
            put(cell, value)
        if self.first is None:  # no else suite
            return last if self.test else self.before
        return self.first if self.test else last


def announce(cell: Any) -> None:
    if JOURNALS:
        JOURNALS[-1].setdefault(id(cell), (cell, content(cell)))


class RunTime:
    """The operators in Python mode, but for branches."""

    def __getattr__(self, name: str) -> Any:
        return getattr(operators, name)

    @staticmethod
    def if_(test: Any, *names: str) -> Branch:
        return Branch(test, names)

    @staticmethod
    def touch_nonlocal(reader: Any) -> None:
        announce(reader.__closure__[0])

    @staticmethod
    def ifexp(branch: Branch, then: Any, orelse: Any) -> Any:
        return then if branch.test else orelse


names = st.sampled_from(NAMES)
values = st.one_of(names, st.integers(0, 3).map(str), st.tuples(names, names).map(lambda p: f"{p[0]} + {p[1]}"))
tests = st.one_of(
    st.tuples(names, st.integers(0, 3)).map(lambda t: f"{t[0]} > {t[1]}"),
    st.tuples(names, values).map(lambda t: f"({t[0]} := {t[1]}) % 2"),
    st.tuples(names, names, names).map(lambda t: f"{t[0]} and ({t[1]} := {t[2]} + 1) > 1"),
)


def indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def suites(depth: int) -> st.SearchStrategy[list[str]]:
    found = st.lists(statement(depth), min_size=1, max_size=3)
    return found.map(lambda parts: [line for part in parts for line in part])


@st.composite
def statement(draw: Any, depth: int) -> list[str]:  # noqa: C901  one case for each kind
    kinds = ["assign", "augment", "swap", "late"]
    if depth:
        kinds += ["if", "if", "if", "for", "while", "try", "with", "match", "def", "comprehension"]
    kind = draw(st.sampled_from(kinds))
    name, value = draw(names), draw(values)
    inner = suites(depth - 1) if depth else st.just(["pass"])
    match kind:
        case "assign":
            return [f"{name} = {value}"]
        case "augment":
            return [f"{name} += {value}"]
        case "swap":
            return [f"{name}, {draw(names)} = {draw(names)}, {value}"]
        case "late":
            return [f"{name} = (lambda: {value})()"]
        case "comprehension":
            return [f"{name} = sum([{draw(names)} for {draw(names)} in range({draw(st.integers(0, 3))}) if {value}])"]
        case "if":
            lines = [f"if {draw(tests)}:", *indent(draw(inner))]
            if draw(st.booleans()):
                lines += [f"elif {draw(tests)}:", *indent(draw(inner))]
            if draw(st.booleans()):
                lines += ["else:", *indent(draw(inner))]
            return lines
        case "for":
            lines = [f"for {name} in range({draw(st.integers(0, 3))}):", *indent(draw(inner))]
            return lines + (["else:", *indent(draw(inner))] if draw(st.booleans()) else [])
        case "while":
            n = f"n{depth}"  # loops in loops count apart
            return [f"{n} = 0", f"while {n} < {draw(st.integers(0, 3))}:", f"    {n} += 1", *indent(draw(inner))]
        case "try":
            lines = ["try:", *indent(draw(inner))]
            if draw(st.booleans()):
                lines = [*lines, f"    {name} = missing[0]", "except NameError:", *indent(draw(inner))]
                if draw(st.booleans()):
                    return lines
            return [*lines, "finally:", *indent(draw(inner))]
        case "with":
            return [f"with nullcontext({value}) as {name}:", *indent(draw(inner))]
        case "match":
            lines = [f"case {draw(st.integers(0, 2))}:", *indent(draw(inner))]
            lines += [f"case {name} if {draw(tests)}:", *indent(draw(inner))]
            if draw(st.booleans()):
                return [f"match {value}:", *indent(lines)]
            first, second = draw(st.permutations(NAMES))[:2]
            lines = [f"case ({draw(st.integers(0, 2))}, {first}):", *indent(draw(inner))]
            lines += [f"case ({first}, (1 | 2) as {second}) if {draw(tests)}:", *indent(draw(inner))]
            lines += [f"case [{second}, [0, {first}] | {first}]:", *indent(draw(inner))]
            return [f"match {value}, {draw(names)}:", *indent(lines)]
    body = [f"nonlocal {name}", f"{name} = {value}"] if draw(st.booleans()) else [f"return {value}"]
    return ["def g():", *indent(body), "g()"]


def run(text: str, arguments: tuple[int, ...]) -> Any:
    JOURNALS.clear()
    namespace = {"d2s": RunTime(), "nullcontext": contextlib.nullcontext}
    exec(text, namespace)
    return namespace["f"](*arguments)  # type: ignore[operator]


results_of = st.lists(names, min_size=1, max_size=2)
few = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    derandomize=True,
)


@pytest.mark.slow
@few
@given(suites(3), results_of)
@example(["if a > 1:", "    b = a", "    a = 0", "else:", "    c = b"], ["c"])
@example(["for a in range(3):", "    if b > 0:", "        c = a", "    b = c"], ["b"])
@example(["try:", "    if a > 0:", "        b = 7", "    c = missing[0]", "except NameError:", "    c = b"], ["c"])
@example(
    [
        "def g():",
        "    nonlocal b",
        "    b = a",
        "if a > 0:",
        "    match a, 7:",
        "        case (_, b):",
        "            c = b",
    ],
    ["b"],
)
@example(
    [
        "match a, a:",
        "    case (a, b) if a > 0:",
        "        for a in range(1):",
        "            def g():",
        "                nonlocal b",
        "                b = a",
        "            g()",
        "    case [b, a]:",
        "        pass",
    ],
    ["b"],
)
@example(
    ["if a > 0:", "    b = a", "elif (a := b) % 2:", "    c = a", "def g():", "    nonlocal a", "    a += 1", "g()"],
    ["a"],
)
@example(
    [
        *("match a > 0:", "    case True:", "        b = a", "    case False if (a := b) % 2:", "        c = a"),
        *("def g():", "    nonlocal a", "    a += 1", "g()"),
    ],
    ["a"],
)
def test_names_are_enough(lines: list[str], results: list[str]) -> None:
    check(lines, results)


@pytest.mark.slow
@settings(few, max_examples=200)
@given(suites(3), results_of)
def test_names_are_enough_in_many_functions(lines: list[str], results: list[str]) -> None:
    check(lines, results)


def check(lines: list[str], results: list[str]) -> None:
    """A function in which both suites of every branch run gives what the function gives."""
    text = "\n".join(["def f(a, b, c):", *indent(lines), f"    return {', '.join(results)}"]) + "\n"
    try:
        compile(text, "<text>", "exec")
    except SyntaxError:  # `nonlocal` after a use
        return
    new = lowered(text)
    for arguments in ((0, 1, 2), (3, 0, 1), (2, 3, 0)):
        assert run(new, arguments) == run(text, arguments), new


def test_a_forgotten_name_shows() -> None:
    text = "def f(a, b, c):\n    if a > 1:\n        b = 5\n    return b\n"
    new = lowered(text)
    assert run(new, (0, 1, 2)) == 1
    wrong = new.replace(', "b")', ")").replace("if if_2.staged: b, = if_2.join()", "if_2.join()")
    assert wrong != new
    assert run(wrong, (0, 1, 2)) == 5
