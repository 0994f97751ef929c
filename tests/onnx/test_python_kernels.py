"""Kernels are registered as torch registers them, only quicker."""

from __future__ import annotations

import pytest
import torch
from torch._C import DispatchKey
from torch._ops import OperatorBase
from torch.utils._python_dispatch import TorchDispatchMode

from dy2st.onnx.passes.python_kernels import registering_quickly


@pytest.fixture
def operator():
    with torch.library._scoped_library("dy2st_kernels", "FRAGMENT") as library:
        library.define("kept(Tensor x) -> Tensor")
        yield torch.ops.dy2st_kernels.kept.default


def kernel(*_):
    return torch.zeros(())


def test_a_kernel_for_a_dispatch_key_is_found(operator):
    operator._dispatch_cache[DispatchKey.CPU] = DispatchKey.CPU
    with registering_quickly():
        assert operator.py_impl(DispatchKey.CPU)(kernel) is kernel
    assert operator.py_kernels == {DispatchKey.CPU: kernel}
    assert not operator._dispatch_cache


@pytest.mark.parametrize("quickly", [False, True])
def test_what_is_refused_is_refused(operator, quickly):
    operator.py_impl(DispatchKey.CPU)(kernel)
    make = registering_quickly if quickly else torch.no_grad
    with make():
        with pytest.raises(
            RuntimeError, match=r"override a python impl for DispatchKey\.CPU on operator dy2st_kernels"
        ):
            operator.py_impl(DispatchKey.CPU)(kernel)
        with pytest.raises(AssertionError, match="register a mode"):
            operator.py_impl(DispatchKey.Python)(kernel)
        with pytest.raises(AssertionError, match="expected DispatchKey"):
            operator.py_impl("CPU")(kernel)


def test_modes_and_operators_of_higher_order_go_torchs_way(operator):
    class Mode(TorchDispatchMode):
        pass

    before = OperatorBase.py_impl
    with registering_quickly():
        operator.py_impl(Mode)(kernel)
    assert operator.python_key_table == {Mode: kernel}
    assert OperatorBase.py_impl is before
