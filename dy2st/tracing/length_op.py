"""``dy2st::length(x, dim)``: a size as a 0-d int64 tensor, read when the graph runs.

torch takes sizes that it has found equal for one number. What tests whether they are has to read each of them itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from dy2st.errors import Location
from dy2st.tracing.sized_op import LIBRARY

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


@dataclass(frozen=True)
class Requirement:
    """What has to hold when the graph runs: all sizes are equal, or with ``nonempty`` none is zero."""

    sides: tuple[Side, ...]
    nonempty: bool
    location: Location
    message: str

    def test(self) -> torch.Tensor:
        """Whether it holds (0-d bool); traced."""
        lengths = [side.length() for side in self.sides]
        if self.nonempty:
            tests = [length != 0 for length in lengths]
        else:
            tests = [length == lengths[0] for length in lengths[1:]]
        return tests[0] if len(tests) == 1 else torch.stack(tests).all()
