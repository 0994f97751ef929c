"""The options of a search for inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

SECONDS = 10


def add_options(parser: argparse.ArgumentParser) -> None:
    """``--search``, ``--seed`` and ``--save-inputs``."""
    parser.add_argument(
        "--search",
        type=float,
        metavar="SECONDS",
        help="look for inputs that take the paths which none takes; stops after 100 runs for each second, "
        f"or when the time is up (--search alone: {SECONDS} seconds)",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="of the search (default: 0)")
    parser.add_argument("--save-inputs", metavar="DIR", help="save what the search finds, for --inputs DIR")


def with_default_seconds(arguments: Sequence[str]) -> list[str]:
    """``--search`` without seconds takes no target for them: what follows it is seconds if it is a number."""
    found: list[str] = []
    for each in arguments:
        if found[-1:] == ["--search"]:
            found[-1] = "--search" if _is_number(each) else f"--search={SECONDS}"
        found.append(each)
    return [*found[:-1], f"--search={SECONDS}"] if found[-1:] == ["--search"] else found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
