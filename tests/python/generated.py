"""Writes random functions on plain Python values, from a grammar of the language's statements and expressions."""

from __future__ import annotations

import random

NATURAL = ("0", "1", "2", "-1", "None", "True", "'s'", "[]", "[1, 2]", "(1, 2)", "{'k': 1}", "{1, 2}", "1.5")
ATOMS = (*(f"v({number})" for number in range(8)), "a", "b", "c", "1", "2")
"""``v`` makes values that any operator takes, so that programs don't end at their first statement."""
ERRORS = ("ValueError", "TypeError", "(TypeError, NameError)", "KeyError", "Exception", "(IndexError, AttributeError)")
BINARY = ("+", "-", "*", "//", "%", "&", "|", "/")
COMPARISONS = ("<", ">=", "==", "!=", "is", "is not", "in", "not in", "<=")


def indent(lines: list[str]) -> list[str]:
    """The lines as a block."""
    return ["    " + line for line in lines] or ["    pass"]


class Grammar:
    """Draws programs; what is in scope is only guessed at, so that unbound names are met too."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.pick = self.random.choice
        self.names = ["a", "b", "c"]
        self.count = 0
        self.functions: list[str] = []
        self.classes: list[str] = []
        self.iterators: list[str] = []
        self.loop = 0
        self.kind = ["function"]
        self.finally_ = 0

    def chance(self, percent: int) -> bool:
        """True in so many of a hundred cases."""
        return self.random.random() * 100 < percent

    def fresh(self, prefix: str) -> str:
        """A new name."""
        self.count += 1
        return f"{prefix}{self.count}"

    # Expressions

    def expression(self, depth: int = 2) -> str:
        """Any expression."""
        if depth <= 0 or self.chance(30):
            return self.pick(
                [self.pick(self.names), self.pick(ATOMS), self.pick(ATOMS if self.chance(70) else NATURAL)]
            )
        e = lambda: self.expression(depth - 1)  # noqa: E731
        x = self.pick("xyz")
        forms = [
            lambda: f"({e()} and {e()})",
            lambda: f"({e()} or {e()})",
            lambda: f"(not {e()})",
            lambda: f"({e()} if {e()} else {e()})",
            lambda: f"({e()} {self.pick(BINARY)} {e()})",
            lambda: f"({e()} {self.pick(COMPARISONS)} {e()})",
            lambda: f"({e()} < {e()} {self.pick(['!=', '<=', 'is'])} {e()})",
            lambda: f"note({e()})",
            lambda: f"note({e()})",
            lambda: f"({self.pick(self.names)} := {e()})" if self.kind[-1] != "class" else e(),
            lambda: f"[{e()} for {x} in {self.iterable()} if {e()}]",
            lambda: f"{{{x}: {e()} for {x} in range(2)}}",
            lambda: f"[({x}, y) for {x} in range(2) for y in {self.iterable()}]",
            lambda: f"list({e()} for {x} in {self.iterable()})",
            lambda: f"any({e()} for {x} in {self.iterable()})",
            lambda: f"(lambda {self.pick(self.names)}={e()}, *r, **k: {e()})()",
            lambda: f"[1, 2, 3][{e()}:{e()}]",
            lambda: f"{e()}[{e()}]",
            lambda: f"f'{{{self.pick(self.names)}!r:>{self.pick('346')}}}'",
            lambda: f"[*{self.iterable()}, {e()}]",
            lambda: f"{{**{{'k': {e()}}}, 'j': {e()}}}",
            lambda: f"({e()}, {e()})",
            lambda: f"len({e()})",
            lambda: f"pair(*{self.iterable()}, key={e()})",
            lambda: f"pair({e()}, **{{'key': {e()}}})",
            lambda: f"isinstance({e()}, {self.pick(['int', 'str', '(list, tuple)'])})",
            lambda: "box.value",
            lambda: f"d.get('k', {e()})",
            lambda: f"-{e()}",
            lambda: f"box.add({e()})",
        ]
        if self.functions:
            forms += [lambda: self.call(depth - 1)] * 4
        if self.classes:
            forms += [
                lambda: f"{self.pick(self.classes)}({e()}).{self.pick(['method()', 'size', 'value', 'make(1)'])}"
            ] * 3
        if self.iterators:
            forms += [
                lambda: f"next({self.pick(self.iterators)}, {e()})",
                lambda: f"list({self.pick(self.iterators)})",
            ] * 2
        if self.kind[-1] == "generator":
            forms += [lambda: f"(yield {e()})", lambda: f"(yield from {self.iterable()})"]
        if self.kind[-1] == "async":
            forms += [lambda: f"(await Later({e()}))"] * 3
        return self.pick(forms)()

    def iterable(self) -> str:
        """Something to iterate over, mostly."""
        forms = [
            "range(3)",
            "range(2)",
            "[(1, 2), (3, 4)]",
            "[]",
            "'ab'",
            "d",
            "zip(range(2), 'ab')",
            self.pick(self.names),
        ]
        return self.pick([*forms, *(f"{name}()" for name in self.iterators[-1:])])

    def call(self, depth: int) -> str:
        """A call of a function defined before."""
        name, e = self.pick(self.functions), lambda: self.expression(depth)
        return self.pick(
            [f"{name}()", f"{name}({e()})", f"{name}({e()}, q={e()})", f"{name}(*[{e()}], **{{'z': {e()}}})"]
        )

    def target(self) -> str:
        """What can be assigned."""
        name, other = self.pick(self.names), self.pick(self.names)
        if self.chance(60):
            return name
        forms = [name, f"{name}, {other}", f"({name}, *{other})", "d['k']", f"d[{self.expression(0)}]"]
        return self.pick([*forms, "box.value", "b[0]", "b[:1]", f"[{name}, box.value]", f"{name}, (c, {other})"])

    # Statements

    def suite(self, depth: int, least: int = 1) -> list[str]:
        """A few statements."""
        return [line for _ in range(self.random.randint(least, 3)) for line in self.statement(depth)]

    def simple(self) -> list[str]:
        """A statement of one line."""
        e, name = self.expression, self.pick(self.names)
        forms = [
            lambda: f"{self.target()} = {e()}",
            lambda: f"{self.target()} = {e()}",
            lambda: f"{name} = {self.target()} = {e()}",
            lambda: f"{name}: int = {e()}" if self.kind[-1] == "class" else f"{name} = {e()}",
            lambda: f"{self.pick([name, name, 'd[0]', 'box.value', 'b[0]'])} {self.pick(BINARY)}= {e()}",
            lambda: f"note({e()})",
            lambda: f"note({e(3)})",
            lambda: f"del {self.pick([name, name, 'd[0]', 'box.value', 'b[0]', 'b[:1]', f'({name}, c)'])}",
            lambda: f"{self.target()} = note({e()})",
            lambda: f"{name} += {e()}",
            lambda: f"import {self.pick(['math', 'os.path', 'json as ' + name])}",
            lambda: f"from math import {self.pick(['pi', 'pi as ' + name])}",
            lambda: f"box.value.append({e()})",
            lambda: f"b.append({e()})",
            e,
            lambda: "pass",
        ]
        if self.chance(12):
            forms = [
                lambda: f"assert {e()}, {e()}",
                lambda: f"raise {self.pick(['ValueError', 'TypeError', 'KeyError'])}({e()})",
                lambda: f"raise ValueError({e()}) from {self.pick(['None', 'KeyError(1)'])}",
            ]
        if self.loop:
            forms += [lambda: "break", lambda: "continue", lambda: "break"]
        if self.kind[-1] != "class":
            forms += [lambda: f"return {e()}" if self.chance(40) else f"note({e()})"]
        if self.kind[-1] == "generator":
            forms += [lambda: f"yield {e()}", lambda: f"{name} = yield {e()}", lambda: "note((yield))"] * 3
            forms += [lambda: f"{name} = yield from {self.iterable()}"]
        if self.iterators:
            it = self.pick(self.iterators)
            forms += [
                lambda: f"note({it}.send({e()}))",
                lambda: f"{it}.close()",
                lambda: f"note({it}.throw(ValueError(1)))",
            ]
        line = self.pick(forms)()
        if line.startswith(("break", "continue", "return", "raise", "assert")) and self.chance(80):
            return [f"if {self.expression(1)}: {line}"]
        return [line]

    def statement(self, depth: int) -> list[str]:
        """One statement."""
        if depth <= 0 or self.chance(35):
            return self.simple()
        kinds = [self.if_] * 4 + [self.while_] * 2 + [self.for_] * 4 + [self.try_] * 4 + [self.with_] * 2
        kinds += [self.match_] * 2 + [self.def_] * 2 + [self.class_, self.generator, self.generator]
        if self.kind[-1] == "function":
            kinds += [self.async_]
        if self.kind[-1] == "async":
            kinds += [self.async_blocks] * 3
        return self.pick(kinds)(depth - 1)

    def if_(self, depth: int) -> list[str]:
        """if, elif, else."""
        lines = [f"if {self.expression()}:", *indent(self.suite(depth))]
        if self.chance(30):
            lines += [f"elif {self.expression()}:", *indent(self.suite(depth))]
        if self.chance(50):
            lines += ["else:", *indent(self.suite(depth))]
        return lines

    def looped(self, depth: int) -> list[str]:
        """The body of a loop."""
        self.loop += 1
        lines = self.suite(depth)
        self.loop -= 1
        return lines

    def otherwise(self, depth: int) -> list[str]:
        """Perhaps an else clause."""
        return ["else:", *indent(self.suite(depth))] if self.chance(35) else []

    def while_(self, depth: int) -> list[str]:
        """while: ``tick`` ends a program that runs long."""
        test = self.pick([f"tick() and {self.expression()}", f"tick() and {self.expression()}", "tick()"])
        return [f"while {test}:", *indent(self.looped(depth)), *self.otherwise(depth)]

    def for_(self, depth: int) -> list[str]:
        """for, over what iterates, or what does not."""
        values = self.pick([self.iterable(), self.iterable(), self.expression()])
        return [f"for {self.target()} in {values}:", "    tick()", *indent(self.looped(depth)), *self.otherwise(depth)]

    def try_(self, depth: int) -> list[str]:
        """try in all its forms."""
        lines = ["try:", *indent(self.suite(depth))]
        handled = self.chance(75)
        if handled and self.chance(12):
            loop, kind, self.loop = self.loop, self.kind, 0
            self.kind = [*kind, "class"]
            body = self.suite(0)
            self.loop, self.kind = loop, kind
            lines += [f"except* {self.pick(['ValueError', 'TypeError'])} as e:", *indent(body)]
        elif handled:
            for _ in range(self.pick([1, 1, 2])):
                name = self.pick([" as e", "", f" as {self.pick(self.names)}"])
                again = self.pick([["raise"], ["note(e)"], [f"raise KeyError({self.expression()}) from e"], []])
                lines += [f"except {self.pick(ERRORS)}{name}:", *indent(self.suite(depth, 0) + again)]
            if self.chance(15):
                lines += ["except:", *indent(self.suite(depth))]
            if self.chance(35):
                lines += ["else:", *indent(self.suite(depth))]
        if not handled or self.chance(45):
            self.finally_ += 1
            lines += ["finally:", *indent(self.suite(depth))]
            self.finally_ -= 1
        return lines

    def with_(self, depth: int) -> list[str]:
        """with one or two managers."""
        first = f"manager({self.expression()})" + self.pick(["", f" as {self.target()}"])
        second = f", manager({self.expression()}, {self.pick(['TypeError', 'ValueError', 'Exception'])}) as c"
        return [f"with {first}{self.pick(['', second])}:", *indent(self.suite(depth))]

    def match_(self, depth: int) -> list[str]:
        """match on anything."""
        patterns = [
            "1 | None", "'s'", "[]", "[x]", "[x, y]", "[x, *rest]", "(1, _)", "{'k': w}", "{'k': 1, **rest}", "{}",
            "int(n)", "int() | str()", "Box(value=w)", "Box(value=[x, *_])", "Box()", "True", "-1", "[1, 2] as both",
            "(1 | 2) as x", "str() as text", "[[x, y], *_]", "Names.one", "bool()", "float(n)", "{1: x}",
        ]  # fmt: skip
        cases = []
        for _ in range(self.random.randint(1, 3)):
            guard = f" if {self.expression()}" if self.chance(30) else ""
            cases += [f"case {self.pick(patterns)}{guard}:", *indent(self.suite(depth))]
        if self.chance(50):
            cases += [f"case {self.pick(['_', 'c', 'other'])}:", *indent(self.suite(depth))]
        return [
            f"match {self.pick([self.expression(), f'({self.expression(1)}, {self.expression(1)})', 'box', 'd'])}:",
            *indent(cases),
        ]

    def inside(self, kind: str, depth: int, least: int = 1) -> list[str]:
        """The body of a function or class."""
        loop, self.loop = self.loop, 0
        functions, classes, iterators = list(self.functions), list(self.classes), list(self.iterators)
        if kind == "class":
            self.iterators = []
        self.kind.append(kind)
        lines = []
        if kind != "class" and self.chance(30):
            lines += (
                [self.pick(["nonlocal c", "nonlocal b", "global STATE", "nonlocal c, b"])] if len(self.kind) > 1 else []
            )
        body = self.suite(depth, least)
        if kind != "class" and self.chance(75):  # what is assigned anywhere in a function is unbound at its start
            bound = [
                name
                for name in "abc"
                if not lines or name not in lines[0].replace("nonlocal", "").replace(",", " ").split()
            ]
            body.insert(0, f"{' = '.join(bound)} = v({len(self.kind)})")
        self.kind.pop()
        self.loop, self.functions, self.classes, self.iterators = loop, functions, classes, iterators
        if lines and lines[0] == "global STATE":
            body.insert(0, f"STATE = [{self.expression(1)}]")
        return lines + body

    def def_(self, depth: int) -> list[str]:
        """A function with parameters of all kinds, sometimes decorated."""
        name = self.fresh("f")
        first = self.pick(["p=1", "p=None, /", "p=2, q=[]", f"p={self.expression(1)}"])
        rest = self.pick(["", ", *args", ", *, q=3", ", *args, z=4, **kwargs", ", **kwargs"])
        if "q" in first:
            rest = rest.replace("q=3", "z=3")
        names, self.names = self.names, [*self.names, "p"]
        body = self.inside("function", depth)
        self.names = names
        self.functions.append(name)
        head = self.pick(["", "", "@decorate"])
        result = [f"def {name}({first}{rest}):", *indent(body)]
        call = f"{name}({self.pick(['', self.expression(1)])})"
        return [
            *([head] if head else []),
            *result,
            f"note({self.pick([call, f'attempt({name})', f'attempt(lambda: {call})'])})",
        ]

    def generator(self, depth: int) -> list[str]:
        """A generator, and what is done with it."""
        name, it = self.fresh("g"), self.fresh("it")
        names, self.names = self.names, [*self.names, "p"]
        body = ["note('started')", *self.inside("generator", depth), "yield 1"]
        self.names = names
        use = self.pick([
            [f"{it} = {name}()", f"note(next({it}))", f"note(list({it}))"],
            [f"{it} = {name}(2)", f"note(next({it}, 0))"],
            [f"{it} = {name}()", f"for c in {it}:", "    tick()", *indent(self.looped(depth))],
            [f"note([*{name}()])", f"{it} = iter([])"],
            [f"note(attempt(lambda: list({name}())))", f"{it} = {name}()"],
            [f"{it} = {name}()", f"note(attempt(lambda: [next({it}), {it}.send(v(1)), {it}.send(v(2))]))"],
            [f"{it} = {name}()", "try:", f"    next({it})", f"    note({it}.throw(KeyError(1)))",
             "except StopIteration as e:", "    note(e.value)"],
        ])  # fmt: skip
        self.iterators.append(it)
        return [f"def {name}(p=0):", *indent(body), *use]

    def class_(self, depth: int) -> list[str]:
        """A class with all sorts of members."""
        name = self.fresh("K")
        base = self.pick(["Box", "Box", *self.classes])
        names, self.names = self.names, [*self.names, "self"]
        method = self.inside("function", depth)
        prop = self.inside("function", 0)
        made = self.inside("function", 0)
        self.names = names
        starts = ["super().__init__(value)", "self.value = value", f"super({name}, self).__init__(value)"]
        members = [
            *self.pick([[], [f"limit = {self.expression()}"], self.inside("class", 0)]),
            "def __init__(self, value=0):", f"    {self.pick(starts)}",
            "def method(self):", *indent(method),
            "@property", "def size(self):", *indent(prop),
            "@classmethod", "def make(cls, value):", *indent(made),
        ]  # fmt: skip
        members = [line for line in members if not line.startswith(("break", "continue"))]
        self.classes.append(name)
        return [
            f"class {name}({base}):",
            *indent(members),
            *(
                f"note(attempt(lambda: {name}({self.expression(1)}).{member}))"
                for member in ("method()", "size", "make(2)")
            ),
        ]

    def async_(self, depth: int) -> list[str]:
        """A coroutine, run to its end."""
        name = self.fresh("co")
        body = self.inside("async", depth)
        return [
            f"async def {name}():",
            *indent(body),
            f"note({self.pick([f'drive({name}())', f'attempt(lambda: drive({name}()))'])})",
        ]

    def async_blocks(self, depth: int) -> list[str]:
        """async for and async with."""
        if self.chance(50):
            return [
                f"async for {self.pick(self.names)} in Slow():",
                "    tick()",
                *indent(self.looped(depth)),
                *self.otherwise(depth),
            ]
        return [f"async with manager({self.expression()}) as {self.pick(self.names)}:", *indent(self.suite(depth))]


def source(seed: int) -> str:
    """The text of a function ``program(a, b, d, box)``."""
    grammar = Grammar(seed)
    body = ["c = 0"]
    for _ in range(grammar.random.randint(1, 5)):
        lines = grammar.statement(grammar.pick([1, 2, 2, 3]))
        if grammar.chance(95):  # many statements raise: go on after them
            lines = ["try:", *indent(lines), "except Exception as error:", "    note(repr(error))"]
        body += lines
    return "\n".join(["def program(a, b, d, box):", *indent(body)]) + "\n"
