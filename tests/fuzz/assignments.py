"""Statements that assign: names, several of them, parts of tensors, in place."""

from __future__ import annotations

from collections.abc import Callable

from expressions import FLOATS, TESTS
from kinds import (
    FLOAT,
    INDEX,
    INT,
    NUMBER,
    ROW,
    TABLE,
    Function,
    Maybe,
    Record,
    Tensor,
    Together,
)
from suites import Lines, Suites


class Assignments(Suites):
    """Writes assignments."""

    def assign(self, depth: int) -> Lines:
        """``place = expression``, of a place's own kind or of another."""
        kind = self.any_kind()
        alias = self.scope.places(kind)
        text = self.pick(alias) if alias and self.choices.chance(8) else self.of(kind, 2)
        if self.loops:
            text = self.bounded(kind, text)
        place = self.target(kind)
        return [f"{place} = {text}"]

    def augment(self, depth: int) -> Lines:
        """``place += expression``: in place for tensors and lists."""
        places = self.assignable(INT, FLOAT, NUMBER) + [
            p
            for p in self.scope.of(Tensor)
            if self.scope.kinds[p].dtype in ("f32", "i64") and p in self.assignable(*self.scope.kinds.values())
        ]
        if not places:
            return self.assign(depth)
        place = self.pick(places)
        kind = self.scope.kinds[place]
        if kind in (INT, NUMBER):
            return [f"{place} {self.pick(['+= 1', '-= 1', '+= 2', '*= -1', '//= 2', '%= 5'])}"]
        if kind == FLOAT:
            return [f"{place} {self.pick(['+= 0.5', '-= 1', '*= 0.5', '/= 2'])}"]
        if kind.dtype == "i64":
            return [f"{place} {self.pick(['+= 1', '-= 1', '//= 2', '%= 3', '*= -1'])}"]
        shapes = {"": [""], "2": ["2", ""], "n": ["n", ""], "n2": ["n2", "2", ""], "u": [""], "u2": ["2", ""]}[
            kind.shape
        ]
        options = [lambda: f"fit({self.tensor(Tensor(self.pick(shapes)), 1)})"] * 2 + [lambda: self.python_number(0)]
        return [f"{place} {self.pick('+-')}= {self.one(options)}"]

    def in_place(self, depth: int) -> Lines:
        """A method that changes a tensor, or an assignment to a part of it."""
        places = [p for p in self.scope.tensors("- 2 n n2 u u2") if not p.endswith((".scale", ".weight"))]
        if not places:
            return self.assign(depth)
        place = self.pick(places)
        shape = self.scope.kinds[place].shape
        small = self.pick(["fill_(0.5)", "zero_()", "neg_()", "mul_(0.5)", "clamp_(-2, 2)", "add_(1)", "sub_(0.5)"])
        options = [lambda: f"{place}.{small}", lambda: f"{place}.clamp_(min={self.pick(FLOATS)})"]
        if shape not in ("u", "u2"):
            options += [lambda: f"{place}.copy_({self.tensor(Tensor(shape), 1)})"]
        if shape in ROW:
            row = lambda: self.tensor(Tensor(ROW[shape]), 1)  # noqa: E731
            where = ["0", "-1", *self.scope.places(INDEX)] if shape in ("n", "n2") else ["0", "-1"]
            where += self.scope.places(INDEX) * 2 if shape in ("n", "n2") else []
            options += [lambda: f"{place}[{self.pick(where)}] = {self.pick([row(), self.pick(FLOATS)])}"] * 3
            options += [
                lambda: f"{place}[{self.pick(where)}] {self.pick('+-')}= {self.pick([f'fit({row()})', '1'])}"
            ] * 2
            options += [
                lambda: f"{place}[{place} {self.pick(TESTS)} {self.pick(FLOATS)}] {self.pick(['=', '+=', '*='])} 0.5"
            ]
            options += [
                lambda: f"{place}[{self.pick(['1:', ':-1', ':1'])}] {self.pick(['= 0', '+= 1', '*= -1', '= 1.5'])}"
            ]
            options += [
                lambda: f"{place}[{self.pick(['1:', ':-1', ':1'])}].{self.pick(['zero_()', 'add_(1)', 'neg_()'])}"
            ]
        if shape in ("n2", "u2"):
            options += [lambda: f"{place}[:, {self.pick('01')}] {self.pick(['= 1', '+= 0.5', '*= -1'])}"] * 2
        if shape == "2":
            options += [
                lambda: f"{place}[{self.pick(['0', '-1', f'{self.integer(0)} % 2'])}] = {self.tensor(Tensor(), 1)}"
            ] * 2
        lines = [self.one(options)]
        if shape in ("n", "n2", "2") and self.choices.chance(20):
            view = self.name("v")
            lines.insert(0, f"{view} = {place}[{'0' if shape == '2' else self.pick(['0', '-1'])}]")
            self.scope.kinds[view] = Tensor(ROW.get(shape, ""))
        return lines

    def swap(self, depth: int) -> Lines:
        """``a, b = b, a``."""
        kinds = [k for k in self.scope.kinds.values() if len(self.assignable(k)) > 1 and k not in (TABLE, INDEX)]
        kinds = [k for k in kinds if not isinstance(k, (Record, Function))]
        if not kinds:
            return self.assign(depth)
        kind = self.pick(kinds)
        left, right = self.choices.some(self.assignable(kind), 2, 2)
        return [f"{left}, {right} = {right}, {self.pick([left, self.of(kind, 1)])}"]

    def unpack(self, depth: int) -> Lines:
        """Assignments of several names."""
        options: list[Callable[[], Lines]] = []
        pairs = self.scope.tensors("2")
        if pairs:
            options.append(lambda: self.bound_all([Tensor(), Tensor()], f"{{}}, {{}} = {self.pick(pairs)}"))
        rows = self.scope.tensors("n2 u2")
        if rows:
            options.append(lambda: self.bound_all([INT, INT], f"{{}}, {{}} = {self.pick(rows)}.shape"))
        tuples = self.scope.of(Together)
        if tuples:
            place = self.pick(tuples)
            items = list(self.scope.kinds[place].items)
            options.append(lambda: self.bound_all(items, f"{', '.join('{}' for _ in items)} = {place}"))
        kind = self.any_kind()
        options.append(lambda: self.bound_all([kind, kind], f"{{}} = {{}} = {self.of(kind, 1)}"))
        first, second = self.any_kind(), self.any_kind()
        options.append(
            lambda: self.bound_all([first, second], f"{{}}, {{}} = {self.of(first, 1)}, {self.of(second, 1)}")
        )
        return self.pick(options)()

    def tuple_of(self, depth: int) -> Lines:
        """A tuple, whose items may differ in kind."""
        kinds = tuple(self.any_kind() for _ in range(self.choices.number(1, 2)))
        place = self.name("t")
        text = self.of(Together(kinds), 1)
        self.bind(place, Together(kinds))
        return [f"{place} = {text}"]

    def select(self, depth: int) -> Lines:
        """A part whose size only the values tell, and a look at that size."""
        found = self.scope.tensors("n u")
        if not found:
            return self.assign(depth)
        place = self.name("w")
        text = f"{place} = {self.selected(1)}"
        self.bind(place, Tensor("u"))
        return [text]

    def mixed(self, depth: int) -> Lines:
        """A variable whose dtype, or kind of number, depends on the path."""
        shape = self.pick(["", "2", "n"]) if self.anchor() else self.pick(["", "2"])
        left, right = self.choices.pick(
            [("f32", "i64"), ("i64", "f32"), ("f32", "f64"), ("bool", "f32"), ("bool", "i64")]
        )
        name = self.name("y")
        if self.choices.chance(35):
            lines = [
                f"if {self.truth(1)}:",
                f"    {name} = {self.integer(1)}",
                "else:",
                f"    {name} = {self.floating(1)}",
            ]
            self.bind(name, NUMBER)
            return lines
        lines = [f"if {self.truth(1)}:", f"    {name} = {self.of(Tensor(shape, left), 1)}"]
        lines += ["else:", f"    {name} = {self.of(Tensor(shape, right), 1)}"]
        self.bind(name, Tensor(shape, "any"))
        return lines

    def sized(self, depth: int) -> Lines:
        """A selection, and a branch on how much there is of it."""
        found = self.scope.tensors("n u")
        if not found:
            return self.assign(depth)
        place, name = self.name("w"), self.name("y")
        text = self.selected(1)
        self.bind(place, Tensor("u"))
        other = self.of(Tensor(), 1)
        self.bind(name, Tensor())
        test = self.pick(
            [f"{place}.numel() == 0", f"len({place}) < 1", f"not {place}.shape[0]", f"{place}.size(0) == 0"]
        )
        value = self.pick([f"{place}.max()", f"{place}[0]", f"{place}.sum()", f"{place}[-1] * {place}.numel()"])
        return [f"{place} = {text}", f"if {test}:", f"    {name} = {other}", "else:", f"    {name} = {value}"]

    def maybe(self, depth: int) -> Lines:
        """None or a value: set somewhere, looked at later."""
        known = [p for p in self.scope.of(Maybe) if p in self.assignable(self.scope.kinds[p])]
        if not known:
            item = self.pick([Tensor(), Tensor("2"), INT, Tensor("n")]) if self.anchor() else Tensor()
            place = self.name("h")
            self.bind(place, Maybe(item))
            return [f"{place} = None"]
        place = self.pick(known)
        item = self.scope.kinds[place].item
        if not self.possible(item):
            return self.assign(depth)
        more = f"{place} + {self.of(item, 0)}" if item != INT else f"({place} + 1) % 5"
        return self.pick([
            [f"if {place} is None:", f"    {place} = {self.of(item, 1)}", "else:", f"    {place} = {more}"],
            [f"if {self.truth(1)}:", f"    {place} = {self.of(item, 1)}"],
            [f"if {place} is not None and {self.truth(1)}:", f"    {place} = {self.pick(['None', more])}"],
            [f"{place} = {self.of(item, 1)} if {place} is None else {place}"],
        ])  # fmt: skip

    def delete(self, depth: int) -> Lines:
        """``del name``."""
        free = [
            p for p in self.assignable(*self.scope.kinds.values()) if p.isidentifier() and p not in self.scope.frozen
        ]
        free = [p for p in free if self.scope.kinds[p] != TABLE and p[0] in "ykfbtw"]
        if not free:
            return self.look(depth)
        place = self.pick(free)
        self.scope.forget(place)
        return [f"del {place}"]

    def look(self, depth: int) -> Lines:
        """Statements without an effect on values."""
        return [self.pick([
            f"print({self.tensor(Tensor(), 0)})",
            f"assert torch.isfinite({self.whole(0)}).all()",
            f"assert {self.integer(1)} < 1000, 'too large'",
            "pass",
        ])]  # fmt: skip
