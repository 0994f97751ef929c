"""Statements on lists, dicts and objects."""

from __future__ import annotations

from collections.abc import Callable

from assignments import Assignments
from expressions import FLOATS, TESTS
from kinds import (
    BOOL,
    FLOAT,
    INDEX,
    INT,
    TABLE,
    Many,
    Record,
    Tensor,
)
from suites import Lines


class Containers(Assignments):
    """Writes what makes, changes and reads containers."""

    def new_list(self, depth: int) -> Lines:
        """A list."""
        kind = Many(self.pick([Tensor(), Tensor(), Tensor("2"), INT]), self.choices.chance(50))
        text = self.of(kind, 1) if kind.nonempty else "[]"
        place = self.name("l")
        self.bind(place, kind)
        return [f"{place} = {text}"]

    def change_list(self, depth: int) -> Lines:
        """Append, insert, set, remove, read."""
        place = self.pick(self.scope.of(Many))
        kind = self.scope.kinds[place]
        item = lambda: self.bounded(kind.item, self.of(kind.item, 1))  # noqa: E731
        options: list[Callable[[], Lines]] = [lambda: [f"{place}.append({item()})"]] * 6
        options += [
            lambda: [f"{place}.insert({self.pick(['0', '1', '-1'])}, {item()})"],
            lambda: [f"{place} += [{item()}]"] if place in self.assignable(kind) else [f"{place}.append({item()})"],
            lambda: [f"{place}.extend([{item()}, {item()}])"],
            lambda: [f"{place}.reverse()"],
        ]
        if not kind.nonempty:
            options += [lambda: [f"{place}.clear()"]]
        least = 1 if kind.nonempty else 0
        guard = self.pick([f"if len({place}) > {least}:", *([f"if {place}:"] if not least else [])])
        name = self.name("y")
        options += [
            lambda: [guard, f"    {place}.pop({self.pick(['', '0', '-1'])})"],
            lambda: [guard, f"    del {place}[{self.pick(['0', '-1'])}]"],
            lambda: [guard, f"    {place}[{self.pick(['0', '-1'])}] = {item()}"],
        ]
        if kind.nonempty:
            options += [
                lambda: [f"{place}[{self.pick(['0', '-1', f'{self.integer(0)} % len({place})'])}] = {item()}"]
            ] * 2

            def read() -> Lines:
                text = f"{place}[{self.pick(['0', '-1', f'{self.integer(0)} % len({place})'])}]"
                self.bind(name, kind.item)
                return [f"{name} = {text}"]

            options += [read]
        if isinstance(kind.item, Tensor):

            def stacked() -> Lines:
                if kind.nonempty:
                    text = f"torch.stack({place})"
                else:
                    empty = "torch.zeros(0)" if kind.item == Tensor() else "torch.zeros(0, 2)"
                    text = f"torch.stack({place}) if {self.pick([place, f'len({place}) > 0'])} else {empty}"
                self.bind(name, Tensor("u" if kind.item == Tensor() else "u2"))
                return [f"{name} = {text}"]

            options += [stacked] * 3
        return self.pick(options)()

    def nested_list(self, depth: int) -> Lines:
        """A list of lists that grows in a loop or under a condition."""
        name, row, result = self.name("l"), self.name("e"), self.name("y")
        rows = self.scope.tensors("n u n2 u2")
        lines = [f"{name} = [[{self.of(Tensor(), 1)}], [{self.of(Tensor(), 0)}, {self.of(Tensor(), 0)}]]"]
        change = [
            f"{name}[{self.pick(['0', '1', '-1'])}].append({self.of(Tensor(), 1)})",
            f"{name}[0][-1] = {self.of(Tensor(), 1)}",
            f"{name}.append([{self.of(Tensor(), 1)}])",
            f"{name}[0], {name}[1] = {name}[1], {name}[0]",
            f"{name}[1] += {name}[0]",
        ]
        line = self.pick(change)
        if rows and self.choices.chance(40):
            lines += [f"for {row} in {self.pick(rows)}:", f"    {self.pick([line, f'{name}[0].append({row}.sum())'])}"]
        else:
            lines += [f"if {self.truth(1)}:", f"    {line}"]
        self.bind(result, Tensor())
        return [
            *lines,
            f"{result} = {self.pick([f'sum({name}[0])', f'torch.stack({name}[-1]).sum()', f'{name}[1][0]'])}",
        ]

    def comprehension(self, depth: int) -> Lines:
        """Comprehensions of all kinds."""
        e, i, name = self.name("e"), self.name("i"), self.name("y")
        rows = self.scope.tensors("n u n2 u2")
        test = f" if {e}.sum() {self.pick(TESTS)} {self.pick(FLOATS)}" if self.choices.chance(50) else ""
        options = [
            (Many(Tensor(), False), f"[{i} * {self.of(Tensor(), 0)} for {i} in range(min({self.integer(1)}, 3))]"),
            (Many(INT, False), f"[{i} + 1 for {i} in range({self.pick('123')}) if {i} != {self.integer(0)}]"),
            (INT, f"sum(1 for {i} in range({self.pick('23')}) if {i} < {self.integer(0)})"),
            (INT, f"len({{{i}: {self.of(Tensor(), 0)} for {i} in range({self.pick('23')})}})"),
        ]
        if rows:
            place = self.pick(rows)
            options += [
                (Many(Tensor(), False), f"[{e}.sum() for {e} in {place}{test}]"),
                (Many(Tensor(), False), f"[{e}.sum() * {i} for {i}, {e} in enumerate({place}){test}]"),
                (Tensor(), f"sum([{e}.sum() for {e} in {place}{test}], {self.of(Tensor(), 0)})"),
                (Tensor(), f"{self.of(Tensor(), 0)} + sum([{e}.sum() for {e} in {place}{test}])"),
                (Tensor("2"), f"torch.tensor([{self.of(Tensor(), 0)}, {self.of(Tensor(), 1)}])"),
                (INT, f"len([{e} for {e} in {place}{test}])"),
                (BOOL, f"any([bool({e}.sum() > 0) for {e} in {place}])"),
                (BOOL, f"all({e}.sum() > 0 for {e} in {place})"),
            ]
        kind, text = self.pick(options)
        self.bind(name, kind)
        return [f"{name} = {text}"]

    def new_table(self, depth: int) -> Lines:
        """A dict with fixed keys."""
        place = self.name("d")
        kinds = {key: self.any_kind() for key in self.choices.some(["a", "b", "c"], 1, 3)}
        if self.choices.chance(50):
            kinds = dict.fromkeys(kinds, Tensor())
        text = ", ".join(f'"{key}": {self.of(kind, 1)}' for key, kind in kinds.items())
        self.bind(place, TABLE)
        for key, kind in kinds.items():
            self.scope.kinds[f'{place}["{key}"]'] = INT if kind == INDEX else kind
        return [f"{place} = {{{text}}}"]

    def bring_key(self, depth: int) -> Lines:
        """A new key, or a loop over the items."""
        tables = self.scope.places(TABLE)
        if not tables:
            return self.assign(depth)
        table = self.pick(tables)
        values = {place: kind for place, kind in self.scope.kinds.items() if place.startswith(f"{table}[")}
        if values and set(values.values()) == {Tensor()} and self.choices.chance(50):
            name = self.name("y")
            self.bind(name, Tensor())
            return self.pick([
                [f"{name} = sum({table}.values())"],
                [f"{name} = torch.stack(list({table}.values())).sum()"],
                [f"{name} = torch.zeros(())", f"for e0, e1 in {table}.items():", f"    {name} = {name} + e1 * len(e0)"],
                [f'{name} = {table}.get("zz", {self.of(Tensor(), 1)})'],
            ])  # fmt: skip
        kind = self.any_kind()
        text = self.of(kind, 1)
        key = self.pick(["x", "y", "z"])
        place = f'{table}["{key}"]'
        if place in self.scope.kinds:
            return self.assign(depth)
        self.scope.kinds[place] = kind
        return [self.pick([f"{place} = {text}", f"{table}.update({key}={text})"])]

    def keys_by_path(self, depth: int) -> Lines:
        """Counts, sums or stores under keys that the path taken decides, and reads them."""
        table, result = self.name("d"), self.name("y")
        key = lambda: f'("p" if {self.truth(1)} else "q")'  # noqa: E731
        number = self.choices.chance(50)
        kind = INT if number else Tensor()
        value = lambda: self.integer(0) if number else self.of(Tensor(), 0)  # noqa: E731
        zero = "0" if number else "torch.zeros(())"
        made = self.pick([f"collections.defaultdict(lambda: {zero})", f'{{"p": {value()}, "q": {value()}}}', "{}"])
        change = lambda: f"{table}[{key()}] = {value()}"  # noqa: E731
        if made != "{}":
            which = self.name("k")
            change = lambda: (  # noqa: E731
                f"{table}[{key()}] += {value()}"
                if number
                else f"{which} = {key()}; {table}[{which}] = {table}[{which}] + {value()}"
            )
        lines = [f"{table} = {made}", change()]
        lines += self.pick([
            [change()],
            [f"if {self.truth(1)}:", f"    {change()}"],
            [f"for {self.name('i')} in range({self.pick(['2', '3'])}):", f"    {change()}"],
            [f"{table}.setdefault({key()}, {value()})"],
            [],
        ])  # fmt: skip
        reads = [
            f'{table}.get("p", {value()}) - {table}.get("q", {zero})',
            f"{table}.get({key()}, {value()})",
            f"{table}.pop({key()}, {value()}) + {table}.get({key()}, {value()})",
            f'({zero} if "q" in {table} else {value()}) + {zero}',
        ]
        read = self.pick(reads if made == "{}" else [*reads, f'{table}["p"] + {table}["q"]'])
        self.bind(result, kind)
        return [*lines, f"{result} = {read}"]

    def caught_quotient(self, depth: int) -> Lines:
        """A quotient of numbers, in a ``try`` that may be there for a division by zero."""
        result = self.name("y")
        kind = self.pick(["ZeroDivisionError", "KeyError", "(ArithmeticError, ValueError)"])
        self.bind(result, FLOAT)
        quotient = f"{self.integer(0)} / {self.integer(1)}"
        return ["try:", f"    {result} = {quotient}", f"except {kind}:", f"    {result} = {self.pick(FLOATS)}"]

    def new_record(self, depth: int) -> Lines:
        """An object of a generated class, or a second name for one."""
        name = self.pick(list(self.shared.records))
        known = self.scope.places(Record(name))
        place = self.name("r")
        if known and self.choices.chance(20):
            lines = [f"{place} = {self.pick(known)}"]
        else:
            fields = self.shared.records[name]
            values = ", ".join(f"{key}={self.of(kind, 1)}" for key, kind in fields.items())
            same = [p for p in self.assignable(Record(name)) if p not in self.scope.frozen]
            if same and self.choices.chance(30):
                place = self.pick(same)
            lines = [f"{place} = {name}({values})"]
        self.hold_record(place, name)
        return lines

    def hold_record(self, place: str, name: str) -> None:
        """An object is in scope, with its fields and methods."""
        self.bind(place, Record(name))
        for key, kind in self.shared.records[name].items():
            self.scope.kinds[f"{place}.{key}"] = kind
        for key, kind in self.shared.properties.get(name, {}).items():
            self.scope.kinds[f"{place}.{key}"] = kind
            self.scope.fixed.add(f"{place}.{key}")
        for method, function in self.shared.methods.get(name, {}).items():
            self.scope.kinds[f"{place}.{method}"] = function
