"""Names for sizes that the user gave none: ``x_dim_0`` and not ``s77``, ``found_dim_0`` and not ``u8``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import onnx_ir as ir
import torch
from torch.utils._pytree import tree_leaves

# torch numbers sizes of inputs, and sizes that data decides.
_SYMBOL = re.compile(r"[su]\d+")
_WORD = re.compile(r"\b[^\W\d]\w*\b")


def declared_sizes(shapes: Any) -> frozenset[str]:
    """The names of sizes in ``dynamic_shapes``."""
    return frozenset(each.__name__ for each in tree_leaves(shapes) if isinstance(each, torch.export.Dim))


def name_dimensions(model: ir.Model, declared: frozenset[str] = frozenset()) -> None:
    """Call each size of an input or output that torch has named after the first of these that has it; in place.

    A size that follows from others, ``n + 1``, has no name of its own, and one of inner values alone keeps what it has.
    """
    graph = model.graph
    given = {str(size) for value in graph.inputs for size in value.shape or ()}
    names: dict[str, str] = {}
    for value in (*graph.inputs, *graph.outputs):
        for axis, size in enumerate(value.shape or ()):
            symbol = str(size)
            if _SYMBOL.fullmatch(symbol) and symbol not in names and symbol not in declared:
                names[symbol] = _unused(re.sub(r"\W", "_", f"{value.name}_dim_{axis}"), given | set(names.values()))
    for each in (graph, *(function.graph for function in model.functions.values())):
        for value in _values(each):
            if value.shape is not None and any(isinstance(size, ir.SymbolicDim) for size in value.shape):
                value.shape = ir.Shape([_renamed(size, names) for size in value.shape])


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _renamed(size: int | ir.SymbolicDim, names: Mapping[str, str]) -> int | ir.SymbolicDim:
    if isinstance(size, int) or size.value is None:
        return size
    return ir.SymbolicDim(_WORD.sub(lambda word: names.get(word[0], word[0]), size.value))


def _values(graph: ir.Graph) -> Iterator[ir.Value]:
    """The values of a graph and of those inside of it."""
    for inner in (graph, *graph.subgraphs()):
        yield from inner.inputs
        yield from inner.initializers.values()
        for node in inner:
            yield from node.outputs
