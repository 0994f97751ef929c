"""What a file takes and gives, as ``dy2st convert`` tells it: names, dtypes, and sizes by number or name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx

from dy2st.embedded.fingerprints import loaded

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_DTYPES = {
    "FLOAT": "f32",
    "DOUBLE": "f64",
    "FLOAT16": "f16",
    "BFLOAT16": "bf16",
    "COMPLEX64": "c64",
    "COMPLEX128": "c128",
    "UINT8": "u8",
}
# A model with a lot of state has a line of that many, and says how many more there are.
_MOST = 8


def interface_lines(file: Path) -> list[str]:
    """A line for the inputs of a file, and one for its outputs."""
    graph = loaded(file).graph
    return [f"inputs: {_line(graph.input)}", f"outputs: {_line(graph.output)}"]


def all_fixed(file: Path) -> str:
    """What to do about a file whose inputs have sizes, all of them fixed; empty for any other."""
    inputs = [each for each in loaded(file).graph.input if each.type.HasField("tensor_type")]
    sizes = {each.name: [_size(dim) for dim in each.type.tensor_type.shape.dim] for each in inputs}
    first = next((each for each in inputs if sizes[each.name]), None)
    if first is None or not all(size.isdecimal() for each in sizes.values() for size in each):
        return ""
    kind, (_, *others) = _dtype(first.type.tensor_type.elem_type), sizes[first.name]
    spec = f"--input '{first.name}={kind}[{','.join(['batch', *others])}]'"
    return f"all sizes of its inputs are fixed (instead: example inputs of several sizes, dynamic_shapes, or {spec})"


def _line(values: Iterable[Any]) -> str:
    told = [f"{each.name}: {_kind(each.type)}" for each in values]
    return ", ".join(told[:_MOST]) + (f" and {len(told) - _MOST} more" if len(told) > _MOST else "") or "none"


def _kind(kind: Any) -> str:
    if kind.HasField("sequence_type"):
        return f"list of {_kind(kind.sequence_type.elem_type)}"
    if kind.HasField("optional_type"):
        return f"optional {_kind(kind.optional_type.elem_type)}"
    tensor = kind.tensor_type
    sizes = [_size(dim) for dim in tensor.shape.dim] if tensor.HasField("shape") else ["…"]
    return f"{_dtype(tensor.elem_type)}[{', '.join(sizes)}]"


def _size(dim: Any) -> str:
    return str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?"


def _dtype(number: int) -> str:
    name = onnx.TensorProto.DataType.Name(number)
    return _DTYPES.get(name) or name.lower().replace("uint", "u").replace("int", "i")
