"""Torch functions of matrices, and padding, written so that any size will do: torch's own are written for one size.

``cov``, ``corrcoef``, ``kron``, ``cdist``, ``fill_diagonal_``, ``index_reduce`` and ``pad``.

Source: ``cov`` and ``corrcoef`` of ATen/native/Correlation.cpp; ``KronImpl`` of ATen/native/LinearAlgebra.cpp;
``cdist`` of ATen/native/Distance.cpp; ``fill_diagonal_`` of ATen/native/Fill.cpp; ``index_reduce`` of
ATen/native/TensorAdvancedIndexing.cpp.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.nn import functional

from dy2st.calls.torch_functions.registry import ints, replaces
from dy2st.calls.torch_functions.scaled_addends import as_operand
from dy2st.source.user_frames import location_of, users_frame
from dy2st.staging.session import MODE
from dy2st.values.number import Number, number_tensor, symbolic


def _several(variables: Any, name: str) -> None:
    """Of one variable torch gives a number in place of a matrix: the program is not for that."""
    if isinstance(variables, int) or MODE.capture is None:
        return
    ok = torch.ops.aten.scalar_tensor.default(variables, dtype=torch.int64) != 1
    what = f"exported for {name}() of other than one variable"
    MODE.capture.guards.require(ok, location_of(users_frame()), what, always=True)


def _weights(**given: torch.Tensor | None) -> None:
    """The program is for weights that torch takes: none is negative."""
    for name, weights in given.items():
        if weights is not None and MODE.capture is not None:
            what = f"torch.cov: {name} are negative: eager raises here"
            MODE.capture.guards.require((weights >= 0).all(), location_of(users_frame()), what)


@replaces("cov")
def cov(
    input: torch.Tensor,  # noqa: A002 - torch's name
    *,
    correction: int = 1,
    fweights: torch.Tensor | None = None,
    aweights: torch.Tensor | None = None,
) -> Any:
    """``torch.cov``: [variables, variables], or a number for a single one."""
    dims = input.dim()
    if dims not in (1, 2) or input.is_complex():
        return NotImplemented
    x = input if input.is_floating_point() else input.to(torch.get_default_dtype())
    x = x if dims == 2 else x[None]
    _several(x.shape[0], "cov")
    weights = fweights
    if aweights is not None:
        weights = aweights if fweights is None else aweights * fweights
    _weights(fweights=fweights, aweights=aweights)
    if weights is None:
        mean = x.mean(1, keepdim=True)
        total: Any = torch.full((), 1.0, dtype=x.dtype) * x.shape[1]
    else:
        total = weights.sum()
        mean = (x * weights).sum(1, keepdim=True) / total
    if weights is None or aweights is None or correction == 0:
        norm = total - correction
    else:
        norm = total - correction * (weights * aweights).sum() / total
    apart = x - mean
    weighted = apart if weights is None else apart * weights
    result = apart @ weighted.t() / norm.clamp(min=0)
    return result.reshape(()) if ints(x.shape[0]) and x.shape[0] == 1 else result


@replaces("corrcoef")
def corrcoef(input: torch.Tensor) -> Any:  # noqa: A002
    """``torch.corrcoef``: [variables, variables], or a number for a single one."""
    found = cov(input)
    if found is NotImplemented:
        return NotImplemented
    if found.dim() == 0:
        return found / found
    scale = found.diagonal().sqrt()
    return (found / scale[:, None] / scale[None]).clip(-1, 1)


@replaces("kron", sized=True)
def kron(input: torch.Tensor, other: torch.Tensor) -> Any:  # noqa: A002
    """``torch.kron``: each element of one tensor times all of the other."""
    dims = max(input.dim(), other.dim())
    a, b = ([1] * (dims - t.dim()) + list(t.shape) for t in (input, other))
    blocks = input.reshape([size for n in a for size in (n, 1)]) * other.reshape([size for n in b for size in (1, n)])
    return blocks.reshape([n * m for n, m in zip(a, b, strict=True)])


@replaces("cdist", sized=True)
def cdist(
    x1: torch.Tensor, x2: torch.Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"
) -> Any:
    """``torch.cdist`` of as many rows as only the data says: torch would ask whether they are many."""
    sizes = (*x1.shape, *x2.shape)
    by_number = compute_mode == "use_mm_for_euclid_dist_if_necessary"
    if not by_number or not any(isinstance(n, torch.SymInt) and free_unbacked_symbols(n) for n in sizes):
        return NotImplemented
    return torch.ops.aten._cdist_forward.default(x1, x2, p, 2)


@replaces("fill_diagonal_")
def fill_diagonal_(input: torch.Tensor, fill_value: Any, wrap: bool = False) -> Any:  # noqa: A002
    """``Tensor.fill_diagonal_`` of a matrix: by places, not by strides."""
    if input.dim() != 2 or (wrap and not ints(*input.shape)):
        return NotImplemented
    rows, columns = input.shape
    if wrap and rows > columns + 1:
        return NotImplemented
    value = as_operand(fill_value, input)
    value = value if isinstance(value, torch.Tensor) else number_tensor(value).to(input.dtype)
    i, j = torch.arange(rows, device=input.device), torch.arange(columns, device=input.device)
    return input.copy_(torch.where(i[:, None] == j, value, input))


@replaces("index_reduce")
def index_reduce(
    input: torch.Tensor,  # noqa: A002
    dim: int,
    index: torch.Tensor,
    source: torch.Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Any:
    """``Tensor.index_reduce``: whole slices, as a ``scatter_reduce``."""
    if source.dim() == 0 or index.dim() != 1:
        return NotImplemented
    shape = [-1 if d == dim % source.dim() else 1 for d in range(source.dim())]
    places = index.to(torch.int64).reshape(shape).expand(source.shape)
    return input.scatter_reduce(dim, places, source, reduce, include_self=include_self)


@replaces("index_reduce_")
def index_reduce_(input: torch.Tensor, *args: Any, **kwargs: Any) -> Any:  # noqa: A002
    """``Tensor.index_reduce_``."""
    found = index_reduce(input, *args, **kwargs)
    return found if found is NotImplemented else input.copy_(found)


@replaces("pad")
def pad(input: torch.Tensor, pad: Any, mode: str = "constant", value: Any = None) -> Any:  # noqa: A002
    """``functional.pad`` with a data-dependent number; or what an edge grows by, before another one is cut.

    onnxruntime 1.31 cuts first, and has nothing to reflect or repeat then.
    """
    if mode in {"reflect", "replicate"} and ints(*pad) and min(pad) < 0 < max(pad):
        grown = functional.pad(input, [max(side, 0) for side in pad], mode)
        return functional.pad(grown, [min(side, 0) for side in pad])
    if mode != "constant" or not isinstance(value, (Number, torch.SymInt, torch.SymFloat, torch.Tensor)):
        return NotImplemented
    sides = list(map(symbolic, pad))
    filled = functional.pad(input, sides)
    inside = functional.pad(torch.ones_like(input, dtype=torch.bool), sides)
    number = value if isinstance(value, torch.Tensor) else number_tensor(value)
    return torch.where(inside, filled, number.to(input.dtype))


@replaces("einsum", sized=True)
def einsum(*args: Any) -> Any:
    """``torch.einsum`` of sizes that are known only when the graph runs: from left to right.

    Where opt_einsum is installed, torch has it choose the order, by the sizes.
    """
    chooser = torch.backends.opt_einsum
    if not chooser.is_available() or not chooser.enabled:
        return NotImplemented
    with chooser.flags(enabled=False):
        return torch.einsum(*args)


@replaces("tensordot", sized=True)
def tensordot(a: torch.Tensor, b: torch.Tensor, dims: Any = 2, out: Any = None) -> Any:
    """``torch.tensordot`` of sizes that are known only when the graph runs, as an ``einsum``."""
    if out is not None or not isinstance(dims, (int, tuple, list)):
        return NotImplemented
    if isinstance(dims, int):
        pairs = list(zip(range(a.dim() - dims, a.dim()), range(dims), strict=True))
    else:
        first, second = ([each] if isinstance(each, int) else list(each) for each in dims)
        pairs = [(i % a.dim(), j % b.dim()) for i, j in zip(first, second, strict=True)]
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    if a.dim() + b.dim() > len(letters):
        return NotImplemented
    left, right = letters[: a.dim()], list(letters[a.dim() : a.dim() + b.dim()])
    for i, j in pairs:
        right[j] = left[i]
    kept = [c for i, c in enumerate(left) if i not in dict(pairs)]
    kept += [c for j, c in enumerate(right) if j not in {j for _, j in pairs}]
    operands = f"{left},{''.join(right)}->{''.join(kept)}", a, b
    product = einsum(*operands)
    return torch.einsum(*operands) if product is NotImplemented else product
