"""What is packaged, what an import costs, and that each way of installing works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"torch", "numpy", "libcst", "rich", "onnx", "onnxruntime"}


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def run(*command, cwd=ROOT, check=True, **environment):
    plain = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, check=check, capture_output=True, text=True, env=plain | environment
    )


def packages_on_disk():
    for top, name in ((ROOT / "dy2st", "dy2st"), (ROOT / "transforms", "dy2st.transforms")):
        for folder, below, files in os.walk(top):
            below[:] = [each for each in below if each != "__pycache__"]
            if any(file.endswith(".py") for file in files):
                yield ".".join([name, *Path(folder).relative_to(top).parts])


def test_packages_are_those_on_the_disk(project):
    assert sorted(project["tool"]["setuptools"]["packages"]) == sorted(packages_on_disk())


def test_every_package_has_an_init():
    for package in packages_on_disk():
        folder = ROOT / package.replace("dy2st.transforms", "transforms").replace(".", "/")
        assert (folder / "__init__.py").is_file(), package


def test_link_is_relative():
    assert (ROOT / "dy2st" / "transforms").readlink() == Path("../transforms")


def test_versions_known_good_fit_the_requirements(project):
    pins = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"
    )
    optional = project["project"]["optional-dependencies"]
    for requirement in [*project["project"]["dependencies"], *(r for group in optional.values() for r in group)]:
        name, _, lowest = requirement.partition(">=")
        pinned = {key.lower(): value for key, value in pins.items()}[name.lower().partition("[")[0]]
        assert [int(part) for part in pinned.split(".")] >= [int(part) for part in lowest.split(".")], requirement


def test_import_is_light():
    code = "import sys, json, dy2st, dy2st.cli.main, dy2st.pytest_plugin; print(json.dumps(sorted(sys.modules)))"
    assert not HEAVY & set(json.loads(run(sys.executable, "-c", code).stdout))


def test_public_names_exist_and_others_do_not():
    import dy2st

    for name in dy2st.__all__:
        assert getattr(dy2st, name) is not None
    assert set(dy2st.__all__) <= set(dir(dy2st))
    with pytest.raises(AttributeError, match="no attribute 'to_dynamic'"):
        _ = dy2st.to_dynamic


def test_function_names_are_not_hidden_by_modules():
    """A submodule named like a public function would take its place once it is imported."""
    import dy2st

    modules = {path.stem for path in (ROOT / "dy2st").iterdir()}
    assert modules & set(dy2st.__all__) <= {"errors", "onnx"}


def test_help_answers_at_once():
    """It loads nothing but what parses a command line."""
    code = "import sys, json, dy2st.cli.main as cli\ntry: cli.main(['--help'])\nexcept SystemExit: pass\n"
    printed = run(sys.executable, "-c", f"{code}print(json.dumps(sorted(sys.modules)))").stdout.splitlines()
    assert printed[0].startswith("usage: dy2st")
    assert not set(json.loads(printed[-1])) & {*HEAVY, "asyncio", "concurrent", "multiprocessing", "unittest"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel made from a copy of the tree, with the build tools of this environment."""
    import shutil

    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"
    ignored = shutil.ignore_patterns(".git", ".venv*", "build", "*.egg-info", "__pycache__", ".*_cache")
    shutil.copytree(ROOT, tree, symlinks=True, ignore=ignored)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, tree]
    run(*command)
    return next(folder.glob("dy2st-*.whl"))


@pytest.mark.slow
def test_wheel_holds_every_module_and_no_top_level_transforms(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.split("/")[0] != "dy2st" and ".dist-info/" not in name]
    expected = {
        f"dy2st/{path.relative_to(ROOT / 'dy2st').as_posix()}"
        for path in (ROOT / "dy2st").rglob("*.py")
        if "transforms" not in path.relative_to(ROOT / "dy2st").parts
    } | {f"dy2st/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "transforms").rglob("*.py")}
    assert expected <= set(names)
    assert {"dy2st/py.typed", "dy2st/report/schema/report-1.json"} <= set(names)
    assert {"dy2st/report/web/report.css", "dy2st/report/web/report.js"} <= set(names)
    assert "dy2st/transforms/__init__.py" in names
    entry_points = next(name for name in names if name.endswith(".dist-info/entry_points.txt"))
    assert "[pytest11]\ndy2st = dy2st.pytest_plugin" in zipfile.ZipFile(wheel).read(entry_points).decode()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wheel", "editable"])
def test_installed(kind, wheel, tmp_path):
    """Installed into a folder of its own, dy2st imports its transforms, and `transforms` stays free for the user."""
    if kind == "wheel":
        zipfile.ZipFile(wheel).extractall(tmp_path / "site")
        path = tmp_path / "site"
    else:
        target = tmp_path / "site"
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
        run(*command, "--target", target, "-e", wheel.parent / "tree")
        path = target
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "transforms.py").write_text("mine = True\n")
    code = (
        "import sys, site; site.addsitedir(sys.argv[1]);"
        "import dy2st, dy2st.transforms, transforms; print(transforms.mine, dy2st.__file__)"
    )
    environment = {"PYTHONPATH": f"{tmp_path / 'work'}{os.pathsep}{path}"}
    printed = run(sys.executable, "-c", code, path, cwd=tmp_path / "work", **environment).stdout.split()
    assert printed[0] == "True"
    assert Path(printed[1]).is_relative_to(path if kind == "wheel" else wheel.parent / "tree")
