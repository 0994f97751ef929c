"""Singular values, eigenvalues of symmetric matrices, and pseudoinverses: one-sided Jacobi rotations in a loop.

Pairs of columns are turned until all are orthogonal; then their lengths are the singular values. A sweep turns each
pair once, half of the columns against the other half at a time, as the players of a round-robin tournament meet. All is
computed in float64. Singular vectors and eigenvectors have no definite sign: they go through a node that
:mod:`dy2st.onnx.passes.definite_signs` replaces, once it has seen that the signs cancel out.

Source: M. R. Hestenes, "Inversion of matrices by biorthogonalization and related results", 1958; J. Demmel and
K. Veselić, "Jacobi's method is more accurate than QR", 1992; ``gesvd`` and ``syevd`` of LAPACK for what they answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch

from dy2st.errors import UntranslatedError
from dy2st.onnx.building import DOUBLE, INT64, cast, constant, loop, op, ops, rank
from dy2st.onnx.translations.factors import Body, count, identity, places, turned
from dy2st.onnx.translations.solvers import checked, failing
from dy2st.onnx.translations.spectrum_nodes import DISTINCT, GAP, POSITIVE, spectrum

# The rotations converge quadratically: ten sweeps are enough for matrices of a thousand columns (Demmel and Veselić).
_SWEEPS = 12
_EPSILON = 2.0**-52


def _like(made: ir.Value, x: ir.Value) -> ir.Value:
    """``made``, which has the sizes of ``x``."""
    made.shape = x.shape
    return made


def _next_places(number: ir.Value) -> ir.Value:
    """Where each place of a tournament's table of ``number`` (even) gets its player from, for the next round."""
    half = op("Div", number, 2)
    last = op("Sub", number, 1)
    i = op("Range", 0, number, 1)
    inner = op("Where", op("Less", i, half), op("Sub", i, 1), op("Add", i, 1))
    second = op("Where", op("Equal", half, 1), last, half)
    found = op("Where", op("Equal", i, 1), second, inner)
    end = op("Where", op("Equal", half, 1), last, op("Sub", half, 1))
    return op("Where", op("Equal", i, 0), i, op("Where", op("Equal", i, last), end, found))


def _dot(x: ir.Value, y: ir.Value) -> ir.Value:
    """Products of columns (..., 1, n)."""
    return op("ReduceSum", op("Mul", x, y), [-2], keepdims=1)


def _even(x: ir.Value) -> ir.Value:
    """With a column of zeros more, if the number of columns is odd."""
    odd = op("Unsqueeze", op("Mod", count(x, -1), 2), [0])
    sizes = op("Concat", op("Shape", x, start=0, end=rank(x) - 1), odd, axis=0)
    made = op("Concat", x, op("Expand", constant(0.0, DOUBLE), sizes), axis=-1)
    made.shape = ir.Shape([None] * rank(x))
    return made


def orthogonalised(a: ir.Value) -> tuple[ir.Value, ir.Value]:
    """``a v`` (..., m, k) with orthogonal columns, and the orthogonal ``v`` (..., n, k); ``k`` is ``n`` or one more."""
    a = _like(cast(a, DOUBLE), a)
    height, width = count(a, -2), count(a, -1)
    stacked = op("Concat", a, identity(a, width), axis=-2)
    stacked.shape = ir.Shape([None] * rank(a))
    whole = _even(stacked)
    number = count(whole, -1)
    half = op("Unsqueeze", op("Div", number, 2), [0])
    following, rows = _next_places(number), op("Unsqueeze", height, [0])

    def body(_: ir.Value, state: Sequence[ir.Value]) -> Body:
        (x,) = state
        left, right = op("Slice", x, [0], half, [-1]), op("Slice", x, half, op("Shape", x, start=-1), [-1])
        up, down = (op("Slice", each, [0], rows, [-2]) for each in (left, right))
        alpha, beta, gamma = _dot(up, up), _dot(down, down), _dot(up, down)
        bound = op("Mul", _EPSILON, op("Mul", op("Sqrt", alpha), op("Sqrt", beta)))
        apart = op("Not", op("Greater", op("Abs", gamma), bound))
        zeta = op("Div", op("Sub", beta, alpha), op("Mul", 2.0, op("Where", apart, 1.0, gamma)))
        sign = op("Where", op("Less", zeta, 0.0), constant(-1.0, DOUBLE), constant(1.0, DOUBLE))
        tangent = op("Div", sign, op("Add", op("Abs", zeta), op("Sqrt", op("Add", 1.0, op("Mul", zeta, zeta)))))
        tangent = op("Where", apart, 0.0, tangent)
        cosine = op("Div", 1.0, op("Sqrt", op("Add", 1.0, op("Mul", tangent, tangent))))
        sine = op("Mul", cosine, tangent)
        new_left = op("Sub", op("Mul", cosine, left), op("Mul", sine, right))
        new_right = op("Add", op("Mul", sine, left), op("Mul", cosine, right))
        return None, [op("Gather", op("Concat", new_left, new_right, axis=-1), following, axis=-1)], []

    rounds = op("Mul", _SWEEPS, op("Max", op("Sub", number, 1), 0))
    (made,) = loop(rounds, [whole], body)
    ends = op("Unsqueeze", op("Add", height, width), [0])
    found = op("Slice", made, [0], rows, [-2]), op("Slice", made, rows, ends, [-2])
    for each in found:
        each.shape = ir.Shape([None] * rank(a))
    return found


def _lengths(x: ir.Value) -> ir.Value:
    """The lengths of columns (..., k)."""
    return op("Squeeze", op("Sqrt", _dot(x, x)), [-2])


def _greatest(values: ir.Value, number: ir.Value) -> ir.Value:
    """The ``number`` greatest in each row, in descending order."""
    return ops("TopK", values, op("Unsqueeze", number, [0]), dtypes=(None, INT64), axis=-1)[0]


def _finite(result: ir.Value, a: ir.Value, name: str) -> ir.Value:
    """``result``; eager raises for a matrix that is not finite."""
    wrong = op("Or", op("IsNaN", a), op("IsInf", a))
    return failing(result, cast(wrong, INT64), True, name)


def onnx_svd(a: ir.Value, full_matrices: bool = False, compute_uv: bool = True, **_: Any) -> Sequence[ir.Value]:
    """``linalg.svd``, the thin one, and ``linalg.svdvals``."""
    checked(a, "linalg.svd")
    made, v = orthogonalised(a)
    number = op("Min", count(a, -2), count(a, -1))
    if not compute_uv:
        values = _finite(cast(_greatest(_lengths(made), number), a.dtype), a, "torch.linalg.svd")
        nothing = op("Expand", constant(0.0, a.dtype), [0])
        return nothing, values, nothing
    height, width = (None, None) if a.shape is None else a.shape[-2:]
    if full_matrices and (not isinstance(height, int) or height != width):
        raise UntranslatedError(
            "there is no ONNX translation of linalg.svd of a matrix that is not square: what its full_matrices add is"
            " not definite",
            hint="say full_matrices=False",
        )
    lengths, order = ops("TopK", _lengths(made), op("Unsqueeze", number, [0]), dtypes=(None, INT64), axis=-1)
    lengths.shape = ir.Shape([None] * (rank(a) - 1))
    across = op("Unsqueeze", lengths, [-2])
    left = op("Div", _columns(made, order, a), op("Where", op("Equal", across, 0.0), 1.0, across))
    positive = op("Greater", lengths, op("Mul", GAP, _first(lengths)))
    found = _finite(cast(left, a.dtype), a, "torch.linalg.svd")
    right = turned(_columns(v, order, a), rank(a))
    return spectrum(
        found, cast(lengths, a.dtype), cast(right, a.dtype), ((POSITIVE, _all(positive)), (DISTINCT, _apart(lengths)))
    )


def onnx_eigh(a: ir.Value, uplo: str = "L", compute_v: bool = True) -> Sequence[ir.Value]:
    """``linalg.eigh`` and ``linalg.eigvalsh``, from the least; moved to be positive while they are computed."""
    checked(a, "linalg.eigh")
    number = count(a, -1)
    rows, columns = places(number), places(number, across=True)
    lower = op("GreaterOrEqual" if uplo.upper() == "L" else "LessOrEqual", rows, columns)
    whole = _like(cast(op("Where", lower, a, turned(a, rank(a))), DOUBLE), a)
    bound = op("ReduceSum", op("Abs", whole), [-1, -2], keepdims=1)
    moved = op("Add", whole, op("Mul", bound, identity(whole, number)))
    moved.shape = a.shape
    made, v = orthogonalised(moved)
    # The column that makes the number even is the last, and no longer than any other.
    greatest, chosen = ops("TopK", _lengths(made), op("Unsqueeze", number, [0]), dtypes=(None, INT64), axis=-1)
    ascending, turn = ops("TopK", greatest, op("Unsqueeze", number, [0]), dtypes=(None, INT64), axis=-1, largest=0)
    ascending.shape = ir.Shape([None] * (rank(a) - 1))
    values = op("Sub", ascending, op("Squeeze", bound, [-1]))
    said = _finite(cast(values, a.dtype), a, "torch.linalg.eigh")
    if not compute_v:
        return said, op("Expand", constant(0.0, a.dtype), [0])
    vectors = _columns(v, op("GatherElements", chosen, turn, axis=-1), a)
    _, said, made = spectrum(cast(vectors, a.dtype), said, cast(vectors, a.dtype), ((DISTINCT, _apart(ascending)),))
    return said, made


def _first(values: ir.Value) -> ir.Value:
    return op("ReduceMax", op("Abs", values), [-1], keepdims=1)


def _all(test: ir.Value) -> ir.Value:
    """Whether all flags hold."""
    return op("Equal", op("ReduceSum", op("Reshape", cast(op("Not", test), INT64), [-1]), [0], keepdims=0), 0)


def _apart(values: ir.Value) -> ir.Value:
    """Whether neighbours in each sorted row (..., n) differ."""
    size = op("Shape", values, start=-1)
    before = op("Slice", values, [0], op("Sub", size, 1), [-1])
    after = op("Slice", values, [1], size, [-1])
    return _all(op("Greater", op("Abs", op("Sub", after, before)), op("Mul", GAP, _first(values))))


def _columns(matrix: ir.Value, order: ir.Value, a: ir.Value) -> ir.Value:
    """The columns of ``matrix`` (..., m, k) in an order (..., n)."""
    shape = op("Concat", op("Shape", matrix, end=rank(a) - 1), op("Shape", order, start=-1), axis=0)
    found = op("GatherElements", matrix, op("Expand", op("Unsqueeze", order, [-2]), shape), axis=-1)
    found.shape = ir.Shape([None] * rank(a))
    return found


def onnx_pinv(a: ir.Value, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> ir.Value:
    """``linalg.pinv``: what is below the greatest singular value by ``rtol``, or below ``atol``, counts as zero."""
    checked(a, "linalg.pinv")
    if hermitian:
        raise UntranslatedError("there is no ONNX translation of linalg.pinv(hermitian=True)", hint="leave it out")
    made, v = orthogonalised(a)
    lengths = op("Unsqueeze", _lengths(made), [-2])
    largest = op("ReduceMax", lengths, [-1], keepdims=1)
    if rtol is None and atol is None:
        epsilon = torch.finfo(torch.float64 if a.dtype == DOUBLE else torch.float32).eps
        rtol = op("Mul", cast(op("Max", count(a, -2), count(a, -1)), DOUBLE), epsilon)
    bounds = [op("Mul", _number(rtol), largest)] if rtol is not None else []
    bounds += [_number(atol)] if atol is not None else []
    bound = op("Max", *bounds) if len(bounds) > 1 else bounds[0]
    squares = op("Mul", lengths, lengths)
    kept = op("Greater", lengths, bound)
    inverse = op("Where", kept, op("Div", 1.0, op("Where", kept, squares, 1.0)), 0.0)
    found = op("MatMul", op("Mul", v, inverse), turned(made, rank(made)))
    found.shape = None if a.shape is None else ir.Shape([*a.shape[:-2], a.shape[-1], a.shape[-2]])
    return _finite(cast(found, a.dtype), a, "torch.linalg.pinv")


def _number(value: Any) -> ir.Value:
    """A tolerance, which may be one for each matrix, as (..., 1, 1)."""
    if not isinstance(value, ir.Value):
        return constant(float(value), DOUBLE)
    value = _like(cast(value, DOUBLE), value)
    return op("Unsqueeze", value, [-1, -2]) if value.shape is not None and rank(value) else value


aten = torch.ops.aten
TRANSLATIONS: dict[Any, Any] = {
    aten._linalg_svd.default: onnx_svd,
    aten._linalg_eigh.default: onnx_eigh,
    aten.linalg_svdvals.default: lambda a, driver=None: onnx_svd(a, compute_uv=False)[1],
    aten.linalg_eigvalsh.default: lambda a, uplo="L": onnx_eigh(a, uplo, compute_v=False)[0],
    aten.linalg_pinv.default: lambda a, rcond, hermitian=False: onnx_pinv(a, rtol=rcond, hermitian=hermitian),
    aten.linalg_pinv.rcond_tensor: lambda a, rcond, hermitian=False: onnx_pinv(a, rtol=rcond, hermitian=hermitian),
    aten.linalg_pinv.atol_rtol_float: onnx_pinv,
    aten.linalg_pinv.atol_rtol_tensor: onnx_pinv,
    aten.pinverse.default: lambda a, rcond=1e-15: onnx_pinv(a, rtol=rcond),
}
