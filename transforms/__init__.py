"""Syntax only: the passes that rewrite a function, in order. Knows no torch and no run time."""

from __future__ import annotations

from dy2st.transforms.assertions import LowerAssert
from dy2st.transforms.branches import LowerIf
from dy2st.transforms.calls import LowerCall
from dy2st.transforms.comparisons import LowerComparison
from dy2st.transforms.comprehensions import GuardNativeTest, LowerComprehension, TellElement
from dy2st.transforms.concatenations import LowerConcatenation
from dy2st.transforms.displays import MarkDisplay
from dy2st.transforms.formats import LowerFormat
from dy2st.transforms.generators import LowerYield
from dy2st.transforms.jumps import LowerJump, LowerWith
from dy2st.transforms.logic import LowerLogic, LowerNot
from dy2st.transforms.loops import LowerLoop, SplitForTarget
from dy2st.transforms.match import LowerMatch
from dy2st.transforms.returns import LowerReturn
from dy2st.transforms.stores import LowerStore, TouchOuter
from dy2st.transforms.subscripts import LowerSubscript
from dy2st.transforms.ternary import LowerTernary
from dy2st.transforms.tree import Pass, Unit
from dy2st.transforms.tries import LowerTry
from dy2st.transforms.unpacking import GuardUnpacking
from dy2st.transforms.updates import AnnounceUpdate
from dy2st.transforms.variables import LowerUnsureLoad

PASSES: tuple[type[Pass], ...] = (
    # Statements, from the inside of suites outwards: a suite is complete before an arm or a body encloses it.
    LowerAssert,  # first: it leaves one statement one statement
    SplitForTarget,  # before LowerStore, which rewrites the assignment it makes
    AnnounceUpdate,  # like TouchOuter
    TouchOuter,  # before anything encloses or replaces the statements that it precedes
    LowerJump,  # before LowerLoop, which makes the driver that it names
    LowerYield,  # before LowerReturn, whose frame takes in the driver that it makes
    LowerReturn,  # before LowerIf and LowerLoop: the function's frame is outside all arms and bodies
    LowerWith,  # before LowerIf and LowerLoop, like LowerTry: blocks are inside arms
    LowerTry,
    LowerMatch,  # before LowerIf: its cases are branches whose suites LowerIf still has to see
    LowerIf,  # after everything that adds statements to suites
    LowerLoop,  # last of the statements
    # Expressions, each on nodes of its own kind: any order would do; this one reads best with ``--after``.
    LowerTernary,
    LowerLogic,
    LowerNot,
    LowerComparison,
    LowerConcatenation,
    LowerFormat,
    GuardUnpacking,
    MarkDisplay,  # before LowerComprehension and LowerSubscript, which put calls around what it looks at
    LowerComprehension,
    TellElement,
    GuardNativeTest,
    LowerSubscript,
    LowerStore,
    LowerCall,
    LowerUnsureLoad,  # last: it wraps single names, which the others still look at
)


def lower(unit: Unit, after: str | None = None) -> None:
    """Run the passes over a unit, up to the one called ``after``."""
    for kind in PASSES:
        if kind.applies(unit.facts):
            kind(unit).run()
        if kind.__name__ == after:
            break


__all__ = ["PASSES", "Pass", "Unit", "lower"]
