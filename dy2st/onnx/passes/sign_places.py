"""How signs go through the operators that move elements: transposed, cut out, put together, written into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import onnx_ir as ir

from dy2st.onnx.passes.graph_facts import same_size
from dy2st.onnx.passes.sign_facts import (
    WHOLE,
    Facts,
    IndefiniteError,
    Sign,
    aligned,
    behind,
    integers,
    literal,
    rank_of,
    shape_of,
)

Rule = Callable[[ir.Node, list[Facts]], Facts]


def _axis(node: ir.Node, dims: int, default: int = 0) -> int:
    found = node.attributes.get("axis")
    return (default if found is None else found.as_int()) % dims


def transposed(node: ir.Node, given: list[Facts]) -> Facts:
    """``Transpose``."""
    dims = rank_of(node.inputs[0])
    perm = list(node.attributes["perm"].as_ints()) if "perm" in node.attributes else list(range(dims))[::-1]
    ends = dims > 1 and set(perm[-2:]) == {dims - 1, dims - 2}
    return given[0].moved(perm.index, diagonal=ends)


def with_ones(node: ir.Node, given: list[Facts]) -> Facts:
    """``Unsqueeze``."""
    dims = rank_of(node.outputs[0])
    new = {axis % dims for axis in integers(node.inputs[1])}
    places = [dim for dim in range(dims) if dim not in new]
    return given[0].moved(lambda dim: places[dim], diagonal=not new & {dims - 1, dims - 2})


def shaped(node: ir.Node, given: list[Facts]) -> Facts:
    """``Reshape``, ``Squeeze`` and ``Flatten``, where they add or drop dimensions of one only."""
    before, after = shape_of(node.inputs[0]), shape_of(node.outputs[0])
    mine = [(dim, size) for dim, size in enumerate(before) if size != 1]
    theirs = [(dim, size) for dim, size in enumerate(after) if size != 1]
    if len(before) == len(after) and all(map(_alike, before, after)):
        return given[0].moved(lambda dim: dim, diagonal=True)
    if len(mine) != len(theirs) or not all(same_size(a, b) for (_, a), (_, b) in zip(mine, theirs, strict=True)):
        return _with_first_dimensions(given[0], before, after)
    places = {a: b for (a, _), (b, _) in zip(mine, theirs, strict=True)}
    matrix = len(mine) > 1 and places.get(len(before) - 1) == len(after) - 1
    return given[0].moved(places.get, diagonal=matrix and places.get(len(before) - 2) == len(after) - 2)


def _alike(a: Any, b: Any) -> bool:
    return bool(a == b)


def _with_first_dimensions(facts: Facts, before: Sequence[Any], after: Sequence[Any]) -> Facts:
    """Where batches become one, or one batch several, and the dimensions behind them stay."""
    same = 0
    while same < min(len(before), len(after)) and same_size(before[-1 - same], after[-1 - same]):
        same += 1
    first, shift = len(before) - same, len(after) - len(before)
    return facts.moved(lambda dim: dim + shift if dim >= first else None, diagonal=same > 1)


def stretched(node: ir.Node, given: list[Facts]) -> Facts:
    """``Expand``."""
    value = node.inputs[0]
    assert value is not None
    return aligned(given[0], value, node.outputs[0])


def tiled(node: ir.Node, given: list[Facts]) -> Facts:
    """``Tile``."""
    before, after = shape_of(node.inputs[0]), shape_of(node.outputs[0])
    kept = [same_size(a, b) for a, b in zip(before, after, strict=True)]
    return given[0].moved(lambda dim: dim if kept[dim] else None, diagonal=len(kept) > 1 and all(kept[-2:]))


def gathered(node: ir.Node, given: list[Facts]) -> Facts:
    """``Gather`` along one dimension."""
    dims = rank_of(node.inputs[0])
    axis, places = _axis(node, dims), rank_of(node.inputs[1])
    at = literal(node.inputs[1])
    facts, signs = given[0], set[Sign]()
    for dim, of in facts.signs:
        if dim != axis:
            signs.add((dim, of))
        elif at is None or len(of) > 1:
            raise IndefiniteError
        else:
            which = [_place(int(each), shape_of(node.inputs[0])[axis]) for each in at]
            signs.add((WHOLE, (*of, "one", which[0])) if not places else (axis, (*of, "take", *which)))
    rest = replace(facts, signs=frozenset(sign for sign in signs if sign[0] != axis))
    kept = rest.moved(lambda dim: dim if dim < axis else dim - 1 + places if dim > axis else None)
    return replace(kept, signs=kept.signs | {sign for sign in signs if sign[0] == axis and places})


def _place(index: int, size: Any) -> int:
    return index + size if index < 0 and isinstance(size, int) else index


def cut(node: ir.Node, given: list[Facts]) -> Facts:
    """``Slice``."""
    sizes = shape_of(node.inputs[0])
    starts, ends = integers(node.inputs[1]), integers(node.inputs[2])
    last = [*node.inputs, None, None]
    axes = [axis % len(sizes) for axis in (integers(last[3]) if last[3] is not None else range(len(starts)))]
    steps = integers(last[4]) if last[4] is not None else [1] * len(starts)
    parts = {}
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        size = sizes[axis]
        whole = step == 1 and start == 0 and end >= (size if isinstance(size, int) else 2**31 - 1)
        if not whole:
            parts[axis] = ("slice", _place(start, size), min(_place(end, size), 2**31 - 1), step)
    facts, signs = given[0], set[Sign]()
    for dim, of in facts.signs:
        if dim in parts and len(of) > 1:
            raise IndefiniteError
        _, start, end, _ = parts.get(dim, ("", 0, 0, 0))
        one = dim in parts and 0 <= start == end - 1
        signs.add((WHOLE, (*of, "one", start)) if one else (dim, (*of, *parts[dim])) if dim in parts else (dim, of))
    follows = frozenset((dim, of) for dim, of in facts.follows if dim not in parts)
    return replace(facts, signs=frozenset(signs), follows=follows, diagonal=facts.diagonal and not parts)


def put_together(node: ir.Node, given: list[Facts]) -> Facts:
    """``Concat`` along another dimension than that of signs."""
    axis = _axis(node, rank_of(node.outputs[0]))
    if len({facts.signs for facts in given}) > 1 or any(dim == axis for dim, _ in given[0].signs):
        raise IndefiniteError
    weights = frozenset().union(*(facts.weights for facts in given))
    return Facts(given[0].signs, weighted=frozenset().union(*(facts.weighted for facts in given)), weights=weights)


def written(node: ir.Node, given: list[Facts]) -> Facts:
    """``ScatterElements`` that writes one slice, as torch's exporter writes ``select_scatter``."""
    data, index, source = node.inputs[:3]
    facts, _, update = given[:3]
    axis, at = _axis(node, rank_of(data)), literal(index)
    if at is None or len(set(at)) != 1 or shape_of(source)[axis] != 1:
        raise IndefiniteError
    place = _place(int(at[0]), shape_of(data)[axis])
    wanted = {(WHOLE, (*of, "one", place)) if dim == axis else (dim, of) for dim, of in facts.signs}
    if update.signs != wanted:
        raise IndefiniteError
    weighted = facts.weighted | update.weighted | {of[0] for _, of in facts.signs}
    diagonal = facts.diagonal and _stays_diagonal(data, axis, place, source)
    return Facts(facts.signs, weighted=weighted, weights=facts.weights | update.weights, diagonal=diagonal)


def _stays_diagonal(data: ir.Value | None, axis: int, place: int, source: ir.Value | None) -> bool:
    """Whether a row or column, written into a diagonal matrix, is its own but for the element on the diagonal."""
    dims = rank_of(data)
    row = behind(source, "Unsqueeze", "Identity")
    node = None if row is None else row.producer()
    if axis < dims - 2 or node is None or node.op_type != "ScatterElements":
        return False
    own = node.inputs[0].producer() if node.inputs[0] is not None else None
    at, inner = literal(node.inputs[1]), rank_of(node.inputs[0])
    if own is None or own.op_type != "Gather" or own.inputs[0] is not data or at is None or len(set(at)) != 1:
        return False
    of = literal(own.inputs[1])
    is_row = of is not None and len(of) == 1 and _place(int(of[0]), shape_of(data)[axis]) == place
    element = _axis(node, inner) == inner - 1 and _place(int(at[0]), shape_of(node.inputs[0])[-1]) == place
    return is_row and element and _axis(own, dims) == axis


PLACES: dict[str, Rule] = {
    "Transpose": transposed,
    "Unsqueeze": with_ones,
    "Squeeze": shaped,
    "Reshape": shaped,
    "Flatten": shaped,
    "Expand": stretched,
    "Tile": tiled,
    "Gather": gathered,
    "Slice": cut,
    "Concat": put_together,
    "ScatterElements": written,
}
