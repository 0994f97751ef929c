"""Writing a file without ever leaving half of one: into a folder beside the target, then moved into place."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Self

from dy2st.errors import SaveError

if TYPE_CHECKING:
    from types import TracebackType

# How a system says that there is no room to write.
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}


class StagedOutput:
    """A context in which ``path`` can be written; ``commit`` moves it to the target, leaving without it drops it.

    ``path`` has the target's own file name, since a model names its file of external data, which lies beside it and is
    moved too (first, so that the model never points at data that is not there yet).

    Raises:
        SaveError: on entering, if the folder is missing or not writable or the target is no regular file; on leaving,
            if the disk was full.
    """

    example = "model.onnx"

    def __init__(self, target: str | Path) -> None:
        self.target = Path(target)
        self.path = self.target
        self._folder: Path | None = None

    def probe(self) -> None:
        """Raise what entering would raise, without leaving anything behind."""
        with self:
            pass

    def __enter__(self) -> Self:
        parent = self.target.parent
        if not parent.is_dir():
            raise SaveError(f"{self.target}: the folder {parent} does not exist", hint="make it first")
        if self.target.is_dir():
            raise SaveError(f"{self.target} is a folder", hint=f"{self.target / self.example}")
        if self.target.exists() and not self.target.is_file():
            raise SaveError(f"{self.target} is not a regular file")
        if self.target.exists() and (kind := self._not_overwritten()):
            raise SaveError(f"{self.target} exists and is {kind}: it is not overwritten")
        try:
            self._folder = Path(tempfile.mkdtemp(prefix=".dy2st-", dir=parent))
        except OSError as error:
            raise SaveError(f"{self.target}: the folder {parent} can't be written: {error.strerror}") from error
        self.path = self._folder / self.target.name
        return self

    def _not_overwritten(self) -> str:
        """What an existing target is, in words, if it has to stay."""
        return "" if self.target.suffix == ".onnx" else "no .onnx file"

    def commit(self) -> list[Path]:
        """Put everything on the disk and move it into place; returns the files written, the model first."""
        assert self._folder is not None
        parts = sorted(self._folder.iterdir(), key=lambda part: part == self.path)
        for part in parts:
            with part.open("rb") as file:
                os.fsync(file.fileno())
        written = [part.replace(self.target.parent / part.name) for part in parts]
        with contextlib.suppress(OSError):  # not every file system can sync a folder
            folder = os.open(self.target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        return written[::-1]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        if isinstance(error, SaveError):  # said of another file already
            return
        cause: BaseException | None = error
        while cause is not None:  # an exporter may have wrapped it
            if isinstance(cause, OSError) and cause.errno in NO_ROOM:
                raise SaveError(f"{self.target} can't be written: {cause.strerror}") from error
            cause = cause.__cause__ or cause.__context__


def repository_root(folder: Path) -> Path:
    """The root of the repository around a folder, or the folder."""
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


# Files that someone has made: a report in their place would be a slip of the hand.
_KEPT = {".onnx", ".py", ".pyi", ".toml", ".pt", ".npz", ".safetensors"}


class ReportOutput(StagedOutput):
    """The same for a report, which takes the place of an older one, whatever its name; not of a model or a source."""

    example = "report.json"

    def _not_overwritten(self) -> str:
        suffix = self.target.suffix.lower()
        return f"a {suffix} file, no report" if suffix in _KEPT else ""
