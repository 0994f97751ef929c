"""Typed expressions of all kinds, as source text."""

from __future__ import annotations

from typing import Any

from choices import Choices
from kinds import (
    BOOL,
    FLOAT,
    INDEX,
    INT,
    NUMBER,
    Function,
    Many,
    Maybe,
    Record,
    Tensor,
    Together,
)
from tensors import FLOATS, TESTS, Options, Tensors


class Expressions(Tensors):
    """Writes expressions of a wanted kind from what is in scope."""

    def of(self, kind: Any, depth: int) -> str:
        """An expression of the kind."""
        calls = [place for place in self.callable() if self.scope.kinds[place].gives == kind]
        if calls and depth > 0 and self.choices.chance(25):
            return self.call(self.pick(calls), depth - 1)
        match kind:
            case Tensor():
                return self.tensor(kind, depth)
            case "int":
                return self.integer(depth)
            case "float":
                return self.floating(depth)
            case "number":
                return self.one([lambda: self.integer(depth), lambda: self.floating(depth)])
            case "bool":
                return self.boolean(depth)
            case Many(item=item, nonempty=nonempty):
                return self.items(item, nonempty, depth)
            case Maybe(item=item):
                return self.one([lambda: "None", lambda: self.of(item, depth)])
            case Together(items=items):
                found = self.scope.places(kind)
                if found and self.choices.chance(40):
                    return self.pick(found)
                return f"({', '.join(self.of(item, depth) for item in items)},)"
            case _:
                return self.pick(self.scope.places(kind))

    def callable(self) -> list[str]:
        """The functions for which there are arguments."""
        return [p for p in self.scope.of(Function) if all(map(self.possible, self.scope.kinds[p].takes))]

    def call(self, place: str, depth: int) -> str:
        """A call of a function in scope; some arguments by keyword, some in a tuple or dict."""
        function = self.scope.kinds[place]
        arguments = [self.of(kind, depth) for kind in function.takes]
        named = self.choices.chance(25)
        for index, name in enumerate(function.names):
            if name.startswith("*") or (named and index == len(arguments) - 1):
                arguments[index] = f"{name.lstrip('*')}={arguments[index]}"
        plain = [text for index, text in enumerate(arguments) if not self.is_named(function.names, index)]
        if plain == arguments and arguments and not named and self.choices.chance(8):
            return f"{place}(*({', '.join(arguments)},))"
        if function.names and named and self.choices.chance(30):
            pairs = ", ".join(
                f'"{n.lstrip("*")}": {a.split("=", 1)[1]}'
                for n, a in zip(function.names[-1:], arguments[-1:], strict=True)
            )
            arguments[-1] = f"**{{{pairs}}}"
        return f"{place}({', '.join(arguments)})"

    @staticmethod
    def is_named(names: tuple[str, ...], index: int) -> bool:
        """Whether an argument must be named."""
        return index < len(names) and names[index].startswith("*")

    def items(self, item: Any, nonempty: bool, depth: int) -> str:
        """A list."""
        least = 1 if nonempty else 0
        options: Options = [lambda: self.display(item, least, depth)] * 3
        rows = self.scope.tensors("n u" if item == Tensor() else "n2 u2") if isinstance(item, Tensor) else []
        if not nonempty and rows and item in (Tensor(), Tensor("2")):
            row = self.name()
            options.append(lambda: f"[{row} for {row} in {self.pick(rows)}]")
            options.append(lambda: f"[{row} for {row} in {self.pick(rows)} if {row}.sum() > {self.pick(FLOATS)}]")
            options.append(lambda: f"[{row} * {self.of(INT, 0)} for {row} in {self.pick(rows)}]")
        lists = self.scope.places(Many(item, nonempty), Many(item, True))
        if lists:
            options.append(lambda: f"list({self.pick(lists)})")
            options.append(lambda: f"{self.pick(lists)} + {self.display(item, 0, depth)}")
        return self.one(options)

    def display(self, item: Any, least: int, depth: int) -> str:
        """A list display."""
        return f"[{', '.join(self.of(item, depth) for _ in range(self.choices.number(least, 2)))}]"

    def size(self) -> str:
        """A small int that is not negative."""
        ints = self.scope.places(INT)
        options: Options = [lambda: self.pick("123")]
        options += [lambda: f"abs({self.pick(ints)}) % 4"] * (3 if ints else 0)
        options += [lambda: self.pick(self.scope.places(INDEX))] * bool(self.scope.places(INDEX))
        return self.one(options)

    def python_number(self, depth: int) -> str:
        """A Python int or float."""
        weak = self.scope.places(NUMBER)
        if weak and self.choices.chance(40):
            return self.pick(weak)
        return self.one([lambda: self.integer(depth), lambda: self.floating(depth), lambda: self.pick(FLOATS)])

    def integer(self, depth: int) -> str:
        """A Python int, in a trace perhaps a data-dependent one."""
        leaves = self.scope.places(INT, INDEX)
        if depth <= 0 or self.choices.chance(35):
            return self.pick(leaves) if leaves and self.choices.chance(75) else self.pick(["0", "1", "2", "3", "-1"])
        depth -= 1
        inner = lambda: self.integer(depth)  # noqa: E731
        options: Options = [
            lambda: f"({inner()} {self.pick('+-')} {inner()})",
            lambda: f"({inner()} {self.pick(['+ 1', '- 1', '* 2', '// 2', '% 3', '// -2', '% -3'])})",
            lambda: f"{self.pick(['min', 'max'])}({inner()}, {inner()})",
            lambda: f"({inner()} if {self.truth(depth)} else {inner()})",
            lambda: f"abs({inner()})",
            lambda: f"int({self.tensor(Tensor(), depth)})",
            lambda: f"{self.tensor(Tensor('', 'i64'), depth)}.item()",
            lambda: f"int({self.boolean(depth)})",
            lambda: f"({inner()} {self.pick(['and', 'or'])} {inner()})",
            lambda: f"int({self.floating(depth)})",
            lambda: f"round({self.floating(depth)})",
            lambda: f"bool({self.truth(depth)}) + {inner()}",
            lambda: f"({self.boolean(depth)} {self.pick(['+', '*', '-'])} {inner()})",
            lambda: f"({inner()} {self.pick(['& 1', '& -2', '& 5', '>> 1', '<< 1', '^ 1', '| 2'])})",
            lambda: f"(~{inner()})",
            lambda: f"int({inner()} * {self.pick(['0.29', '0.7', '-1.1', '0.1 // 0.3', '0.1 % -0.3'])})",
        ]
        sized = self.scope.tensors("n n2 u u2")
        if sized:
            size = ["{}.shape[0]", "len({})", "{}.numel()", "{}.size(0)"]
            options += [lambda: self.pick(size).format(self.pick(sized))] * 3
        lists = self.scope.of(Many)
        if lists:
            options += [lambda: f"len({self.pick(lists)})"] * 2
        return self.one(options)

    def floating(self, depth: int) -> str:
        """A Python float."""
        leaves = self.scope.places(FLOAT)
        if depth <= 0 or self.choices.chance(35):
            return self.pick(leaves) if leaves and self.choices.chance(75) else self.pick(FLOATS)
        depth -= 1
        return self.one([
            lambda: f"({self.floating(depth)} {self.pick('+-')} {self.python_number(depth)})",
            lambda: f"({self.floating(depth)} * {self.pick(['0.5', '-1', '2'])})",
            lambda: f"({self.integer(depth)} / {self.pick(['2', '4', '-2'])})",
            lambda: f"({self.python_number(depth)} {self.pick(['// 0.75', '% 1.5', '% -2.5'])})",
            lambda: f"float({self.integer(depth)})",
            lambda: f"{self.tensor(Tensor(), depth)}.item()",
            lambda: f"float({self.tensor(Tensor(), depth)})",
            lambda: f"{self.pick(['min', 'max'])}({self.floating(depth)}, {self.floating(depth)})",
            lambda: f"({self.floating(depth)} if {self.truth(depth)} else {self.floating(depth)})",
        ])  # fmt: skip

    def boolean(self, depth: int) -> str:
        """A Python bool."""
        leaves = self.scope.places(BOOL)
        if depth <= 0 or self.choices.chance(35):
            return self.pick(leaves) if leaves and self.choices.chance(75) else self.pick(["True", "False"])
        depth -= 1
        return self.one([
            lambda: f"({self.integer(depth)} {self.pick(TESTS)} {self.integer(depth)})",
            lambda: f"bool({self.truth(depth)})",
            lambda: f"(not {self.truth(depth)})",
            lambda: f"({self.floating(depth)} < {self.floating(depth)})",
            lambda: f"({self.integer(depth)} * 0.1 {self.pick(TESTS)} {self.pick(['0.3', '0.7', '-0.2'])})",
            lambda: f"{self.tensor(Tensor('', 'bool'), depth)}.item()",
            lambda: f"({self.boolean(depth)} {self.pick(['and', 'or'])} {self.boolean(depth)})",
            lambda: f"({self.boolean(depth)} {self.pick(['&', '|', '^', '==', '!='])} {self.boolean(depth)})",
            lambda: f"({self.boolean(depth)} {self.pick(['== 1', '!= 0', 'is True', 'is False', '> 0', 'in (0, 2)'])})",
        ])  # fmt: skip

    def truth(self, depth: int) -> str:
        """A condition: mostly on tensors."""
        vectors = self.scope.tensors("n u")
        scalar = lambda: self.tensor(Tensor(), depth - 1)  # noqa: E731
        options: Options = [lambda: f"{scalar()} {self.pick(TESTS)} {self.pick(FLOATS)}"] * 3
        options += [lambda: f"{self.whole(0)}.sum() {self.pick(TESTS)} {self.python_number(0)}"] * 3
        options += [
            lambda: f"({self.whole(0)} {self.pick(TESTS)} {self.pick(FLOATS)}).{self.pick(['any', 'all'])}()"
        ] * 2
        options += [lambda: f"{self.integer(depth - 1)} {self.pick(TESTS)} {self.pick('0123')}"] * 2
        options += [lambda: self.tensor(Tensor("", "bool"), max(depth - 1, 0)), lambda: self.boolean(depth - 1)]
        if depth > 0:
            options += [
                lambda: f"({self.truth(depth - 1)} {self.pick(['and', 'or'])} {self.truth(depth - 1)})",
                lambda: f"({self.truth(depth - 1)} {self.pick(['and', 'or'])} {self.truth(depth - 1)})",
                lambda: f"not {self.truth(depth - 1) if self.choices.chance(50) else scalar()}",
                lambda: f"({self.pick(FLOATS)} < {scalar()} <= {scalar()})",
                lambda: f"({self.pick('01')} <= {self.integer(depth - 1)} < {self.tensor(Tensor('', 'i64'), 0)})",
                lambda: f"{scalar()} < {scalar()}",
                lambda: f"{self.integer(depth - 1)} in ({self.pick('012')}, {self.pick('345')})",
                lambda: self.tensor(Tensor("", "i64"), 1),
            ]
        sized = self.scope.tensors("n n2 u u2", "f32 i64")
        if sized:
            options += [
                lambda: f"{self.pick(sized)}.shape[0] {self.pick(TESTS)} {self.pick('0123')}",
                lambda: f"{self.pick(sized)}.numel() {self.pick(['== 0', '> 2', '!= 1'])}",
            ]
        if vectors:
            v = self.pick(vectors)
            options += [lambda: f"{self.pick(['any', 'all'])}({v} {self.pick(TESTS)} {self.pick(FLOATS)})"]
            options += [lambda: f"sum({v}) > {self.pick(FLOATS)}", lambda: f"len({v}.tolist()) > 2"]
        if self.scope.of(Record):
            r = self.pick(self.scope.of(Record))
            options += [lambda: f'hasattr({r}, "{self.pick(["a0", "zz"])}")', lambda: f"getattr({r}, 'on', False)"]
        lists = self.scope.of(Many)
        if lists:
            options += [lambda: f"len({self.pick(lists)}) {self.pick(TESTS)} {self.pick('0123')}"]
            options += [lambda: self.pick(lists)]
        maybe = self.scope.of(Maybe)
        if maybe:
            options += [lambda: f"{self.pick(maybe)} is {self.pick(['None', 'not None'])}"] * 2
            options += [lambda: f"isinstance({self.pick(maybe)}, Tensor)"]
        text = self.one(options)
        return text[1:-1] if text.startswith("(") and text.endswith(")") and text.count("(") == 1 else text


def random_kind(choices: Choices, rows: bool) -> Any:
    """A kind for a variable or a parameter; ``rows`` says whether n is known."""
    shapes = ["", "", "2", "n", "n2", "u", "n", "n2", "u2"] if rows else ["", "", "2"]
    return choices.pick([
        Tensor(choices.pick(shapes)), Tensor(choices.pick(shapes)), Tensor(choices.pick(shapes)),
        Tensor(choices.pick(shapes), choices.pick(["i64", "bool", "f64", "i64"])),
        INT, FLOAT, BOOL, INT, Many(Tensor(choices.pick(["", "2"])), choices.chance(50)),
    ])  # fmt: skip


__all__ = ["FLOATS", "TESTS", "Expressions", "random_kind"]
