"""The proof: eager against the exported program and onnxruntime, on every set of example inputs."""

from dy2st.parity.checking import check
from dy2st.parity.drift import shadow
from dy2st.parity.embedding import embed_tests
from dy2st.parity.refused import refusals

__all__ = ["check", "embed_tests", "refusals", "shadow"]
