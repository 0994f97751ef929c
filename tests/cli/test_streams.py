"""Standard streams that can't be written, or that are not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(redirection, *arguments):
    script = f'exec "$@" {redirection}'
    command = ["sh", "-c", script, "sh", sys.executable, "-m", "dy2st", *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", [("explain",), ("explain", "D2S241"), ("explain", "D2S999", "--json")])
def test_there_is_no_room_for_the_output(arguments):
    done = run("> /dev/full", *arguments)
    assert done.returncode == 2
    reason = "D2S901: " if "D2S999" in arguments else "D2S402: the output can't be written: No space left on device"
    assert done.stderr.startswith(f"dy2st: {reason}")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("closed", [">&-", "<&- >&-", "<&- >&- 2>&-"])
def test_closed_streams(closed):
    done = run(closed, "explain")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
