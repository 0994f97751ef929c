"""Whole programs: a module's source with a model, its inputs, and which of their sizes are dynamic."""

from __future__ import annotations

from typing import Any

from choices import Choices
from expressions import FLOATS, random_kind
from kinds import BOOL, FLOAT, INT, Function, Many, Maybe, Record, Scope, Tensor, Together
from objects import CLASSES
from statements import Statements
from suites import Lines, Shared, indented

HEADER = """\
import collections
import contextlib
import functools
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.export import Dim


COUNT = [0]
TOTAL = 0


def restart():
    global TOTAL
    COUNT[0] = TOTAL = 0


def count_up():
    global TOTAL
    COUNT[0] += 1
    TOTAL = TOTAL + 2


def counted():
    return TOTAL


def fit(t):
    return (t.clamp(-4, 4) * 4).round() / 4


@contextlib.contextmanager
def noted(items, value):
    items.append(value)
    try:
        yield value
    finally:
        items.append(-value)


class Entered:
    def __init__(self, items, value):
        self.items, self.value = items, value

    def __enter__(self):
        self.items.append(self.value)
        return self.value

    def __exit__(self, kind, error, trace):
        self.items.append(self.value * 0.5)
        return False
"""

SIZES = (3, 2, 5, 0, 1, 4)
PARAMETERS = {
    "m": Tensor("n2"),
    "v": Tensor("n"),
    "r": Tensor("2"),
    "s": Tensor(),
    "n": Tensor("", "i64"),
    "flag": Tensor("", "bool"),
    "ids": Tensor("n", "i64"),
}


def function(
    choices: Choices, shared: Shared, name: str, scope: Scope, *, rows: bool, first: str = ""
) -> tuple[Lines, Function]:
    """A function of its own, with parameters that it may change."""
    takes, parameters = [], []
    for _ in range(choices.number(1, 3)):
        record = choices.pick([*map(Record, shared.records), None, None, None, None])
        kind = record if record and not first else random_kind(choices, rows)
        takes.append(kind)
        shared.names += 1
        parameters.append(f"q{shared.names}")
    scope = scope.copy()
    gives = choices.pick([Tensor(), Tensor("2"), INT, Tensor(), None, Together((Tensor(), INT))])
    writer = Statements(choices, scope, shared, gives)
    for parameter, kind in zip(parameters, takes, strict=True):
        if isinstance(kind, Record):
            writer.hold_record(parameter, kind.name)
        else:
            scope.kinds[parameter] = kind
    budget, shared.budget = shared.budget, choices.number(1, 5)
    body = writer.suite(2, 4)
    shared.budget = budget - 1
    if not writer.dead and gives is not None:
        body += [f"return {writer.of(gives, 1)}"]
    style = choices.pick(["plain", "plain", "default", "keyword", "rest"])
    if style == "default" and takes[-1] in (INT, FLOAT, BOOL, Tensor()):
        parameters[-1] += {INT: "=2", FLOAT: "=0.5", BOOL: "=True"}.get(takes[-1], "=None")
        if takes[-1] == Tensor():
            bare = parameters[-1].removesuffix("=None")
            body.insert(0, f"{bare} = torch.tensor(0.5) if {bare} is None else {bare}")
    elif style == "keyword" and len(parameters) > 1:
        parameters.insert(-1, choices.pick(["*", "*more"]))
    elif style == "rest":
        parameters += ["*more", "**others"]
    head = ", ".join([*([first] if first else []), *parameters])
    return [f"def {name}({head}):", *indented(body)], Function(tuple(takes), gives, signature(parameters))


def signature(parameters: Lines) -> tuple[str, ...]:
    """How each argument may be passed: a name by keyword, ``*`` before those that must be."""
    found: list[str] = []
    must = False
    for text in parameters:
        name = text.partition("=")[0]
        if name.startswith("*"):
            must = True
        else:
            found.append(f"*{name}" if must else name)
    return tuple(found)


def record_class(choices: Choices, shared: Shared) -> Lines:
    """A class of objects with fields, and perhaps a method that changes them."""
    name = f"State{len(shared.records) + 1}"
    kinds = [Tensor(), Tensor("2"), INT, FLOAT, BOOL, Many(Tensor(), True)]
    fields = {f"a{index}": choices.pick(kinds) for index in range(choices.number(1, 3))}
    shared.records[name] = fields
    types = {INT: "int", FLOAT: "float", BOOL: "bool"}
    if choices.chance(60):
        lines = ["@dataclass", f"class {name}:"]
        lines += [
            f"    {key}: {types.get(kind, 'list' if isinstance(kind, Many) else 'Tensor')}"
            for key, kind in fields.items()
        ]
    else:
        lines = [f"class {name}:", f"    def __init__(self, {', '.join(fields)}):"]
        lines += [f"        self.{key} = {key}" for key in fields]
    if choices.chance(60):
        scope = Scope({f"self.{key}": kind for key, kind in fields.items()})
        scope.frozen |= set(scope.kinds)
        text, made = function(choices, shared, "update", scope, rows=False, first="self")
        shared.methods[name] = {"update": made}
        lines += ["", *indented(text)]
    inside = Statements(choices, Scope({f"self.{key}": kind for key, kind in fields.items()}), shared)
    if choices.chance(40):
        text = ["@property", "def now(self):", f"    return {inside.of(Tensor(), 2)}"]
        lines += ["", *indented(text)]
        shared.properties[name] = {"now": Tensor()}
    if choices.chance(30):
        inside.scope = Scope({"value": Tensor()})
        kind = choices.pick(["@staticmethod", "@classmethod"])
        head = "def shaped(cls, value):" if kind == "@classmethod" else "def shaped(value):"
        lines += ["", *indented([kind, head, f"    return {inside.of(Tensor(), 2)}"])]
        shared.methods.setdefault(name, {})["shaped"] = Function((Tensor(),), Tensor())
    methods = shared.methods.get(name, {})
    if "update" in methods and choices.chance(40):
        derived = f"State{len(shared.records) + 1}"
        update = methods["update"]
        shared.records[derived] = fields
        shared.methods[derived] = methods
        shared.properties[derived] = shared.properties.get(name, {})
        arguments = ", ".join(f"{key.lstrip('*')}={key.lstrip('*')}" for key in update.names)
        inside.scope = Scope({f"self.{key}": kind for key, kind in fields.items()})
        inside.scope.frozen |= set(inside.scope.kinds)
        budget, shared.budget = shared.budget, 1
        change = inside.suite(1, 2)
        shared.budget = budget
        lines += ["", "", f"class {derived}({name}):"]
        head = ", ".join(["self", "*", *(key.lstrip("*") for key in update.names)])
        shared.methods[derived] = {
            **methods,
            "update": Function(update.takes, update.gives, tuple(f"*{key.lstrip('*')}" for key in update.names)),
        }
        lines += indented([f"def update({head}):", *indented(change), f"    return super().update({arguments})"])
    return lines


def module_class(choices: Choices, shared: Shared, scope: Scope) -> tuple[Lines, Scope]:
    """The head of the model's class, and what ``self`` holds."""
    lines: Lines = []
    held = {
        "self.scale": Tensor("2"),
        "self.total": choices.pick([Tensor("2"), Tensor()]),
        "self.seen": Tensor("", "i64"),
        "self.h": choices.pick([Tensor(), Tensor("2"), Maybe(Tensor())]),
        "self.k": INT,
        "self.on": BOOL,
        "self.log": Many(Tensor(), True),
    }
    start = {
        "self.scale": "nn.Parameter(torch.tensor([0.5, -1.5]))",
        "self.h": {Tensor(): "torch.tensor(0.5)", Tensor("2"): "torch.zeros(2)"}.get(held["self.h"], "None"),
        "self.k": "1",
        "self.on": choices.pick(["True", "False"]),
        "self.log": "[torch.tensor(1.0)]",
    }
    names = choices.some(list(held), 1, 4)
    body = ["super().__init__()"]
    for name in names:
        if name == "self.total":
            body.append(
                f'self.register_buffer("total", {"torch.zeros(())" if held[name] == Tensor() else "torch.ones(2)"})'
            )
        elif name == "self.seen":
            body.append('self.register_buffer("seen", torch.tensor(2))')
        else:
            body.append(f"{name} = {start[name]}")
    inside = scope.copy()
    inside.kinds |= {name: held[name] for name in names}
    inside.frozen |= set(names)
    if choices.chance(40):
        body.append("self.layers = nn.ModuleList([Layer(0.5), Layer(-1.5)])")
        layer_scope = Scope(
            {"self.weight": Tensor(), "self.last": Tensor(), "p": Tensor("2")}, {"self.weight", "self.last"}
        )
        layer_scope.fixed.add("self.weight")
        layer = Statements(choices, layer_scope, shared, Tensor("2"))
        budget, shared.budget = shared.budget, choices.number(1, 4)
        text = layer.suite(2)
        shared.budget = budget - 1
        text += [] if layer.dead else [f"return {layer.of(Tensor('2'), 1)}"]
        lines += ["class Layer(nn.Module):", "    def __init__(self, weight):", "        super().__init__()"]
        lines += [
            "        self.weight = nn.Parameter(torch.tensor(weight))",
            '        self.register_buffer("last", torch.zeros(()))',
            "",
        ]
        lines += [*indented(["def forward(self, p):", *indented(text)]), "", ""]
        inside.kinds["self.layers"] = "layers"
        inside.kinds["self.layers[0]"] = inside.kinds["self.layers[-1]"] = Function((Tensor("2"),), Tensor("2"))
        inside.fixed |= {"self.layers", "self.layers[0]", "self.layers[-1]"}
    inside.fixed.add("self.scale")
    lines += ["class Model(nn.Module):", *indented(["def __init__(self):", *indented(body)])]
    if choices.chance(50):
        text, made = function(choices, shared, "step", inside, rows=choices.chance(50), first="self")
        lines += ["", *indented(text)]
        inside.kinds["self.step"] = made
        inside.fixed.add("self.step")
    return lines, inside


def value(choices: Choices, kind: Tensor, size: int) -> str:
    """A tensor literal of the kind, with n as given."""
    shape = tuple({"n": size, "2": 2}[dim] for dim in kind.shape)
    count = 1
    for dim in shape:
        count *= dim
    match kind.dtype:
        case "f32":
            sign = choices.pick([1, -1, 0])
            numbers = [choices.number(-12, 12) / 4 for _ in range(count)]
            numbers = [sign * abs(number) if sign else number for number in numbers]
        case "i64":
            numbers = [choices.number(0, 4) for _ in range(count)]
        case _:
            numbers = [choices.chance(50) for _ in range(count)]
    if not shape:
        return f"torch.tensor({numbers[0]})"
    if size == 0 and kind.shape != "2":
        return f"torch.zeros({', '.join(map(str, shape))}{', dtype=torch.int64' if kind.dtype == 'i64' else ''})"
    if len(shape) == 2:
        return f"torch.tensor({[numbers[2 * row : 2 * row + 2] for row in range(size)]})"
    return f"torch.tensor({numbers})"


def program(choices: Choices, size: int | None = None) -> str:
    """The source of a module with ``model``, ``SETS`` (of arguments) and ``DYNAMIC`` (as ``dynamic_shapes``)."""
    shared = Shared(budget=size or choices.number(3, 16))
    parts: Lines = []
    scope = Scope()
    for _ in range(choices.pick([0, 0, 1, 1, 2])):
        parts += [*record_class(choices, shared), "", ""]
    for index in range(choices.pick([0, 0, 1, 1, 2])):
        name = f"helper{index + 1}"
        text, made = function(choices, shared, name, scope, rows=choices.chance(60))
        parts += [*text, "", ""]
        scope.kinds[name] = made
        scope.fixed.add(name)
    is_module = choices.chance(40)
    if is_module:
        text, scope = module_class(choices, shared, scope)
        parts += text
    names = [choices.pick(["m", "v"]), *choices.some(["r", "s", "n", "flag", "s", "n"], 0, 2)]
    if choices.chance(10):
        names.append("ids")
    names = list(dict.fromkeys(names))
    for name in names:
        scope.kinds[name] = PARAMETERS[name]
    scope.fixed.add(names[0])
    early = choices.chance(60)
    returns = Together(
        tuple(
            kind
            for kind in (random_kind(choices, True) for _ in range(choices.number(1, 3)))
            if not isinstance(kind, Many)
        )
    )
    writer = Statements(choices, scope, shared, returns if early and returns.items else None)
    body: Lines = []
    while shared.budget > 0 and not writer.dead:
        body += writer.statement(4)
    if not writer.dead:
        body.append(f"return {last(writer, returns)}")
    if shared.uses_global:
        body.insert(0, "restart()")
    parameters = ", ".join([*(["self"] if is_module else []), *names])
    lines = [f"def {'forward' if is_module else 'model'}({parameters}):", *indented(body)]
    parts += ["", *indented(lines), "", "", "model = Model().eval()"] if is_module else lines
    sizes = SIZES if choices.chance(85) else (3, 3, 3)
    sets = [f"    ({', '.join(value(choices, PARAMETERS[name], size) for name in names)},)," for size in sizes]
    dynamic = ["{0: Dim.DYNAMIC}" if sizes is SIZES and "n" in PARAMETERS[name].shape else "None" for name in names]
    end = ["", "", "SETS = [", *sets, "]", f"DYNAMIC = ({', '.join(dynamic)},)", ""]
    return HEADER + CLASSES + "\n\n" + "\n".join(parts + end)


def last(writer: Statements, returns: Any) -> str:
    """What the end of the model returns."""
    if writer.returns is not None:
        return writer.of(returns, 1)
    scope = writer.scope
    shown = [
        p for p, k in scope.kinds.items() if isinstance(k, (Tensor, Maybe, Many)) or k in (INT, FLOAT, BOOL, "number")
    ]
    items = []
    for place in shown[-7:]:
        kind = scope.kinds[place]
        if not isinstance(kind, Many):
            items.append(place)
        elif isinstance(kind.item, Tensor) and kind.nonempty:
            items.append(f"torch.stack({place})")
        else:
            items.append(f"len({place})")
    items = items or [f"torch.tensor({writer.pick(FLOATS)})"]
    match writer.pick(["tuple", "tuple", "dict", "nested", "list"]):
        case "dict":
            return "{" + ", ".join(f'"o{index}": {item}' for index, item in enumerate(items)) + "}"
        case "nested":
            return f"({items[0]}, [{', '.join(items[1:3])}], {{'rest': ({', '.join([*items[3:], '1'])},)}})"
        case "list":
            return f"[{', '.join(items)}]"
    return f"({', '.join(items)},)"
