"""The private names of torch that dy2st leans on: each fails here, by its name, when torch changes."""

from __future__ import annotations

import inspect

import torch
from torch._higher_order_ops.cond import cond_op
from torch._higher_order_ops.utils import reenter_make_fx
from torch._higher_order_ops.while_loop import while_loop_op
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental import _config, proxy_tensor
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.onnx._internal.exporter import _core

from dy2st.tracing.replaced import without_modes


def test_the_tracer_keeps_its_tables_where_regions_replace_them() -> None:
    tracer = proxy_tensor.PythonKeyTracer()
    for name in ("tensor_tracker", "symnode_tracker", "sympy_expr_tracker", "proxy", "create_proxy"):
        assert hasattr(tracer, name), name
    for name in ("get_proxy_mode", "track_tensor_tree", "disable_proxy_modes_tracing", "fetch_sym_proxy"):
        assert callable(getattr(proxy_tensor, name)), name
    assert callable(proxy_tensor._enable_thunkify)


def test_the_tracer_of_modules_has_the_methods_that_other_threads_pass_by() -> None:
    tracer = proxy_tensor._ModuleStackTracer
    assert list(inspect.signature(tracer.call_module).parameters) == ["self", "m", "forward", "args", "kwargs"]
    assert list(inspect.signature(tracer.getattr).parameters)[:3] == ["self", "attr", "attr_val"]


def test_symbols_of_sizes_can_be_told_not_to_be_positive() -> None:
    parameters = inspect.signature(ShapeEnv.create_symbol).parameters
    assert {"positive", "do_not_specialize_zero_one"} <= set(parameters)
    assert hasattr(_config, "backed_size_oblivious")


def test_the_shape_environment_can_forget() -> None:
    env = ShapeEnv()
    for name in ("guards", "var_to_range", "replacements", "unbacked_symint_counter", "_update_version_counter"):
        assert hasattr(env, name), name


def test_the_onnx_exporter_records_the_nodes_of_a_translation() -> None:
    assert hasattr(_core, "current_tracer")
    assert "custom_translation_table" in inspect.signature(torch.onnx.export).parameters


def test_higher_order_operators_are_where_they_were() -> None:
    assert cond_op is torch.ops.higher_order.cond
    assert while_loop_op is torch.ops.higher_order.while_loop
    assert callable(reenter_make_fx)


def test_dispatch_modes_can_be_left_for_a_while() -> None:
    with FakeTensorMode(), without_modes():
        assert type(torch.ones(2)) is torch.Tensor
