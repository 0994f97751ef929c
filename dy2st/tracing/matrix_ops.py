"""``dy2st::triangular``: ``torch.linalg.solve_triangular`` of a matrix of any size, which is data-dependent.

torch's own asks whether there are several matrices, and how large they are, before it says what comes out.

Source: ``linalg_solve_triangular`` of tools/autograd/derivatives.yaml and FunctionsManual.cpp.
"""

from __future__ import annotations

from typing import Any

import torch

from dy2st.tracing.size_ops import LIBRARY

LIBRARY.define("triangular(Tensor a, Tensor b, bool upper, bool left, bool unit) -> Tensor")


def _run(a: torch.Tensor, b: torch.Tensor, upper: bool, left: bool, unit: bool) -> torch.Tensor:
    found: torch.Tensor = torch.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit)
    return found.contiguous()


def _like_b(a: torch.Tensor, b: torch.Tensor, *_: Any) -> torch.Tensor:
    del a
    return b.new_empty(b.shape)


def _saved(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    a, _, ctx.upper, ctx.left, ctx.unit = inputs
    ctx.save_for_backward(a, output)


def _gradient(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    a, x = ctx.saved_tensors
    of_b = triangular_op(a.t(), gradient, not ctx.upper, ctx.left, ctx.unit)
    of_a = -(of_b @ x.t() if ctx.left else x.t() @ of_b)
    diagonal = int(ctx.unit)
    return of_a.triu(diagonal) if ctx.upper else of_a.tril(-diagonal), of_b, None, None, None


LIBRARY.impl("triangular", _run, "CompositeExplicitAutograd")
torch.library.register_fake("dy2st::triangular", _like_b, lib=LIBRARY)
torch.library.register_autograd("dy2st::triangular", _gradient, setup_context=_saved, lib=LIBRARY)

triangular_op = torch.ops.dy2st.triangular.default
