"""What a check found, as plain data, and its renderers. Nothing here computes anything; no torch is imported."""

from dy2st.report.model import Difference, InputResult, ParityReport, StageResult, Tolerance
from dy2st.report.text import render_text

__all__ = ["Difference", "InputResult", "ParityReport", "StageResult", "Tolerance", "render_text"]
