"""``dy2st init``: settings in pyproject.toml, and a workflow that checks the models."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dy2st.cli.folders import is_others, targets_in
from dy2st.cli.installed import is_pinned, requirement
from dy2st.cli.output import StagedOutput, repository_root
from dy2st.cli.stubs import FOLDER, stubs_in
from dy2st.errors import SaveError, SettingsError, TargetError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

_CPU_TORCH = "https://download.pytorch.org/whl/cpu"
_HEADER = re.compile(r"^\s*\[+\s*([^\]]*?)\s*\]+")

_WORKFLOW = """\
# Converts the models of [tool.dy2st] in pyproject.toml to ONNX, and compares each with eager PyTorch on onnxruntime.
name: dy2st

on:
  push:
  pull_request:

permissions:
  contents: read

jobs:
  check:
    runs-on: ubuntu-latest
    timeout-minutes: 60{working_directory}
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-python@v6
        with:
          python-version: "3.11"
      - name: Install
        run: {install}
      - name: Results of earlier runs
        uses: actions/cache@v4
        with:
          path: ~/.cache/dy2st
          key: dy2st-${{{{ runner.os }}}}-${{{{ github.sha }}}}
          restore-keys: dy2st-${{{{ runner.os }}}}-
      - name: Check
        run: >-
          dy2st check
          --format github
          --format junit=dy2st.xml
          --format html=dy2st.html
          --format markdown="$GITHUB_STEP_SUMMARY"
      - name: Reports
        if: always()
        uses: actions/upload-artifact@v4
        with:
          name: dy2st
          if-no-files-found: ignore
          path: |
            {prefix}dy2st.xml
            {prefix}dy2st.html
"""


class _Replaced(StagedOutput):
    """A file that may take the place of an older one, as the caller has decided."""

    example = "pyproject.toml"

    def _not_overwritten(self) -> str:
        return ""


def init(options: argparse.Namespace) -> int:
    """Write both files, or none.

    Raises:
        TargetError: there is no model in the folder.
        SettingsError: there are settings already, or pyproject.toml is no TOML.
        SaveError: there is a workflow already, or a file can't be written.
    """
    folder = Path.cwd()
    root = repository_root(folder)
    below = _below(folder, options.folder)
    targets = found_targets(folder, below)
    stubs = _own(folder, stubs_in(folder, below, named=bool(targets)))
    if not targets and not stubs:
        raise TargetError(
            f"no file in {options.folder or 'this folder'} defines both model and example_inputs, and none a model "
            "that needs no arguments",
            hint="write one, or name targets in [tool.dy2st] of pyproject.toml",
        )
    targets = [*targets, *([f"{FOLDER}/"] if stubs and f"{FOLDER}/" not in targets else [])]
    settings, workflow = Path("pyproject.toml"), root / ".github" / "workflows" / "dy2st.yml"
    before = _read(settings)
    if workflow.exists() and not options.force:
        raise SaveError(f"{_shown(workflow)} exists", hint="--force replaces it")
    texts = {
        settings: with_settings(before, targets, replace=options.force),
        workflow: workflow_text(folder, root, before),
        **stubs,
    }
    _write(texts)
    if not is_pinned(requirement()):
        sys.stderr.write(
            f"dy2st: {_shown(workflow)} installs {requirement()} from the package index: this dy2st comes from no "
            "repository that others reach (instead: write its address into the workflow)\n"
        )
    _print(options, targets, [_shown(file) for file in texts], len(stubs))
    return 0


def _below(folder: Path, given: str | None) -> Path:
    """The folder that is looked through: the working folder, or one below it.

    Raises:
        TargetError: it is none.
    """
    below = Path(os.path.normpath(folder / (given or "")))
    if not below.is_dir():
        raise TargetError(f"{given}: there is no such folder")
    if not below.is_relative_to(folder):
        raise TargetError(f"{given} is not below the working folder, which the settings are for", hint=f"cd {given}")
    return below


def found_targets(folder: Path, below: Path | None = None) -> list[str]:
    """The folders and files of models in a folder: what lies in a folder is named by that, so that more may come.

    With ``below``, a folder in it, it is that if there are any in that.
    """
    found: dict[str, None] = {}
    for path in targets_in(below or folder):
        parts = Path(path).relative_to(folder).parts
        if not is_others(folder, Path(path)):
            found[f"{parts[0]}/" if len(parts) > 1 else parts[0]] = None
    if found and below is not None and below != folder:
        return [f"{below.relative_to(folder).as_posix()}/"]
    return list(found)


def _own(folder: Path, stubs: dict[Path, str]) -> dict[Path, str]:
    """Those that are not written yet.

    Raises:
        SaveError: one would take the place of a file that is something else.
    """
    written = {Path(each).relative_to(folder) for each in targets_in(folder / FOLDER)}
    found = {path: text for path, text in stubs.items() if path not in written}
    taken = next((path for path in found if (folder / path).exists()), None)
    if taken is not None:
        raise SaveError(f"{taken} exists, and has no inputs", hint="give it example_inputs")
    return found


def with_settings(text: str, targets: Iterable[str], *, replace: bool = False) -> str:
    """A pyproject.toml with a table for us at its end; all else stays as it is, to the letter.

    Raises:
        SettingsError: it is no TOML, has a table for us that is not to be replaced, or can't have one at its end.
    """
    before = _parsed(text)
    tool = before.get("tool", {})
    if isinstance(tool, dict) and "dy2st" in tool:
        if not replace:
            raise SettingsError("pyproject.toml has [tool.dy2st] already", hint="--force replaces it")
        text = _without_ours(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = ["[tool.dy2st]", "targets = [", *(f"    {json.dumps(each, ensure_ascii=False)}," for each in targets), "]"]
    kept = text if not text or text.endswith("\n") else text + newline
    kept += newline if kept and not kept.endswith(newline * 2) else ""
    made = kept + newline.join(lines) + newline
    with suppress(SettingsError):
        after = _parsed(made)
        for parsed in (before, after):
            if isinstance(parsed.get("tool"), dict):
                parsed["tool"].pop("dy2st", None)
        if {**before, "tool": before.get("tool") or {}} == {**after, "tool": after.get("tool") or {}}:
            return made
    raise SettingsError("pyproject.toml can't take a table at its end", hint="write [tool.dy2st] into it by hand")


def workflow_text(folder: Path, root: Path, settings: str) -> str:
    """The workflow for a folder of a repository; ``settings`` is its pyproject.toml as it was."""
    inside = folder.relative_to(root).as_posix()
    # torch's own index has builds for the CPU alone, which are a tenth of the size
    parts = [f'python -m pip install --extra-index-url {_CPU_TORCH} "{requirement()}"']
    if (folder / "requirements.txt").is_file():
        parts.append("-r requirements.txt")
    if {"project", "build-system"} & _parsed(settings).keys():
        parts.append("-e .")
    directory = f"\n    defaults:\n      run:\n        working-directory: {json.dumps(inside)}"
    return _WORKFLOW.format(
        working_directory="" if folder == root else directory,
        install=" ".join(parts),
        prefix="" if folder == root else f"{inside}/",
    )


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8") if file.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} can't be read: {error}") from error


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"pyproject.toml can't be read: {error}") from error


def _without_ours(text: str) -> str:
    """The text without our tables, each from its header to the next."""
    kept, ours = [], False
    for line in text.splitlines(keepends=True):
        header = _HEADER.match(line)
        if header is not None:
            ours = re.match(r"tool\s*\.\s*dy2st\s*(\.|$)", header[1]) is not None
        if not ours:
            kept.append(line)
    return "".join(kept)


def _write(texts: dict[Path, str]) -> None:
    """All files or none; folders that were made for them go again, too."""
    made: list[Path] = []
    try:
        for file in texts:
            made += [each for each in (file.parent, *file.parent.parents) if not each.exists()][::-1]
            file.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            outputs = [(stack.enter_context(_Replaced(file)), text) for file, text in texts.items()]
            for output, text in outputs:
                output.path.write_bytes(text.encode())
            for output, _ in outputs:
                output.commit()
    except OSError as error:
        _remove(made)
        raise SaveError(f"{error.filename} can't be written: {error.strerror}") from error
    except BaseException:
        _remove(made)
        raise


def _remove(folders: list[Path]) -> None:
    for folder in reversed(folders):
        with suppress(OSError):
            folder.rmdir()


def _shown(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _print(options: argparse.Namespace, targets: list[str], files: list[str], stubs: int) -> None:
    if options.json:
        sys.stdout.write(json.dumps({"targets": targets, "files": files}) + "\n")
        return
    lines = [f"wrote {files[0]}: [tool.dy2st] with {', '.join(targets)}", *(f"wrote {file}" for file in files[1:])]
    edit = f"put real sizes and values into {FOLDER}/, then " if stubs else ""
    sys.stdout.write("\n".join([*lines, f"next: {edit}dy2st check"]) + "\n")
