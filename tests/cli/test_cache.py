"""Results of several targets are kept, and used while nothing has changed that they depend on."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from dy2st.report import InputResult, ParityReport, StageResult
from dy2st.report.as_json import SCHEMA_FILE
from dy2st.report.run import Failure, TargetResult
from dy2st.sweep import cache as caching
from dy2st.sweep.cache import Cache, default_folder, lasting
from dy2st.sweep.job import Answer, Job

MODEL = """\
import torch
from pathlib import Path
from parts import factor

here = Path(__file__).parent
scale = float((here / "scale.txt").read_text())
print("loading")

def model(x):
    return x * factor * scale

def refused(x):
    return torch.from_numpy(x.numpy())

def example_inputs():
    import late
    return [(torch.ones(late.size),)]
"""


@pytest.fixture
def models(write):
    """Two targets: one that depends on three other files, and one on none."""
    write("net.py", MODEL)
    write("parts.py", "factor = 2\n")
    write("late.py", "size = 3\n")
    write("scale.txt", "1.5")
    write("other.py", "import torch\ndef model(x):\n    return x\nexample_inputs = [(torch.ones(2),)]\n")


def cached(done):
    """Which of two targets were not checked anew."""
    return [line.partition(":")[0] for line in done.out.splitlines() if line.endswith(" (cached)")]


@pytest.mark.slow
def test_what_has_changed_is_checked_anew(models, dy2st_command, write):
    def check(*more):
        return dy2st_command("check", "net.py", "other.py", "--jobs", "1", *more)

    first = check()
    assert (first.code, cached(first), first.err) == (0, [], "loading\n")
    second = check()
    assert (second.code, cached(second), second.err) == (0, ["net.py", "other.py"], "loading\n")
    assert second.out.splitlines()[-1] == "2 of 2 targets are equal to eager; 2 cached"
    assert second.out.replace(" (cached)", "").replace("; 2 cached", "") == first.out
    for name, text in (("scale.txt", "1.25"), ("late.py", "size = 4\n"), ("parts.py", "factor = 3\n")):
        before = Path(name).read_text()
        write(name, text)
        assert cached(check()) == ["other.py"]
        write(name, before)
    assert cached(check()) == ["other.py"]  # one result is kept, the latest
    os.utime("net.py")  # only its time
    assert cached(check()) == ["net.py", "other.py"]
    assert cached(check("--no-cache")) == []
    assert cached(check("--rtol", "1e-3")) == []
    report = json.loads(check("--json").out)
    jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text())).validate(report)
    assert [each["cached"] for each in report["targets"]] == [True, True]


@pytest.mark.slow
def test_refusals_are_kept_and_what_may_pass_is_not(models, dy2st_command):
    names = ["net.py:refused", "net.py:missing", "other.py"]
    first = dy2st_command("check", *names, "--jobs", "1")
    second = dy2st_command("check", *names, "--jobs", "1")
    assert first.code == second.code == 2
    assert first.err.replace("loading\n", "") == second.err.replace("loading\n", "")
    assert "D2S245" in second.err
    assert second.out.splitlines()[-1] == "1 of 3 targets are equal to eager; 2 could not be checked; 2 cached"


def entries():
    return sorted(default_folder().glob("*.json"))


def test_damaged_entries_are_written_again(in_this_process, models, dy2st_command):
    dy2st_command("check", "net.py", "other.py", "--jobs", "1")
    net, other = entries()
    net.write_bytes(b"\x80 nothing")
    other.write_text('{"format": 1, "files": {}, "answer": {"result": {"target": 3}}}')
    assert cached(dy2st_command("check", "net.py", "other.py", "--jobs", "1")) == []
    assert cached(dy2st_command("check", "net.py", "other.py", "--jobs", "1")) == ["net.py", "other.py"]
    assert entries() == [net, other]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_folder_that_cannot_be_written_is_a_warning(in_this_process, models, dy2st_command, monkeypatch, number):
    """A full disk, made up here."""

    usual = caching.tempfile.mkstemp

    def full(**options):
        if options.get("dir") == default_folder():
            raise OSError(number, os.strerror(number))
        return usual(**options)

    monkeypatch.setattr(caching.tempfile, "mkstemp", full)
    done = dy2st_command("check", "net.py", "other.py", "--jobs", "1")
    assert done.code == 0
    warning = f"dy2st: warning: results can't be kept in {default_folder()}: {os.strerror(number)}"
    assert [line for line in done.err.splitlines() if line != "loading"] == [warning]
    assert entries() == []


def test_a_cache_that_is_a_file_is_a_warning(in_this_process, models, dy2st_command):
    default_folder().parent.mkdir(parents=True)
    default_folder().write_text("in the way")
    done = dy2st_command("check", "net.py", "other.py", "--jobs", "1")
    assert done.code == 0
    assert "dy2st: warning: results can't be kept in " in done.err


JOB = Job("net.py", {})
EQUAL = InputResult("0", "x: f32[3]", (StageResult("program", "equal"),))
CRASHED = InputResult("0", "x: f32[3]", (StageResult("onnxruntime", "error", message="it has crashed"),))


def failure(code):
    return TargetResult("net.py", 2, failures=(Failure(code, "Error", "what"),))


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (TargetResult("net.py", 0, ParityReport("Net", (EQUAL,))), True),
        (TargetResult("net.py", 1, ParityReport("Net", (CRASHED,))), False),
        (failure("D2S245"), True),
        (failure("D2S401"), True),
        (failure("D2S504"), False),
        (failure("D2S505"), False),
        (failure("D2S902"), False),
        (failure(None), False),
    ],
)
def test_what_lasts(result, expected):
    assert lasting(JOB, Answer(result)) is expected
    assert not lasting(JOB, Answer(result, unsure="it has asked a connection"))


def test_a_search_that_found_nothing_may_find_something_later():
    job = replace(JOB, options={"search": 1})
    found = Answer(TargetResult("net.py", 0, ParityReport("Net", (EQUAL,))))
    assert lasting(job, found)
    assert not lasting(job, replace(found, result=replace(found.result, exit_code=1)))
    assert not lasting(replace(JOB, options={"save_inputs": "saved"}), found)


def test_a_file_that_changed_meanwhile(folder, write):
    """What is there now is not what was checked."""
    cache = Cache(folder / "kept", lambda _: None)
    path = write("net.py", "changed")
    later = cache._begun + 10**9
    os.utime(path, ns=(later, later))
    answer = Answer(TargetResult("net.py", 0, ParityReport("Net", (EQUAL,))), files=(str(path),))
    cache.keep(JOB, answer)
    assert cache.look_up(JOB) is None
    os.utime(path, ns=(0, 0))
    cache.keep(JOB, answer)
    assert cache.look_up(JOB).result == replace(answer.result, cached=True)


def test_the_oldest_entries_go(folder, write, monkeypatch):
    monkeypatch.setattr(caching, "_MOST", 3)
    monkeypatch.setattr(caching, "_KEPT", 2)
    for number in range(5):
        path = write(f"kept/{number}.json", "")
        os.utime(path, (number, number))
    Cache(folder / "kept", lambda _: None).prune()
    assert sorted(each.name for each in (folder / "kept").iterdir()) == ["3.json", "4.json"]


def test_whose_a_file_is(tmp_path):
    import torch

    from dy2st.source.user_frames import is_own
    from dy2st.sweep.isolation import is_users_module

    assert not any(map(is_users_module, (torch, json, caching, None)))
    assert is_own(str(tmp_path / "net.py"))
    assert is_own("/home/me/site-packages-of-mine/net.py")
    assert not is_own("/home/me/.venv/lib/python3.11/site-packages/net.py")
    assert not is_own("<string>")


def test_the_folder_is_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".cache" / "dy2st" / "results"


ALONE = """\
import torch

def model(x):
    if x.sum() > 0:
        return x * 2
    return x

example_inputs = [(torch.ones(2),), (-torch.ones(2),)]
"""


def test_a_single_target_is_kept_too(dy2st_command, write):
    write("net.py", ALONE)
    first, again = dy2st_command("check", "net.py"), dy2st_command("check", "net.py")
    line = "cached: nothing has changed since this was found (--no-cache checks anew)\n"
    assert first.code == again.code == 0
    assert (line + first.out, "") == (again.out, again.err)
    assert json.loads(dy2st_command("check", "net.py", "--json").out)["targets"][0]["cached"]
    assert "cached" not in dy2st_command("check", "net.py", "--no-cache").out
    write("net.py", ALONE.replace("* 2", "* 3"))
    os.utime("net.py", (1, 1))
    assert "cached" not in dy2st_command("check", "net.py").out
    assert "cached" in dy2st_command("check", "net.py").out


def test_what_has_warned_is_not_kept(dy2st_command, write, recwarn):
    write("warns.py", "import warnings\nwarnings.warn('old')\n" + ALONE)
    assert dy2st_command("check", "warns.py").code == 0
    assert [str(each.message) for each in recwarn] == ["old"]
    assert not [path for path in default_folder().rglob("*") if path.is_file()]


def test_what_has_failed_is_not_kept(dy2st_command, write):
    write("net.py", ALONE.replace("x * 2", "torch.from_numpy(x.numpy())"))
    for _ in range(2):
        done = dy2st_command("check", "net.py")
        assert (done.code, done.out) == (2, "")
        assert "net.py:5: D2S" in done.err
