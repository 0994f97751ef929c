"""Runs the file of a training step again and again, each time from where the last step ended."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnxruntime

from dy2st.embedded.session_kernels import session_options
from dy2st.errors import UsageError
from dy2st.onnx.training.training_export import TRAINING


class TrainingRunner:
    """Trains with a file that ``dy2st.onnx.export_training`` has written, on onnxruntime.

    ``state`` holds the parameters, buffers and optimiser state by name, as numpy arrays: as of the file's export where
    nothing is said, after ``step`` as that has left them. Arrays that are put there are what the next step starts from.
    ``learning_rate`` is the one of all groups; None leaves what the file has.

    Args:
        path: the file.
        options: ``SessionOptions`` of onnxruntime.

    Raises:
        UsageError: the file is none of a training step.
    """

    def __init__(self, path: str | os.PathLike[str], options: onnxruntime.SessionOptions | None = None) -> None:
        if options is None:
            # onnxruntime warns that inputs with default values are no constants.
            options = session_options(severity=3)
        self.session = onnxruntime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
        told = self.session.get_modelmeta().custom_metadata_map.get(TRAINING)
        if told is None:
            raise UsageError(
                f"{os.fspath(path)} computes no training step", hint="write it with dy2st.onnx.export_training"
            )
        found = json.loads(told)
        self._feeds: dict[str, str] = found["state"]
        self._rates: list[str] = found["rates"]
        self._outputs = [each.name for each in self.session.get_outputs()]
        self.state: dict[str, Any] = {}
        self.learning_rate: float | None = None

    def step(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """One step: the batch by the names of the file's inputs; gives ``loss`` and what else is no state."""
        inputs = {**self.state, **{name: np.asarray(value) for name, value in batch.items()}}
        if self.learning_rate is not None:
            inputs |= dict.fromkeys(self._rates, np.asarray(self.learning_rate, dtype=np.float32))
        results = dict(zip(self._outputs, self.session.run(self._outputs, inputs), strict=True))
        self.state.update({name: results.pop(following) for name, following in self._feeds.items()})
        return results
