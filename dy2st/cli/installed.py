"""From where this dy2st was installed, so that another machine can install the same.

Source: PEP 610, ``direct_url.json``, https://packaging.python.org/en/latest/specifications/direct-url/.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from dy2st import __version__


def requirement() -> str:
    """What pip installs this dy2st from: its repository at this commit where it is known, else its version."""
    address, commit = _origin(_direct_url())
    return f"dy2st @ git+{address}@{commit}" if address and commit else f"dy2st=={__version__}"


def is_pinned(text: str) -> bool:
    """Whether a requirement names a repository and a commit."""
    return "git+" in text


def _direct_url() -> dict[str, Any]:
    try:
        text = distribution("dy2st").read_text("direct_url.json")
    except PackageNotFoundError:  # run from a folder, uninstalled
        text = None
    found: dict[str, Any] = json.loads(text) if text else {"url": Path(__file__).resolve().parents[2].as_uri()}
    return found


def _origin(direct: dict[str, Any]) -> tuple[str, str]:
    """The address and commit of a repository; empty where there is none that another machine reaches."""
    if direct.get("vcs_info", {}).get("vcs") == "git":
        return _public(direct["url"]), direct["vcs_info"].get("commit_id", "")
    parts = urlsplit(direct.get("url", ""))
    if parts.scheme != "file" or "archive_info" in direct:
        return "", ""
    folder = unquote(parts.path)
    return _public(_git(folder, "remote", "get-url", "origin")), _git(folder, "rev-parse", "HEAD")


def _public(address: str) -> str:
    """An address without names and passwords in it; nothing for one on this machine."""
    short = re.fullmatch(r"(?:ssh://)?[\w.-]+@([\w.-]+)[:/](?!\d+/)(.+)", address)
    if short:
        return f"https://{short[1]}/{short[2]}"
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl() if parts.scheme == "https" else ""


def _git(folder: str, *arguments: str) -> str:
    """What git prints, or nothing where it fails."""
    git = shutil.which("git")
    if git is None:
        return ""
    try:
        done = subprocess.run(  # noqa: S603 - git, on a folder that Python's metadata names
            [git, "-C", folder, *arguments], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
