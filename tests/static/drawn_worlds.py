"""Worlds as hypothesis draws them: a model that reads values on paths, and changes to what lies on these paths.

A path leads from a root (a global, a closure, a default, an argument, an attribute of ``self``) through containers and
objects to a value. All is text: a module of definitions, a model, and statements that change what the model reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from tests.static.drawn_parts import EFFECTS, KINDS, PATCHES, STEPS

DEFINITIONS = (Path(__file__).parent / "drawn_definitions.txt").read_text()
ROOTS = ("global", "helper", "closure", "default", "argument", "attribute", "class")


@dataclass(frozen=True)
class World:
    """The text of a module with ``model`` and ``arguments()``, and statements that change what the model reads."""

    text: str
    changes: tuple[str, ...]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A model that reads one to three values, and one to five changes."""
    of_module = draw(st.booleans())
    roots = [each for each in ROOTS if of_module or each not in ("attribute", "class")]
    roots = [each for each in roots if not of_module or each not in ("closure", "default")]
    uses, values, changes, defined = [], {}, [], []
    for i in range(draw(st.integers(1, 3))):
        root, kind = draw(st.sampled_from(roots)), KINDS[draw(st.sampled_from(list(KINDS)))]
        steps = draw(st.lists(st.sampled_from(STEPS), max_size=3))
        name = f"v{i}"
        read, place, replace = {
            "global": (name, name, f"global {name}; {name} = {{v}}"),
            "helper": (f"helper{i}()", name, f"global {name}; {name} = {{v}}"),
            "closure": (name, f"get{i}()", f"set{i}({{v}})"),
            "default": (name, f"model.__defaults__[{len(defined)}]", ""),
            "argument": (name, name, f"global {name}; {name} = {{v}}"),
            "attribute": (f"self.{name}", f"model.{name}", f"model.{name} = {{v}}"),
            "class": (f"self.{name}", f"Net.{name}", f"Net.{name} = {{v}}"),
        }[root]
        if root == "default":
            defined.append(name)
        leaf = draw(st.sampled_from(kind.values))
        written, place_of = leaf, [(place, replace)]
        for step in steps:
            at = place_of[-1][0]
            read += draw(st.sampled_from(step.reads))
            place_of.append((at + step.reads[0], step.change.replace("{p}", at)))
        for step in reversed(steps):
            written = step.make.format(v=written)
        values[name] = root, written
        uses.append(draw(st.sampled_from(kind.uses)).replace("{v}", read))
        for _ in range(draw(st.integers(0, 3))):
            depth = draw(st.integers(0, len(steps)))
            at, how = place_of[depth]
            if how and draw(st.booleans()):
                new = draw(st.sampled_from(kind.values))
                for step in reversed(steps[depth:]):
                    new = step.make.format(v=new)
                changes.append(how.replace("{v}", new))
            elif kind.changes:
                changes.append(draw(st.sampled_from(kind.changes)).replace("{p}", place_of[-1][0]))
    changes += draw(st.lists(st.sampled_from(PATCHES), max_size=2))
    order = draw(st.permutations(range(len(changes))))
    changes = [changes[i] for i in order][:5]
    again = draw(st.booleans())
    return World(
        DEFINITIONS
        + _model(
            values,
            uses,
            of_module=of_module,
            branch=draw(st.booleans()),
            effects=draw(st.sampled_from(((), (draw(st.sampled_from(EFFECTS)),)))),
        ),
        (*changes, *changes) if again else tuple(changes),
    )


def _model(
    values: dict[str, tuple[str, str]], uses: list[str], *, of_module: bool, branch: bool, effects: tuple[str, ...] = ()
) -> str:
    lines: list[str] = []
    of = {root: [name for name, (each, _) in values.items() if each == root] for root in ROOTS}
    lines += [f"{name} = {values[name][1]}" for name in (*of["global"], *of["helper"], *of["argument"])]
    lines += [f"def helper{name[1:]}(): return {name}" for name in of["helper"]]
    parameters = ["x", *of["argument"], *(f"{name}={values[name][1]}" for name in of["default"])]
    body = ["y = x", *(f"y = {use}" for use in uses), "return y"]
    if branch:
        first, *rest = uses
        body = [
            "y = x",
            "if x.sum() > 0:",
            f"    y = {first}",
            "else:",
            f"    y = -({first})",
            *(f"y = {use}" for use in rest),
            "return y",
        ]
    names = sorted({"DICT"} & {w for e in effects for w in e.split() if "|=" in e})
    body[1:1] = [*(f"global {name}" for name in names), *effects]
    if of_module:
        lines += ["class Net(nn.Module):"]
        lines += [f"    {name} = {values[name][1]}" for name in of["class"]]
        lines += ["    def __init__(self):", "        super().__init__()"]
        lines += [f"        self.{name} = {values[name][1]}" for name in of["attribute"]]
        lines += [
            f"    def forward(self, {', '.join(parameters)}):",
            *(f"        {line}" for line in body),
            "model = Net()",
        ]
    else:
        closed = of["closure"]
        lines += ["def make():"]
        lines += [f"    {name} = {values[name][1]}" for name in closed]
        lines += [f"    def model({', '.join(parameters)}):", *(f"        {line}" for line in body)]
        for name in closed:
            i = name[1:]
            lines += [
                f"    def set{i}(v):",
                f"        nonlocal {name}",
                f"        {name} = v",
                f"    def get{i}(): return {name}",
            ]
        given = "".join(f", set{name[1:]}, get{name[1:]}" for name in closed)
        lines += [f"    return model{given}", f"model{given} = make()" if closed else "model = make()"]
    lines += [f"def arguments(): return ({''.join(name + ', ' for name in of['argument'])})"]
    return "\n".join(lines) + "\n"
