"""Which sizes a program takes: the range that is declared for each, and which of them are one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch.export.graph_signature import InputKind, TensorArgument
from torch.utils._sympy.numbers import int_oo

from dy2st.capture.carried_state import PREFIX
from dy2st.input_spec import DimensionSpec, InputSpec

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def declared_sizes(program: ExportedProgram, names: Sequence[str]) -> dict[str, tuple[DimensionSpec | None, ...]]:
    """The dimensions of each tensor of a call: fixed, or named by the program's symbol, with the range declared for it.

    ``names`` are those of the tensors in their order; if the program has not as many, there is nothing. A size that
    can't be chosen by itself is None: one that the program computes from another (``2*n``), and the other.
    """
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    inputs = [spec.arg for spec in program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]
    # Python values are constants of a program, or numbers.
    own = [each.name for each in inputs if isinstance(each, TensorArgument) and not each.name.startswith(PREFIX)]
    given = [values.get(each) for each in own]
    if len(given) != len(names):
        return {}
    shapes: list[list[Any]] = []  # ints, and expressions of torch's symbols
    for each in given:
        if not isinstance(each, torch.Tensor):
            return {}
        sizes: list[Any] = list(each.shape)  # of a traced tensor, not all of them are ints
        shapes.append([size.node.expr if isinstance(size, torch.SymInt) else size for size in sizes])
    computed = {
        symbol
        for shape in shapes
        for size in shape
        if not isinstance(size, int) and not size.is_symbol
        for symbol in size.free_symbols
    }

    def dimension(size: Any) -> DimensionSpec | None:
        if isinstance(size, int):
            return DimensionSpec(size=size)
        if not size.is_symbol or size in computed:
            return None
        known = program.range_constraints.get(size)
        low = 0 if known is None else max(0, int(known.lower))
        high = None if known is None or known.upper == int_oo else int(known.upper)
        return DimensionSpec(name=str(size), low=low, high=high)

    return {name: tuple(map(dimension, shape)) for name, shape in zip(names, shapes, strict=True)}


def within(specs: Mapping[str, InputSpec], program: ExportedProgram) -> dict[str, InputSpec]:
    """Specs by argument, without the sizes that the program does not take: those that were fixed, as was allowed."""
    declared = declared_sizes(program, list(specs))

    def both(given: DimensionSpec, known: DimensionSpec | None) -> DimensionSpec:
        if known is None or given.name is None:
            return given
        if known.name is None:
            return known
        highest = [each for each in (given.high, known.high) if each is not None]
        return replace(given, low=max(given.low or 0, known.low or 0), high=min(highest, default=None))

    return {
        name: replace(spec, dimensions=tuple(map(both, spec.dimensions, declared.get(name, spec.dimensions))))
        for name, spec in specs.items()
    }
