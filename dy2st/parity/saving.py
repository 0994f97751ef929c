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
        OSError: the folder can't be written to.
    """
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=".dy2st-", suffix=".pt")
    try:
        with os.fdopen(handle, "wb") as stream:
            torch.save(value, stream)
            stream.flush()
            os.fsync(stream.fileno())
        return Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
