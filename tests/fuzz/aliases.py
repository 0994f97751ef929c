"""Programs of few names and many references: what is one object, shares memory, or only looks like it.

Tensors, lists, dicts and objects under several names, bound and changed in branches and loops.
"""

from __future__ import annotations

from choices import Choices

HEADER = """\
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Record:
    v: object
    w: object = None


class Plain:
    def __init__(self, v, w=None):
        self.v = v
        self.w = w


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.tensor([1.0, 2.0]))
        self.o = Plain(torch.tensor([0.5, 1.0]))

    def forward(self, x):
        a, b, c = x * 1, x + 1, x * 2
        l, k = [a * 1, b], [c, x * 3]
        o, p = Plain(x + 2), Record(x * 4)
        d, e = {"k": x - 1}, {"k": b}
        old = self.o
"""
FOOTER = """\
        self.o = old
        return a, b, c, l[0], l[1], k[0], k[1], len(l), o.v, p.v, d["k"], e["k"]


model = Model().eval()
SETS = [(torch.tensor(v),) for v in ([1.0, 3.0], [-1.0, -3.0], [2.0, -1.0], [0.0, 0.0], [5.0, 4.0])]
DYNAMIC = (None,)
"""
TENSORS, LISTS, OBJECTS, DICTS = ("a", "b", "c"), ("l", "k"), ("o", "p"), ("d", "e")


class Aliases:
    """The statements of one program."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.pick, self.chance = choices.pick, choices.chance
        self.lines: list[str] = []
        self.loops = 0

    def tensor(self) -> str:
        """A place where a tensor is."""
        held = [f"{self.pick(LISTS)}[0]", f"{self.pick(OBJECTS)}.v", f'{self.pick(DICTS)}["k"]']
        return self.pick([*[self.pick(TENSORS)] * 5, *held, self.pick(["x", "self.b", *held])])

    def value(self) -> str:
        """A tensor: one that there is, or a new one, or a view."""
        one = self.tensor()
        new = f"{one} * {self.pick(['2', '0.5', '-1'])} + {self.pick(['1', '-0.5'])}"
        return self.pick([one, one, one, new, new, new, f"{one} + {self.tensor()}", f"{one}.clone()", f"{one}.view(2)"])

    def test(self) -> str:
        """A condition."""
        return f"{self.tensor()}.sum() {self.pick('<>')} {self.pick(['0', '1', '2.5', '-1'])}"

    def simple(self) -> str:
        """A statement without a suite."""
        name, other = self.choices.some(TENSORS, 2, 2)
        items, thing, table = self.pick(LISTS), self.pick(OBJECTS), self.pick(DICTS)
        made = f"{self.pick(['Plain', 'Record'])}({self.value()})"
        rebound = f"{name}, {other} = {self.tensor()}, {self.tensor()}"
        written = [f"{name} += 1", f"{name} *= {self.tensor()}", f"{name}[0] = {self.tensor()}[1]", f"{items}[0] += 1"]
        changed = [f"{items}[{self.pick('01')}] = {self.value()}", f"{thing}.v = {self.value()}"]
        changed += [f'{table}["k"] = {self.value()}', f"{thing}.w = {self.pick([*OBJECTS, *LISTS])}"]
        if self.chance(25):  # most of these are refused: two names may be one tensor
            changed = [*written, f"{thing}.v += 1"]
        if self.loops == 0:
            changed.append(f"{items}.append({self.value()})")
        bound = [f"{items} = {self.pick([f'[{self.value()}, {self.value()}]', *LISTS])}", rebound]
        bound += [f"{thing} = {self.pick([made, made, *OBJECTS])}", f"self.o = {thing}", f"{thing} = self.o"]
        filled = '{"k": ' + self.value() + "}"
        bound += [f"{table} = {self.pick([filled, *DICTS])}"]
        return self.pick([f"{name} = {self.value()}", self.pick(bound), self.pick(bound), self.pick(changed)])

    def statement(self, indent: int, depth: int) -> None:
        """A statement, maybe with suites."""
        space = "    " * indent
        kind = self.pick(["simple"] * 7 + ["if", "if", "while", "for"]) if depth else "simple"
        if kind == "simple":
            self.lines.append(space + self.simple())
        elif kind == "if":
            self.lines.append(f"{space}if {self.test()}:")
            self.suite(indent + 1, depth - 1)
            if self.chance(60):
                self.lines.append(f"{space}else:")
                self.suite(indent + 1, depth - 1)
        else:
            self.loops += 1
            counter = f"i{len(self.lines)}"
            if kind == "while":
                going = f"{counter} < {self.pick('123')} and {self.test()}"
                self.lines += [f"{space}{counter} = 0", f"{space}while {going}:", f"{space}    {counter} += 1"]
            else:
                self.lines.append(f"{space}for {counter} in {self.pick(['range(2)', 'range(3)', 'x'])}:")
            self.suite(indent + 1, depth - 1)
            if self.chance(20):
                self.lines += [f"{space}    if {self.test()}:", f"{space}        {self.pick(['break', 'continue'])}"]
            self.loops -= 1

    def suite(self, indent: int, depth: int) -> None:
        """Some statements."""
        for _ in range(self.choices.number(1, 4)):
            self.statement(indent, depth)


def program(choices: Choices) -> str:
    """The source of a module."""
    written = Aliases(choices)
    for _ in range(choices.number(4, 9)):
        written.statement(2, 3)
    return HEADER + "\n".join(written.lines) + "\n" + FOOTER
