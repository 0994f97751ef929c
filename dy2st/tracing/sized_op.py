"""``dy2st::sized``: a tensor with its sizes spelled out.

The rows that a loop stacks have sizes that torch knows (a batch, say), but a runtime that never ran the loop's body
does not: onnxruntime then gives them as 0. This operator says them again. It is opaque to torch, which would drop a
reshape to the same sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

LIBRARY = torch.library.Library("dy2st", "DEF")
LIBRARY.define("sized(Tensor x, SymInt[] size) -> Tensor")


def _run(x: torch.Tensor, size: Sequence[int]) -> torch.Tensor:
    return x.reshape(size).clone()


def _fake(x: torch.Tensor, size: Sequence[Any]) -> torch.Tensor:
    return x.new_empty(size)


def _backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
    return gradient, None


LIBRARY.impl("sized", _run, "CompositeExplicitAutograd")
torch.library.register_fake("dy2st::sized", _fake, lib=LIBRARY)
torch.library.register_autograd("dy2st::sized", _backward, lib=LIBRARY)

sized_op = torch.ops.dy2st.sized.default
