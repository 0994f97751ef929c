"""Control flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from expressions import TESTS
from kinds import (
    BOOL,
    INDEX,
    INT,
    LOOSE,
    ROW,
    Function,
    Many,
    Record,
    Tensor,
)
from suites import Lines, Suites, indented


class Control(Suites):
    """Writes branches, loops, jumps and what else has blocks."""

    def jump(self, depth: int) -> Lines:
        """break, continue or return, mostly under a condition."""
        options = ["break", "break", "continue"] if self.loops else []
        if self.returns is not None and self.possible(self.returns):
            options += ["return"]
        if not options:
            return self.assign(depth)
        text = self.pick(options)
        if text == "return":
            text = f"return {self.of(self.returns, 1)}"
        if self.choices.chance(85) or not self.depth:
            return [f"if {self.truth(2)}:", f"    {text}"]
        self.dead = True
        return [text]

    def branch(self, depth: int) -> Lines:
        """if, elif, else."""
        self.depth += 1
        count = self.pick([1, 2, 2, 2, 3])
        heads = [f"if {self.truth(2)}:", *(f"elif {self.truth(1)}:" for _ in range(count - 2)), "else:"]
        writers = [lambda: self.suite(depth - 1)] * max(count, 1)
        passed = count == 1 or (count == 3 and self.choices.chance(30))
        if count == 3 and passed:
            heads = [heads[0], f"elif {self.truth(1)}:", f"elif {self.truth(1)}:"]
        texts = self.arms(*writers, passed=passed)
        self.depth -= 1
        return [line for head, text in zip(heads, texts, strict=False) for line in [head, *indented(text)]]

    def loosen(self) -> Lines:
        """Before a loop: let some tensors change their size in it."""
        lines = []
        for place in self.choices.some(self.assignable(*[Tensor(shape) for shape in ("n", "n2", "u", "u2")]), 0, 1):
            if place not in self.scope.frozen:
                self.scope.kinds[place] = Tensor(LOOSE[self.scope.kinds[place].shape])
        if self.anchor() is not None and self.choices.chance(15):
            place = self.name("w")
            lines = [f"{place} = {self.tensor(Tensor('u'), 1)}"]
            self.bind(place, Tensor("u"))
        return lines

    def otherwise(self, lines: Lines, depth: int) -> Lines:
        """Perhaps an else clause of a loop."""
        if not self.choices.chance(20):
            return lines
        self.depth += 1
        (text,) = self.arms(lambda: self.suite(depth - 1, 2), passed=True)
        self.depth -= 1
        return [*lines, "else:", *indented(text)]

    def while_(self, depth: int) -> Lines:
        """A while that ends after a few trips."""
        lines = self.loosen()
        self.depth += 1
        kind = self.pick(["int", "int", "tensor", "true", "given", "shrink" if self.anchor() else "tensor"])
        limit = self.pick("2345")
        if kind in ("int", "true"):
            count = self.name("c")
            lines += [f"{count} = 0"]
            self.scope.kinds[count] = INT
            self.scope.fixed.add(count)
            first = [f"{count} += 1"]
            test = self.pick(
                [
                    f"{self.truth(1)} and {count} < {limit}",
                    f"{count} < {limit} and {self.truth(1)}",
                    f"{count} < {limit}",
                ]
            )
            if " or " in test:
                test = f"{count} < {limit} and ({self.truth(0)})"
            if kind == "true":
                test = "True"
                first += [f"if {count} > {limit} or {self.truth(1)}:", "    break"]
        elif kind == "shrink":
            count = self.name("s")
            lines += [f"{count} = {self.tensor(Tensor('u'), 1)}[:5]"]
            self.scope.kinds[count] = Tensor("u")
            self.scope.fixed.add(count)
            test = self.pick([f"{count}.shape[0] > {self.pick('01')}", f"len({count})", f"{count}.numel() != 0"])
            first = [f"{count} = {count}[{self.pick(['1:', ':-1'])}]"]
        else:
            count = self.name("c")
            start = (
                f"torch.tensor({limit})" if kind == "tensor" else f"({self.tensor(Tensor('', 'i64'), 1)}).clamp(0, 4)"
            )
            lines += [f"{count} = {start}"]
            self.scope.kinds[count] = Tensor("", "i64")
            self.scope.fixed.add(count)
            test = self.pick([f"{count} > 0", f"{count} > 0 and {self.truth(0)}", f"({count} > 0).item()"])
            first = [f"{count} = {count} - 1"]
        body = self.body(depth, lambda: first)
        self.depth -= 1
        return self.otherwise([*lines, f"while {test}:", *indented(body)], depth)

    def for_(self, depth: int) -> Lines:
        """A for over one of many things."""
        lines = self.loosen()
        self.depth += 1
        head, bound, after = self.iteration()
        changing = self.choices.chance(20)

        def bind() -> Lines:
            for name, kind in bound.items():
                self.bind(name, kind)
                if kind == INDEX and not changing:
                    self.scope.kinds[name] = INDEX
                    self.scope.fixed.add(name)
            return []

        body = self.body(depth, bind)
        self.depth -= 1
        lines = self.otherwise([*lines, f"for {head}:", *indented(body)], depth)
        if after and not changing:
            for name, kind in bound.items():
                if kind != INDEX and not isinstance(kind, Function):
                    self.bind(name, kind)
        return lines

    def iteration(self) -> tuple[str, dict[str, Any], bool]:
        """What follows ``for``, the kinds of the names, and whether they have a value after the loop."""
        i, e, o = self.name("i"), self.name("e"), self.name("o")
        ints = lambda: self.integer(1)  # noqa: E731
        options: list[Callable[[], tuple[str, dict[str, Any], bool]]] = [
            lambda: (f"{i} in range({self.pick('123')})", {i: INT}, True),
            lambda: (f"{i} in range(min({ints()}, 4))", {i: INT}, False),
            lambda: (f"{i} in range({self.pick('01')}, {self.pick('45')}, {self.pick('12')})", {i: INT}, True),
            lambda: (f"{i} in reversed(range(min({ints()}, 3)))", {i: INT}, False),
            lambda: (f"{i} in range(({self.tensor(Tensor('', 'i64'), 1)}).clamp(max=4))", {i: INT}, False),
            lambda: (f"{i} in range(min(int({self.tensor(Tensor(), 1)}), 3))", {i: INT}, False),
            lambda: (f"{e} in ({self.tensor(Tensor(), 1)}, {self.tensor(Tensor(), 1)})", {e: Tensor()}, True),
            lambda: (f"{i} in (1, 2, 0)", {i: INT}, True),
            lambda: (
                f"{i}, {e} in enumerate([{self.tensor(Tensor(), 1)}, {self.tensor(Tensor(), 0)}])",
                {i: INT, e: Tensor()},
                True,
            ),
        ]
        sized = self.scope.tensors("n n2")
        if sized:
            m = self.pick(sized)
            options += [
                lambda: (
                    f"{i} in range({self.pick([f'{m}.shape[0]', f'len({m})', f'{m}.size(0)'])})",
                    {i: INDEX},
                    False,
                ),
                lambda: (f"{i} in reversed(range({m}.shape[0]))", {i: INDEX}, False),
            ] * 2
        rows = self.scope.tensors("n n2 u u2")
        if rows:
            m = self.pick(rows)
            row = Tensor(ROW[self.scope.kinds[m].shape])
            index = INDEX if self.scope.kinds[m].shape in ("n", "n2") else INT
            options += [
                lambda: (f"{e} in {m}", {e: row}, False),
                lambda: (f"{e} in {m}", {e: row}, False),
                lambda: (f"{i}, {e} in enumerate({m})", {i: index, e: row}, False),
                lambda: (f"{i}, {e} in enumerate({m}, {self.pick(['1', ints()])})", {i: INT, e: row}, False),
                lambda: (f"{i}, {e} in zip(range({self.pick('24')}), {m})", {i: INT, e: row}, False),
                lambda: (f"{e}, {o} in zip({m}, {m}.flip(0))", {e: row, o: row}, False),
                lambda: (f"{e} in reversed({m})", {e: row}, False),
                lambda: (f"{i}, ({e}, {o}) in enumerate(zip({m}, {m}[1:]))", {i: INT, e: row, o: row}, False),
            ]
        lists = self.scope.of(Many)
        if lists:
            items = self.pick(lists)
            item = self.scope.kinds[items].item
            options += [
                lambda: (f"{e} in list({items})", {e: item}, False),
                lambda: (f"{i}, {e} in enumerate(list({items}))", {i: INT, e: item}, False),
                lambda: (f"{e} in reversed(list({items}))", {e: item}, False),
            ]
        callables = [place for place in self.scope.kinds if place == "self.layers"]
        if callables:
            layer = Function((Tensor("2"),), Tensor("2"))
            options += [lambda: (f"{o} in self.layers", {o: layer}, False)] * 3
        return self.pick(options)()

    def match_(self, depth: int) -> Lines:
        """match on ints, tuples and objects."""
        self.depth += 1
        records = self.scope.of(Record)
        if records and self.choices.chance(30):
            place = self.pick(records)
            name = self.scope.kinds[place].name
            fields = [key for key, kind in self.shared.records[name].items() if kind in (INT, BOOL)]
            subject = place
            key = f"{fields[0]}={self.pick('01')}" if fields else ""
            heads = [f"case {name}({key}):", f"case _ if {self.truth(1)}:", "case _:"]
        elif self.choices.chance(30):
            subject = f"({self.integer(1)}, {self.integer(1)} % 2)"
            first = self.name("k")
            heads = ["case (0, _) | (_, 0):", f"case ({first}, 1) if {first} > 1:", "case _:"]
        else:
            subject = self.pick([f"{self.integer(1)} % 3", self.integer(0), self.tensor(Tensor("", "i64"), 0)])
            heads = [f"case {self.pick(['0', '1', '1 | 2', '-1'])}:", f"case {self.pick('23')}:", "case _:"]
        if self.choices.chance(30):
            heads = heads[:-1]
        texts = self.arms(*[lambda: self.suite(depth - 1, 2)] * len(heads), passed=heads[-1] != "case _:")
        self.depth -= 1
        cases = [line for head, text in zip(heads, texts, strict=True) for line in [head, *indented(text)]]
        return [f"match {subject}:", *indented(cases)]

    def try_(self, depth: int) -> Lines:
        """try with finally, or with an except that is not reached."""
        self.depth += 1
        entered = self.scope.copy()
        (body,) = self.arms(lambda: self.suite(depth - 1))
        lines = ["try:", *indented(body)]
        dead = self.dead
        if self.choices.chance(60):
            inner = self.scope
            loops, returns, self.loops, self.returns = self.loops, self.returns, 0, None
            self.scope, self.dead = entered.copy(), False
            self.scope.frozen |= set(entered.kinds)
            for place in list(self.scope.kinds):
                if place in self.scope.kinds and inner.kinds.get(place) != self.scope.kinds[place]:
                    self.scope.forget(place)
            text = self.suite(0, 2)
            self.loops, self.returns = loops, returns
            self.scope = inner
            lines += ["finally:", *indented(text)]
        else:
            lines += [
                f"except {self.pick(['ValueError', '(KeyError, IndexError)', 'ZeroDivisionError as error'])}:",
                "    pass",
            ]
            if self.choices.chance(50) and not dead:
                (text,) = self.arms(lambda: self.suite(depth - 1, 2))
                lines += ["else:", *indented(text)]
                dead = self.dead
            else:
                self.scope.join([self.scope.copy(), entered])
        self.dead = dead
        self.depth -= 1
        return lines

    def with_(self, depth: int) -> Lines:
        """with: torch's, and the user's own managers."""
        self.depth += 1
        lists = [p for p in self.scope.of(Many) if self.scope.kinds[p].item == Tensor()]
        options = ["torch.no_grad()"]
        name = self.name("y")
        if lists:
            items, value = self.pick(lists), self.tensor(Tensor(), 1)
            options += [f"noted({items}, {value}) as {name}", f"Entered({items}, {value}) as {name}"] * 2
        head = self.pick(options)
        if " as " in head:
            self.bind(name, Tensor())
        (text,) = self.arms(lambda: self.suite(depth - 1))
        self.depth -= 1
        return [f"with {head}:", *indented(text)]

    def walrus(self, depth: int) -> Lines:
        """A name bound in a test."""
        kind = self.pick([Tensor(), INT, Tensor()])
        name = self.name("y")
        text = f"({name} := {self.of(kind, 1)}) {self.pick(TESTS)} {self.pick(['0', '1'])}"
        if self.choices.chance(40):
            text += f" {self.pick(['and', 'or'])} {self.truth(1)}"
        self.bind(name, kind)
        self.depth += 1
        texts = self.arms(*[lambda: self.suite(depth - 1, 2)] * 2)
        self.depth -= 1
        return [f"if {text}:", *indented(texts[0]), "else:", *indented(texts[1])]
