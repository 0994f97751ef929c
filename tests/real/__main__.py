"""``python -m tests.real``: check the cases, each in a process of its own.

How to install the packages that they need is in the README beside this file.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path

from tests.real.case import load_cases
from tests.real.outcome import Outcome, checked, eager_only, run_all
from tests.real.tables import page, table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "real-models.md"


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.real", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="cases or fields of that name; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once (1)")
    parser.add_argument("--limit", type=float, default=180, metavar="SECONDS", help="of processor time a case (180)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcomes there, with all that they say")
    parser.add_argument("--resume", action="store_true", help="keep what FILE says already, and run the others")
    parser.add_argument("--write-docs", action="store_true", help=f"write docs/{PAGE.name}; with all cases only")
    parser.add_argument("--eager", action="store_true", help="only run the cases eagerly: are they sound?")
    parser.add_argument("--search", type=float, metavar="SECONDS", help="search inputs for paths that none takes, too")
    parser.add_argument("--list", action="store_true", help="name the cases")
    return parser.parse_args()


def main() -> int:
    """Check what is asked for; the exit code is 1 if something is wrong, or fails without a code."""
    asked = arguments()
    cases = load_cases()
    chosen = [name for name, each in cases.items() if not asked.only or {name, each.field} & set(asked.only)]
    if asked.list:
        for name in chosen:
            print(f"{name:<40} {cases[name].package}: {cases[name].where}")  # noqa: T201 - a command
        return 0
    outcomes = []
    if asked.resume and asked.json and asked.json.exists():
        outcomes = [Outcome(**each) for each in json.loads(asked.json.read_text()) if each["name"] in cases]
    known = {each.name for each in outcomes}
    waiting = [name for name in chosen if name not in known]
    work = eager_only if asked.eager else partial(checked, search=asked.search)
    for outcome in run_all(waiting, jobs=asked.jobs, limit=asked.limit, work=work):
        outcomes.append(outcome)
        print(f"{outcome.name:<40} {outcome.line}", flush=True)  # noqa: T201
        if asked.json:
            asked.json.write_text(json.dumps([asdict(each) for each in outcomes], indent=1) + "\n")
    print(f"\n{table(outcomes)}")  # noqa: T201
    if asked.write_docs and not asked.only and not asked.eager and not asked.search:
        PAGE.write_text(page(cases, outcomes))
    return int(any(each.kind in ("wrong", "uncoded", "crashed", "no eager") for each in outcomes))


if __name__ == "__main__":
    sys.exit(main())
