"""``dy2st::length(x, dim)`` and ``dy2st::sized(x, size)``: sizes as tensors, and tensors with their sizes spelled out.

``length`` is a size as a 0-d int64 tensor, read when the graph runs: torch takes sizes that it has found equal for one
number, and what tests whether they are has to read each of them itself.

``sized`` says the sizes of a tensor again. The rows that a loop stacks have sizes that torch knows (a batch, say), but
a runtime that never ran the loop's body does not: onnxruntime then gives them as 0. The operator is opaque to torch,
which would drop a reshape to the same sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch.utils._sympy.interp import sympy_interp
from torch.utils._sympy.reference import TensorReferenceAnalysis

from dy2st.errors import Location

LIBRARY = torch.library.Library("dy2st", "DEF")
LIBRARY.define("sized(Tensor x, SymInt[] size) -> Tensor")


def _run(x: torch.Tensor, size: Sequence[int]) -> torch.Tensor:
    return x.reshape(size).clone()


def gradient_of_first(context: object, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
    """That of an operator which hands on its first operand."""
    return gradient, None


LIBRARY.impl("sized", _run, "CompositeExplicitAutograd")
torch.library.register_fake("dy2st::sized", lambda x, size: x.new_empty(size), lib=LIBRARY)
torch.library.register_autograd("dy2st::sized", gradient_of_first, lib=LIBRARY)

sized_op = torch.ops.dy2st.sized.default


LIBRARY.define("length(Tensor x, int dim) -> Tensor")
LIBRARY.impl("length", lambda x, dim: torch.tensor(x.shape[dim]), "CompositeExplicitAutograd")
torch.library.register_fake("dy2st::length", lambda x, dim: torch.empty((), dtype=torch.int64), lib=LIBRARY)

length_op = torch.ops.dy2st.length.default


@dataclass(frozen=True)
class Side:
    """A dimension of a tensor."""

    tensor: torch.Tensor
    dim: int

    def length(self) -> torch.Tensor:
        """Its size when the graph runs."""
        found: torch.Tensor = length_op(self.tensor, self.dim)
        return found


class _OfLengths(TensorReferenceAnalysis):
    """How relations of sizes are computed by tensors."""

    @staticmethod
    def mod(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        """The remainder, of numbers that are not negative."""
        return torch.remainder(x, y)


@dataclass(frozen=True)
class Requirement:
    """What has to hold when the graph runs: ``relation``, of sympy, with symbols that stand for ``sides``."""

    relation: Any
    sides: Mapping[Any, Side]
    location: Location
    message: str

    def test(self) -> torch.Tensor:
        """Whether it holds (0-d bool); traced."""
        lengths = {symbol: self.sides[symbol].length() for symbol in sorted(self.relation.free_symbols, key=str)}
        found: torch.Tensor = sympy_interp(_OfLengths, lengths, self.relation)
        return found


def all_equal(sides: Sequence[Side]) -> tuple[Any, dict[Any, Side]]:
    """The relation that all sizes are one, with a symbol for each."""
    symbols = {sympy.Dummy(f"size_{i}", integer=True): side for i, side in enumerate(sides)}
    first, *others = symbols
    return sympy.And(*(sympy.Eq(first, other) for other in others)), symbols


def none_zero(sides: Sequence[Side]) -> tuple[Any, dict[Any, Side]]:
    """The relation that no size is zero, with a symbol for each."""
    symbols = {sympy.Dummy(f"size_{i}", integer=True): side for i, side in enumerate(sides)}
    return sympy.And(*(sympy.Ne(symbol, 0) for symbol in symbols)), symbols
