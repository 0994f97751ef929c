"""The graph of an ONNX file as boxes, the nodes of one source line in one: what a report draws."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dy2st.onnx.passes.source_lines import STACK, innermost
from dy2st.onnx.runtime.side_metadata import load_model
from dy2st.onnx.runtime.stepping import metadata
from dy2st.report.graph_drawing import Box, Drawing

MOST_BOXES = 300  # of one graph: more than that nobody reads as a picture


@dataclass
class _Group:
    """Nodes that become one box, and the places of the groups that they read."""

    box: Box
    ops: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    reads: set[int] = field(default_factory=set)
    inner: tuple[Drawing, ...] = ()

    def as_box(self) -> Box:
        """The box of these nodes."""
        first = self.box
        return Box(first.kind, first.title, first.file, first.line, tuple(self.ops), tuple(self.names), self.inner)


def graph_drawing(onnx_file: Path) -> Drawing:
    """The main graph of a file, with all subgraphs inside; constants and weights are left out."""
    return _drawn("", load_model(onnx_file, external_data=False).graph)


def _drawn(name: str, graph: Any) -> Drawing:
    constants = {each.name for each in graph.initializer}
    used = set(_names_read(graph.node)) | {each.name for each in graph.output}
    groups: list[_Group] = []
    makers: dict[str, int] = {}
    for given in graph.input:
        if given.name in used and given.name not in constants:
            makers[given.name] = len(groups)
            groups.append(_Group(Box("input", given.name)))
    for node in graph.node:
        _add(node, groups, makers)
    for given in graph.output:
        reads = {makers[given.name]} if given.name in makers else set[int]()
        groups.append(_Group(Box("output", given.name), reads=reads))
    count = sum(1 + sum(each.nodes for each in _graphs(node)) for node in graph.node)
    if len(groups) > MOST_BOXES:
        return Drawing(name, (), (), count)
    order = _sorted(groups)
    place = {group: number for number, group in enumerate(order)}
    edges = sorted((place[above], place[below]) for below in order for above in groups[below].reads)
    return Drawing(name, tuple(groups[each].as_box() for each in order), tuple(edges), count)


def _graphs(node: Any) -> list[Drawing]:
    return [
        Drawing(attribute.name, (), (), sum(1 + sum(each.nodes for each in _graphs(n)) for n in inner.node))
        for attribute in node.attribute
        for inner in (attribute.g, *attribute.graphs)
    ]


def _add(node: Any, groups: list[_Group], makers: dict[str, int]) -> None:
    """Put a node into the last group of its line, unless something between reads the one and gives the other."""
    reads = {makers[each] for each in _names_read([node]) if each in makers}
    inner = tuple(
        _drawn(attribute.name, graph)
        for attribute in node.attribute
        for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs)
    )
    file, line = innermost(metadata(node, STACK)) or ("", None)
    last = next(
        (
            number
            for number in range(len(groups) - 1, -1, -1)
            if (groups[number].box.file, groups[number].box.line) == (file, line)
            and groups[number].box.kind == "nodes"
            and not groups[number].inner
        ),
        None,
    )
    if inner or last is None or line is None or _leads(last, reads - {last}, groups):
        code = linecache.getline(file, line).strip() if line is not None else ""
        last = len(groups)
        groups.append(_Group(Box("nodes", code, file, line), inner=inner))
    group = groups[last]
    group.ops.append(node.op_type)
    group.names.append(node.name)
    group.reads |= reads - {last}
    makers.update({each: last for each in node.output if each})


def _leads(source: int, to: set[int], groups: Sequence[_Group]) -> bool:
    """Whether something among ``to`` depends on the group at ``source``."""
    seen, waiting = set[int](), list(to)
    while waiting:
        each = waiting.pop()
        if each == source:
            return True
        if each not in seen:
            seen.add(each)
            waiting += groups[each].reads
    return False


def _sorted(groups: Sequence[_Group]) -> list[int]:
    """The places of the groups, each behind those that it reads."""
    done: dict[int, None] = {}
    for first in range(len(groups)):
        waiting = [first]
        while waiting:
            each = waiting[-1]
            missing = [other for other in groups[each].reads if other not in done]
            if missing:
                waiting += missing
            else:
                done[waiting.pop()] = None
    return list(done)


def _names_read(nodes: Any) -> Iterator[str]:
    """The names that nodes read, those that their subgraphs read from around them included."""
    for node in nodes:
        yield from node.input
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                made = {each.name for each in (*inner.input, *inner.initializer)}
                made |= {each for n in inner.node for each in n.output}
                yield from (each for each in _names_read(inner.node) if each not in made)
                yield from (each.name for each in inner.output if each.name not in made)
