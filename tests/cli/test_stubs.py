"""``dy2st init`` where no model has inputs: files to begin with, made of annotations; and what a workflow installs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from dy2st import __version__
from dy2st.cli import installed
from dy2st.cli.stubs import stubs_in

pytestmark = pytest.mark.usefixtures("in_this_process")

NETS = """\
import torch
from torch import Tensor, nn


class Gate(nn.Module):
    def __init__(self, width: int = 3) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x: Tensor, limit: float, mask: Tensor | None = None) -> Tensor:
        if x.sum() > limit:
            return self.linear(x)
        return x


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()

    def forward(self, x):
        return x


class Loss(nn.Module):
    pass
"""
POOL = """\
import torch

def model(parts: list[torch.Tensor], k: int):
    total = parts[0]
    while total.sum() < k:
        total = total + 1
    return total
"""


@pytest.fixture(autouse=True)
def from_a_repository(monkeypatch):
    direct = {"url": "https://host.org/team/dy2st", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}}
    monkeypatch.setattr(installed, "_direct_url", lambda: direct)


def test_models_without_inputs_get_files_that_run(write, dy2st_command, folder):
    write("nets/gate.py", NETS)
    write("pool.py", POOL)
    write("broken.py", "def (")
    write("env/pyvenv.cfg", "")
    write("env/lib/other.py", POOL)
    done = dy2st_command("init")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "wrote pyproject.toml: [tool.dy2st] with dy2st_models/\n"
        "wrote .github/workflows/dy2st.yml\n"
        "wrote dy2st_models/nets_gate_gate_inputs.py\n"
        "wrote dy2st_models/pool_inputs.py\n"
        "next: put real sizes and values into dy2st_models/, then dy2st check\n"
    )
    done = dy2st_command("check", "--allow-uncovered")
    assert done.code == 0
    assert "2 of 2 targets are equal to eager" in done.out
    # written once: from then on they are the models of the folder
    done = dy2st_command("init", "--force")
    assert "with dy2st_models/\n" in done.out
    assert "inputs.py" not in done.out


def text_of(write, folder, source):
    write("net.py", source)
    (text,) = stubs_in(folder).values()
    return text


def test_sizes_and_their_names_are_those_of_jaxtyping(write, folder):
    annotations = 'x: Float[Tensor, "batch 3 width"], n: Int[Tensor, ""], m: Bool[Tensor, "batch"], t: tuple[int, str]'
    text = text_of(write, folder, f"def model({annotations}): pass\n")
    assert "        torch.randn((2, 3, 2,)),  # x: Float[Tensor, 'batch 3 width']\n" in text
    assert "        torch.ones((), dtype=torch.int64),  # n: Int[Tensor, '']\n" in text
    assert "        torch.ones((2,), dtype=torch.bool),  # m: Bool[Tensor, 'batch']\n" in text
    assert '        (1, "",),  # t: tuple[int, str]\n' in text
    assert 'dynamic_shapes = {"x": {0: "batch", 2: "width"}, "n": None, "m": {0: "batch"}, "t": None}\n' in text


def test_what_is_not_known_is_none_and_what_has_a_default_is_left_out(write, folder):
    text = text_of(write, folder, "def model(x, config: Config, *more, k=3, last): pass\n")
    assert (
        "        torch.randn(2, 3),  # x\n        None,  # config: Config\n        torch.randn(2, 3),  # last\n" in text
    )
    assert "more" not in text
    assert "k" not in text.replace("k =", "").partition("example_inputs")[2].partition("]")[0]


def test_source_folders_are_no_packages(write, folder):
    write("src/nets/gate.py", NETS)
    (text,) = stubs_in(folder).values()
    assert "from nets.gate import Gate as model" in text


def test_nothing_takes_the_place_of_a_file(write, dy2st_command, folder):
    write("pool.py", POOL)
    write("dy2st_models/pool_inputs.py", "x = 1\n")
    done = dy2st_command("init")
    assert done.code == 2
    assert "dy2st_models/pool_inputs.py exists, and has no inputs" in done.err
    assert not Path("pyproject.toml").exists()


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("https://name:secret@host.org/a/b.git", "https://host.org/a/b.git"),
        ("https://host.org/a/b", "https://host.org/a/b"),
        ("git@host.org:a/b.git", "https://host.org/a/b.git"),
        ("ssh://git@host.org/a/b.git", "https://host.org/a/b.git"),
        ("/a/folder", ""),
        ("file:///a/folder", ""),
        ("", ""),
    ],
)
def test_addresses_are_those_that_anyone_may_read(address, public):
    assert installed._public(address) == public


def test_a_clone_is_installed_from_its_repository_at_its_commit(folder, write, monkeypatch):
    def git(*arguments):
        named = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        return subprocess.run(["git", *named, *arguments], check=True, capture_output=True, text=True).stdout.strip()

    monkeypatch.setattr(installed, "_direct_url", lambda: {"url": folder.as_uri(), "dir_info": {"editable": True}})
    assert installed.requirement() == f"dy2st=={__version__}"
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "one")
    assert installed.requirement() == f"dy2st=={__version__}"
    git("remote", "add", "origin", "git@host.org:team/dy2st.git")
    assert installed.requirement() == f"dy2st @ git+https://host.org/team/dy2st.git@{git('rev-parse', 'HEAD')}"


def test_what_pip_took_from_a_repository_is_taken_from_there(write, dy2st_command):
    write("pool.py", POOL)
    assert dy2st_command("init").code == 0
    install = yaml.safe_load(Path(".github/workflows/dy2st.yml").read_text())["jobs"]["check"]["steps"][2]["run"]
    assert install == (
        "python -m pip install --extra-index-url https://download.pytorch.org/whl/cpu "
        '"dy2st @ git+https://host.org/team/dy2st@c0ffee"'
    )


def test_a_workflow_that_others_can_not_run_is_told_of(write, dy2st_command, monkeypatch):
    monkeypatch.setattr(installed, "_direct_url", lambda: {"url": "file:///a/wheel.whl", "archive_info": {}})
    write("pool.py", POOL)
    done = dy2st_command("init")
    assert done.code == 0
    assert done.err == (
        f"dy2st: .github/workflows/dy2st.yml installs dy2st=={__version__} from the package index: this dy2st comes "
        "from no repository that others reach (instead: write its address into the workflow)\n"
    )


FORWARD = """\
    def forward(self, x: "Tensor", ids: torch.LongTensor, more: dict[str, Tensor], last: Optional[Tensor]):
        return x
"""
NAMED = {
    "an_instance": f"class Net(nn.Module):\n    def __init__(self, n): pass\n{FORWARD}model = Net(3).eval()\n",
    "an_annotated_one": f"class Net(nn.Module):\n{FORWARD}model: nn.Module = Net()\n",
    "a_class": f"class Net(nn.Module):\n{FORWARD}model = Net\n",
    "a_factory": f"class Net(Base):\n{FORWARD}def model():\n    return Net(3)\n",
    "the_class_itself": f"class model(nn.Module):\n{FORWARD}",
    "a_function": FORWARD.replace("    def forward(self, ", "def model(").replace("        ", "    "),
    "another_name": FORWARD.replace("    def forward(self, ", "def net(").replace("        ", "    ") + "model = net\n",
}


@pytest.mark.parametrize("source", NAMED.values(), ids=NAMED)
def test_what_is_called_model_has_the_arguments_of_what_it_is_made_of(source, write, folder):
    text = text_of(write, folder, source)
    assert "from net import model  # noqa: F401\n" in text
    assert "        torch.randn(2, 3),  # x: 'Tensor'\n" in text or "        torch.randn(2, 3),  # x: Tensor\n" in text
    assert "        torch.ones((2, 3), dtype=torch.int64),  # ids: torch.LongTensor\n" in text
    assert '        {"key": torch.randn(2, 3)},  # more: dict[str, Tensor]\n' in text
    assert "        None,  # last: Optional[Tensor]\n" in text


@pytest.mark.parametrize("source", ["from parts import model\n", "from parts import Net\nmodel = Net(3)\n"])
def test_what_is_defined_elsewhere_has_a_file_all_the_same(source, write, folder):
    text = text_of(write, folder, source)
    assert "        torch.randn(2, 3),  # x: what its forward takes is not in this file\n" in text


def test_functions_that_take_tensors_where_there_is_no_module(write, folder):
    functions = "def nms(boxes: Tensor, limit: float): pass\ndef _inner(x: Tensor): pass\ndef size(n: int): pass\n"
    write("boxes.py", functions)
    write("both.py", functions + NETS)
    assert sorted(map(str, stubs_in(folder))) == [
        "dy2st_models/both_gate_inputs.py",
        "dy2st_models/boxes_nms_inputs.py",
    ]


def test_beside_models_that_have_inputs(write, dy2st_command):
    write("done.py", POOL + "example_inputs = [([torch.ones(1)], 3)]\n")
    write("pool.py", POOL)
    write("gate.py", NETS)  # calls nothing model: a part, perhaps
    done = dy2st_command("init")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("wrote pyproject.toml: [tool.dy2st] with done.py, dy2st_models/\n")
    assert done.out.count("_inputs.py") == 1
    assert Path("dy2st_models/pool_inputs.py").exists()
    written = Path("dy2st_models/pool_inputs.py")
    written.write_text(written.read_text().replace("(2, 3)", "(5,)"))
    write("later.py", POOL)
    done = dy2st_command("init", "--force")
    assert "[tool.dy2st] with done.py, dy2st_models/\n" in done.out
    assert "wrote dy2st_models/later_inputs.py\n" in done.out
    assert "pool_inputs" not in done.out
    assert "(5,)" in written.read_text()


def test_of_a_folder_below(write, dy2st_command):
    write("models/deep/pool.py", POOL + "example_inputs = [([torch.ones(1)], 3)]\n")
    write("models/deep/new.py", POOL)
    write("other/pool.py", POOL)
    done = dy2st_command("init", "models/deep/")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("wrote pyproject.toml: [tool.dy2st] with models/deep/, dy2st_models/\n")
    assert "from models.deep.new import model" in Path("dy2st_models/models_deep_new_inputs.py").read_text()
    assert not Path("dy2st_models/other_pool_inputs.py").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("gone", "D2S902: gone: there is no such folder\n"),
        ("net.py", "D2S902: net.py: there is no such folder\n"),
        ("..", "D2S902: .. is not below the working folder, which the settings are for (instead: cd ..)\n"),
        ("empty", "D2S902: no file in empty defines both model and example_inputs"),
    ],
)
def test_a_folder_that_can_not_be_it(given, said, write, dy2st_command):
    write("net.py", POOL)
    Path("empty").mkdir()
    done = dy2st_command("init", given)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"dy2st: {said}")
    assert not Path("pyproject.toml").exists()
