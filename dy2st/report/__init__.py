"""What a check found, as plain data, and its renderers. Nothing here computes anything; no torch is imported."""

from dy2st.report.model import Difference, Drift, InputResult, PathSite, ShadowCounts, StageResult, Tolerance
from dy2st.report.parity_report import ParityReport, render_text

__all__ = [
    "Difference",
    "Drift",
    "InputResult",
    "ParityReport",
    "PathSite",
    "ShadowCounts",
    "StageResult",
    "Tolerance",
    "render_text",
]
