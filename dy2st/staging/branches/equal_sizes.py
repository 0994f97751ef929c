"""Sizes that are equal where either arm of a branch is taken, since the test says so: after it they are one size.

if positions.shape[0] != 1: positions = positions[-1:]      # one row on either path
return 0 if x.numel() == 0 else x.shape[0]                  # x.shape[0] on either path
"""

from __future__ import annotations

from typing import Any

import torch

from dy2st.staging.session import Session
from dy2st.tracing.size_ops import sized_op
from dy2st.tracing.subgraph import Subgraph
from dy2st.tracing.tracer import same_size


class EqualSizes:
    """Of a branch with these arms."""

    def __init__(self, capture: Session, arms: tuple[Subgraph, Subgraph]) -> None:
        self.capture, self.arms = capture, arms

    def number(self, a: Any, b: Any) -> tuple[Any, Any]:
        """Two values at the ends of the arms; ints that are one number, as one."""
        ints = all(isinstance(each, (int, torch.SymInt)) and not isinstance(each, bool) for each in (a, b))
        return self._alike(a, b) if ints else (a, b)

    def tensors(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Results of the arms, with the sizes that are the same in both."""
        if a.dim() != b.dim():
            return a, b
        # Each look at a shape makes new objects of its sizes.
        before = list(a.shape), list(b.shape)
        pairs = [self._alike(x, y) for x, y in zip(*before, strict=True)]
        sizes = [x for x, _ in pairs], [y for _, y in pairs]
        if any(type(size) is int and size == 0 for side in sizes for size in side):
            return a, b  # onnxruntime takes no reshape to nothing and to sizes that it does not know
        return self._sized(a, before[0], sizes[0], 0), self._sized(b, before[1], sizes[1], 1)

    def _alike(self, a: Any, b: Any) -> tuple[Any, Any]:
        """Two ints, or one of them twice, if it is what the other one is in its arm."""
        if same_size(a, b):
            return a, b
        if self._is_known(a) and self._equal(a, b, 1):
            return a, a
        return (b, b) if self._is_known(b) and self._equal(a, b, 0) else (a, b)

    def _equal(self, a: Any, b: Any, arm: int) -> bool:
        """Whether two sizes are equal where an arm is taken."""
        with self.capture.tracing.inside(self.arms[arm].layer):
            return same_size(a, b)

    def _is_known(self, size: Any) -> bool:
        """Whether it is known outside of the arms."""
        return isinstance(size, int) or size in self.capture.subgraph.layer.symbols

    def _sized(self, tensor: torch.Tensor, before: list[Any], sizes: list[Any], arm: int) -> torch.Tensor:
        if all(same is old for same, old in zip(sizes, before, strict=True)):
            return tensor
        with self.capture.tracing.inside(self.arms[arm].layer):
            made: torch.Tensor = sized_op(tensor, sizes)
            return made
