"""Sizes that a program leaves open: those that a spec names, and those that have been seen to change.

A program is first captured for the sizes of its call. Where the next call has others, and nothing else is different,
these are left open, so that one program serves all sizes from then on, as ``torch.compile`` does. Sizes 0 and 1 are
never left open by themselves: what has one element is stretched, and what has none is often another path.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from dy2st.guards.sources import World
from dy2st.tracing.named_tuples import constructors_unasked

# For each dimension of a tensor by its name: None if its size is fixed, else the least size that it may have.
Open = Mapping[str, Sequence[int | None]]
# The least size of a dimension that is open because it was seen to change.
LEAST = 2
# Where in a tensor's key its shape and its strides are.
_SHAPE, _STRIDES = 4, 5


@dataclass(frozen=True)
class SizeRules:
    """Which open sizes are one size: groups of (number of the tensor, dimension)."""

    groups: tuple[tuple[tuple[int, int], ...], ...] = ()

    def hold(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether the sizes that have to be equal are."""
        return all(len({tensors[number].shape[d] for number, d in group}) == 1 for group in self.groups)


def seen_to_change(
    old: Sequence[Any], names: Sequence[str], before: Open, world: World, given: Collection[int]
) -> dict[str, list[int | None]]:
    """The sizes to leave open, if a world differs from an older one, with these keys, in nothing but sizes; else none.

    ``before`` are those that were open in the older one; ``given`` are the tensors among the sources that the arguments
    lead to, by identity. The sizes of others are no inputs of a program.
    """
    if len(old) != len(world.sources) or list(names) != [source.name for source in world.sources]:
        return {}
    found = {name: list(sizes) for name, sizes in before.items()}
    for key, source in zip(old, world.sources, strict=True):
        if key == source.key:
            continue
        if id(source) not in given or not _differ_in_size(key, source.key):
            return {}
        sizes = found.setdefault(source.name, [None] * source.value.dim())
        for d, (size, other) in enumerate(zip(key[_SHAPE], source.key[_SHAPE], strict=True)):
            if size != other:
                if "*" in (size, other) or min(size, other) < LEAST:
                    return {}
                sizes[d] = LEAST
    return found


def _differ_in_size(one: Any, other: Any) -> bool:
    """Whether two keys are of tensors that differ in the sizes of their dimensions alone."""
    if not isinstance(one, tuple) or len(one) != len(other) or len(one) <= _STRIDES:
        return False
    rest = all(a == b for i, (a, b) in enumerate(zip(one, other, strict=True)) if i not in (_SHAPE, _STRIDES))
    return rest and len(one[_SHAPE]) == len(other[_SHAPE]) and one[_STRIDES] is True and other[_STRIDES] is True


def open_by_themselves(sizes: Open) -> dict[str, dict[int, Any]]:
    """The open dimensions of each tensor, which torch.export is to find the relations of."""
    return {
        label: {d: torch.export.Dim.DYNAMIC for d, least in enumerate(each) if least is not None}
        for label, each in sizes.items()
    }


def shapes_of(arguments: Mapping[str, Any], dims: Mapping[str, dict[int, Any]]) -> dict[str, Any]:
    """``dynamic_shapes`` of ``torch.export`` for arguments by parameter; ``dims`` are by the paths of the tensors."""

    def of(name: str, value: Any) -> Any:
        return pytree.tree_map_with_path(lambda path, _: dims.get(name + "".join(map(str, path))) or None, value)

    with constructors_unasked():
        return {name: of(name, value) for name, value in arguments.items()}


def rules_of(
    program: torch.export.ExportedProgram, numbers: Sequence[int | None], names: Sequence[str], sizes: Open
) -> SizeRules | None:
    """What a program demands of the open sizes of its inputs; None if that is more than that some are equal.

    ``numbers`` are those of the tensors among its inputs, ``names`` the names of the tensors by number.
    """
    nodes = [node for node in program.graph.nodes if node.op == "placeholder"]
    groups: dict[Any, list[tuple[int, int]]] = {}
    for node, number, spec in zip(nodes, numbers, program.graph_signature.input_specs, strict=True):
        if number is None or spec.kind is not InputKind.USER_INPUT:
            continue
        for d, least in enumerate(sizes.get(names[number], ())):
            if least is None:
                continue
            size = node.meta["val"].shape[d]
            symbol = size.node.expr if isinstance(size, torch.SymInt) else None
            if symbol is None or not symbol.is_symbol:
                return None
            bounds = program.range_constraints.get(symbol)
            if least == LEAST and bounds is not None and (bounds.lower > LEAST or not bounds.upper > 2**31):
                return None
            groups.setdefault(symbol, []).append((number, d))
    return SizeRules(tuple(tuple(group) for group in groups.values() if len(group) > 1))
