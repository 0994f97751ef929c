"""``check --timeout``: a target that hangs is stopped, and the others go on."""

from __future__ import annotations

import time

import pytest

MODELS = """
import time
import torch

def model(x):
    return x * 2 if x.sum() > 0 else x

def hangs(x):
    time.sleep(600)
    return x

def catches(x):
    try:
        time.sleep(600)
    except Exception:
        pass
    return x

example_inputs = [(torch.ones(2),), (-torch.ones(2),)]
"""


@pytest.mark.parametrize("name", ["hangs", "catches"])
def test_a_target_that_hangs(dy2st_command, write, name):
    write("net.py", MODELS)
    begun = time.monotonic()
    done = dy2st_command("check", f"net.py:{name}", "--timeout", "0.5")
    assert time.monotonic() - begun < 30
    assert done.code == 1
    line = next(
        n for n, text in enumerate(MODELS.splitlines(), 1) if "sleep" in text and (n > 10) == (name == "catches")
    )
    assert f"net.py:{line}: D2S504: it was not done in 0.5 s, and was running eagerly" in done.err


@pytest.mark.slow
def test_the_others_go_on(dy2st_command, write):
    write("net.py", MODELS)
    begun = time.monotonic()
    assert dy2st_command("check", "net.py").code == 0
    enough = max(6, 4 * (time.monotonic() - begun))  # on a machine that has other work, too
    done = dy2st_command("check", "net.py:hangs", "net.py", "--timeout", f"{enough:.0f}")
    assert done.code == 1
    assert "1 of 2 targets are equal to eager" in done.out


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
def test_no_time(dy2st_command, write, seconds):
    write("net.py", MODELS)
    done = dy2st_command("check", "net.py", f"--timeout={seconds}")
    assert done.code == 2
    assert "is no time" in done.err
