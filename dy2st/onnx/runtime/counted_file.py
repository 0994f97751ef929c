"""A file with the counts of its arms, beside which the weights of the original lie without having been copied."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import onnx
from onnx.external_data_helper import _get_all_tensors, uses_external_data

from dy2st.errors import OnnxError
from dy2st.onnx.runtime.arm_counts import CountedModel
from dy2st.onnx.runtime.side_metadata import load_model


@contextlib.contextmanager
def counted_file(file: Path) -> Iterator[tuple[CountedModel, Path]]:
    """The model of a file that counts its arms, and where it lies for as long as this is open.

    Where there are no arms, that is the file itself.

    Raises:
        OnnxError: the arms can't be counted.
    """
    try:
        counted = CountedModel(load_model(file, external_data=False))
    except (OnnxError, OSError):
        raise
    except Exception as error:  # what another exporter wrote may be anything
        text = next(iter(str(error).splitlines()), "")
        raise OnnxError(f"{type(error).__name__}: {text}") from error
    if not counted.nodes:
        yield counted, file
        return
    with _beside(file, data_files(counted.model)) as folder:
        path = folder / "counted.onnx"
        path.write_bytes(counted.model.SerializeToString())
        yield counted, path


def data_files(model: onnx.ModelProto) -> list[str]:
    """The files that hold tensors of a model, relative to its own folder."""
    found: dict[str, None] = {}
    for tensor in _get_all_tensors(model):
        if uses_external_data(tensor):
            found.update({each.value: None for each in tensor.external_data if each.key == "location"})
    return list(found)


@contextlib.contextmanager
def _beside(file: Path, names: list[str]) -> Iterator[Path]:
    """A folder for another file with the same data, which is linked: onnxruntime follows no symbolic links out of it.

    It lies where the file does, so that links can be made, if it may.
    """
    parent = file.absolute().parent
    with contextlib.ExitStack() as stack:
        folder: str | None = None
        if names:
            with contextlib.suppress(OSError):
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix=f".{file.name}.", dir=parent))
        folder = folder or stack.enter_context(tempfile.TemporaryDirectory(prefix="dy2st-"))
        for name in names:
            target = Path(folder, name)
            if not target.resolve().is_relative_to(Path(folder).resolve()):
                raise OnnxError(f"its data lies in {name}, outside of the file's folder")
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(parent / name, target)
            except OSError:
                shutil.copyfile(parent / name, target)
        yield Path(folder)
