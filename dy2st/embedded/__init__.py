"""The tests that lie beside an ONNX file: written with it, and run on any machine with numpy, onnx and onnxruntime.

The format: ``docs/embedded-tests.md``. Nothing here imports torch; :mod:`dy2st.parity.embedding` writes the tests.
"""

from dy2st.embedded.replaying import check_embedded

__all__ = ["check_embedded"]
