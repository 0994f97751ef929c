"""The branches and loops of an ONNX file, in the order in which their arms are counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

BRANCH, LOOPS = "If", ("Loop", "Scan", "SequenceMap")
# What is counted of each, at its place in the vector.
WAYS = {BRANCH: 2, **dict.fromkeys(LOOPS, 3)}


@dataclass(frozen=True)
class ArmNode:
    """A branch or loop: a name that no other has, the arms around it, and where its counts begin.

    A branch has two counts, of its then-arm and of its else-arm; a loop three, of how often it ran without a trip,
    with one and with more. ``around`` names nodes, each with ``then``, ``else`` or ``body``.
    """

    name: str
    node: NodeProto
    around: tuple[tuple[str, str], ...]
    first: int


def is_counted(node: NodeProto) -> bool:
    """Whether a node is a branch or a loop."""
    return node.op_type in WAYS and node.domain in ("", "ai.onnx")


def bodies(node: NodeProto) -> list[tuple[str, GraphProto]]:
    """The graphs of a branch or loop in the order of their counts, with what each is called."""
    by_name = {attribute.name: attribute.g for attribute in node.attribute}
    if node.op_type == BRANCH:
        return [("then", by_name["then_branch"]), ("else", by_name["else_branch"])]
    return [("body", by_name["body"])]


def arm_nodes(graph: GraphProto) -> list[ArmNode]:
    """All of a graph, each followed by what lies in it."""
    found: list[ArmNode] = []
    names: set[str] = set()

    def visit(nodes: Iterator[NodeProto], around: tuple[tuple[str, str], ...], first: int) -> int:
        for node in nodes:
            if not is_counted(node):
                continue
            name = node.name or next((f"of {output}" for output in node.output if output), node.op_type)
            while name in names:
                name += "'"
            names.add(name)
            found.append(ArmNode(name, node, around, first))
            first += WAYS[node.op_type]
            for way, body in bodies(node):
                first = visit(iter(body.node), (*around, (name, way)), first)
        return first

    visit(iter(graph.node), (), 0)
    return found
