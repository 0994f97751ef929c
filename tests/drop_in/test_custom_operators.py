"""Operators of one's own in a file: their translation, and the kernels that run it in a check."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnxscript
import pytest
import torch
from onnxscript import FLOAT, opset18, opset20
from torch import Tensor

import dy2st
from dy2st.embedded import session_kernels
from dy2st.errors import OnnxError, UntranslatedError, UsageError
from dy2st.onnx import custom_operators


@torch.library.custom_op("drop_in::half", mutates_args=())
def half(x: Tensor, plus: float = 0.0) -> Tensor:
    return x / 2 + plus


@half.register_fake
def _(x: Tensor, plus: float = 0.0) -> Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("drop_in::ends", mutates_args=())
def ends(x: Tensor) -> tuple[Tensor, Tensor]:
    return x[0].clone(), x[-1].clone()


@ends.register_fake
def _(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x[0]), torch.empty_like(x[0])


def model(x: Tensor) -> tuple[Tensor, Tensor]:
    while x.abs().sum() > 1:
        x = half(x, 0.0) if x.sum() > 0 else half(x, plus=0.25)
    first, last = ends(x)
    return first, last


INPUTS = [
    (torch.tensor([3.0, 1.0]),),
    (torch.tensor([-3.0, 1.0, -2.0]),),
    (torch.zeros(1),),
    (torch.tensor([1.2, 0.4]),),
]


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    monkeypatch.setattr(custom_operators, "_REGISTERED", {})
    monkeypatch.setattr(session_kernels, "_LIBRARIES", [])
    monkeypatch.setattr(session_kernels, "_OF_THIS_PROCESS", set())


def onnx_half(x: Any, plus: float = 0.0) -> Any:
    return opset20.Add(opset20.Div(x, 2.0), plus)


def onnx_ends(x: Any) -> Any:
    return opset20.Gather(x, 0, axis=0), opset20.Gather(x, -1, axis=0)


@pytest.mark.parametrize(
    "of", [lambda op: op, lambda op: op._opoverload, lambda op: getattr(torch.ops.drop_in, op._name)]
)
def test_a_translation_is_written_and_checked(of: Any) -> None:
    assert dy2st.onnx.translate(of(half))(onnx_half) is onnx_half
    dy2st.onnx.translate(of(ends))(onnx_ends)
    report = dy2st.check(model, INPUTS)
    report.raise_if_different()
    assert report.covered


def test_a_table_goes_before_what_is_registered() -> None:
    dy2st.onnx.translate(half)(lambda x, plus=0.0: opset20.Div(x, 2.5))
    dy2st.onnx.translate(ends)(onnx_ends)
    assert dy2st.check(model, INPUTS).outcome == "differs"
    dy2st.onnx.export(model, INPUTS[0], custom_translation_table={half: onnx_half}, verify=True)


def test_without_a_translation_it_is_refused_at_the_line() -> None:
    with pytest.raises(UntranslatedError, match=r"drop_in\.half") as info:
        dy2st.onnx.export(model, INPUTS[0])
    assert "dy2st.onnx.translate" in info.value.hint
    assert info.value.location is not None
    assert info.value.location.filename == __file__


def test_an_error_in_a_translation_is_told() -> None:
    def broken(x: Any, plus: float = 0.0) -> Any:
        return x.nowhere

    with pytest.raises(OnnxError, match="nowhere"):
        dy2st.onnx.export(model, INPUTS[0], custom_translation_table={half: broken, ends: onnx_ends})


CONTRIB = onnxscript.values.Opset("ai.onnx.contrib", 1)


@onnxscript.script(CONTRIB)
def contrib_half(x: FLOAT, plus: float = 0.0) -> FLOAT:
    return opset18.Add(CONTRIB.DropInHalf(x), plus)


@onnxscript.script(CONTRIB)
def newer_half(x: FLOAT, plus: float = 0.0) -> FLOAT:
    return opset20.Add(opset20.Div(x, 2.0), plus)


@onnxscript.script(CONTRIB)
def speechless(x, plus: float = 0.0):
    return CONTRIB.DropInHalf(x)


def test_a_node_of_a_domain_of_ones_own_runs_with_a_registered_kernel(tmp_path: Path) -> None:
    extensions = pytest.importorskip("onnxruntime_extensions", reason="kernels in Python are not installed: dy2st[dev]")

    @extensions.onnx_op(op_type="DropInHalf", inputs=[extensions.PyCustomOpDef.dt_float])
    def _(x: Any) -> Any:
        return x / 2

    dy2st.onnx.translate(half)(contrib_half)
    dy2st.onnx.translate(ends)(onnx_ends)
    with pytest.raises(OnnxError, match="DropInHalf") as info:
        dy2st.check(model, INPUTS)
    assert "register_kernels" in info.value.hint
    for _ in range(2):
        dy2st.onnx.register_kernels(extensions.get_library_path(), in_python=True)
    for isolated in (True, False):
        report = dy2st.check(model, INPUTS, isolated=isolated)
        report.raise_if_different()
        assert report.covered
    file = tmp_path / "half.onnx"
    dy2st.onnx.export(model, INPUTS[0], file, dynamic_shapes={"x": {0: "n"}}, verify=True)
    first, last = dy2st.onnx.Runner(file)([8.0, 4.0])
    assert (first, last) == (0.5, 0.25)


def test_kernels_that_can_not_be_loaded_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no library of kernels"):
        dy2st.onnx.register_kernels(tmp_path / "missing.so")
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(UsageError, match="can't load the kernels"):
        dy2st.onnx.register_kernels(tmp_path / "text.so")
    assert not session_kernels.registered_kernels()


@pytest.mark.parametrize("of", [torch.ops.aten.add, 3, Tensor, None])
def test_what_is_no_operator_is_refused(of: Any) -> None:
    with pytest.raises(UsageError):
        dy2st.onnx.translate(of)
    with pytest.raises(UsageError):
        dy2st.onnx.export(model, INPUTS[0], custom_translation_table={of: onnx_half})


def test_a_script_of_another_opset_is_refused() -> None:
    table = {half: newer_half, ends: onnx_ends}
    with pytest.raises(OnnxError, match="Opset mismatch") as info:
        dy2st.onnx.export(model, INPUTS[0], custom_translation_table=table)
    assert "opset18" in info.value.hint


def test_a_translation_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="custom_translation_table has a list"):
        dy2st.onnx.export(model, INPUTS[0], custom_translation_table={half: [onnx_half]})
    with pytest.raises(UsageError, match="does not say what it returns"):
        dy2st.onnx.translate(half)(speechless)
