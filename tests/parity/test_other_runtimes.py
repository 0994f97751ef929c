"""A file on onnx's reference evaluator and OpenVINO: a stage of the check, and what they lack is named."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import onnx
import pytest
import torch
from onnx import parser

from dy2st.errors import OnnxError, UsageError
from dy2st.parity.other_runtimes import RUNTIMES, OtherSession, installed_runtimes

HEAD = '<ir_version: 10, opset_import: ["": 20, "own": 1]>'
PLAIN = f"{HEAD} g (float[n] x) => (float[n] y, int64[1] size) {{ y = Exp(x) size = Shape(x) }}"
LENGTHS = f"""{HEAD} g (float[t, b, 2] x, float[1, 3, 2] w, float[1, 3, 3] r, int32[b] ends) => (float[t, 1, b, 3] y) {{
    y = RNN<hidden_size = 3>(x, w, r, , ends)
}}"""
OWN = f"{HEAD} g (float[n] x) => (float[n] y) {{ y = own.Thing(x) }}"

HERE = [name for name, package in RUNTIMES.items() if not package or importlib.util.find_spec(package)]


def session(tmp_path: Path, text: str, runtime: str) -> OtherSession:
    onnx.save(parser.parse_model(text), tmp_path / "m.onnx")
    return OtherSession(tmp_path / "m.onnx", runtime)


@pytest.mark.parametrize("runtime", HERE)
def test_a_file_runs(tmp_path: Path, runtime: str) -> None:
    made = session(tmp_path, PLAIN, runtime)
    x = torch.tensor([0.0, 1.0, -2.0])
    y, size = made.values({"x": x})
    torch.testing.assert_close(y, x.exp())
    assert size.tolist() == [3]
    assert (made.input_names, made.output_names) == (["x"], ["y", "size"])


@pytest.mark.parametrize("runtime", HERE)
def test_lengths_are_no_notice_taken_of(tmp_path: Path, runtime: str) -> None:
    with pytest.raises(OnnxError, match=rf"{runtime} lacks sequence_lens of RNN \(ai.onnx, since opset 14\)"):
        session(tmp_path, LENGTHS, runtime)


@pytest.mark.parametrize("runtime", HERE)
def test_what_is_lacking_is_named(tmp_path: Path, runtime: str) -> None:
    with pytest.raises(OnnxError, match=rf"{runtime} lacks Thing \(own\)"):
        session(tmp_path, OWN, runtime)


def test_one_that_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    told: list[str] = []
    assert installed_runtimes(["openvino", "reference"], told.append) == ["reference"]
    assert told == ["openvino is left out: it is not installed (pip install 'dy2st[openvino]')"]
    with pytest.raises(UsageError, match="there is no runtime 'moon'"):
        installed_runtimes(["moon"], told.append)


def test_a_stage_of_the_check(tmp_path, monkeypatch, dy2st_command) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(
        "import torch\n"
        "def model(x):\n"
        "    while x.sum() > 1:\n"
        "        x = x / 2\n"
        "    return x\n"
        "example_inputs = [(torch.ones(3) * n,) for n in (0, 0.5, 4)]\n"
    )
    done = dy2st_command("check", "net.py", "--runtimes", "reference")
    assert done.code == 0, done.err
    assert "reference" in done.out.splitlines()[0]
    assert dy2st_command("check", "net.py", "--runtimes", "moon").code == 2
