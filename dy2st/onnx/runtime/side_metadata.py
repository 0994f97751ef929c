"""What a file says of its nodes (source lines, constructs, names in the program), beside the file in place of in it.

Such metadata is most of a small file, and onnxruntime reads it at each load. ``model.onnx.metadata.json`` has it then,
for those who look into a file: a check, its coverage and the search for where a difference begins. Whoever only runs
the file needs it not. What :class:`dy2st.onnx.Runner` needs stays in the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import onnx

from dy2st.errors import UsageError

FORMAT = 1
# In the file, in another file beside it, or nowhere.
Metadata = Literal["inside", "side", "none"]
CHOICES = ("inside", "side", "none")


def path_of_metadata(file: str | Path) -> Path:
    """Where the metadata of a file lies, if it lies beside it."""
    return Path(f"{file}.metadata.json")


def require_metadata(choice: str) -> None:
    """Accept what may be said of where metadata goes.

    Raises:
        UsageError: it is something else.
    """
    if choice not in CHOICES:
        raise UsageError(f"metadata={choice!r} is no place for it", hint=f"one of {', '.join(CHOICES)}")


def place_metadata(file: Path, choice: Metadata) -> None:
    """Leave the metadata of nodes and values in a file, write it beside, or drop it; weights stay where they are.

    Raises:
        OSError: something can't be written. The file is whole in any case.
    """
    if choice == "inside":
        return
    model = onnx.load(str(file), load_external_data=False)
    nodes = []
    for node in _nodes(model.graph):
        nodes.append([node.name, {entry.key: entry.value for entry in node.metadata_props}])
        del node.metadata_props[:]
        node.doc_string = ""
    for graph in _graphs(model.graph):
        del graph.metadata_props[:]
        for value in (*graph.input, *graph.output, *graph.value_info):
            del value.metadata_props[:]
        del graph.value_info[:]  # onnxruntime infers them itself
    content = model.SerializeToString()
    if choice == "side":
        told = {"format": FORMAT, "sha256": hashlib.sha256(content).hexdigest(), "nodes": nodes}
        _write(path_of_metadata(file), json.dumps(told).encode())
    _write(file, content)


def load_model(file: str | Path, *, external_data: bool = True) -> onnx.ModelProto:
    """A model with its metadata, wherever that lies. What lies beside it and is of another file is left alone."""
    model = onnx.load(str(file), load_external_data=external_data)
    try:
        found = json.loads(path_of_metadata(file).read_text("utf-8"))
    except (OSError, ValueError):
        return model
    nodes = list(_nodes(model.graph))
    if _is_of(found, nodes) and found.get("sha256") == hashlib.sha256(Path(file).read_bytes()).hexdigest():
        for node, (_, entries) in zip(nodes, found["nodes"], strict=True):
            for key, value in entries.items():
                node.metadata_props.add(key=key, value=value)
    return model


def _is_of(found: Any, nodes: list[onnx.NodeProto]) -> bool:
    """Whether metadata is that of these nodes, which have none themselves."""
    if not isinstance(found, dict) or found.get("format") != FORMAT or not isinstance(found.get("nodes"), list):
        return False
    entries = found["nodes"]
    whole = all(isinstance(each, list) and len(each) == 2 and isinstance(each[1], dict) for each in entries)
    return (
        whole
        and [each[0] for each in entries] == [node.name for node in nodes]
        and all(isinstance(value, str) for _, each in entries for value in each.values())
        and not any(node.metadata_props for node in nodes)
    )


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*((attribute.g,) if attribute.HasField("g") else ()), *attribute.graphs):
                yield from _graphs(inner)


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for each in _graphs(graph):
        yield from each.node


def _write(path: Path, content: bytes) -> None:
    """In one step: nobody sees half a file."""
    made = path.with_name(f".{path.name}.part")
    made.write_bytes(content)
    made.replace(path)
