"""Models that torch has made of others: compiled, scripted, traced, quantized, in a mode, without values."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

import dy2st
from dy2st.errors import CaptureError, NoSourceError, UnconvertedConditionError, UsageError
from dy2st.source.torch_made import shown


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, x):
        if x.sum() > 0:
            return self.linear(x)
        return -self.linear(x)


class Frozen(Net):
    @torch.no_grad()
    def forward(self, x):
        if x.sum() > 0:
            return self.linear(x)
        return -self.linear(x)


class Outer(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        if x.mean() > 1:
            return self.inner(x)
        return self.inner(x - 1)


def sign(x):
    if bool(x.sum() > 0):
        return x
    return -x


@torch.inference_mode()
def unrecorded(x):
    if x.sum() > 0:
        return x * 2
    return -x


INPUTS = [(torch.ones(3, 4),), (-torch.ones(2, 4),), (3 * torch.ones(2, 4),)]
ENTRIES = {
    "convert": dy2st.convert,
    "code": dy2st.code,
    "export": lambda model: dy2st.export(model, INPUTS[0]),
    "to_static": dy2st.to_static,
    "check": lambda model: dy2st.check(model, INPUTS),
    "refusals": lambda model: dy2st.refusals(model, INPUTS),
    "onnx": lambda model: dy2st.onnx.export(model, INPUTS[0]),
}


def torchscript(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls these deprecated
        if name == "traced function":
            return torch.jit.trace(lambda x: x * 2, INPUTS[0])
        if name == "traced module":
            return torch.jit.trace(nn.Linear(4, 2), INPUTS[0])
        scripted = torch.jit.script(Net())
        return scripted.forward if name == "method" else scripted


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("name", ["scripted module", "method", "traced function", "traced module"])
def test_torchscript_has_no_source(name, entry):
    with pytest.raises(NoSourceError, match="was made by torch") as caught:
        ENTRIES[entry](torchscript(name))
    assert "that it was made from" in caught.value.hint


def test_a_scripted_module_in_a_model_is_refused_where_it_is_called():
    with pytest.raises(NoSourceError, match=r"a module \(Net\) was made by torch\.jit") as caught:
        dy2st.export(Outer(torchscript("scripted module")), INPUTS[0])
    assert caught.value.location.text.strip() in ("return self.inner(x)", "return self.inner(x - 1)")


def test_a_traced_module_in_a_model_is_part_of_the_program():
    report = dy2st.check(Outer(torchscript("traced module")), INPUTS)
    assert report.ok, report
    assert report.covered


def test_a_traced_function_is_not_taken_for_its_function():
    """It does what the function did once: converted, that would branch, and eager does not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(sign, INPUTS[0])
    assert torch.equal(traced(*INPUTS[1]), INPUTS[1][0])
    with pytest.raises(UnconvertedConditionError):
        dy2st.export(Outer(traced), INPUTS[0])


def test_a_scripted_function_is_the_function():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(sign)
    assert dy2st.code(scripted) == dy2st.code(sign)
    assert "x" in dy2st.convert(scripted).__code__.co_varnames
    report = dy2st.check(scripted, INPUTS)
    assert report.ok, report
    assert [result.description for result in report.inputs] == ["x: f32[3, 4]", "x: f32[2, 4]", "x: f32[2, 4]"]


@pytest.mark.parametrize("make", [Net, lambda: sign], ids=["module", "function"])
def test_a_compiled_model_is_the_model(make):
    model = make()
    compiled = torch.compile(model, backend="eager")
    assert dy2st.code(compiled) == dy2st.code(model)
    assert dy2st.check(compiled, INPUTS).ok
    assert torch.equal(dy2st.to_static(compiled)(*INPUTS[1]), model(*INPUTS[1]))
    assert dy2st.check(Outer(compiled), INPUTS).ok


def test_a_model_in_parallel_on_no_devices_is_the_model():
    model = Net()
    parallel = nn.DataParallel(model)
    assert dy2st.code(parallel) == dy2st.code(model)
    for given in (parallel, Outer(parallel)):
        assert dy2st.check(given, INPUTS).ok
        file = dy2st.onnx.export(given, INPUTS[0])
        assert "If" in {node.op_type for node in file.model.graph}


def test_hooks_around_a_model_in_parallel_are_not_lost():
    parallel = nn.DataParallel(Net())
    parallel.register_forward_hook(lambda module, args, result: result + 1)
    with pytest.raises(UnconvertedConditionError):
        dy2st.onnx.export(parallel, INPUTS[0])


@pytest.mark.parametrize(
    "model", [Frozen(), Frozen, Frozen.forward, unrecorded], ids=["module", "class", "method", "function"]
)
def test_the_source_under_a_mode_is_the_users(model):
    text = dy2st.code(model)
    assert text.startswith(("def forward(self, x):", "def unrecorded(x):"))
    assert "decorate_context" not in text
    changed = dy2st.code(model, diff=True).splitlines()
    assert changed[3].startswith(" def ")
    assert not any("no_grad" in line for line in changed)


def test_a_mode_stays_on_the_converted_model():
    converted = dy2st.convert(Frozen())
    assert not converted(*INPUTS[0]).requires_grad
    report = dy2st.check(Frozen(), INPUTS)
    assert report.ok, report
    assert "test_torch_made.py" in report.paths[0].file


def test_shown_stops_at_what_a_user_has_written():
    def outer(x):
        return sign(x)

    outer.__wrapped__ = sign
    assert shown(outer) is outer


@pytest.mark.parametrize("wrapped", [False, True], ids=["alone", "in a model"])
def test_quantized_layers_are_refused_by_name(wrapped):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.ao.quantization.quantize_dynamic(Net(), {nn.Linear}, dtype=torch.qint8)
    model = Outer(model) if wrapped else model
    name = "inner.linear" if wrapped else "linear"
    for entry in ("export", "check", "onnx"):
        with pytest.raises(CaptureError, match=f"^D2S301: {name} is quantized") as caught:
            ENTRIES[entry](model)
        assert "quantize the file" in caught.value.hint
    assert dy2st.convert(model)(*INPUTS[0]).shape == (3, 2)


def test_weights_without_values_are_refused():
    with torch.device("meta"):
        model = Net()
    for entry in ("export", "check", "onnx", "refusals"):
        with pytest.raises(UsageError, match=r"linear\.weight is on the device meta, and has no values"):
            ENTRIES[entry](model)


def test_a_program_without_values_can_be_made():
    with torch.device("meta"):
        model, x = Net(), torch.ones(3, 4)
    assert "cond" in str(dy2st.export(model, (x,)).graph)
    with pytest.raises(UsageError, match=r"is on the device meta"):
        dy2st.onnx.export(model, (x,))
