"""A model is written whole or not at all, its external data included."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from dy2st.cli.output import StagedOutput
from dy2st.errors import SaveError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_nothing_appears_before_commit(folder):
    with StagedOutput("net.onnx") as output:
        output.path.write_text("model")
        (output.path.parent / "net.onnx.data").write_text("data")
        assert "net.onnx" not in names(folder)
        written = output.commit()
    assert [path.name for path in written] == ["net.onnx", "net.onnx.data"]
    assert names(folder) == ["net.onnx", "net.onnx.data"]


def test_without_commit_an_older_file_stays(folder):
    (folder / "net.onnx").write_text("old")
    with StagedOutput("net.onnx") as output:
        output.path.write_text("new")
    assert names(folder) == ["net.onnx"]
    assert (folder / "net.onnx").read_text() == "old"


@pytest.mark.parametrize("wrapped", [False, True])
def test_full_disk(folder, wrapped):
    def fill():
        with Path("/dev/full").open("w") as device:
            device.write("x" * 100_000)

    def export():
        try:
            fill()
        except OSError as error:
            if wrapped:
                raise RuntimeError("export failed") from error
            raise

    with (
        pytest.raises(SaveError, match="can't be written: No space left on device"),
        StagedOutput("net.onnx") as output,
    ):
        output.path.write_text("half")
        export()
    assert names(folder) == []


def test_other_errors_pass_through(folder):
    with pytest.raises(FileNotFoundError), StagedOutput("net.onnx"):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), "weights.bin")
    assert names(folder) == []


def test_interrupt_leaves_nothing(folder):
    with pytest.raises(KeyboardInterrupt), StagedOutput("net.onnx") as output:
        output.path.write_text("half")
        raise KeyboardInterrupt
    assert names(folder) == []
