"""ONNX models from ONNX's textual form and their weights: how the experts' graphs of ``workloads.py`` are written.

Source: https://onnx.ai/onnx/api/parser.html.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper, parser
from torch import Tensor

Weights = dict[str, np.ndarray]


def array(value: Tensor) -> np.ndarray:
    """A weight as an array of its own, laid out in order."""
    return np.array(value.detach().numpy(), order="C")


def model(text: str, weights: Weights) -> onnx.ModelProto:
    """A checked model of a graph, which takes the weights by their names."""
    made = parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]>\n{text}')
    made.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in weights.items())
    onnx.checker.check_model(made, full_check=True)
    return made
