"""What identifies an ONNX file: its bytes, and its weights, however they are stored; and its metadata."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from dy2st.errors import OnnxError

PROOF = "dy2st.proof"
_PIECE = 1 << 20


def loaded(file: Path) -> onnx.ModelProto:
    """An ONNX file, without the weights that lie beside it.

    Raises:
        OnnxError: it is none.
    """
    try:
        return onnx.load(str(file), load_external_data=False)
    except Exception as error:  # protobuf's exceptions have no common base
        first = next(iter(str(error).splitlines()), "")
        raise OnnxError(f"{file} is no ONNX file: {type(error).__name__}: {first}") from error


def file_sha256(file: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    found = hashlib.sha256()
    with file.open("rb") as stream:
        while piece := stream.read(_PIECE):
            found.update(piece)
    return found.hexdigest()


def weights_sha256(model: onnx.ModelProto, folder: Path) -> str:
    """The SHA-256 of a model's weights: its initializers and the tensors of ``Constant`` nodes, subgraphs included.

    Of each the name, dtype, shape and little-endian bytes count, in the order of the names; not whether it is an
    initializer or a node, nor which field of it has the values, nor whether they lie in a file beside it, in
    ``folder``.

    Raises:
        OnnxError: the values of one can't be read.
    """
    try:
        lines = sorted(_line(name, tensor, folder) for name, tensor in _weights(model))
    except Exception as error:  # onnx's exceptions have no common base
        first = next(iter(str(error).splitlines()), "")
        raise OnnxError(f"the weights of the file can't be read: {type(error).__name__}: {first}") from error
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def has_weights_beside(model: onnx.ModelProto) -> bool:
    """Whether any of the weights lie in another file."""
    return any(tensor.data_location == onnx.TensorProto.EXTERNAL for _, tensor in _weights(model))


def node_counts(model: onnx.ModelProto) -> tuple[dict[str, int], int | None]:
    """The nodes of a model by operator, those of subgraphs and functions included, and its opset."""
    counts: dict[str, int] = {}
    bodies = [*_graphs(model.graph), *(graph for function in model.functions for graph in _graphs(function))]
    for graph in bodies:
        for node in graph.node:
            counts[node.op_type] = counts.get(node.op_type, 0) + 1
    opset = next((entry.version for entry in model.opset_import if entry.domain in {"", "ai.onnx"}), None)
    return dict(sorted(counts.items())), opset


def metadata_of(model: onnx.ModelProto, key: str) -> str:
    """An entry of the metadata; nothing without one."""
    return next((str(entry.value) for entry in model.metadata_props if entry.key == key), "")


def put_metadata(model: onnx.ModelProto, key: str, value: str) -> None:
    """Set an entry of the metadata, in place of one that there is."""
    kept = [(entry.key, entry.value) for entry in model.metadata_props if entry.key != key]
    del model.metadata_props[:]
    for name, text in [*kept, (key, value)]:
        model.metadata_props.add(key=name, value=text)


def _graphs(graph: Any) -> Iterator[Any]:
    """A graph or function, and the subgraphs of its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _graphs(inner)


def _weights(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    functions = [graph for function in model.functions for graph in _graphs(function)]
    for graph in [*_graphs(model.graph), *functions]:
        for tensor in getattr(graph, "initializer", ()):
            yield tensor.name, tensor
        for sparse in getattr(graph, "sparse_initializer", ()):
            yield sparse.values.name, sparse.values
            yield f"{sparse.values.name} indices", sparse.indices
        for node in graph.node:
            if node.op_type == "Constant":
                yield from ((node.output[0], each.t) for each in node.attribute if each.name == "value")


def _line(name: str, tensor: onnx.TensorProto, folder: Path) -> str:
    alone = onnx.TensorProto()  # a copy, which keeps no values of a file beside it for longer than this
    alone.CopyFrom(tensor)
    values = numpy_helper.to_array(alone, str(folder))
    if values.dtype == object:  # texts
        data = b"".join(len(text).to_bytes(8, "little") + text for text in map(_encoded, values.ravel()))
    else:
        data = np.ascontiguousarray(values).tobytes()
    return f"{name!r} {onnx.TensorProto.DataType.Name(tensor.data_type)} {list(tensor.dims)} {_digest(data)}"


def _encoded(text: Any) -> bytes:
    return text if isinstance(text, bytes) else str(text).encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
