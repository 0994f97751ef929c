"""Autocast while a program is captured: its casts become nodes of the graph.

torch.export keeps an autocast block as a block; a subgraph of a branch or loop can't be such a block, and an ONNX file
knows none. So each operator that is called under autocast runs autocast's own kernel (or, if it is made of others, its
definition) with the trace looking on, which sees the casts. No rule of autocast is repeated here.

Source: ``torch/amp/autocast_mode.py`` and ``aten/src/ATen/autocast_mode.cpp`` of torch 2.13.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import MethodType
from typing import Any

import torch
from torch._C import DispatchKey
from torch.fx.experimental.proxy_tensor import PreDispatchTorchFunctionMode, get_proxy_mode
from torch.overrides import _get_current_function_mode_stack
from torch.utils import _pytree as pytree

from dy2st.tracing.replaced import replaced

KEYS = {"cpu": DispatchKey.AutocastCPU, "cuda": DispatchKey.AutocastCUDA}
# Operators that are defined by others, none of which autocast looks at: they stay whole.
WHOLE = frozenset(
    "batch_norm instance_norm layer_norm group_norm dropout alpha_dropout feature_dropout softmax log_softmax to "
    "type_as contiguous reshape flatten unflatten".split()
)
# What a capture writes for an autocast block, were it not for us.
MARKS = (torch.amp.autocast_mode._enter_autocast, torch.amp.autocast_mode._exit_autocast)


def _active_key(arguments: Any) -> DispatchKey | None:
    """The dispatch key of the autocast that these arguments are subject to, or None."""
    for leaf in pytree.tree_leaves(arguments):
        if isinstance(leaf, torch.Tensor):
            key = KEYS.get(leaf.device.type)
            if key is not None and torch.is_autocast_enabled(leaf.device.type):
                return None if torch._C._dispatch_tls_is_dispatch_key_excluded(key) else key
    return None


def visible_casts() -> AbstractContextManager[None]:
    """Trace what autocast does to the arguments of operators."""
    tracing: Any = get_proxy_mode()
    assert tracing is not None
    native = tracing.__torch_dispatch__

    def dispatch(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        key = _active_key((args, kwargs)) if isinstance(func, torch._ops.OpOverload) else None
        if key is not None:
            name, defined = func.name(), DispatchKey.CompositeImplicitAutograd
            if torch._C._dispatch_has_kernel_for_dispatch_key(name, key):
                with tracing:
                    result = func._op_dk(key, *args, **kwargs)
                # A cast that is kept for later may stand in a subgraph that isn't run.
                torch.clear_autocast_cache()
                return result
            whole = func.overloadpacket.__name__ in WHOLE
            if not whole and torch._C._dispatch_has_kernel_for_dispatch_key(name, defined):
                with tracing:
                    return func.decompose(*args, **kwargs)
        return native(func, types, args, kwargs)

    blocks = [m for m in _get_current_function_mode_stack() if isinstance(m, PreDispatchTorchFunctionMode)]
    functions = [(mode, "__torch_function__", _without_marks(mode)) for mode in blocks]
    return replaced([(tracing, "__torch_dispatch__", dispatch), *functions])


def _without_marks(mode: Any) -> MethodType:
    native = mode.__torch_function__

    def function(_mode: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return None if func in MARKS else native(func, types, args, kwargs)

    return MethodType(function, mode)  # torch takes nothing but a method
