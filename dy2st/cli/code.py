"""``dy2st code``: the rewritten source, or what changed in it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from dy2st import conversion
from dy2st.cli.target import load_target

if TYPE_CHECKING:
    import argparse


def code(options: argparse.Namespace) -> int:
    """Print the source after all passes, after one of them, or a unified diff from the user's source to that."""
    model = load_target(options.target).model
    text = conversion.code(model, after=options.after, diff=options.diff)
    if options.json:
        sys.stdout.write(json.dumps({"target": options.target, "diff" if options.diff else "source": text}) + "\n")
        return 0
    sys.stdout.write(text.rstrip("\n") + "\n")
    return 0
