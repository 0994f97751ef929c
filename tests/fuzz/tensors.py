"""Typed expressions for tensors, as source text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from choices import Choices
from kinds import (
    INDEX,
    Function,
    Many,
    Maybe,
    Record,
    Scope,
    Tensor,
    Together,
)

Options = list[Callable[[], str]]
FLOATS = ("0.5", "1.0", "-1.5", "2.0", "0.25", "-0.5")
TESTS = ("<", "<=", ">", ">=", "==", "!=")


class Tensors:
    """Writes tensors of a wanted shape and dtype from what is in scope."""

    def __init__(self, choices: Choices, scope: Scope) -> None:
        self.choices = choices
        self.scope = scope
        self.number_of_names = 0

    def pick(self, items: Any) -> Any:
        """One of them."""
        return self.choices.pick(items)

    def one(self, options: Options) -> str:
        """What one of the options writes."""
        return self.pick(options)()

    def name(self) -> str:
        """A name that is not used elsewhere in the program."""
        self.number_of_names += 1
        return f"e{self.number_of_names}"

    def anchor(self) -> str | None:
        """A tensor with n rows, if there is one."""
        found = self.scope.tensors("n n2", "f32 i64 bool f64")
        return found[0] if found else None

    def possible(self, kind: Any) -> bool:
        """Whether an expression of the kind can be written here."""
        match kind:
            case Tensor(shape="n" | "n2" | "u" | "u2"):
                return self.anchor() is not None
            case Tensor(dtype="any") | Record() | Function():
                return bool(self.scope.places(kind))
            case Many(item=item) | Maybe(item=item):
                return self.possible(item)
            case Together(items=items):
                return all(map(self.possible, items))
        return True

    def tensor(self, kind: Tensor, depth: int) -> str:
        """A tensor of the shape and dtype."""
        leaves = self.scope.places(kind)
        if leaves and (depth <= 0 or self.choices.chance(35)):
            return self.pick(leaves)
        options: Options = []
        if depth > 0:
            options += self.operations(kind, depth - 1)
        options += self.sources(kind, depth - 1)
        if not options or (kind.dtype == "any" and leaves):
            return self.pick(leaves)
        return self.one(options)

    def operations(self, kind: Tensor, depth: int) -> Options:
        """Ways to compute a tensor from tensors of its own shape."""
        same = lambda: self.tensor(kind, depth)  # noqa: E731
        options: Options = [lambda: f"({same()} if {self.truth(depth)} else {same()})"]
        if kind.dtype in ("f32", "f64"):
            options += [lambda: f"({same()} {self.pick('+-')} {self.operand(kind, depth)})"] * 4
            options += [lambda: f"fit({same()} * {self.operand(kind, depth)})"] * 2
            options += [
                lambda: f"(-{same()})",
                lambda: f"{same()}.abs()",
                lambda: f"{same()}.clamp({self.pick(['-2, 2', 'min=0', 'max=1.5'])})",
                lambda: f"torch.relu({same()})",
                lambda: f"abs({same()})",
                lambda: f"({same()} * {self.pick(['0.5', '2', '-1', self.python_number(0)])}).clamp(-8, 8)",
            ]
            if kind.shape not in ("u", "u2"):
                mask = Tensor(kind.shape, "bool")
                options += [lambda: f"torch.where({self.tensor(mask, depth)}, {same()}, {same()})"]
                options += [lambda: f"torch.{self.pick(['maximum', 'minimum'])}({same()}, {same()})"]
        elif kind.dtype == "i64":
            options += [lambda: f"(({same()} {self.pick('+-*')} {self.operand(kind, depth)}) % {self.pick('357')})"] * 3
            options += [lambda: f"({same()} {self.pick(['+ 1', '// 2', '- 1', '* -1', '% 3'])}).clamp(-9, 9)"] * 2
        elif kind.dtype == "bool":
            options += [lambda: f"({same()} {self.pick('&|')} {self.operand(kind, depth)})", lambda: f"(~{same()})"]
        if kind.shape in ("n", "n2", "u", "u2") and kind.dtype != "bool":
            options += [lambda: f"{same()}.flip(0)"]
        if kind.shape in ("n", "u") and kind.dtype == "f32":
            options += [lambda: f"{same()}.cumsum(0).clamp(-8, 8)"]
        return options

    def operand(self, kind: Tensor, depth: int) -> str:
        """What can stand on the right of an operator beside a tensor of the kind."""
        options: Options = []
        if kind.shape not in ("u", "u2"):
            options += [lambda: self.tensor(kind, depth)] * 3
        if kind.shape in ("n2", "u2"):
            options.append(lambda: self.tensor(Tensor("2", kind.dtype), depth))
        if kind.shape:
            options.append(lambda: self.tensor(Tensor("", kind.dtype), depth))
        if kind.dtype in ("f32", "f64"):
            options += [lambda: self.python_number(depth), lambda: self.tensor(Tensor("", "i64"), depth)]
        elif kind.dtype == "i64":
            options.append(lambda: self.integer(depth))
        else:
            options.append(lambda: self.tensor(Tensor("", "bool"), depth))
        return self.one(options)

    def sources(self, kind: Tensor, depth: int) -> Options:
        """Ways to get a tensor of the kind from others, or from nothing."""
        options: Options = []
        shape, dtype = kind.shape, kind.dtype
        if dtype == "f32":
            options += getattr(self, f"floats_{shape or 'scalar'}")(max(depth, 0))
            lists = [p for p in self.scope.of(Many) if self.scope.kinds[p] == Many(kind, True)]
            if lists:
                options += [lambda: f"{self.pick(lists)}[{self.pick(['0', '-1'])}]"] * 2
                options += [lambda: f"sum({self.pick(lists)})"]
                if shape not in ("u", "u2"):
                    options += [lambda: f"torch.stack({self.pick(lists)}).sum(0)"] * 2
            maybe = self.scope.places(Maybe(kind))
            if maybe and depth > 0:
                h = self.pick(maybe)
                options += [lambda: f"({self.tensor(kind, 0)} if {h} is None else {h})"] * 2
            for weak in self.scope.places(Tensor(shape, "any")):
                options += [lambda weak=weak: f"{weak}.float()", lambda weak=weak: f"({weak} * 0.5).float()"]
            whole = Tensor(shape, "i64")
            options += [lambda: f"({self.pick(['2.0', '0.5'])} ** {self.tensor(whole, max(depth, 0))}.clamp(-2, 2))"]
        elif dtype == "f64":
            options.append(lambda: f"{self.tensor(Tensor(shape), depth)}.double()")
        elif dtype == "i64":
            if shape == "":
                options += [
                    lambda: f"torch.tensor({self.pick(['0', '1', '3', self.integer(0)])})",
                    lambda: f"({self.whole(depth)} > {self.pick(FLOATS)}).sum()",
                    lambda: f"({self.whole(depth)}.long().sum() % 7)",
                ]
            elif shape == "n":
                options.append(lambda: f"torch.arange({self.anchor()}.shape[0])")
            elif shape == "u":
                options.append(lambda: f"({self.vector(depth)} > {self.pick(FLOATS)}).nonzero().flatten()")
            options.append(lambda: f"{self.tensor(Tensor(shape), depth)}.{self.pick(['long()', 'to(torch.int64)'])}")
        elif dtype == "bool":
            if shape == "":
                options += [lambda: f"({self.whole(depth)} > {self.pick(FLOATS)}).{self.pick(['any()', 'all()'])}"] * 2
            options += [lambda: f"({self.tensor(Tensor(shape), depth)} {self.pick(TESTS)} {self.python_number(0)})"] * 3
        return options

    def floats_scalar(self, depth: int) -> Options:
        """Ways to get a 0-d float tensor."""
        options: Options = [
            lambda: f"torch.tensor({self.pick(FLOATS)})",
            lambda: f"torch.full((), {self.pick([*FLOATS, self.floating(0)])})",
            lambda: "torch.zeros(())",
        ]
        options += [lambda: f"{self.whole(depth)}.{self.pick(['sum()', 'sum()', 'sum().clamp(-8, 8)', 'max()'])}"] * 3
        scalar = lambda: self.tensor(Tensor(), depth)  # noqa: E731
        options += [lambda: f"{self.pick(['max', 'min'])}({scalar()}, {scalar()})"]
        lists = self.scope.places(Many(Tensor(), True))
        if lists:
            options += [lambda: f"{self.pick(['max', 'min', 'sum'])}({self.pick(lists)})"]
            options += [lambda: f"sorted({self.pick(lists)}, key=lambda e0: -e0)[{self.pick(['0', '-1'])}]"]
        rows = self.scope.tensors("n u")
        if rows:
            options += [lambda: f"{self.pick(['max', 'min'])}({self.pick(rows)}.tolist() + [0.5]) * torch.ones(())"]
            options += [lambda: f"{self.pick(rows)}[{self.pick(['0', '-1'])}]"]
        if self.scope.tensors("2"):
            options += [
                lambda: f"{self.pick(self.scope.tensors('2'))}[{self.pick(['0', '1', '-1', f'{self.integer(0)} % 2'])}]"
            ]
        if self.scope.places(INDEX) and self.scope.tensors("n"):
            options += [lambda: f"{self.pick(self.scope.tensors('n'))}[{self.pick(self.scope.places(INDEX))}]"] * 3
        return options

    def floats_2(self, depth: int) -> Options:
        """Ways to get a vector of two floats."""
        options: Options = [
            lambda: f"torch.tensor([{self.pick(FLOATS)}, {self.pick(FLOATS)}])",
            lambda: f"torch.{self.pick(['zeros', 'ones'])}(2)",
            lambda: f"torch.stack([{self.tensor(Tensor(), depth)}, {self.tensor(Tensor(), depth)}])",
        ]
        matrices = self.scope.tensors("n2 u2")
        if matrices:
            options += [lambda: f"{self.pick(matrices)}.sum({self.pick(['0', 'dim=0'])})"] * 2
            options += [lambda: f"{self.pick(matrices)}[{self.pick(['0', '-1'])}]"]
        if self.scope.places(INDEX) and self.scope.tensors("n2"):
            options += [lambda: f"{self.pick(self.scope.tensors('n2'))}[{self.pick(self.scope.places(INDEX))}]"] * 3
        return options

    def floats_n(self, depth: int) -> Options:
        """Ways to get a vector of n floats."""
        options: Options = [
            lambda: f"torch.{self.pick(['zeros', 'ones'])}({self.anchor()}.shape[0])",
            lambda: f"(torch.arange({self.anchor()}.shape[0]) * 0.5)",
        ]
        if self.scope.tensors("n2"):
            options += [lambda: f"{self.tensor(Tensor('n2'), depth)}[:, {self.pick(['0', '1', '-1'])}]"] * 2
            options += [lambda: f"{self.tensor(Tensor('n2'), depth)}.sum({self.pick(['1', '-1'])})"] * 2
        if self.scope.tensors("n"):
            options += [lambda: f"{self.pick(self.scope.tensors('n'))}.clone()"]
        return options

    def floats_n2(self, depth: int) -> Options:
        """Ways to get n rows of two floats."""
        options: Options = [
            lambda: f"torch.{self.pick(['zeros', 'ones'])}({self.anchor()}.shape[0], 2)",
            lambda: f"fit({self.tensor(Tensor('n'), depth)}[:, None] * {self.tensor(Tensor('2'), depth)})",
            lambda: f"torch.stack([{self.tensor(Tensor('n'), depth)}, {self.tensor(Tensor('n'), depth)}], 1)",
        ]
        if self.scope.tensors("n2"):
            m = self.pick(self.scope.tensors("n2"))
            options += [lambda: f"torch.zeros_like({m})", lambda: f"{m}.clone()"]
        return options

    def floats_u(self, depth: int) -> Options:
        """Ways to get a vector of any size."""
        v = self.vector
        options: Options = [
            lambda: f"{v(depth)}[{self.pick(['1:', ':-1', ':2', '-2:', '::2', f':{self.size()}', f'{self.size()}:'])}]",
            lambda: f"{self.selected(depth)}",
            lambda: f"{self.selected(depth)}",
            lambda: f"torch.cat([{v(depth)}, {self.tensor(Tensor(), depth)}.reshape(1)])",
            lambda: f"torch.cat(({v(depth)}, {v(depth)}))[:6]",
            lambda: f"torch.zeros({self.size()})",
        ]
        matrices = self.scope.tensors("n2")
        options += [lambda: f"{self.pick(matrices)}.flatten()"] * bool(matrices)
        lists = self.scope.places(Many(Tensor(), True))
        options += [lambda: f"torch.stack({self.pick(lists)})"] * (2 if lists else 0)
        return options

    def floats_u2(self, depth: int) -> Options:
        """Ways to get any number of rows of two floats."""
        m = self.pick([self.pick(self.scope.tensors("n2 u2") or ["torch.zeros(1, 2)"])])
        options: Options = [
            lambda: f"{m}[{self.pick(['1:', ':-1', ':2', '-2:', f':{self.size()}'])}]",
            lambda: f"{m}[{m}.sum(1) > {self.pick(FLOATS)}]",
            lambda: f"torch.cat([{m}, {self.tensor(Tensor('2'), depth)}[None]])",
            lambda: f"torch.cat([{self.tensor(Tensor('2'), depth)}.unsqueeze(0), {m}], dim=0)",
            lambda: f"torch.zeros({self.size()}, 2)",
        ]
        lists = self.scope.places(Many(Tensor("2"), True))
        options += [lambda: f"torch.stack({self.pick(lists)})"] * (2 if lists else 0)
        return options

    def vector(self, depth: int) -> str:
        """A vector of n or of any size."""
        found = self.scope.tensors("n u")
        return self.pick(found) if found else self.tensor(Tensor("n"), depth)

    def selected(self, depth: int) -> str:
        """The elements of a vector that pass a test."""
        found = self.scope.tensors("n u")
        if found:
            v = self.pick(found)
            return f"{v}[{v} {self.pick(TESTS)} {self.pick([*FLOATS, self.tensor(Tensor(), depth - 1)])}]"
        return f"{self.tensor(Tensor('n'), depth)}[{self.tensor(Tensor('n', 'bool'), depth)}]"

    def whole(self, depth: int) -> str:
        """A float tensor with dimensions."""
        found = self.scope.tensors("n n2 u u2 2")
        if found and (depth <= 0 or self.choices.chance(70)):
            return self.pick(found)
        return self.tensor(Tensor(self.pick(["2", "n", "n2", "u"]) if self.anchor() else "2"), depth)
