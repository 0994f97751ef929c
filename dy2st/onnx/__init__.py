"""ONNX files from captured programs."""

from dy2st.onnx.exporting import export
from dy2st.onnx.training.runner import TrainingRunner
from dy2st.onnx.training.training_export import export_training

__all__ = ["TrainingRunner", "export", "export_training"]
