"""What the passes know of a function before they change it: scopes, liveness, assignment, jumps."""

from dy2st.transforms.analysis.collecting import Analysis
from dy2st.transforms.analysis.facts import BranchFacts, Facts, LoopFacts

__all__ = ["Analysis", "BranchFacts", "Facts", "LoopFacts"]
