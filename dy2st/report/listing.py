"""Source listings as plain data: a function as the user wrote it, as it was rewritten, and what became of each line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dy2st.report.model import PathSite

Mark = Literal["ran", "never"]


@dataclass(frozen=True)
class GraphNode:
    """A node of the ONNX file: its operator, its name, its outputs' names, and the subgraph that it lies in.

    ``graph`` is a path such as ``main / node_branch__1.then_branch``.
    """

    line: int
    op: str
    name: str
    outputs: tuple[str, ...]
    graph: str


@dataclass(frozen=True)
class Listing:
    """One function of the user's. ``lines`` begin at ``first_line`` of ``file``.

    ``rewritten`` is its source after all passes, or empty where it can't be had; ``sites`` are the staged branches and
    loops in it, ``nodes`` the ONNX nodes that come from its lines. ``marks`` say of the lines inside of arms
    and loops whether an input has reached them; other lines always run.
    """

    name: str
    file: str
    first_line: int
    lines: tuple[str, ...]
    rewritten: str = ""
    sites: tuple[PathSite, ...] = ()
    nodes: tuple[GraphNode, ...] = ()
    marks: tuple[tuple[int, Mark], ...] = ()
