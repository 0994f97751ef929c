"""What the user's ``dynamic_shapes`` say of the sizes of the inputs, in terms of the capture's symbols.

Source: ``torch.export.dynamic_shapes`` of torch 2.13.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch.export import Dim
from torch.export.dynamic_shapes import _combine_args, _tree_map_with_path
from torch.fx.experimental.symbolic_shapes import RelaxedUnspecConstraint, ShapeEnv, StrictMinMaxConstraint

from dy2st.tracing.size_facts import assume, expression

# How free a size is: torch may fix it (Dim.AUTO), relate it to others (Dim.DYNAMIC), or neither (a named Dim).
AUTO, DYNAMIC, NAMED = "auto", "dynamic", "named"


@dataclass
class Declared:
    """The symbols of the inputs' sizes: how free each is, and what a user calls it (``x.shape[0]``)."""

    freedom: dict[Any, str] = field(default_factory=dict)
    names: dict[Any, str] = field(default_factory=dict)

    @classmethod
    def of(cls, env: ShapeEnv) -> Declared:
        """Read off the inputs that torch.export has made symbols for."""
        found = cls()
        for tracked in env.tracked_fakes or ():
            fake = tracked.fake
            sizes = list(fake.shape) if isinstance(fake, torch.Tensor) else [fake]
            constraints = getattr(tracked.symbolic_context, "constraint_sizes", None) or [None] * len(sizes)
            dynamic = not isinstance(fake, torch.Tensor)
            for d, (size, constraint) in enumerate(zip(sizes, constraints, strict=True)):
                symbol = expression(size)
                if not isinstance(symbol, sympy.Symbol):
                    continue
                name = _spoken(tracked.source.name)
                found.names.setdefault(symbol, name if dynamic else f"{name}.shape[{d}]")
                if isinstance(constraint, StrictMinMaxConstraint):
                    found.freedom[symbol] = NAMED
                elif dynamic or isinstance(constraint, RelaxedUnspecConstraint):
                    found.freedom.setdefault(symbol, DYNAMIC)
                else:
                    found.freedom.setdefault(symbol, AUTO)
        return found

    def spoken(self, guard: Any) -> str:
        """A test in the user's terms."""
        others = [s for s in sorted(guard.free_symbols, key=str) if s not in self.names]
        unnamed = "a data-dependent size" if len(others) == 1 else ""
        names = {**self.names, **{s: unnamed or str(s) for s in others}}
        text = str(guard.xreplace({s: sympy.Symbol(name) for s, name in names.items()}))
        for operator, word in (("Eq", "=="), ("Ne", "!=")):
            text = re.sub(rf"^{operator}\((.*), (.*)\)$", rf"\1 {word} \2", text)
        return re.sub(r"Mod\(([^,()]*), (\d+)\)", r"\1 % \2", text)

    def free(self, symbols: Any) -> set[str]:
        """How free these are."""
        return {self.freedom.get(symbol, DYNAMIC) for symbol in symbols}


def _spoken(source: str) -> str:
    """``L['x'][0]`` as ``x[0]``."""
    return re.sub(r"^L\['(\w+)'\]", r"\1", source)


def map_dimensions(call: Any, args: Any, kwargs: Any, shapes: Any, function: Callable[[int, Any, Any], Any]) -> Any:
    """``function`` of each leaf of the arguments: its position, itself, and what is declared of its dimensions.

    ``call``: what has the signature. What is declared is a dict by dimension; of a number, the entry itself.
    """
    combined = _combine_args(call, args, kwargs)
    positions = itertools.count()

    def visit(_path: Any, leaf: Any, spec: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            if isinstance(spec, (list, tuple)):
                spec = dict(enumerate(spec))
            spec = dict(spec or {})
        return function(next(positions), leaf, spec)

    return _tree_map_with_path(visit, combined, _by_argument(combined, shapes), tree_name="inputs")


def _by_argument(combined: Mapping[str, Any], shapes: Any) -> dict[str, Any]:
    """``dynamic_shapes`` as a dict in the order of the arguments."""
    if not isinstance(shapes, Mapping):
        shapes = dict(zip(combined, shapes, strict=True))
    return {name: shapes[name] for name in combined}


def by_argument(call: Any, args: Any, kwargs: Any, shapes: Any) -> dict[str, Any]:
    """``dynamic_shapes`` as a dict by parameter; None for each where nothing is declared."""
    combined = _combine_args(call, args, kwargs)
    return dict.fromkeys(combined) if shapes is None else _by_argument(combined, shapes)


def assume_declared(env: ShapeEnv, call: Any, args: Any, kwargs: Any, shapes: Any) -> None:
    """Let what is declared hold: bounds of sizes, sizes of one name are equal, one is a multiple of another."""
    if not shapes or not isinstance(shapes, (Mapping, list, tuple)):
        return
    roots: dict[str, Any] = {}
    derived: list[tuple[Any, Any]] = []

    def declare(size: Any, dim: Any) -> None:
        symbol = expression(size)
        if not isinstance(dim, Dim) or not isinstance(symbol, sympy.Symbol):
            return
        if hasattr(dim, "root"):
            derived.append((symbol, dim))
        elif dim.__name__ in roots:
            assume(env, sympy.Eq(symbol, roots[dim.__name__]))
        else:
            roots[dim.__name__] = symbol
        for bound, relation in ((dim.min, sympy.Ge), (dim.max, sympy.Le)):
            if isinstance(bound, int):
                assume(env, relation(symbol, bound))

    def visit(_position: int, leaf: Any, spec: Any) -> None:
        if isinstance(leaf, torch.Tensor):
            for d, dim in spec.items():
                declare(leaf.shape[d], dim)

    map_dimensions(call, args, kwargs, shapes, visit)
    for symbol, dim in derived:
        if dim.root.__name__ in roots:
            assume(env, sympy.Eq(symbol, dim.fn(roots[dim.root.__name__])))


def declared_otherwise(call: Any, args: Any, kwargs: Any, shapes: Any, changes: Mapping[tuple[int, int], Any]) -> Any:
    """``dynamic_shapes`` with other entries for some dimensions, by (leaf, dimension); dimension 0 of a number."""

    def visit(position: int, leaf: Any, spec: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return {d: changes.get((position, d), dim) for d, dim in spec.items()}
        return None if changes.get((position, 0)) is Dim.STATIC else spec

    return map_dimensions(call, args, kwargs, shapes, visit)
