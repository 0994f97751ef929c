"""LU, Cholesky and QR factors of matrices, and what is solved with them: loops over the columns, as LAPACK's.

All functions take any number of dimensions in front of the matrices' two, sizes that are known only when the graph
runs, and float32 or float64. What is infinite or NaN in one place of a matrix reaches no place that LAPACK keeps it
from: what a step leaves alone is chosen with ``Where``, not multiplied by zero.

Source: ``getrf``, ``potrf``, ``geqrf``, ``orgqr`` and ``trtrs`` of LAPACK.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import onnx_ir as ir

from dy2st.onnx.building import BOOL, INT64, cast, constant, length, loop, op, rank

Body = tuple[None, Sequence[ir.Value], Sequence[ir.Value]]


class Lu(NamedTuple):
    """``factors`` (..., m, n); ``pivots`` from one (..., k), ``order`` of the rows (..., m), ``info`` (...): int64."""

    factors: ir.Value
    pivots: ir.Value
    order: ir.Value
    info: ir.Value


def count(x: ir.Value, dim: int) -> ir.Value:
    """The size of a dimension as a 0-d int64 value."""
    return op("Squeeze", length(x, dim), [0])


def places(number: ir.Value, *, across: bool = False) -> ir.Value:
    """0, 1, ... as int64: a column (number, 1), or (number,), which stands ``across`` a matrix as a row."""
    found = op("Range", 0, number, 1)
    return found if across else op("Unsqueeze", found, [1])


def front(x: ir.Value) -> ir.Value:
    """The sizes in front of the matrices' own two, as an int64 vector."""
    return op("Shape", x, start=0, end=rank(x) - 2)


def turned(x: ir.Value, dims: int) -> ir.Value:
    """Matrices with rows and columns exchanged, in a tensor of ``dims`` dimensions."""
    made = op("Transpose", x, perm=[*range(dims - 2), dims - 1, dims - 2])
    made.shape = None if x.shape is None else ir.Shape([*x.shape[:-2], x.shape[-1], x.shape[-2]])
    return made


def one_of_column(x: ir.Value, k: ir.Value) -> ir.Value:
    """Column ``k`` as a column (..., m, 1)."""
    return op("Unsqueeze", op("Gather", x, k, axis=-1), [-1])


def one_of_row(x: ir.Value, k: ir.Value) -> ir.Value:
    """Row ``k`` as a row (..., 1, n)."""
    return op("Unsqueeze", op("Gather", x, k, axis=-2), [-2])


def element(x: ir.Value, k: ir.Value) -> ir.Value:
    """Element ``k`` of the diagonal (..., 1, 1)."""
    return op("Unsqueeze", op("Gather", op("Gather", x, k, axis=-1), k, axis=-1), [-1, -2])


def diagonal(x: ir.Value) -> ir.Value:
    """The diagonal (..., k)."""
    alike = op("Equal", places(count(x, -2)), places(count(x, -1), across=True))
    return op("ReduceSum", op("Where", alike, x, 0.0), [rank(x) - 1], keepdims=0)


def identity(like: ir.Value, size: ir.Value, columns: ir.Value | None = None) -> ir.Value:
    """Ones on the diagonal (..., size, columns), in the dtype and with the sizes in front of ``like``."""
    columns = size if columns is None else columns
    one, zero = constant(1.0, like.dtype), constant(0.0, like.dtype)
    made = op("Where", op("Equal", places(size), places(columns, across=True)), one, zero)
    sizes = [op("Unsqueeze", each, [0]) for each in (size, columns)]
    made = op("Expand", made, op("Concat", front(like), *sizes, axis=0))
    made.shape = ir.Shape([None] * rank(like))
    return made


def first_failure(info: ir.Value, failed: ir.Value, k: ir.Value) -> ir.Value:
    """``info`` after step ``k``, which has ``failed`` (..., 1, 1) or not: the first step that failed, from one."""
    fresh = op("And", op("Equal", info, 0), op("Squeeze", failed, [-1, -2]))
    return op("Where", fresh, op("Add", k, 1), info)


def factored(a: ir.Value) -> Lu:
    """LU factors of (..., m, n) with rows exchanged so that each pivot is the greatest of its column."""
    height, width = count(a, -2), count(a, -1)
    steps = op("Min", height, width)
    rows, columns = places(height), places(width, across=True)
    line, batch = places(height, across=True), front(a)

    def stacked(x: ir.Value, number: ir.Value) -> ir.Value:
        return op("Expand", x, op("Concat", batch, op("Unsqueeze", number, [0]), axis=0))

    step_line = places(steps, across=True)

    def body(k: ir.Value, state: Sequence[ir.Value]) -> Body:
        x, pivots, order, info = state
        candidates = op("Where", op("Less", line, k), -1.0, op("Abs", op("Gather", x, k, axis=-1)))
        best = op("ArgMax", candidates, axis=-1, keepdims=1)
        exchanged = op("Where", op("Equal", line, k), best, op("Where", op("Equal", line, best), k, line))
        order = op("GatherElements", order, exchanged, axis=-1)
        pivots = op("Where", op("Equal", step_line, k), op("Add", best, 1), pivots)
        x = op("GatherElements", x, op("Expand", op("Unsqueeze", exchanged, [-1]), op("Shape", x)), axis=-2)
        pivot, row, column = element(x, k), one_of_row(x, k), one_of_column(x, k)
        zero = op("Equal", pivot, 0.0)
        factor = op("Where", zero, column, op("Div", column, pivot))
        rest = op("Where", op("Greater", columns, k), op("Sub", x, op("Mul", factor, row)), x)
        rest = op("Where", op("Equal", columns, k), factor, rest)
        return None, [op("Where", op("Greater", rows, k), rest, x), pivots, order, first_failure(info, zero, k)], []

    start = [a, stacked(op("Add", step_line, 1), steps), stacked(line, height), op("Expand", constant(0), batch)]
    found = loop(steps, start, body)
    for value, dims in zip(found, (0, 1, 1, 2), strict=True):
        # onnxruntime sums nothing right only along a dimension that is counted from the first one.
        value.shape = ir.Shape([None] * (rank(a) - dims)) if dims else a.shape
    return Lu(*found)


def order_of(pivots: ir.Value, factors: ir.Value) -> ir.Value:
    """The order of rows (..., m) that exchanges by ``pivots`` (..., k), from one, lead to."""
    line, steps = places(count(factors, -2), across=True), count(pivots, -1)
    start = op("Expand", line, op("Concat", front(factors), op("Unsqueeze", count(factors, -2), [0]), axis=0))

    def body(k: ir.Value, state: Sequence[ir.Value]) -> Body:
        best = op("Unsqueeze", op("Sub", op("Gather", cast(pivots, INT64), k, axis=-1), 1), [-1])
        exchanged = op("Where", op("Equal", line, k), best, op("Where", op("Equal", line, best), k, line))
        return None, [op("GatherElements", state[0], exchanged, axis=-1)], []

    (made,) = loop(steps, [start], body)
    made.shape = ir.Shape([None] * (rank(factors) - 1))
    return made


def substituted(t: ir.Value, b: ir.Value, *, upper: bool, unit: bool = False) -> ir.Value:
    """The solution of ``t x = b`` for triangular ``t`` (..., n, n); ``b`` (..., n, r) has the result's shape."""
    number = count(t, -1)
    rows = places(number)
    last = op("Sub", number, 1)

    def body(i: ir.Value, state: Sequence[ir.Value]) -> Body:
        (x,) = state
        k = op("Sub", last, i) if upper else i
        found = one_of_row(x, k)
        if not unit:
            found = op("Div", found, element(t, k))
        rest = op("Sub", x, op("Mul", one_of_column(t, k), found))
        x = op("Where", op("Less" if upper else "Greater", rows, k), rest, x)
        return None, [op("Where", op("Equal", rows, k), found, x)], []

    (made,) = loop(number, [b], body)
    made.shape = b.shape
    return made


def square_root(a: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The Cholesky factor (..., n, n), of the lower triangle; and (...) the order that is not positive, or zero."""
    number = count(a, -1)
    rows, columns = places(number), places(number, across=True)

    def body(k: ir.Value, state: Sequence[ir.Value]) -> Body:
        x, info = state
        pivot = element(x, k)
        # Not <=: what is NaN fails.
        failed = op("Not", op("Greater", pivot, 0.0))
        root = op("Sqrt", pivot)
        column = op("Where", op("Equal", rows, k), root, op("Div", one_of_column(x, k), root))
        across = op("Where", op("Equal", columns, k), root, op("Div", _as_row(x, k), root))
        rest = op("Where", op("Greater", columns, k), op("Sub", x, op("Mul", column, across)), x)
        rest = op("Where", op("Equal", columns, k), column, rest)
        return None, [op("Where", op("Less", rows, k), x, rest), first_failure(info, failed, k)], []

    made, info = loop(number, [a, op("Expand", constant(0), front(a))], body)
    made = op("Where", op("Less", rows, columns), 0.0, made)
    made.shape = a.shape
    return made, info


def _as_row(x: ir.Value, k: ir.Value) -> ir.Value:
    """Column ``k`` as a row (..., 1, m)."""
    return op("Unsqueeze", op("Gather", x, k, axis=-1), [-2])


def reflected(a: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """R in the upper triangle (..., m, n), and the reflections: vectors (k, ..., m, 1) and factors (k, ..., 1, 1)."""
    height, width = count(a, -2), count(a, -1)
    rows, columns = places(height), places(width, across=True)

    def body(k: ir.Value, state: Sequence[ir.Value]) -> Body:
        (x,) = state
        column = one_of_column(x, k)
        alpha = op("ReduceSum", op("Where", op("Equal", rows, k), column, 0.0), [-2], keepdims=1)
        below = op("Where", op("Greater", rows, k), column, 0.0)
        rest = op("Equal", op("ReduceMax", op("Abs", below), [-2], keepdims=1), 0.0)
        norm = _norm(op("Where", op("Less", rows, k), 0.0, column))
        # LAPACK goes by the sign, which minus zero has too.
        negative = op("Or", op("Less", alpha, 0.0), op("Less", op("Div", 1.0, alpha), 0.0))
        beta = op("Where", rest, alpha, op("Where", negative, norm, op("Neg", norm)))
        factor = op("Where", rest, 0.0, op("Div", op("Sub", beta, alpha), beta))
        vector = op("Where", rest, 0.0, op("Div", below, op("Sub", alpha, beta)))
        vector = op("Where", op("Equal", rows, k), 1.0, vector)
        made = _reflect(x, vector, factor)
        made = op("Where", op("Equal", columns, k), op("Where", op("Equal", rows, k), beta, 0.0), made)
        untouched = op("Or", op("Less", rows, k), op("Less", columns, k))
        return None, [op("Where", untouched, x, made)], [vector, factor]

    made, vectors, factors = loop(op("Min", height, width), [a], body)
    made = op("Where", op("Greater", rows, columns), 0.0, made)
    made.shape = a.shape
    return made, vectors, factors


def orthogonal(start: ir.Value, steps: ir.Value, vectors: ir.Value, factors: ir.Value) -> ir.Value:
    """The product of the reflections, applied to ``start``: the last one first."""
    last = op("Sub", steps, 1)

    def body(i: ir.Value, state: Sequence[ir.Value]) -> Body:
        k = op("Sub", last, i)
        vector, factor = (op("Gather", each, k, axis=0) for each in (vectors, factors))
        return None, [_reflect(state[0], vector, factor)], []

    return loop(steps, [start], body)[0]


def _reflect(x: ir.Value, vector: ir.Value, factor: ir.Value) -> ir.Value:
    along = op("ReduceSum", op("Mul", vector, x), [-2], keepdims=1)
    return op("Sub", x, op("Mul", op("Mul", factor, vector), along))


def _norm(column: ir.Value) -> ir.Value:
    """The norm of columns (..., m, 1) as (..., 1, 1); squares neither overflow nor vanish."""
    greatest = op("ReduceMax", op("Abs", column), [-2], keepdims=1)
    scale = op("Where", op("Greater", greatest, 0.0), greatest, 1.0)
    scaled = op("Div", column, scale)
    return op("Mul", scale, op("Sqrt", op("ReduceSum", op("Mul", scaled, scaled), [-2], keepdims=1)))


def all_zero(info: ir.Value) -> ir.Value:
    """Whether no step has failed for any matrix, 0-d bool."""
    bad = cast(op("Not", op("Equal", info, 0)), INT64)
    return op("Equal", op("ReduceSum", bad, keepdims=0), constant(0), dtype=BOOL)
