"""Outputs of which no input shows a value: a comparison of them proves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dy2st.report.model import InputResult


def never_compared(inputs: Iterable[InputResult]) -> list[str]:
    """One line for each output that is empty, or NaN throughout, on every input that was compared."""
    blanks = [result.blank for result in inputs if result.stages and not result.raises]
    names = [name for name in blanks[0] if all(name in each for each in blanks)] if blanks else []
    lines = []
    for name in names:
        reasons = sorted({each[name] for each in blanks})
        lines.append(f"{name} is {' or '.join(reasons)} on every input: no value of it is compared")
    return lines
