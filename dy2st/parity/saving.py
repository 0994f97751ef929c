"""Saving whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import torch


@contextlib.contextmanager
def written_whole(file: Path) -> Iterator[IO[bytes]]:
    """A stream whose content becomes the file when all of it is written; an older one is replaced.

    Raises:
        OSError: the folder can't be written to, or is full; or the file is a folder.
    """
    # In a folder of its own, so that the file has the permissions that files have here.
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".dy2st-") as folder:
        made = Path(folder) / file.name
        with made.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        made.replace(file)


def save_whole(file: Path, value: Any) -> Path:
    """``torch.save`` that leaves a whole file or none; an older one is replaced.

    Raises:
        OSError: the folder can't be written to, or is full.
    """
    with written_whole(file) as stream:
        torch.save(value, stream)
    return file
