"""Small programs on Python values, made by hypothesis: original against rewritten."""

from __future__ import annotations

import linecache
import types
from itertools import count
from typing import Any

import pytest
from differential import compare, note
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

NAMES = ("a", "b", "c")
NUMBERS = count()

names = st.sampled_from(NAMES)
atoms = st.one_of(names, st.integers(-1, 3).map(str), st.sampled_from(["None", "[]", "'s'"]))


def expressions(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(inner, inner)
    triple = st.tuples(inner, inner, inner)
    return st.one_of(
        pair.map(lambda p: f"({p[0]} and {p[1]})"),
        pair.map(lambda p: f"({p[0]} or {p[1]})"),
        inner.map(lambda e: f"(not {e})"),
        triple.map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(lambda t: f"({' '.join(t)})"),
        st.tuples(inner, st.sampled_from(["<", ">=", "==", "is", "is not", "in"]), inner).map(
            lambda t: f"({' '.join(t)})"
        ),
        triple.map(lambda t: f"({t[0]} < {t[1]} != {t[2]})"),
        inner.map(lambda e: f"note({e})"),
        st.tuples(names, inner).map(lambda t: f"({t[0]} := {t[1]})"),
        pair.map(lambda p: f"[{p[0]} for x in range(3) if {p[1]}]"),
        inner.map(lambda e: f"(lambda a=1: {e})()"),
        pair.map(lambda p: f"[1, 2, 3][{p[0]}:{p[1]}]"),
    )


expression = st.recursive(atoms, expressions, max_leaves=5)


def flat(parts: list[list[str]]) -> list[str]:
    return [line for part in parts for line in part]


def indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines] or ["    pass"]


def suites(inside_loop: bool, depth: int) -> st.SearchStrategy[list[str]]:
    return st.lists(statement(inside_loop, depth), min_size=1, max_size=3).map(flat)


@st.composite
def statement(draw: Any, inside_loop: bool, depth: int) -> list[str]:  # noqa: C901  one case for each kind
    kinds = ["assign", "augment", "print", "return", "del", "item", "raise"]
    if inside_loop:
        kinds += ["break", "continue"]
    if depth:
        kinds += ["if", "if", "while", "for", "try", "with", "def", "match"]
    kind = draw(st.sampled_from(kinds))
    inner = suites(inside_loop, depth - 1) if depth else st.just([])
    loop = suites(True, depth - 1) if depth else st.just([])
    text = draw(expression)
    name = draw(names)
    match kind:
        case "assign":
            return [f"{name} = {text}"]
        case "augment":
            return [f"{name} += {text}"]
        case "print":
            return [f"note({text})"]
        case "return":
            return [f"return {text}"]
        case "del":
            return [f"del {name}"]
        case "item":
            return [f"d[{draw(atoms)}] = {text}"]
        case "raise":
            return [f"raise ValueError({text})"]
        case "break" | "continue":
            return [kind]
        case "if":
            lines = [f"if {text}:", *indent(draw(inner))]
            if draw(st.booleans()):
                lines += [f"elif {draw(expression)}:", *indent(draw(inner))]
            if draw(st.booleans()):
                lines += ["else:", *indent(draw(inner))]
            return lines
        case "while":
            lines = [f"while tick() and {text}:", *indent(draw(loop))]
        case "for":
            target = draw(st.sampled_from([name, f"{name}, d[0]", "d['k']", f"({name}, *rest)"]))
            values = draw(st.sampled_from(["range(3)", "[(1, 2), (3, 4)]", "[]", text]))
            lines = [f"for {target} in {values}:", *indent(["tick()", *draw(loop)])]
        case "try":
            lines = ["try:", *indent(draw(inner))]
            handled = draw(st.booleans())
            if handled:
                kinds = st.sampled_from(["except ValueError as e:", "except:", "except (TypeError, NameError):"])
                lines += [draw(kinds), *indent(draw(inner))]
                if draw(st.booleans()):
                    lines += ["else:", *indent(draw(inner))]
            if not handled or draw(st.booleans()):
                lines += ["finally:", *indent(draw(inner))]
            return lines
        case "with":
            return [f"with manager({text}) as {name}:", *indent(draw(inner))]
        case "def":
            lines = [f"def f({name}=1):", *indent(draw(suites(False, depth - 1)))]
            return [*lines, "note(f())"]
        case "match":
            lines = [f"match {text}:"]
            lines += indent(["case 1 | None:", *indent(draw(inner)), f"case {name} if {draw(expression)}:"])
            lines += indent(indent(draw(inner)))
            return [*lines, "    case 'x':", *indent(indent(draw(inner)))]
    if draw(st.booleans()):
        lines += ["else:", *indent(draw(inner))]
    return lines


class Stopped(BaseException):
    """A program ran long enough."""


class Manager:
    """Swallows TypeErrors."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __enter__(self) -> Any:
        note("enter")
        return self.value

    def __exit__(self, kind: object, *rest: object) -> bool:
        note("exit")
        return kind is TypeError


def build(lines: list[str]) -> types.FunctionType:
    """A function of the given body, with its text where tracebacks look for it."""
    text = "\n".join(["def program(a, b, d):", *indent(lines)]) + "\n"
    filename = f"<generated {next(NUMBERS)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"note": note, "manager": Manager, "STATE": [0]}

    def tick() -> bool:
        namespace["STATE"][0] += 1
        if namespace["STATE"][0] > 40:
            raise Stopped
        return True

    namespace["tick"] = tick
    exec(compile(text, filename, "exec"), namespace)
    function = namespace["program"]
    assert isinstance(function, types.FunctionType)
    return function


programs = st.lists(statement(False, 3), min_size=1, max_size=5).map(flat)
few = settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    derandomize=True,
)


@few
@given(programs)
@example(["if a:", "    c = 1", "note(c)", "return c"])
@example(["a += ((b or a) or a)", "return a"])
def test_a_few_programs(lines: list[str]) -> None:
    check(lines)


@pytest.mark.slow
@settings(few, max_examples=300)
@given(programs)
def test_programs(lines: list[str]) -> None:
    check(lines)


def check(lines: list[str]) -> None:
    """A program, if it is one, does the same rewritten."""
    try:
        function = build(lines)
    except SyntaxError:
        return
    # Lines only: the columns of a comparison in `not (a < b)` depend on how Python's version fuses the two.
    compare(function, (1, [2], {}), columns=False)
    compare(function, (0, 3, {"k": 1}), columns=False)
