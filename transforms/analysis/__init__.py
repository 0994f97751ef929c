"""What the passes know of a function before they change it: scopes, liveness, assignment, jumps."""

from dy2st.transforms.analysis.facts import Analysis, BranchFacts, Facts, LoopFacts

__all__ = ["Analysis", "BranchFacts", "Facts", "LoopFacts"]
