"""An ONNX file on onnxruntime, fed with arrays: without torch, bfloat16 included."""

from __future__ import annotations

import ctypes
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from dy2st.embedded.array_file import BFLOAT16, DTYPES, Array
from dy2st.embedded.file_outputs import as_numbers, is_plain, pieces, told_outputs
from dy2st.embedded.session_kernels import session_options
from dy2st.errors import OnnxError, UsageError

CPU = "CPUExecutionProvider"
# Where a file says what is state: a JSON list with ``input``, ``output``, ``path``, ``kind``, ``dtype`` and ``shape``.
STATE = "dy2st.state"
_BFLOAT16 = 16  # TensorProto.BFLOAT16


class ArraySession:
    """A file that is loaded. ``level`` names one of onnxruntime's levels of optimisation in place of its default.

    Raises:
        OnnxError: onnxruntime can't load the file.
    """

    def __init__(self, file: Path, *, level: str | None = None, provider: str = CPU) -> None:
        try:
            self._session: Any = onnxruntime.InferenceSession(str(file), session_options(level), providers=[provider])
        except Exception as error:  # onnxruntime's exceptions have no common base
            raise OnnxError(f"onnxruntime can't load the file: {told(error)}") from error
        # Inputs that are state have their first values as defaults.
        metadata = self._session.get_modelmeta().custom_metadata_map
        state = json.loads(metadata.get(STATE, "[]"))
        self.told = told_outputs(metadata)
        # The output that each goes on with.
        self.state = {str(each["input"]): str(each["output"]) for each in state}
        self.state_names = list(self.state)
        self.input_names = [*(str(each.name) for each in self._session.get_inputs()), *self.state_names]
        self.output_names = [str(each.name) for each in self._session.get_outputs()]

    def outputs(self, feed: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name, for inputs by name; what onnxruntime raises passes through.

        Each element of a sequence is an output (``rows[0]``), a text is its UTF-8 bytes, and what is absent is none.
        """
        values = {name: given_value(array) for name, array in feed.items()}
        if is_plain(self._session):
            found = self._session.run_with_ort_values(self.output_names, values)
            run = [taken_value(value) for value in found]
        else:
            run = self._session.run(self.output_names, values)
        return {each.name: _numbers(each.value) for each in pieces(self.told, self.output_names, run)}


def available_provider(given: str) -> str:
    """The full name of a provider that onnxruntime has here, by its name or the beginning of it.

    Raises:
        UsageError: it has no such provider.
    """
    there: list[str] = onnxruntime.get_available_providers()
    names = {name.removesuffix("ExecutionProvider").lower(): name for name in there}
    found = names.get(given.removesuffix("ExecutionProvider").lower())
    if found is None:
        raise UsageError(f"onnxruntime has no provider {given!r} here", hint=f"one of {', '.join(sorted(names))}")
    return found


def told(error: BaseException) -> str:
    """An exception as one line: its type, and the first line of its text."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return ": ".join(part for part in (type(error).__name__, text) if part)


def given_value(array: Array) -> Any:
    """An array as onnxruntime takes it."""
    values = np.ascontiguousarray(array.bits).reshape(array.shape)
    if array.dtype == BFLOAT16:
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(values, _BFLOAT16)
    return onnxruntime.OrtValue.ortvalue_from_numpy(values)


def taken_value(value: Any) -> Any:
    """What onnxruntime gives, as an array."""
    if value.is_tensor() and value.element_type() == _BFLOAT16:  # numpy has no such type: its bits are copied
        shape = tuple(value.shape())
        size = math.prod(shape)
        data = ctypes.string_at(value.data_ptr(), 2 * size) if size else b""
        return Array(BFLOAT16, np.frombuffer(data, np.uint16).reshape(shape))
    return np.asarray(value.numpy())


def _numbers(value: Any) -> Array:
    if isinstance(value, Array):
        return value
    found = as_numbers(value)
    if found.dtype.name not in DTYPES:
        raise TypeError(f"an output is a tensor of {found.dtype.name}, not of numbers")
    return Array(found.dtype.name, found)
