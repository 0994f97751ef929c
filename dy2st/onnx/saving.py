"""Saving an ONNX file whole or not at all."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from dy2st.errors import SaveError


def save(program: torch.onnx.ONNXProgram, path: Path, *, external_data: bool) -> None:
    """Write the file (and its data file, when the weights are large) into place in one step each."""
    if not path.parent.is_dir():
        raise SaveError(f"the folder {path.parent} does not exist")
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        made = Path(folder) / path.name
        program.save(str(made), external_data=external_data and _is_large(program))
        for part in sorted(Path(folder).iterdir(), reverse=True):
            part.replace(path.parent / part.name)


def _is_large(program: torch.onnx.ONNXProgram) -> bool:
    weights = program.model.graph.initializers.values()
    return sum(v.const_value.nbytes for v in weights if v.const_value is not None) > 2**30
