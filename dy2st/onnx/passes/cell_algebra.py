"""The body of a loop read as algebra: what each value is in terms of the state, rows of inputs, gates and weights.

A value ``[batch, width]`` is a list of pieces side by side, and each piece a sum of products of atoms::

    gates = Gemm(h, u, b); r, z = Split(Sigmoid(gates))      # r is [Gate(Sigmoid, h @ u[:, :n] + b[:n])]
    next = Add(n, Mul(z, Sub(h, n)))                         # next is n + z h - z n

So it doesn't matter in which order, with how many products of matrices, or in which form arithmetic is written.
Atoms are equal if they are the same numbers.
Source: the polynomial normal form over uninterpreted functions, Nelson, Oppen, "Fast Decision Procedures Based on
Congruence Closure", 1980.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from dy2st.onnx.building import FLOAT
from dy2st.onnx.passes.graph_facts import constant_integers, is_onnx, same_size

GATES = frozenset(("Sigmoid", "Tanh"))
# Of what depends on no state these are looked into; of others the result is an input of the cell.
_LINEAR = frozenset(("Add", "Concat", "Gemm", "Identity", "MatMul", "Neg", "Slice", "Split", "Sub"))

# A state is read through so many gates, and a sum has so many parts, at most: no cell has more.
_DEEPEST, _LARGEST = 4, 64


class UnreadError(Exception):
    """A value is not of the form that this module reads."""


@dataclass(frozen=True)
class View:
    """A part of a constant matrix ``[in, out]``, or of a vector ``[out]`` of which ``rows`` is None."""

    source: ir.Value
    turned: bool
    rows: tuple[int, int] | None
    columns: tuple[int, int]

    def numpy(self) -> np.ndarray:
        """Its numbers."""
        found = ir.convenience.get_const_tensor(self.source)
        assert found is not None
        whole = found.numpy()
        if self.rows is None:
            return whole.reshape(-1)[slice(*self.columns)]
        return (whole.T if self.turned else whole)[slice(*self.rows), slice(*self.columns)]


@dataclass(frozen=True)
class State:
    """A state of the loop before the trip, by its place."""

    place: int


@dataclass(frozen=True)
class Row:
    """A value of the body that no state has a part in."""

    value: ir.Value


@dataclass(frozen=True)
class Gate:
    """A function of each number of a sum."""

    kind: str
    argument: Frozen


@dataclass(frozen=True)
class Product:
    """A sum of one piece, or a row, times a matrix."""

    operand: Row | Frozen
    matrix: View


@dataclass(frozen=True)
class Offset:
    """A vector of weights."""

    vector: View


Atom = State | Row | Gate | Product | Offset
Monomial = frozenset[Atom]
Sum = dict[Monomial, float]
Frozen = frozenset[tuple[Monomial, float]]


def frozen(value: Sum) -> Frozen:
    """A sum that can be a part of an atom."""
    return frozenset(value.items())


@dataclass(frozen=True)
class Piece:
    """Some columns of a value; a ``width`` of None is a number for all of them."""

    width: int | None
    sum: Sum


def plus(left: Sum, right: Sum, sign: float = 1) -> Sum:
    """``left + sign * right``."""
    found = dict(left)
    for monomial, factor in right.items():
        found[monomial] = found.get(monomial, 0) + sign * factor
    if len(found) > _LARGEST:
        raise UnreadError("a long sum")
    return {monomial: factor for monomial, factor in found.items() if factor}


def _times(left: Sum, right: Sum) -> Sum:
    found: Sum = {}
    for one, factor in left.items():
        for other, further in right.items():
            if one & other:
                raise UnreadError("a square")
            found = plus(found, {one | other: factor * further})
    return found


def _cut(value: Sum, begin: int, end: int) -> Sum:
    return {frozenset(_cut_atom(atom, begin, end) for atom in monomial): f for monomial, f in value.items()}


def _cut_atom(atom: Atom, begin: int, end: int) -> Atom:
    if isinstance(atom, Gate):
        return Gate(atom.kind, frozen(_cut(dict(atom.argument), begin, end)))
    if isinstance(atom, (Product, Offset)):
        view = atom.matrix if isinstance(atom, Product) else atom.vector
        first = view.columns[0]
        view = View(view.source, view.turned, view.rows, (first + begin, first + end))
        return Product(atom.operand, view) if isinstance(atom, Product) else Offset(view)
    raise UnreadError("a part of a state or a row")


class Reader:
    """Reads the values of a loop's body.

    Args:
        body: its nodes have no subgraphs and no effects.
        states: the values of the body that are its state before a trip, with the place of each.
        rows: the size of their first dimension.
    """

    def __init__(self, body: ir.Graph, states: Mapping[ir.Value, int], rows: int | ir.SymbolicDim) -> None:
        self.states, self.rows = states, rows
        self.inside = set(body.inputs)
        self.dependent = set(body.inputs[2:])
        for node in body:
            self.inside.update(node.outputs)
            if any(value in self.dependent for value in node.inputs):
                self.dependent.update(node.outputs)
        self._known: dict[ir.Value, list[Piece] | None] = {}
        depths: dict[ir.Value, int] = {}
        for node in body:  # in order, so that no chain is too long to be followed
            depth = max((depths.get(v, 0) for v in node.inputs if v is not None), default=0) + (node.op_type in GATES)
            for out in node.outputs:
                depths[out] = depth
                try:
                    self._known[out] = self._read(out) if depth <= _DEEPEST else None
                except UnreadError:
                    self._known[out] = None

    def sum(self, value: ir.Value) -> Sum:
        """A value of one piece.

        Raises:
            UnreadError: it has several, or is not read.
        """
        return _only(self.read(value))

    def read(self, value: ir.Value | None) -> list[Piece]:
        """The pieces of a value.

        Raises:
            UnreadError: it is not of this form.
        """
        if value is None:
            raise UnreadError("an operand that is left out")
        found = self._known[value] if value in self._known else self._read(value)
        if found is None:
            raise UnreadError("an operand that is not read")
        return found

    def _read(self, value: ir.Value) -> list[Piece]:
        if value not in self.inside:
            return [self._constant(value)]
        if value in self.states:
            return [Piece(_width(value, self.rows), {frozenset((State(self.states[value]),)): 1.0})]
        node = value.producer()
        if node is not None and node.op_type == "Constant" and is_onnx(node):
            return [self._constant(value)]
        if value not in self.dependent:
            if node is not None and is_onnx(node) and node.op_type in _LINEAR:
                try:
                    return self._apply(node, value)
                except UnreadError:
                    pass
            return [Piece(_width(value, self.rows), {frozenset((Row(value),)): 1.0})]
        if node is None or not is_onnx(node):
            raise UnreadError("another state")
        return self._apply(node, value)

    def _constant(self, value: ir.Value) -> Piece:
        found = ir.convenience.get_const_tensor(value)
        if found is None or found.dtype != FLOAT:
            raise UnreadError("a value from outside")
        if found.size == 1:
            return Piece(None, {frozenset(): float(found.numpy().reshape(-1)[0])})
        if any(size != 1 for size in found.shape[:-1]):
            raise UnreadError("a matrix that is added")
        width = found.size
        return Piece(width, {frozenset((Offset(View(value, False, None, (0, width))),)): 1.0})

    def _apply(self, node: ir.Node, value: ir.Value) -> list[Piece]:
        kind, first = node.op_type, node.inputs[0]
        if kind == "Identity":
            return self.read(first)
        if kind in {"Add", "Sub", "Mul"}:
            combine = _times if kind == "Mul" else functools.partial(plus, sign=-1 if kind == "Sub" else 1)
            pairs = _aligned(self.read(first), self.read(node.inputs[1]))
            return [Piece(width, combine(left, right)) for width, left, right in pairs]
        if kind == "Neg":
            return [Piece(piece.width, plus({}, piece.sum, -1)) for piece in self.read(first)]
        if kind in GATES:
            return [Piece(p.width, {frozenset((Gate(kind, frozen(p.sum)),)): 1.0}) for p in self.read(first)]
        if kind == "Concat" and _is_last(node.attributes["axis"].as_int()):
            return [piece for operand in node.inputs for piece in self.read(operand)]
        if kind == "Split" and _is_last(node.attributes["axis"].as_int() if "axis" in node.attributes else 0):
            widths = [_width(out, self.rows) for out in node.outputs]
            place = next(i for i, out in enumerate(node.outputs) if out is value)
            return _columns(self.read(first), sum(widths[:place]), sum(widths[: place + 1]))
        if kind == "Slice":
            return self._sliced(node)
        if kind in {"MatMul", "Gemm"}:
            return self._product(node, _width(value, self.rows))
        raise UnreadError(kind)

    def _sliced(self, node: ir.Node) -> list[Piece]:
        begin, end, axes, steps = ([*map(constant_integers, node.inputs[1:]), None, None])[:4]
        pieces = self.read(node.inputs[0])
        width = sum(piece.width or 0 for piece in pieces)
        if begin is None or end is None or axes is None or len(axes) != 1 or not _is_last(axes[0]):
            raise UnreadError("rows of a value")
        if steps not in (None, [1]):
            raise UnreadError("some columns")
        first, last, _ = slice(begin[0], end[0]).indices(width)
        return _columns(pieces, first, max(first, last))

    def _product(self, node: ir.Node, width: int) -> list[Piece]:
        given = {name: attribute.value for name, attribute in node.attributes.items()}
        if given.get("transA", 0) or given.get("alpha", 1) != 1 or given.get("beta", 1) != 1:
            raise UnreadError("a scaled product")
        matrix = node.inputs[1]
        found = ir.convenience.get_const_tensor(matrix) if matrix is not None and matrix not in self.inside else None
        if matrix is None or found is None or found.dtype != FLOAT or len(found.shape) != 2:
            raise UnreadError("a product with what is no weight")
        turned, total, begin = bool(given.get("transB", 0)), dict[Monomial, float](), 0
        for part, operand in self._operands(node.inputs[0]):
            view = View(matrix, turned, (begin, begin + part), (0, width))
            total = plus(total, {frozenset((Product(operand, view),)): 1.0})
            begin += part
        if begin != found.shape[1 if turned else 0]:
            raise UnreadError("a product of other sizes")
        pieces = [Piece(width, total)]
        if len(node.inputs) > 2 and node.inputs[2] is not None:
            pairs = _aligned(pieces, self.read(node.inputs[2]))
            return [Piece(wide, plus(left, right)) for wide, left, right in pairs]
        return pieces

    def _operands(self, value: ir.Value | None) -> Iterable[tuple[int, Row | Frozen]]:
        """What stands beside each other in the left operand of a product."""
        if value is None or value not in self.inside:
            raise UnreadError("a product of what is outside")
        node = value.producer()
        if value not in self.dependent:
            yield _width(value, self.rows), Row(value)
        elif node is not None and node.op_type == "Concat" and _is_last(node.attributes["axis"].as_int()):
            for part in node.inputs:
                yield from self._operands(part)
        else:
            for piece in self.read(value):
                if piece.width is None:
                    raise UnreadError("a product with a number")
                yield piece.width, frozen(piece.sum)


def _only(pieces: list[Piece]) -> Sum:
    if len(pieces) != 1:
        raise UnreadError("several pieces")
    return pieces[0].sum


def _is_last(axis: int) -> bool:
    return axis in {1, -1}


def _width(value: ir.Value, rows: int | ir.SymbolicDim) -> int:
    """The columns of a float32 matrix with such rows."""
    shape = value.shape
    if value.dtype != FLOAT or shape is None or len(shape) != 2 or not same_size(shape[0], rows):
        raise UnreadError("a value of another shape")
    if not isinstance(shape[1], int):
        raise UnreadError("an unknown number of columns")
    return shape[1]


def _columns(pieces: list[Piece], begin: int, end: int) -> list[Piece]:
    """The pieces of some columns."""
    found, place = [], 0
    for piece in pieces:
        if piece.width is None:
            raise UnreadError("columns of a number")
        first, last = max(begin - place, 0), min(end - place, piece.width)
        if first < last:
            whole = (first, last) == (0, piece.width)
            found.append(Piece(last - first, piece.sum if whole else _cut(piece.sum, first, last)))
        place += piece.width
    return found


def _aligned(left: list[Piece], right: list[Piece]) -> Iterable[tuple[int | None, Sum, Sum]]:
    """Pieces of two values beside each other; one column, or a number, stands for as many as the other has."""
    widths = [sum(piece.width or 0 for piece in pieces) for pieces in (left, right)]
    for pieces, other in ((left, widths[1]), (right, widths[0])):
        if len(pieces) == 1 and pieces[0].width in {None, 1} and other != (pieces[0].width or 0):
            if pieces is left:
                return [(piece.width, left[0].sum, piece.sum) for piece in right]
            return [(piece.width, piece.sum, right[0].sum) for piece in left]
    if widths[0] != widths[1]:
        raise UnreadError("other widths")
    if left[0].width is None:
        return [(None, left[0].sum, right[0].sum)]
    ends = sorted({sum(p.width or 0 for p in pieces[: i + 1]) for pieces in (left, right) for i in range(len(pieces))})
    spans = zip([0, *ends], ends, strict=False)
    return [(e - b, _only(_columns(left, b, e)), _only(_columns(right, b, e))) for b, e in spans]
