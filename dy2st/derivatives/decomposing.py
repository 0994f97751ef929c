"""A graph traced once more: in operators that a derivative has rules for, and without writes in place.

A capture keeps torch's operators as the user's code calls them. Before a graph is differentiated, composite operators
are taken apart, and a write in place becomes an operator that makes a new tensor.

Source: ``torch._subclasses.functional_tensor`` and ``make_fx`` of torch 2.13.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sympy
import torch
from torch import fx
from torch._subclasses.functional_tensor import FunctionalTensorMode, dispatch_functionalize
from torch.fx import traceback
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, make_fx
from torch.fx.experimental.symbolic_shapes import _suppress_guards, free_unbacked_symbols
from torch.nn.attention import SDPBackend, sdpa_kernel

from dy2st.derivatives.backward_rules import BEFORE
from dy2st.sizes.guard_hooks import asking
from dy2st.sizes.rules import is_nonempty
from dy2st.tracing.grad_mode import without_gradients
from dy2st.tracing.graph_ops import InStep
from dy2st.tracing.subgraph import changed_inputs, graph_modules


@contextlib.contextmanager
def unfused() -> Iterator[None]:
    """Without fused kernels, whose derivatives are one operator each that ONNX does not have."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="TF32 acceleration")
        with sdpa_kernel(SDPBackend.MATH), torch.backends.mkldnn.flags(enabled=False):
            yield


@contextlib.contextmanager
def decided(env: Any) -> Iterator[None]:
    """What a derivative asks of sizes, to say how it is computed, leaves no guard."""

    def decide(expr: Any, run: Any) -> Any:
        if not free_unbacked_symbols(expr):
            with _suppress_guards(env):
                return run()
        if isinstance(expr, (sympy.Eq, sympy.Ne)):
            # Two sizes that are compared are equal: the capture has seen to that. One that is data is no constant.
            same = all(side.free_symbols for side in expr.args)
            return sympy.true if same == isinstance(expr, sympy.Eq) else sympy.false
        if is_nonempty(sympy.Not(expr)):
            return sympy.false
        return sympy.true if is_nonempty(expr) else run()

    with asking(env, decide):
        yield


def retraced(
    function: Callable[..., Any], given: Sequence[Any], fake_mode: Any, table: dict[Any, Callable[..., Any]]
) -> fx.GraphModule:
    """The graph of a function of tensors and sizes without values; it returns a sequence.

    Nothing of it is part of a trace that is running. ``table`` says how operators are written with others.
    """
    env = fake_mode.shape_env
    with (
        disable_proxy_modes_tracing(),
        torch._C.DisableTorchFunction(),
        fake_mode,
        without_gradients(),
        decided(env),
        traceback.preserve_node_meta(),
    ):
        module: fx.GraphModule = make_fx(function, decomposition_table=table, _allow_non_fake_inputs=True)(*given)
    output = next(node for node in reversed(module.graph.nodes) if node.op == "output")
    output.args = (tuple(output.args[0]),)
    return module


def _normalised(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor,
    variance: torch.Tensor,
    momentum: float,
    eps: float,
) -> Any:
    return torch.ops.aten.native_batch_norm.default(x, weight, bias, mean, variance, False, momentum, eps)


# What has a derivative under another name only.
_NAMED: dict[Any, Callable[..., Any]] = {torch.ops.aten._native_batch_norm_legit_no_training.default: _normalised}


def without_writes(module: fx.GraphModule, given: Sequence[Any], fake_mode: Any) -> fx.GraphModule:
    """``module``, which takes ``given``, in operators that only make new tensors."""
    if not any(changed_inputs(node) for each in graph_modules(module) for node in each.graph.nodes):
        return module

    def run(*arguments: Any) -> Any:
        return list(dispatch_functionalize(InStep(module).run, FunctionalTensorMode())(*arguments))

    with unfused():
        return retraced(run, given, fake_mode, {**BEFORE, **_NAMED})
