"""``dy2st explain``: the help page of an error code, or a line for each code."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from dy2st import errors

if TYPE_CHECKING:
    import argparse


def explain(options: argparse.Namespace) -> int:
    """Print the page of a code, whatever its case; without a code, the list."""
    if options.code is None:
        found = errors.summaries()
        text = json.dumps(found) if options.json else "\n".join(f"{code}  {line}" for code, line in found.items())
    else:
        page = errors.explain(options.code)
        text = json.dumps({"code": options.code.upper(), "text": page}) if options.json else page
    sys.stdout.write(text + "\n")
    return 0
