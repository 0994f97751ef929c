"""``torch.linalg``'s factors and solutions, from the loops of ``factors``.

An operator that says whether it has failed (``info``) fails in no other way; where eager raises, the program has a
guard on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch

from dy2st.errors import OnnxError
from dy2st.onnx.building import DOUBLE, FLOAT, INT32, INT64, cast, constant, op, rank, shape_of
from dy2st.onnx.translations.factors import (
    Lu,
    all_zero,
    count,
    diagonal,
    factored,
    front,
    identity,
    order_of,
    orthogonal,
    places,
    reflected,
    square_root,
    substituted,
    turned,
)
from dy2st.onnx.translations.guard_nodes import onnx_require, onnx_tied
from dy2st.tracing.matrix_ops import triangular_op


def checked(x: ir.Value, name: str) -> None:
    """Refuse dtypes that LAPACK has no routines for here, or ONNX no arithmetic."""
    if x.dtype not in (FLOAT, DOUBLE):
        raise OnnxError(
            f"there is no ONNX translation of {name} for {x.dtype}", hint="compute it in float32 or float64"
        )


def failing(result: ir.Value, info: ir.Value, check: bool, name: str) -> ir.Value:
    """``result``, which is computed only if nothing has failed where the operator itself is asked to raise."""
    return onnx_tied(result, onnx_require(all_zero(info), f"{name}: eager raises here")) if check else result


def _joined_front(a: ir.Value, b: ir.Value) -> ir.Value | None:
    """The sizes in front that two batches of matrices are stretched to; None if those of ``b`` are these."""
    mine, other = shape_of(a)[:-2], shape_of(b)[:-2]
    if len(mine) <= len(other):
        pairs = zip(mine, other[len(other) - len(mine) :], strict=True)
        if all(x == 1 or (x == y and x != ir.SymbolicDim(None)) for x, y in pairs):
            return None
    dims = max(len(mine), len(other))
    padded = []
    for value, sizes in ((a, mine), (b, other)):
        padded.append(op("Concat", constant([1] * (dims - len(sizes))), front(value), axis=0))
    return op("Where", op("Equal", padded[1], 1), padded[0], padded[1])


def _stretched(a: ir.Value, b: ir.Value) -> ir.Value:
    """The right sides ``b`` (..., n, r) with the sizes in front that the solution has."""
    joined = _joined_front(a, b)
    if joined is None:
        return b
    made = op("Expand", b, op("Concat", joined, op("Shape", b, start=rank(b) - 2), axis=0))
    made.shape = ir.Shape([None] * max(rank(a), rank(b)))
    return made


def _triangular(a: ir.Value, b: ir.Value, *, upper: bool, left: bool = True, unit: bool = False) -> ir.Value:
    if left:
        return substituted(a, _stretched(a, b), upper=upper, unit=unit)
    b = _stretched(a, b)
    solved = substituted(turned(a, rank(a)), turned(b, rank(b)), upper=not upper, unit=unit)
    return turned(solved, rank(solved))


def onnx_solve_triangular(
    a: ir.Value, b: ir.Value, upper: bool, left: bool = True, unitriangular: bool = False
) -> ir.Value:
    """``linalg.solve_triangular``."""
    checked(a, "linalg.solve_triangular")
    return _triangular(a, b, upper=upper, left=left, unit=unitriangular)


def _by_factors(factors: ir.Value, order: ir.Value, b: ir.Value) -> ir.Value:
    """The solution of ``a x = b`` by the LU factors of ``a`` and the order of its rows."""
    b = _stretched(factors, b)
    # Not Expand, which in onnxruntime 1.31 leaves a size of one that has to become zero.
    zeros = op("ConstantOfShape", op("Shape", b), value=ir.tensor([0], dtype=INT64), dtype=INT64)
    index = op("Add", op("Unsqueeze", order, [-1]), zeros)
    moved = op("GatherElements", b, index, axis=-2)
    moved.shape = b.shape
    lower = substituted(factors, moved, upper=False, unit=True)
    return substituted(factors, lower, upper=True)


def onnx_solve_ex(a: ir.Value, b: ir.Value, left: bool = True, check_errors: bool = False) -> Sequence[ir.Value]:
    """``linalg.solve_ex``: the solution, the factors, the pivots and the info."""
    checked(a, "linalg.solve")
    vector = rank(b) == 1 or list(shape_of(b)) == list(shape_of(a)[:-1])
    if vector:
        sizes = [*shape_of(b), 1]
        b = op("Unsqueeze", b, [-1])
        b.shape = ir.Shape(sizes)
    found = factored(a)
    if left:
        solved = _by_factors(found.factors, found.order, b)
    else:
        # x a = b is a' x' = b': from the same factors only in another order.
        whole = factored(turned(a, rank(a)))
        moved = turned(b, rank(b))
        solved = _by_factors(whole.factors, whole.order, moved)
        solved = turned(solved, rank(solved))
    if vector:
        solved = op("Squeeze", solved, [-1])
    solved = failing(solved, found.info, check_errors, "torch.linalg.solve")
    return solved, found.factors, cast(found.pivots, INT32), cast(found.info, INT32)


def onnx_inv_ex(a: ir.Value, check_errors: bool = False) -> Sequence[ir.Value]:
    """``linalg.inv_ex``: the inverse and the info."""
    checked(a, "linalg.inv")
    found = factored(a)
    made = _by_factors(found.factors, found.order, identity(a, count(a, -1)))
    return failing(made, found.info, check_errors, "torch.linalg.inv"), cast(found.info, INT32)


def onnx_cholesky_ex(a: ir.Value, upper: bool = False, check_errors: bool = False) -> Sequence[ir.Value]:
    """``linalg.cholesky_ex``: the factor and the info."""
    checked(a, "linalg.cholesky")
    made, info = square_root(turned(a, rank(a)) if upper else a)
    made = turned(made, rank(a)) if upper else made
    return failing(made, info, check_errors, "torch.linalg.cholesky"), cast(info, INT32)


def onnx_cholesky_solve(b: ir.Value, factor: ir.Value, upper: bool = False) -> ir.Value:
    """``cholesky_solve``."""
    checked(b, "cholesky_solve")
    other = turned(factor, rank(factor))
    lower, higher = (other, factor) if upper else (factor, other)
    return _triangular(higher, _triangular(lower, b, upper=False), upper=True)


def onnx_cholesky_inverse(factor: ir.Value, upper: bool = False) -> ir.Value:
    """``cholesky_inverse``."""
    return onnx_cholesky_solve(identity(factor, count(factor, -1)), factor, upper)


def onnx_slogdet(a: ir.Value) -> Sequence[ir.Value]:
    """``linalg.slogdet``: the sign, the logarithm, the factors and the pivots."""
    checked(a, "linalg.slogdet")
    found = factored(a)
    values = diagonal(found.factors)
    odd = _turns(found, values, op("Less", values, 0.0))
    logarithm = op("ReduceSum", op("Log", op("Abs", values)), [-1], keepdims=0)
    sign = op("Where", odd, constant(-1.0, a.dtype), constant(1.0, a.dtype))
    sign = op("Where", op("Equal", found.info, 0), sign, 0.0)
    return sign, logarithm, found.factors, cast(found.pivots, INT32)


def determinant(a: ir.Value) -> ir.Value:
    """``Det`` by factors, for float64."""
    found = factored(a)
    values = diagonal(found.factors)
    product = op("ReduceProd", values, [rank(a) - 2], keepdims=0)
    return op("Where", _turns(found, values), op("Neg", product), product)


def _turns(found: Lu, values: ir.Value, *more: ir.Value) -> ir.Value:
    """Whether the exchanges of rows, and ``more`` flags beside the diagonal's ``values``, are odd in number."""
    numbers = op("Range", 1, op("Add", count(found.factors, -1), 1), 1)
    changes = [*more, op("Not", op("Equal", found.pivots, numbers))]
    axis = rank(found.factors) - 2
    turns = [cast(op("ReduceSum", cast(each, values.dtype), [axis], keepdims=0), INT64) for each in changes]
    total = op("Add", *turns) if len(turns) > 1 else turns[0]
    return op("Equal", op("Mod", total, 2), 1)


def onnx_lu_factor_ex(a: ir.Value, pivot: bool = True, check_errors: bool = False) -> Sequence[ir.Value]:
    """``linalg.lu_factor_ex``: the factors, the pivots and the info."""
    checked(a, "linalg.lu_factor")
    if not pivot:
        raise OnnxError("there is no ONNX translation of linalg.lu_factor without pivots", hint="leave out pivot=False")
    found = factored(a)
    made = failing(found.factors, found.info, check_errors, "torch.linalg.lu_factor")
    return made, cast(found.pivots, INT32), cast(found.info, INT32)


def _unpacked(factors: ir.Value, order: ir.Value) -> Sequence[ir.Value]:
    """P, L and U by the factors (..., m, n) and the order of the rows (..., m)."""
    height, width = count(factors, -2), count(factors, -1)
    steps = op("Unsqueeze", op("Min", height, width), [0])
    rows, columns = places(height), places(width, across=True)
    ones, zeros = (constant(number, factors.dtype) for number in (1.0, 0.0))
    unit = op("Where", op("Equal", rows, columns), ones, zeros)
    lower = op("Where", op("Greater", rows, columns), factors, unit)
    upper = op("Where", op("LessOrEqual", rows, columns), factors, 0.0)
    turns = cast(op("Equal", rows, op("Unsqueeze", order, [-2])), factors.dtype)
    return turns, op("Slice", lower, [0], steps, [-1]), op("Slice", upper, [0], steps, [-2])


def onnx_lu(a: ir.Value, pivot: bool = True) -> Sequence[ir.Value]:
    """``linalg.lu``: P, L and U."""
    checked(a, "linalg.lu")
    if not pivot:
        raise OnnxError("there is no ONNX translation of linalg.lu without pivots", hint="leave out pivot=False")
    found = factored(a)
    return _unpacked(found.factors, found.order)


def onnx_lu_unpack(
    factors: ir.Value, pivots: ir.Value, unpack_data: bool = True, unpack_pivots: bool = True
) -> Sequence[ir.Value]:
    """``lu_unpack``; what is not asked for is empty."""
    checked(factors, "lu_unpack")
    turns, *parts = _unpacked(factors, order_of(pivots, factors))
    nothing = op("Expand", constant(0.0, factors.dtype), [0])
    return (turns if unpack_pivots else nothing, *(parts if unpack_data else (nothing, nothing)))


def onnx_lu_solve(
    factors: ir.Value, pivots: ir.Value, b: ir.Value, left: bool = True, adjoint: bool = False
) -> ir.Value:
    """``linalg.lu_solve``."""
    checked(factors, "linalg.lu_solve")
    if not left or adjoint:
        raise OnnxError(
            "there is no ONNX translation of linalg.lu_solve of a transposed matrix", hint="use linalg.solve"
        )
    return _by_factors(factors, order_of(pivots, factors), b)


def onnx_qr(a: ir.Value, mode: str = "reduced") -> Sequence[ir.Value]:
    """``linalg.qr``: Q and R, with the signs that LAPACK's reflections give; Q is empty for ``mode="r"``."""
    checked(a, "linalg.qr")
    r, vectors, factors = reflected(a)
    height = count(a, -2)
    steps = op("Min", height, count(a, -1))
    if mode != "complete":
        r = op("Slice", r, [0], op("Unsqueeze", steps, [0]), [-2])
    if mode == "r":
        return op("Expand", constant(0.0, a.dtype), [0]), r
    start = identity(a, height, height if mode == "complete" else steps)
    return orthogonal(start, steps, vectors, factors), r


aten = torch.ops.aten
TRANSLATIONS: dict[Any, Any] = {
    aten._linalg_solve_ex.default: onnx_solve_ex,
    aten._linalg_slogdet.default: onnx_slogdet,
    aten.cholesky_inverse.default: onnx_cholesky_inverse,
    aten.cholesky_solve.default: onnx_cholesky_solve,
    aten.linalg_cholesky_ex.default: onnx_cholesky_ex,
    aten.linalg_inv_ex.default: onnx_inv_ex,
    aten.linalg_lu.default: onnx_lu,
    aten.linalg_lu_factor_ex.default: onnx_lu_factor_ex,
    aten.linalg_lu_solve.default: onnx_lu_solve,
    aten.lu_unpack.default: onnx_lu_unpack,
    aten.linalg_qr.default: onnx_qr,
    aten.linalg_solve_triangular.default: onnx_solve_triangular,
    triangular_op: onnx_solve_triangular,
}
