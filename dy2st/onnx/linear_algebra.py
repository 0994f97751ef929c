"""Products of matrices and distances, with sizes of zero.

onnxruntime 1.31 ends the process when ``Einsum`` contracts a dimension of size zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch

from dy2st.onnx.building import constant, length, op, rank, size
from dy2st.onnx.reductions import extreme


def onnx_einsum(equation: str, tensors: Sequence[ir.Value], path: Any = None) -> ir.Value:
    """``einsum``: of two tensors that share a dimension which may be empty, by ``MatMul``."""
    equation = equation.replace(" ", "")
    terms, _, result = equation.partition("->")
    if "->" not in equation:
        letters = terms.replace(",", "")
        result = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    sides = terms.split(",")
    simple = len(sides) == 2 and "." not in equation and all(len(set(s)) == len(s) for s in sides)
    if not simple:
        return op("Einsum", *tensors, equation=equation)
    (left, right), (x, y) = sides, tensors
    shared = [c for c in left if c in right]
    contracted = [c for c in shared if c not in result]
    sizes = {c: (size(x, left.index(c)), size(y, right.index(c))) for c in shared}
    safe = all(a and b for c, (a, b) in sizes.items() if c in contracted)
    stretched = any(1 in pair and pair[0] != pair[1] for pair in sizes.values())
    if safe or stretched:
        return op("Einsum", *tensors, equation=equation)
    return _product(x, left, y, right, result, contracted)


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
        assert x.dtype is not None
        return op("ReduceSum", op("Cast", op("Greater", apart, 0.0), to=int(x.dtype), dtype=x.dtype), last, keepdims=0)
    if math.isinf(p):
        # Of rows without elements the distance is zero: so is one more difference, of zero.
        padded = op("Pad", apart, [0] * (2 * rank(apart) - 1) + [1])
        padded.shape = apart.shape
        return extreme(padded, last[0], False, "ReduceMax")
    return op("Pow", op("ReduceSum", op("Pow", apart, float(p)), last, keepdims=0), 1.0 / p)


aten = torch.ops.aten
TRANSLATIONS: dict[Any, Any] = {
    aten.einsum.default: onnx_einsum,
    aten._cdist_forward.default: onnx_cdist,
}
