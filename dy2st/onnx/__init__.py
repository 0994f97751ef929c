"""ONNX files from captured programs."""

from dy2st.onnx.exporting import export

__all__ = ["export"]
