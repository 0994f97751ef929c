"""What can be read off an ONNX file without running it: its nodes, and what the user has allowed of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx

from dy2st.capture.program import DROPPED, SPECIALIZED
from dy2st.errors import OnnxError
from dy2st.parity.stages import one_line


def specialized_in(file: Path) -> tuple[str, ...]:
    """What the user has allowed to be fixed in an ONNX file: the line, and what holds in the file."""
    return tuple(f"{found['line']}: {found['fixed']}" for found in _metadata(file, SPECIALIZED))


def dropped_in(file: Path) -> tuple[str, ...]:
    """The places at which eager may raise and an ONNX file does not, as the user has allowed."""
    return tuple(_metadata(file, DROPPED))


def _metadata(file: Path, key: str) -> list[Any]:
    proto = onnx.load(str(file), load_external_data=False)
    found: list[Any] = [json.loads(entry.value) for entry in proto.metadata_props if entry.key == key]
    return [each for entries in found for each in entries]


def graph_counts(file: Path) -> tuple[dict[str, int], int | None]:
    """The nodes of an ONNX file by operator, those of subgraphs and functions included, and its opset."""
    try:
        proto = onnx.load(str(file), load_external_data=False)
    except Exception as error:  # protobuf's exceptions have no common base
        raise OnnxError(f"{file} is no ONNX file: {one_line(error)}") from error
    counts: dict[str, int] = {}

    def visit(nodes: Any) -> None:
        for node in nodes:
            counts[node.op_type] = counts.get(node.op_type, 0) + 1
            for attribute in node.attribute:
                for graph in (attribute.g, *attribute.graphs):
                    visit(graph.node)

    visit(proto.graph.node)
    for function in proto.functions:
        visit(function.node)
    opset = next((entry.version for entry in proto.opset_import if entry.domain in {"", "ai.onnx"}), None)
    return dict(sorted(counts.items())), opset
