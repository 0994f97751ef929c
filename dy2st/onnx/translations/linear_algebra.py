"""Products of matrices and distances, with sizes of zero.

onnxruntime 1.31 ends the process when ``Einsum`` contracts a dimension of size zero.
"""

from __future__ import annotations

import functools
import math
import string
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch

from dy2st.onnx.building import INT64, cast, constant, is_float, length, loop, op, rank, size
from dy2st.onnx.translations.factors import identity
from dy2st.onnx.translations.tensor_reductions import extreme


def onnx_einsum(equation: str, tensors: Sequence[ir.Value], path: Any = None) -> ir.Value:
    """``einsum``: of two tensors that share a dimension which may be empty, by ``MatMul``."""
    equation = equation.replace(" ", "")
    terms, _, result = equation.partition("->")
    if "->" not in equation:
        letters = terms.replace(",", "")
        result = "..." * ("." in terms) + "".join(sorted(c for c in set(letters) - {"."} if letters.count(c) == 1))
    if "." in terms:
        equation = _spelled_out(terms, result, tensors)
        terms, _, result = equation.partition("->")
    sides = terms.split(",")
    simple = len(sides) == 2 and all(len(set(s)) == len(s) for s in sides)
    whole = not is_float(tensors[0])
    if not simple:
        return _of_integers(sides, result, tensors) if whole else op("Einsum", *tensors, equation=equation)
    (left, right), (x, y) = sides, tensors
    shared = [c for c in left if c in right]
    contracted = [c for c in shared if c not in result]
    sizes = {c: (size(x, left.index(c)), size(y, right.index(c))) for c in shared}
    safe = all(a and b for c, (a, b) in sizes.items() if c in contracted) and not whole
    stretched = any(1 in pair and pair[0] != pair[1] for pair in sizes.values())
    if whole and (
        stretched or any(c not in right + result for c in left) or any(c not in left + result for c in right)
    ):
        return _of_integers(sides, result, tensors)
    if safe or stretched:
        return op("Einsum", *tensors, equation=equation)
    return _product(x, left, y, right, result, contracted)


def _of_integers(sides: Sequence[str], result: str, tensors: Sequence[ir.Value]) -> ir.Value:
    """An ``einsum`` of integers, which onnxruntime 1.31 sums as doubles: products of all elements, and their sums."""
    letters = result + "".join(sorted({c for side in sides for c in side} - set(result)))
    factors = []
    for side, tensor in zip(sides, tensors, strict=True):
        own = "".join(c for c in letters if c in side)
        # This sums nothing: it takes diagonals, and turns dimensions.
        factor = tensor if own == side else op("Einsum", tensor, equation=f"{side}->{own}")
        missing = [place for place, c in enumerate(letters) if c not in own]
        factors.append(op("Unsqueeze", factor, missing) if missing else factor)
    product = functools.reduce(lambda one, other: op("Mul", one, other), factors)
    summed = list(range(len(result), len(letters)))
    product.shape = product.shape or ir.Shape([None] * len(letters))
    return op("ReduceSum", product, summed, keepdims=0) if summed else product


def _spelled_out(terms: str, result: str, tensors: Sequence[ir.Value]) -> str:
    """An equation with letters in place of each ellipsis.

    onnxruntime 1.31 can't load a loop in which operands have ellipses of different ranks, or ends the process.
    """
    sides = terms.split(",")
    ranks = [rank(x) - len(side.replace("...", "")) for side, x in zip(sides, tensors, strict=True)]
    most = max(n for side, n in zip(sides, ranks, strict=True) if "." in side)
    free = [c for c in string.ascii_letters if c not in terms][:most]
    spelled = [side.replace("...", "".join(free[most - n :])) for side, n in zip(sides, ranks, strict=True)]
    return f"{','.join(spelled)}->{result.replace('...', ''.join(free))}"


def _product(x: ir.Value, left: str, y: ir.Value, right: str, result: str, contracted: list[str]) -> ir.Value:
    batch = [c for c in left if c in right and c in result]
    sizes = {c: length(x, i) for i, c in enumerate(left)} | {c: length(y, i) for i, c in enumerate(right)}

    def arranged(v: ir.Value, labels: str, other: str, *, last: bool) -> tuple[ir.Value, list[str]]:
        """The operand as batch, rows and columns; the contracted labels as rows or as columns."""
        alone = [i for i, c in enumerate(labels) if c not in other and c not in result]
        if alone:
            v = op("ReduceSum", v, alone, keepdims=0)
            labels = "".join(c for i, c in enumerate(labels) if i not in alone)
        free = [c for c in labels if c not in other]
        order = [*batch, *free, *contracted] if last else [*batch, *contracted, *free]
        perm = [labels.index(c) for c in order]
        if perm != sorted(perm):
            v = op("Transpose", v, perm=perm)
        if len(free) != 1 or len(contracted) != 1:
            groups = (free, contracted) if last else (contracted, free)
            joined = [_times([sizes[c] for c in group]) for group in groups]
            v = op("Reshape", v, op("Concat", *[sizes[c] for c in batch], *joined, axis=0), allowzero=1)
        return v, free

    a, rows = arranged(x, left, right, last=True)
    b, columns = arranged(y, right, left, last=False)
    made = op("MatMul", a, b)
    labels = [*batch, *rows, *columns]
    if len(rows) != 1 or len(columns) != 1:
        shape = [sizes[c] for c in labels]
        made = op("Reshape", made, op("Concat", *shape, axis=0) if shape else [], allowzero=1)
    perm = [labels.index(c) for c in result]
    return op("Transpose", made, perm=perm) if perm != sorted(perm) else made


def _times(sizes: list[ir.Value]) -> ir.Value:
    product = constant([1])
    for i, each in enumerate(sizes):
        product = each if i == 0 else op("Mul", product, each)
    return product


def onnx_cdist(x: ir.Value, y: ir.Value, p: float, compute_mode: Any = None) -> ir.Value:
    """``cdist``: the distances between all rows of two tensors."""
    rows = rank(x)
    apart = op("Abs", op("Sub", op("Unsqueeze", x, [rows - 1]), op("Unsqueeze", y, [rank(y) - 2])))
    apart.shape = ir.Shape([None] * (max(rows, rank(y)) + 1))
    last = [rank(apart) - 1]
    if p == 2:
        return op("ReduceL2", apart, last, keepdims=0)
    if p == 1:
        return op("ReduceL1", apart, last, keepdims=0)
    if p == 0:
        return op("ReduceSum", op("Min", op("Ceil", apart), 1.0), last, keepdims=0)
    if math.isinf(p):
        # Of rows without elements the distance is zero: so is one more difference, of zero.
        padded = op("Pad", apart, [0] * (2 * rank(apart) - 1) + [1])
        padded.shape = apart.shape
        return extreme(padded, last[0], False, "ReduceMax")
    return op("Pow", op("ReduceSum", op("Pow", apart, float(p)), last, keepdims=0), 1.0 / p)


def onnx_pdist(x: ir.Value, p: float = 2.0) -> ir.Value:
    """``pdist``: the distances of the pairs of rows, each once."""
    apart = onnx_cdist(x, x, p)
    steps = op("Range", constant(0), op("Squeeze", length(x, 0), [0]), constant(1), dtype=INT64)
    right = op("Less", op("Unsqueeze", steps, [1]), op("Unsqueeze", steps, [0]))
    return op("Compress", op("Reshape", apart, [-1]), op("Reshape", right, [-1]), axis=0)


# With a norm below one the powers up to this add up to the exponential of a float64 matrix.
_TERMS = 18


def onnx_matrix_exp(x: ir.Value) -> ir.Value:
    """``linalg.matrix_exp``: of the matrix halved until it is small, squared as often.

    Source: C. Moler, C. Van Loan, Nineteen Dubious Ways to Compute the Exponential of a Matrix, method 3.
    """
    rows = rank(x) - 1
    # Of no rows the norm is zero.
    columns = op("ReduceSum", op("Abs", x), [rows - 1], keepdims=1)
    padded = op("Pad", columns, [0] * (2 * rank(x) - 1) + [1])
    norm = op("ReduceMax", padded, [rows], keepdims=1)
    halvings = op("Ceil", op("Div", op("Log", op("Max", norm, 1.0)), math.log(2.0)))
    # What is not finite stays so.
    halvings = op("Where", op("Less", halvings, 2000.0), halvings, 0.0)
    small = op("Div", x, op("Pow", constant(2.0, x.dtype), halvings))
    small.shape = x.shape
    ones = identity(x, op("Squeeze", length(x, rows), [0]))

    def term(step: ir.Value, state: Sequence[ir.Value]) -> tuple[None, Sequence[ir.Value], Sequence[ir.Value]]:
        count = cast(op("Sub", _TERMS, step), x.dtype)
        return None, [op("Add", ones, op("Div", op("MatMul", small, state[0]), count))], []

    def square(step: ir.Value, state: Sequence[ir.Value]) -> tuple[None, Sequence[ir.Value], Sequence[ir.Value]]:
        more = op("Less", cast(step, x.dtype), halvings)
        return None, [op("Where", more, op("MatMul", state[0], state[0]), state[0])], []

    found = loop(constant(_TERMS), [op("Add", op("Mul", small, 0.0), ones)], term)[0]
    most = op("ReduceMax", op("Concat", op("Reshape", halvings, [-1]), constant([0.0], x.dtype), axis=0), keepdims=0)
    return loop(cast(most, INT64), [found], square)[0]


def _with_addend(addend: ir.Value, product: ir.Value, beta: float, alpha: float) -> ir.Value:
    """``beta * addend + alpha * product``; a ``beta`` of zero says that the addend is not read, whatever is in it."""
    product = product if alpha == 1 else op("Mul", product, constant(alpha, product.dtype))
    if beta == 0:
        return product
    return op("Add", addend if beta == 1 else op("Mul", addend, constant(beta, addend.dtype)), product)


def onnx_addmm(addend: ir.Value, x: ir.Value, y: ir.Value, *, beta: float = 1, alpha: float = 1) -> ir.Value:
    """``addmm``, by ``Gemm`` where that has the numbers: as attributes these are singles.

    onnxruntime 1.31 forgets the factor of the addend where the product is one of no columns and no rows.
    """
    exact = x.dtype == ir.DataType.FLOAT or (alpha == 1 and beta == 1)
    if is_float(x) and exact and beta != 0 and (beta == 1 or size(x, 1)):
        return op("Gemm", x, y, addend, alpha=float(alpha), beta=float(beta))
    return _with_addend(addend, op("MatMul", x, y), beta, alpha)


def onnx_addmv(addend: ir.Value, x: ir.Value, y: ir.Value, *, beta: float = 1, alpha: float = 1) -> ir.Value:
    """``addmv`` and ``baddbmm``."""
    return _with_addend(addend, op("MatMul", x, y), beta, alpha)


def onnx_addbmm(addend: ir.Value, x: ir.Value, y: ir.Value, *, beta: float = 1, alpha: float = 1) -> ir.Value:
    """``addbmm``: the sum of a batch of products."""
    product = op("ReduceSum", op("MatMul", x, y), constant([0]), keepdims=0)
    return _with_addend(addend, product, beta, alpha)


def onnx_addr(addend: ir.Value, x: ir.Value, y: ir.Value, *, beta: float = 1, alpha: float = 1) -> ir.Value:
    """``addr``: an outer product."""
    return _with_addend(addend, op("Mul", op("Unsqueeze", x, [1]), op("Unsqueeze", y, [0])), beta, alpha)


aten = torch.ops.aten
TRANSLATIONS: dict[Any, Any] = {
    aten.addmm.default: onnx_addmm,
    aten.addmv.default: onnx_addmv,
    aten.baddbmm.default: onnx_addmv,
    aten.addbmm.default: onnx_addbmm,
    aten.addr.default: onnx_addr,
    aten.einsum.default: onnx_einsum,
    aten._cdist_forward.default: onnx_cdist,
    aten._pdist_forward.default: onnx_pdist,
    aten.linalg_matrix_exp.default: onnx_matrix_exp,
}
