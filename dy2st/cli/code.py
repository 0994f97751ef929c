"""``dy2st code``: the rewritten source, or what changed in it."""

from __future__ import annotations

import difflib
import inspect
import json
import sys
import textwrap
from typing import TYPE_CHECKING

from dy2st.cli.target import load_target
from dy2st.conversion import entry_function
from dy2st.errors import UsageError
from dy2st.source import rewritten_source
from dy2st.transforms import PASSES

if TYPE_CHECKING:
    import argparse


def code(options: argparse.Namespace) -> int:
    """Print the source after all passes, after one of them, or a unified diff from the user's source to that."""
    function = entry_function(load_target(options.target).model)
    if options.after is not None and options.after not in (names := [each.__name__ for each in PASSES]):
        raise UsageError(f"there is no pass {options.after!r}", hint=f"one of {', '.join(names)}")
    rewritten = rewritten_source(function) if options.after is None else rewritten_source(function, after=options.after)
    if options.json:
        sys.stdout.write(json.dumps({"target": options.target, "source": rewritten}) + "\n")
        return 0
    if options.diff:
        original = textwrap.dedent(inspect.getsource(function))
        lines = difflib.unified_diff(
            original.splitlines(), rewritten.splitlines(), function.__qualname__, "rewritten", lineterm=""
        )
        rewritten = "\n".join(lines)
    sys.stdout.write(rewritten.rstrip("\n") + "\n")
    return 0
