"""ONNX files from captured programs, and what runs them.

The names are looked up on first use: ``Runner`` needs no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dy2st.drop_in.torch_signature import export
    from dy2st.embedded.session_kernels import register_kernels
    from dy2st.onnx.custom_operators import translate
    from dy2st.onnx.session_runner import Runner
    from dy2st.onnx.training.runner import TrainingRunner
    from dy2st.onnx.training.training_export import export_training

__all__ = ["Runner", "TrainingRunner", "export", "export_training", "register_kernels", "translate"]

_HOMES = {
    "Runner": "dy2st.onnx.session_runner",
    "TrainingRunner": "dy2st.onnx.training.runner",
    "export": "dy2st.drop_in.torch_signature",
    "export_training": "dy2st.onnx.training.training_export",
    "register_kernels": "dy2st.embedded.session_kernels",
    "translate": "dy2st.onnx.custom_operators",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dy2st.onnx' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
