"""What a caller gives a file, as arrays of the dtypes that the file has; what would become another value is refused.

A Python number has no dtype, so it gets the file's. numpy would make 1 of 2.7 and True of 0.5 without a word: a number
is taken only if an integer or a bool is what it was. An array has a dtype, and has to have the file's. numpy has no
bfloat16: arrays of it are those of ``ml_dtypes``, which onnx brings along.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime

from dy2st.embedded.array_file import BFLOAT16, Array
from dy2st.errors import UsageError

NUMPY: dict[str, Any] = {
    "tensor(float)": np.dtype(np.float32),
    "tensor(double)": np.dtype(np.float64),
    "tensor(float16)": np.dtype(np.float16),
    "tensor(int64)": np.dtype(np.int64),
    "tensor(int32)": np.dtype(np.int32),
    "tensor(int16)": np.dtype(np.int16),
    "tensor(int8)": np.dtype(np.int8),
    "tensor(uint64)": np.dtype(np.uint64),
    "tensor(uint32)": np.dtype(np.uint32),
    "tensor(uint16)": np.dtype(np.uint16),
    "tensor(uint8)": np.dtype(np.uint8),
    "tensor(bool)": np.dtype(np.bool_),
}
_BFLOAT16_TYPE = "tensor(bfloat16)"


def dtype_of(kind: str) -> Any:
    """The dtype of arrays for what onnxruntime calls an input's type; None for what is no tensor of numbers."""
    return bfloat16() if kind == _BFLOAT16_TYPE else NUMPY.get(kind)


def bfloat16() -> Any:
    """The dtype of arrays of bfloat16."""
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def given_array(name: str, value: Any, dtype: Any) -> Any:
    """What was given for an input, as an array of its dtype; what belongs to onnxruntime, or has no dtype, as it is.

    Raises:
        UsageError: it has another dtype, or would be another value in this one.
    """
    if isinstance(value, onnxruntime.OrtValue):
        return value
    if dtype is None:
        return np.asarray(value)
    if isinstance(value, (bool, int, float, list, tuple)):
        return _of_numbers(name, value, dtype)
    if type(value).__module__ == "torch" and str(value.dtype) == "torch.bfloat16":
        value = value.float().numpy().astype(bfloat16())  # exact
    array = np.asarray(value)
    if array.dtype.newbyteorder("=") != dtype:
        shown = f"an array of {array.dtype}" if array.dtype != np.dtype(object) else f"of type {type(value).__name__}"
        raise UsageError(f"{name!r} is {shown}, and the file takes {dtype}", hint=f"numpy.asarray(..., {str(dtype)!r})")
    # onnxruntime takes the bytes of other byte orders for its own.
    return array.astype(dtype, copy=False)


def require_shape(name: str, value: Any, sizes: Sequence[Any]) -> None:
    """Accept an array of an input's sizes; any where the file has a name, or nothing.

    Raises:
        UsageError: it has another number of dimensions, or another size where the file has a number.
    """
    shape = tuple(value.shape()) if isinstance(value, onnxruntime.OrtValue) else value.shape
    fixed = [size if isinstance(size, int) else None for size in sizes]
    if len(shape) != len(fixed) or any(want not in (None, got) for want, got in zip(fixed, shape, strict=True)):
        wanted = ", ".join("?" if size is None else str(size) for size in sizes)
        raise UsageError(f"{name!r} has the shape [{', '.join(map(str, shape))}], and the file takes [{wanted}]")


def _of_numbers(name: str, value: Any, dtype: Any) -> Any:
    try:
        array = np.asarray(value)
        if array.size == 0:
            return array.astype(dtype)
        with np.errstate(invalid="ignore"):  # NaN as an integer is found below
            found = array.astype(dtype) if array.dtype != np.dtype(object) else np.asarray(value, dtype)
    except (OverflowError, TypeError, ValueError) as error:
        raise UsageError(f"{name!r} can't be made an array of {dtype}: {error}") from error
    if dtype.kind in "biu" and not np.array_equal(found, array):
        raise UsageError(f"{name!r} is {value!r}, and the file takes {dtype}: it would be another value there")
    return found


def copied(value: Any) -> Any:
    """An array of one's own; what belongs to onnxruntime is not copied."""
    return value if isinstance(value, onnxruntime.OrtValue) else np.array(value)


def as_ort_value(value: Any) -> onnxruntime.OrtValue:
    """An array as onnxruntime takes it where some array is one of bfloat16."""
    if isinstance(value, onnxruntime.OrtValue):
        return value
    array = np.asarray(value)
    array = np.ascontiguousarray(array).reshape(array.shape)  # which makes a vector of a number
    if array.dtype.name == BFLOAT16:
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(np.uint16), 16)
    return onnxruntime.OrtValue.ortvalue_from_numpy(array)


def as_numpy(value: Any) -> Any:
    """What onnxruntime gives, as an array."""
    return value.bits.view(bfloat16()) if isinstance(value, Array) else value
