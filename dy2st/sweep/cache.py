"""Results that are kept from run to run, as long as nothing has changed that they depend on.

An entry is found by what was asked: the target, its options, the working folder, and the environment. That is dy2st's
own source, the versions of Python and of every installed package, and the machine. It holds the result, and the hashes
of all files that it depends on, as :mod:`dy2st.sweep.watching` has seen them; it counts only while each is as it was.

Entries lie in the user's cache folder and not beside the project, where they would have to be ignored, and could not be
written everywhere.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import platform
import sys
import sysconfig
import tempfile
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

from dy2st.sweep.job import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from dy2st.sweep.job import Job

FORMAT = 1
# Beyond so many entries, those that were not used for longest are removed, down to the second number.
_MOST, _KEPT = 5000, 4000
# Errors that follow from the model: refusals in its source, in staging, capture and ONNX. Others may be the moment's.
_LASTING = ("D2S1", "D2S2", "D2S3", "D2S4")


class Cache:
    """The entries in a folder; ``warn`` is told once if it can't be written.

    What changes from now on is not kept: the result may be of what was there before.
    """

    def __init__(self, folder: Path, warn: Callable[[str], None]) -> None:
        self._folder, self._warn = folder, warn
        self._begun = time.time_ns()
        self._digests: dict[str, str] = {}
        self._broken = False

    def look_up(self, job: Job) -> Answer | None:
        """What was found before, if it still holds."""
        file = self._file(job)
        try:
            entry = json.loads(file.read_bytes())
            if entry["format"] != FORMAT or any(self._digest(path) != known for path, known in entry["files"].items()):
                return None
            answer = Answer.from_plain(entry["answer"])
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            RecursionError,
        ):  # none there, or none of ours
            return None
        with contextlib.suppress(OSError):
            os.utime(file)
        return replace(answer, result=replace(answer.result, cached=True))

    def keep(self, job: Job, answer: Answer) -> None:
        """Write an entry, if the answer will be the same as long as its files are."""
        if self._broken or not lasting(job, answer) or not all(self._is_old(path) for path in answer.files):
            return
        files = {path: self._digest(path) for path in answer.files}
        entry = {"format": FORMAT, "files": files, "answer": answer.to_plain()}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(prefix=".new-", dir=self._folder)
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    json.dump(entry, file)
                Path(name).replace(self._file(job))
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            self._broken = True
            self._warn(f"results can't be kept in {self._folder}: {error.strerror}")

    def prune(self) -> None:
        """Remove what was not used for long, if there is too much."""
        with contextlib.suppress(OSError):
            entries = list(self._folder.glob("*.json"))
            if len(entries) > _MOST:
                for entry in sorted(entries, key=lambda each: each.stat().st_mtime)[:-_KEPT]:
                    entry.unlink(missing_ok=True)

    def _file(self, job: Job) -> Path:
        asked = json.dumps([job.to_plain(), str(Path.cwd()), environment()], sort_keys=True)
        return self._folder / f"{hashlib.sha256(asked.encode()).hexdigest()}.json"

    def _digest(self, path: str) -> str:
        if path not in self._digests:
            self._digests[path] = digest(path)
        return self._digests[path]

    def _is_old(self, path: str) -> bool:
        """Whether a file is as it was when the run began, so that the result is of what is there now."""
        try:
            status = os.stat(path)  # noqa: PTH116 - one call, whatever it is
        except OSError:
            return True
        return os.path.isdir(path) or status.st_mtime_ns < self._begun  # noqa: PTH112 - the same


def default_folder() -> Path:
    """Where entries go: the user's folder for caches, which is ``~/.cache`` on Linux or what ``$XDG_CACHE_HOME`` says.

    Raises:
        OSError: there is no home.
    """
    folder = platformdirs.user_cache_path("dy2st", appauthor=False) / "results"
    if not folder.is_absolute():
        raise OSError(errno.ENOENT, "there is no folder of the user's", str(folder))
    return folder


def lasting(job: Job, answer: Answer) -> bool:
    """Whether an answer follows from its files: it is complete, nothing took too long, has crashed or was outside."""
    result = answer.result
    # What a file of --onnx needs beside it is read by onnxruntime alone.
    if answer.unsure or job.options.get("save_inputs") or job.options.get("onnx") is not None:
        return False
    if result.report is None:
        return all((each.code or "").startswith(_LASTING) for each in result.failures)
    if job.options.get("search") is not None and result.exit_code:  # it may find more with more time
        return False
    return all(stage.status != "error" for each in result.report.inputs for stage in each.stages)


def digest(path: str) -> str:
    """What a file or the list of a folder is like now."""
    try:
        if os.path.isdir(path):  # noqa: PTH112 - a text, as the key is
            content = "\n".join(sorted(os.listdir(path))).replace("__pycache__\n", "").encode()  # noqa: PTH208
            return f"folder {hashlib.sha256(content).hexdigest()}"
        with open(path, "rb") as file:  # noqa: PTH123 - the same
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "none"


@cache
def environment() -> dict[str, Any]:
    """What a result depends on beside the target's own files."""
    ours = Path(__file__).resolve().parents[1]
    source = hashlib.sha256()
    for file in sorted(ours.rglob("*.py")) + sorted((ours / "transforms").rglob("*.py")):  # a link in a clone
        source.update(file.read_bytes())
    paths = {sysconfig.get_paths()[name] for name in ("purelib", "platlib")} | {p for p in sys.path if "-packages" in p}
    packages = {each.name for path in paths for kind in ("dist", "egg") for each in Path(path).glob(f"*.{kind}-info")}
    return {
        "dy2st": source.hexdigest(),
        "python": sys.version,
        "packages": sorted(packages),
        "system": f"{platform.system()} {platform.machine()}",
    }
