"""Standard streams that can't be written, or that are not there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(redirection, *arguments, before=""):
    script = f'{before} exec "$@" {redirection}'
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
@pytest.mark.parametrize(
    "arguments", [("explain",), ("explain", "D2S241"), ("explain", "D2S999", "--json"), ("--help",), ("--version",)]
)
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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("full", ["2> /dev/full", "> /dev/full 2> /dev/full"])
@pytest.mark.parametrize("arguments", [(), ("explain", "D2S999"), ("check", "gone.py")])
def test_there_is_nobody_to_tell(full, arguments):
    done = run(full, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


@pytest.mark.parametrize("arguments", [("check", "net.py"), ("init",), ("survey", "."), ("code", "net.py")])
def test_the_working_folder_is_gone(arguments, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    done = run("", *arguments, before=f"cd '{folder}'; rmdir '{folder}';")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "dy2st: D2S901: the working folder is gone (instead: cd into one that is there)\n"


def test_there_are_no_more_files_to_open(tmp_path):
    (tmp_path / "net.py").write_text("def model(x):\n    return x\nexample_inputs = 3\n")
    done = run("", "check", "net.py", before=f"cd '{tmp_path}'; ulimit -n 5;")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "dy2st: D2S901: this system gives no more: Too many open files"


@pytest.mark.slow
def test_source_that_the_terminal_has_no_letters_for(tmp_path):
    (tmp_path / "net.py").write_text("def model(größe):\n    return größe\n", encoding="utf-8")
    done = run("", "code", "net.py", before=f"cd '{tmp_path}'; PYTHONIOENCODING=ascii; export PYTHONIOENCODING;")
    assert (done.returncode, done.stderr) == (0, "")
    assert "gr\\xf6\\xdfe" in done.stdout
