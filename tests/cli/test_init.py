"""``dy2st init``: settings and a workflow, both or none, and nothing else changed."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from dy2st.cli import installed
from dy2st.cli.init import with_settings
from dy2st.cli.installed import requirement
from dy2st.cli.settings import load_settings
from dy2st.errors import SettingsError

pytestmark = pytest.mark.usefixtures("in_this_process")

ROOT = Path(__file__).resolve().parents[2]
MODEL = "import torch\ndef model(x):\n    return x + 1\nexample_inputs = [(torch.ones(2),)]\n"
WORKFLOW = Path(".github/workflows/dy2st.yml")
OTHER = """\
[project]
name = "mine"   # a comment

[tool.ruff]
line-length = 99
"""


@pytest.fixture(autouse=True)
def from_a_repository(monkeypatch):
    direct = {"url": "https://host.org/team/dy2st", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}}
    monkeypatch.setattr(installed, "_direct_url", lambda: direct)


@pytest.fixture
def models(write):
    for name in ("net.py", "models/a.py", "models/deep/b.py", "more/c.py", "env/lib/d.py", "build/lib/e.py"):
        write(name, MODEL)
    write("env/pyvenv.cfg", "")
    write("models/part.py", "x = 1\n")


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_in_a_folder_without_anything(models, dy2st_command, folder):
    done = dy2st_command("init")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "wrote pyproject.toml: [tool.dy2st] with models/, more/, net.py\n"
        "wrote .github/workflows/dy2st.yml\n"
        "next: dy2st check\n"
    )
    assert load_settings(folder).targets == ("models/", "more/", "net.py")


def test_the_workflow(models, dy2st_command, write):
    write("requirements.txt", "")
    write("pyproject.toml", OTHER)
    assert dy2st_command("init").code == 0
    workflow = yaml.safe_load(WORKFLOW.read_text())
    assert set(workflow) == {"name", True, "permissions", "jobs"}  # YAML 1.1 takes "on" for true
    assert set(workflow[True]) == {"push", "pull_request"}
    job = workflow["jobs"]["check"]
    assert job["runs-on"] == "ubuntu-latest"
    assert "defaults" not in job
    steps = job["steps"]
    assert all(("uses" in step) != ("run" in step) for step in steps)
    actions = [step["uses"] for step in steps if "uses" in step]
    assert [each.partition("@")[0].removeprefix("actions/") for each in actions] == [
        "checkout",
        "setup-python",
        "cache",
        "upload-artifact",
    ]
    assert all(each.partition("@v")[2].isdecimal() for each in actions)
    install, check = (step["run"] for step in steps if "run" in step)
    assert install == (
        f'python -m pip install --extra-index-url https://download.pytorch.org/whl/cpu "{requirement()}" '
        "-r requirements.txt -e ."
    )
    assert check == (
        "dy2st check --format github --format junit=dy2st.xml --format html=dy2st.html "
        '--format markdown="$GITHUB_STEP_SUMMARY"'
    )
    assert steps[3]["with"]["key"] == "dy2st-${{ runner.os }}-${{ github.sha }}"
    assert steps[-1]["with"]["path"].split() == ["dy2st.xml", "dy2st.html"]


def test_the_command_of_the_workflow_is_one(models, dy2st_command, monkeypatch, folder):
    assert dy2st_command("init").code == 0
    check = yaml.safe_load(WORKFLOW.read_text())["jobs"]["check"]["steps"][-2]["run"]
    arguments = check.replace('"$GITHUB_STEP_SUMMARY"', "summary.md").split()[1:]
    done = dy2st_command(*arguments)
    assert done.code == 0
    assert done.out == "::notice title=dy2st check::4 of 4 targets are equal to eager\n"


def test_in_a_folder_of_a_repository(write, dy2st_command, folder, monkeypatch):
    write("sub/net.py", MODEL)
    (folder / ".git").mkdir()
    monkeypatch.chdir(folder / "sub")
    assert dy2st_command("init").code == 0
    job = yaml.safe_load((folder / WORKFLOW).read_text())["jobs"]["check"]
    assert job["defaults"] == {"run": {"working-directory": "sub"}}
    assert job["steps"][-1]["with"]["path"].split() == ["sub/dy2st.xml", "sub/dy2st.html"]
    assert (folder / "sub" / "pyproject.toml").exists()


@pytest.mark.parametrize(
    "before", [OTHER, OTHER.rstrip("\n"), OTHER.replace("\n", "\r\n"), "", "# nothing\n", OTHER + "\n"]
)
def test_what_is_there_stays_to_the_letter(before):
    after = with_settings(before, ["models/", 'a "b".py'])
    assert after.startswith(before)
    assert tomllib.loads(after.replace("\r\n", "\n"))["tool"]["dy2st"] == {"targets": ["models/", 'a "b".py']}
    assert ("\r\n" in before) == ("\r\n" in after)
    assert "\n\n\n" not in after.replace("\r\n", "\n")


def test_settings_that_are_there(models, dy2st_command, write, folder):
    text = '[tool.dy2st]\nopset = 18\n\n[[tool.dy2st.target]]\ntarget = "x.py"\n\n' + OTHER
    write("pyproject.toml", text)
    before = files(folder)
    done = dy2st_command("init")
    assert (done.code, done.out) == (2, "")
    assert done.err == "dy2st: D2S906: pyproject.toml has [tool.dy2st] already (instead: --force replaces it)\n"
    assert files(folder) == before
    assert Path("pyproject.toml").read_text() == text
    assert dy2st_command("init", "--force").code == 0
    after = Path("pyproject.toml").read_text()
    assert after.startswith(OTHER)
    assert tomllib.loads(after)["tool"]["dy2st"] == {"targets": ["models/", "more/", "net.py"]}


def test_a_workflow_that_is_there(models, dy2st_command, write, folder):
    write(str(WORKFLOW), "mine")
    done = dy2st_command("init")
    assert done.code == 2
    assert done.err == "dy2st: D2S402: .github/workflows/dy2st.yml exists (instead: --force replaces it)\n"
    assert not Path("pyproject.toml").exists()
    assert WORKFLOW.read_text() == "mine"
    assert dy2st_command("init", "--force").code == 0
    assert WORKFLOW.read_text() != "mine"


@pytest.mark.parametrize(
    "text",
    [
        "tool = {ruff = {line-length = 99}}\n",
        "tool.dy2st.opset = 18\n",
        'text = """\n[tool.dy2st]\n"""\n[tool.dy2st]\nopset = 18\n',
    ],
)
def test_what_can_not_be_written_to(text):
    with pytest.raises(SettingsError, match=r"pyproject\.toml can't take a table at its end"):
        with_settings(text, ["net.py"], replace=True)


def test_no_toml(models, dy2st_command, write):
    write("pyproject.toml", "[tool\n")
    done = dy2st_command("init")
    assert done.code == 2
    assert done.err.startswith("dy2st: D2S906: pyproject.toml can't be read: ")


def test_no_models(dy2st_command, folder, write):
    write("net.py", "x = 1\n")
    done = dy2st_command("init")
    assert done.code == 2
    assert done.err.startswith("dy2st: D2S902: no file in this folder defines both model and example_inputs")
    assert files(folder) == ["net.py"]


def test_both_or_none(models, dy2st_command, folder, monkeypatch):
    """The disk is full when the second file is written."""
    before = files(folder)
    write = Path.write_bytes

    def full(path, data):
        if path.suffix == ".yml":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    done = dy2st_command("init")
    assert done.code == 2
    assert "dy2st.yml can't be written: No space left on device" in done.err
    assert files(folder) == before
    assert not Path(".github").exists()


def test_as_json(models, dy2st_command):
    found = json.loads(dy2st_command("init", "--json").out)
    assert found == {"targets": ["models/", "more/", "net.py"], "files": ["pyproject.toml", str(WORKFLOW)]}


def test_it_imports_no_torch(models):
    code = "import sys; from dy2st.cli.main import main; main(['init']); print('torch' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd(), env=environment
    )
    assert done.stdout.splitlines()[-1] == "False"
