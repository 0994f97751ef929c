"""What torch's exporter makes once in a process is the same for every file, and nothing stays of one for the next."""

from __future__ import annotations

import onnxscript
import pytest
import torch
from onnxscript.function_libs.torch_lib import registration
from torch._export import utils as export_utils
from torch.onnx._internal.exporter import _decomp, _schemas
from torch.onnx._internal.exporter._registration import ONNXRegistry

import dy2st.onnx
from dy2st.onnx.passes.reused import is_alias, reusing


def names(registry):
    return {
        target: [(each.onnx_function, each.is_custom, each.is_complex, each.opset_introduced) for each in found]
        for target, found in registry.functions.items()
    }


def test_the_registry_is_the_same():
    for opset in (18, 20):
        fresh = ONNXRegistry.from_torchlib(opset_version=opset)
        for _ in range(2):
            with reusing():
                made = ONNXRegistry.from_torchlib(opset_version=opset)
            assert made.opset_version == fresh.opset_version == opset
            fresh.functions = {name: found for name, found in fresh.functions.items() if not is_alias(found)}
            assert names(made) == names(fresh)


def test_what_one_file_registers_does_not_stay():
    def own(x):
        return x

    with reusing():
        first = ONNXRegistry.from_torchlib(opset_version=20)
        first.register_op(torch.ops.aten.sin.default, own)
        second = ONNXRegistry.from_torchlib(opset_version=20)
    assert first.get_decomps(torch.ops.aten.sin.default)[0].onnx_function is own
    assert all(each.onnx_function is not own for each in second.get_decomps(torch.ops.aten.sin.default))


def test_what_is_registered_later_is_there(monkeypatch):
    with reusing():
        before = len(ONNXRegistry.from_torchlib(opset_version=20).functions["aten::sin"])
    again = next(found.overloads[0] for name, found in registration.default_registry.items() if name == "aten::sin")
    group = registration.default_registry["aten::sin"]
    monkeypatch.setattr(group, "overloads", [*group.overloads, again])
    assert isinstance(again, (onnxscript.OnnxFunction, onnxscript.TracedOnnxFunction))
    with reusing():
        assert len(ONNXRegistry.from_torchlib(opset_version=20).functions["aten::sin"]) == before + 1


def test_an_operator_that_comes_later_is_translated():
    with reusing():
        before = ONNXRegistry.from_torchlib(opset_version=20)
    with torch.library._scoped_library("dy2st_later", "FRAGMENT") as library:
        library.define("doubled(Tensor x) -> Tensor")
        with reusing():
            after = ONNXRegistry.from_torchlib(opset_version=20)
    assert names(after) == names(before)
    assert after.functions["aten::sin"][0] is not before.functions["aten::sin"][0]


def test_operators_are_those_that_torch_finds():
    found = export_utils._collect_all_valid_cia_ops()
    with reusing():
        assert export_utils._collect_all_valid_cia_ops() == found


def test_all_is_put_back(tmp_path):
    before = ONNXRegistry.__dict__["from_torchlib"], export_utils._materialize_cpp_cia_ops
    dy2st.onnx.export(lambda x: x + 1, (torch.ones(3),), tmp_path / "model.onnx")
    assert (ONNXRegistry.__dict__["from_torchlib"], export_utils._materialize_cpp_cia_ops) == before


def test_a_signature_that_can_not_be_read_is_refused_each_time():
    def translated(x: no_such_type):  # noqa: F821
        return x

    with reusing():
        for _ in range(2):
            with pytest.raises(TypeError, match="NameError: name 'no_such_type'"):
                _schemas.op_signature_from_function(translated, "own", "translated")


def test_the_decompositions_are_the_same():
    operators = {torch.ops.aten.add.Tensor}
    fresh = _decomp.create_onnx_friendly_decomposition_table(operators)
    with reusing():
        for _ in range(2):
            made = _decomp.create_onnx_friendly_decomposition_table(operators)
            assert set(made) == set(fresh)
            made.clear()


def test_a_decomposition_that_is_put_in_place_of_another_counts(monkeypatch):
    def other(x):
        return x

    rule = torch.ops.aten.lift.default
    with reusing():
        before = _decomp.create_onnx_friendly_decomposition_table(set())
        monkeypatch.setitem(torch._decomp.decomposition_table, rule, other)
        after = _decomp.create_onnx_friendly_decomposition_table(set())
    assert after[rule] is other
    assert before.get(rule) is not other
