"""The graph of an ONNX file as boxes: the nodes of one source line in one, a subgraph inside its node's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Box:
    """An input or output of a graph, or nodes of one source line that lie together.

    ``title`` is the name of an input or output, or the code of the line. ``ops`` and ``names`` are the operators and
    names of the nodes, in order. ``file`` and ``line`` say where they come from, as far as the file knows. A node that
    has subgraphs is alone in its box: ``inner`` has them.
    """

    kind: Literal["input", "output", "nodes"]
    title: str
    file: str = ""
    line: int | None = None
    ops: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    inner: tuple[Drawing, ...] = ()


@dataclass(frozen=True)
class Drawing:
    """One graph. ``edges`` are pairs of places in ``boxes``: what the second reads, the first gives.

    ``name`` is that of the node's attribute which has the graph (``then_branch``), or empty for the main graph.
    ``nodes`` is the number of nodes, subgraphs included; where these are too many to be drawn, there are no boxes.
    """

    name: str
    boxes: tuple[Box, ...]
    edges: tuple[tuple[int, int], ...]
    nodes: int

    @property
    def size(self) -> int:
        """The number of boxes, those inside others included."""
        return len(self.boxes) + sum(inner.size for box in self.boxes for inner in box.inner)

    def places(self, name: str) -> dict[tuple[str, int], str]:
        """For each line the place of its first box, as ``NAME-3-0-1``; those of outer graphs go before those inside."""
        found: dict[tuple[str, int], str] = {}
        for place, box in enumerate(self.boxes):
            if box.line is not None:
                found.setdefault((box.file, box.line), f"{name}-{place}")
        for place, box in enumerate(self.boxes):
            for number, inner in enumerate(box.inner):
                for line, where in inner.places(f"{name}-{place}-{number}").items():
                    found.setdefault(line, where)
        return found
