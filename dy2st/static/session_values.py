"""An onnxruntime session on torch's tensors: what goes in is not copied, and neither is what comes out.

Tensors cross as DLPack capsules, in vectors of onnxruntime's own values. That is the interface that its training module
was written for; with numpy arrays or an ``IOBinding`` a call of twenty tensors takes up to four times as long. All that
is not public of onnxruntime is named here: ``OrtValueVector`` and ``OrtDevice``.

Each run makes vectors of its own. What onnxruntime puts into a new one is new memory, owned by the tensors that are
made of it: no later run writes to it, and it outlives the session. Runs of several threads share nothing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnxruntime
import torch
from onnxruntime.capi import _pybind_state
from torch.utils.dlpack import from_dlpack, to_dlpack  # type: ignore[attr-defined]  # it is public

from dy2st.embedded.session_kernels import session_options
from dy2st.onnx.exporting import is_large, save
from dy2st.parity.stages import CPU, load_error, one_line

# What crosses: dtypes that DLPack and onnxruntime both have. Bools cross as bytes, complex numbers as pairs.
DTYPES = frozenset(
    (
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128, torch.bool),
        *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64),
    )
)


class Session:
    """Runs a model on tensors, in the order of its inputs.

    ``is_complex`` says so of each of its outputs.

    Raises:
        OnnxError: onnxruntime can't load the model.
    """

    def __init__(self, model: torch.onnx.ONNXProgram, is_complex: Sequence[bool]) -> None:
        self._session = _loaded(model)
        self._inputs = [each.name for each in self._session.get_inputs()]
        self._outputs = [each.name for each in self._session.get_outputs()]
        self._options = onnxruntime.RunOptions()
        self._options.log_severity_level = 4  # what fails is raised
        device = _pybind_state.OrtDevice
        here = device(device.cpu(), device.default_memory(), 0)
        self._devices = [here for _ in self._outputs]
        self._complex = [i for i, each in enumerate(is_complex) if each]

    def run(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The results, each in memory of its own.

        Raises (what onnxruntime raises):
            Exception: the model fails, as where eager raises.
        """
        given = _pybind_state.OrtValueVector()
        given.reserve(len(tensors))
        for tensor in tensors:
            if tensor.dtype is torch.bool:
                given.push_back(to_dlpack(_plain(tensor).view(torch.uint8)), True)
            elif tensor.is_complex():
                given.push_back(to_dlpack(torch.view_as_real(_plain(tensor))), False)
            else:
                given.push_back(to_dlpack(_plain(tensor)), False)
        made = _pybind_state.OrtValueVector()
        self._session.run_with_ortvaluevector(self._options, self._inputs, given, self._outputs, made, self._devices)
        results: list[torch.Tensor] = made.to_dlpacks(from_dlpack)
        for i in made.bool_tensor_indices():
            results[i] = results[i].view(torch.bool)
        for i in self._complex:
            results[i] = torch.view_as_complex(results[i])
        return results


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as its memory is read from the first to the last element; itself, if it is so already."""
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    elif tensor.is_conj():
        tensor = tensor.resolve_conj()
    return tensor if tensor.is_contiguous() else tensor.contiguous()


def _loaded(model: torch.onnx.ONNXProgram) -> Any:
    options = session_options()
    options.intra_op_num_threads = torch.get_num_threads()
    # Threads that wait for the next run in a loop would take the cores from torch's own.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        if not is_large(model):
            content = model.model_proto.SerializeToString()
            return onnxruntime.InferenceSession(content, options, providers=[CPU])
        with tempfile.TemporaryDirectory(prefix="dy2st-") as folder:
            path = Path(folder) / "program.onnx"
            save(model, path, external_data=True)
            return onnxruntime.InferenceSession(str(path), options, providers=[CPU])
    except Exception as error:  # onnxruntime's exceptions have no common base
        raise load_error(one_line(error)) from error
