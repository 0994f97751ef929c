"""What a file takes and gives, as dtypes that a file of tests has names for, and tensors as it holds them."""

from __future__ import annotations

import onnx
import torch

from dy2st.embedded.array_file import BFLOAT16, DTYPES, Array
from dy2st.errors import EmbeddedTestsError


def kinds_of(proto: onnx.ModelProto) -> dict[str, str]:
    """The dtypes of the outputs by name.

    Raises:
        EmbeddedTestsError: an input or output is no tensor of numbers.
    """
    found = {}
    for what, values in (("input", proto.graph.input), ("output", proto.graph.output)):
        for value in values:
            kind = value.type.WhichOneof("value")
            held = value.type if what == "input" else _of_pieces(value.type)
            element = held.tensor_type.elem_type
            dtype = "uint8" if what == "output" and element == onnx.TensorProto.STRING else _dtype_of(element)
            if dtype not in DTYPES:
                shown = f"a tensor of {dtype}" if kind == "tensor_type" else f"a {str(kind).removesuffix('_type')}"
                raise EmbeddedTestsError(
                    f"the {what} {value.name} is {shown}, which a file of tests can't hold",
                    hint="tensors of numbers alone",
                )
            found[value.name] = dtype
    return found


def _of_pieces(kind: onnx.TypeProto) -> onnx.TypeProto:
    """What a sequence or an optional is made of."""
    name = kind.WhichOneof("value")
    return _of_pieces(getattr(kind, name).elem_type) if name in ("sequence_type", "optional_type") else kind


def _dtype_of(element: int) -> str:
    name: str = onnx.TensorProto.DataType.Name(element).lower()
    return {"float": "float32", "double": "float64"}.get(name, name)


def recorded_array(tensor: torch.Tensor, what: str) -> Array:
    """A tensor as the file takes and gives it: a complex one as pairs along a last dimension.

    Raises:
        EmbeddedTestsError: it has a dtype that files of tests have no name for.
    """
    real = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    dtype = str(real.dtype).removeprefix("torch.")
    if dtype not in DTYPES:
        raise EmbeddedTestsError(f"{what} is a tensor of {dtype}, which a file of tests can't hold")
    real = real.detach().cpu().contiguous()
    return Array(dtype, (real.view(torch.uint16) if dtype == BFLOAT16 else real).numpy())
