"""Saving tensors whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import torch


def save_whole(file: Path, value: Any) -> Path:
    """``torch.save`` that leaves a whole file or none; an older one is replaced.

    Raises:
        OSError: the folder can't be written to, or is full.
    """
    # In a folder of its own, so that the file has the permissions that files have here.
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=".dy2st-") as folder:
        made = Path(folder) / file.name
        with made.open("wb") as stream:
            torch.save(value, stream)
            stream.flush()
            os.fsync(stream.fileno())
        return made.replace(file)
