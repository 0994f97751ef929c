"""``dy2st explain``: the help page of an error code."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from dy2st import errors

if TYPE_CHECKING:
    import argparse


def explain(options: argparse.Namespace) -> int:
    """Print the page; the code's case does not matter."""
    text = errors.explain(options.code)
    sys.stdout.write((json.dumps({"code": options.code.upper(), "text": text}) if options.json else text) + "\n")
    return 0
