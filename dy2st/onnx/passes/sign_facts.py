"""What is known of a value that is computed of singular vectors or eigenvectors, whose signs are any.

A *spectrum* is one decomposition. If the sign of its ``i``-th vector changes, a value that has the sign
``(dim, spectrum)`` changes its own at index ``i`` of that dimension, and one with ``("whole", ...)`` changes it
everywhere. Two of one kind cancel out. Where they do in a product of matrices, vectors of equal values may be any that
span the same space: that leaves the product as it is only if each vector is weighted by a function of its value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import onnx_ir as ir

from dy2st.onnx.passes.graph_facts import same_size

WHOLE = "whole"
# Where a sign is: a dimension or WHOLE; of which vectors: the number of the spectrum, and which of them.
Sign = tuple[Any, tuple[Any, ...]]


class Weight(NamedTuple):
    """What has weighted the vectors of a spectrum: a value that follows it along a dimension, and perhaps vanishes."""

    spectrum: int
    value: ir.Value
    dim: int
    vanishes: bool


class IndefiniteError(Exception):
    """The signs are not known to cancel out."""


@dataclass(frozen=True)
class Facts:
    """What is known of a value. Dimensions count from the front.

    ``follows``: at an index of such a dimension it is a function of the singular value or eigenvalue there; one that
    ``vanishes`` is zero where that is. ``weights``: the values, with a dimension of each, that follow a spectrum and
    have weighted its vectors in this one; ``weighted``: the spectra whose vectors something else has weighted.
    ``diagonal``: outside of the diagonal of the last two dimensions it is zero, or false.
    """

    signs: frozenset[Sign] = frozenset()
    follows: frozenset[tuple[int, int]] = frozenset()
    weighted: frozenset[int] = frozenset()
    weights: frozenset[Weight] = frozenset()
    diagonal: bool = False
    vanishes: bool = False

    def moved(self, place: Callable[[int], int | None], *, diagonal: bool = False) -> Facts:
        """With other dimensions; a sign that has none any more is not known to cancel out."""
        signs = set()
        for dim, of in self.signs:
            new = dim if dim == WHOLE else place(dim)
            if new is None:
                raise IndefiniteError
            signs.add((new, of))
        follows = {(new, of) for dim, of in self.follows if (new := place(dim)) is not None}
        return replace(self, signs=frozenset(signs), follows=frozenset(follows), diagonal=diagonal and self.diagonal)

    def spectra(self) -> set[int]:
        """The spectra whose signs it has."""
        return {of[0] for _, of in self.signs}


NOTHING = Facts()


def shape_of(value: ir.Value | None) -> Sequence[Any]:
    """The sizes of a value that has signs: they have to be known by number or name."""
    if value is not None and value.shape is not None:
        return list(value.shape)
    constant = None if value is None else ir.convenience.get_const_tensor(value)
    if constant is not None:
        return list(constant.shape)
    # What a translation records between others has no shape.
    producer = None if value is None else value.producer()
    if producer is None or producer.op_type not in ("Identity", "Cast", "Unsqueeze", "Expand"):
        raise IndefiniteError
    sizes = shape_of(producer.inputs[0])
    return sizes if len(producer.inputs) == 1 else _restretched(producer.op_type, sizes, integers(producer.inputs[1]))


def _restretched(kind: str, sizes: Sequence[Any], given: list[int]) -> Sequence[Any]:
    """The sizes of what ``Unsqueeze`` or ``Expand`` make of others."""
    if kind == "Expand":
        padded = [1] * (len(given) - len(sizes)) + list(sizes)
        return [
            new if old == 1 else old for old, new in zip(padded, [1] * (len(padded) - len(given)) + given, strict=True)
        ]
    dims = len(sizes) + len(given)
    new, rest = {axis % dims for axis in given}, iter(sizes)
    return [1 if dim in new else next(rest) for dim in range(dims)]


def rank_of(value: ir.Value | None) -> int:
    """Its number of dimensions."""
    return len(shape_of(value))


def literal(value: ir.Value | None) -> list[float] | None:
    """The numbers of a constant, in a row; None of what is none."""
    value = behind(value, "Identity", "Cast", "Unsqueeze", "Squeeze", "Reshape", "Expand")
    producer = None if value is None else value.producer()
    if producer is not None and producer.op_type == "Concat":
        parts = [literal(each) for each in producer.inputs]
        return None if any(part is None for part in parts) else [each for part in parts if part for each in part]
    found = None if value is None else ir.convenience.get_const_tensor(value)
    return None if found is None else [each.item() for each in found.numpy().reshape(-1)]


def integers(value: ir.Value | None) -> list[int]:
    """The integers of a constant, of which something with signs depends."""
    found = literal(value)
    if found is None:
        raise IndefiniteError
    return [int(each) for each in found]


def behind(value: ir.Value | None, *kinds: str) -> ir.Value | None:
    """What a value is made of by operators of these kinds."""
    while value is not None and (producer := value.producer()) is not None and producer.op_type in kinds:
        value = producer.inputs[0]
    return value


def aligned(facts: Facts, value: ir.Value, out: ir.Value) -> Facts:
    """The facts of an operand that is stretched to ``out``."""
    if not (facts.signs or facts.follows or facts.diagonal):
        return facts
    mine, theirs = shape_of(value), shape_of(out)
    shift = len(theirs) - len(mine)
    return facts.moved(
        lambda dim: dim + shift if same_size(mine[dim], theirs[dim + shift]) else None,
        diagonal=len(mine) > 1 and all(map(same_size, mine[-2:], theirs[-2:])),
    )


def stays(value: ir.Value, facts: Facts, out: ir.Value, dim: int, spectrum: int) -> bool:
    """Whether an operand, its facts aligned with ``out``, weights all vectors along ``dim`` by their own values."""
    if (dim, spectrum) in facts.follows:
        return True
    at = dim - (rank_of(out) - rank_of(value))
    return at < 0 or shape_of(value)[at] == 1


def following(operands: Iterable[tuple[ir.Value, Facts]], out: ir.Value) -> frozenset[tuple[int, int]]:
    """Where an elementwise function of operands follows a spectrum: where each does, or is the same all along."""
    known = list(operands)
    every = set().union(*(facts.follows for _, facts in known)) if known else set()
    return frozenset((dim, of) for dim, of in every if all(stays(v, facts, out, dim, of) for v, facts in known))


def together(given: Sequence[Facts]) -> Facts:
    """The weights of several values."""
    weighted = frozenset[int]().union(*(facts.weighted for facts in given))
    return Facts(weighted=weighted, weights=frozenset[Weight]().union(*(facts.weights for facts in given)))
