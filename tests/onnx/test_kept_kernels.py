"""The kernels that are kept are those that torch makes, and all is as it was afterwards."""

from __future__ import annotations

import pytest
import torch
from torch._C import DispatchKey
from torch._subclasses import fake_impls
from torch.export import exported_program

from dy2st.onnx.passes import kept_kernels
from dy2st.onnx.passes.kept_kernels import keeping_kernels, operators_known

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def nothing_made(monkeypatch):
    monkeypatch.setattr(kept_kernels, "_made", {})
    monkeypatch.setattr(kept_kernels, "_split", {})


def decomposed(x, *_):
    return x


def keys_while_lowering(table):
    with exported_program._override_composite_implicit_decomp(table):
        keys = {op: set(op.py_kernels) for op in table}
        chosen = {op: op.py_kernels[DispatchKey.CompositeImplicitAutograd] for op in table}
        rules = {op: op in fake_impls.op_implementations_dict for op in table}
    return keys, chosen, rules


def now(table):
    return (
        {op: dict(op.py_kernels) for op in table},
        dict(fake_impls.op_implementations_dict),
    )


TABLE = {
    aten.linear.default: decomposed,
    aten.matmul.default: decomposed,
    aten.rsub.Scalar: exported_program._special_op_to_preserve_cia,
}


def test_the_kernels_are_torchs():
    before = now(TABLE)
    own = keys_while_lowering(TABLE)
    with keeping_kernels():
        first, second = keys_while_lowering(TABLE), keys_while_lowering(dict(reversed(TABLE.items())))
    assert own == first == second
    assert len(kept_kernels._made) == 1
    assert now(TABLE) == before


def test_other_decompositions_have_others():
    with keeping_kernels():
        keys_while_lowering(TABLE)
        other = {**TABLE, aten.linear.default: lambda *_: None}
        assert keys_while_lowering(other)[1] == other


def test_kernels_that_an_operator_got_meanwhile_stay():
    op = aten.linear.default
    with keeping_kernels():
        keys_while_lowering(TABLE)
        op.py_kernels[DispatchKey.CPU] = decomposed
        try:
            before = now(TABLE)
            with exported_program._override_composite_implicit_decomp(TABLE):
                assert op.py_kernels[DispatchKey.CPU] is decomposed
            assert now(TABLE) == before
        finally:
            del op.py_kernels[DispatchKey.CPU]
            op._dispatch_cache.clear()


@pytest.mark.parametrize("times", [1, 2])
def test_all_is_put_back_after_an_error(times):
    before = now(TABLE)
    with keeping_kernels():
        for _ in range(times):
            lowering = exported_program._override_composite_implicit_decomp(TABLE)
            with pytest.raises(KeyError, match="meanwhile"), lowering:
                raise KeyError("meanwhile")
            assert now(TABLE) == before


def test_a_table_is_parted_as_torch_parts_it():
    def table():
        return dict(torch.export.default_decompositions().items())

    own = exported_program._split_decomp_table_to_cia_and_python_decomp(table())
    with keeping_kernels():
        for _ in range(2):
            composite, others = exported_program._split_decomp_table_to_cia_and_python_decomp(table())
            assert set(composite) == set(own[0])
            assert set(others) == set(own[1])
            composite.clear()  # each has its own


def test_an_operator_that_comes_later_is_parted():
    with keeping_kernels():
        exported_program._split_decomp_table_to_cia_and_python_decomp({})
        before = operators_known()
        with torch.library._scoped_library("dy2st_parted", "FRAGMENT") as library:
            library.define("doubled(Tensor x) -> Tensor")
            library.impl("doubled", lambda x: x * 2, "CompositeImplicitAutograd")
            assert operators_known() != before
            op = torch.ops.dy2st_parted.doubled.default
            assert op in exported_program._split_decomp_table_to_cia_and_python_decomp({})[0]


def test_names_are_torchs():
    """What is replaced here is torch's own business: another torch may have it otherwise."""
    for name in ("_override_composite_implicit_decomp", "_split_decomp_table_to_cia_and_python_decomp"):
        assert callable(getattr(exported_program, name)), f"torch has no {name} any more: see kept_kernels.py"
    assert isinstance(fake_impls.op_implementations_dict, dict)
